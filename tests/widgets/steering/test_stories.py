"""The stories: each runs to its end, always in the same way, and what its answers say is in the journal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest

from shareq import Cluster
from shareq.model.errors import Errors, IllegalStateException
from shareq.model.events import (
    AcknowledgementRefused,
    AcknowledgementsSent,
    BrokerStopped,
    CoordinatorLoaded,
    HeartbeatReceived,
    LeaderElected,
    MemberJoined,
    MemberLeft,
    RecordsChanged,
    RecordsDelivered,
    RequestSent,
    ResponseSent,
    SharePartitionLoaded,
    WindowMoved,
)
from shareq.model.ids import GROUP_METADATA_TOPIC
from shareq.model.states import SETTLED, RecordEvent, RecordState
from shareq_widgets.steering import STORIES, Story
from shareq_widgets.steering.stories.evidence import seconds

E = TypeVar("E")


class Played:
    """A story at its end, and its journal, read without the story's own code."""

    def __init__(self, name: str) -> None:
        self.story = STORIES[name].begin()
        self.orders = [self.story.steering.cluster.journal.total]
        while not self.story.done:
            self.story.next()
            self.orders.append(self.story.steering.cluster.journal.total)
        self.answers = self.story.answers
        self.journal = self.story.steering.cluster.journal
        self.names = {e.event.member_id: e.event.client_id for e in self.journal if isinstance(e.event, MemberJoined)}

    def of(self, kind: type[E], step: int | None = None) -> Iterator[tuple[int, E]]:
        """(time, event) of one type, in one step (from 1) or in the whole journal."""
        first, end = (0, self.journal.total) if step is None else self.orders[step - 1 : step + 1]
        for order, time_ms, _, event in self.journal:
            if first <= order < end and isinstance(event, kind):
                yield time_ms - self.journal.origin_ms, event

    def offsets(self, cause: str, step: int | None = None, **wanted: Any) -> Counter[int]:
        """How often each record changed with this cause, and these other fields; `by` is a consumer's name."""
        by = wanted.pop("by", None)
        found: Counter[int] = Counter()
        for _, event in self.of(RecordsChanged, step):
            fields = all(getattr(event, name) == value for name, value in wanted.items())
            if event.cause == cause and fields and by in (None, self.names.get(str(event.member_id))):
                found.update(range(event.first, event.end))
        return found

    def accepted(self, step: int | None = None) -> Counter[int]:
        return self.offsets(SETTLED, step, state=RecordState.ACKNOWLEDGED)

    def archived(self, step: int | None = None) -> Counter[int]:
        return self.offsets(SETTLED, step, state=RecordState.ARCHIVED)

    def timeouts_ms(self, step: int | None = None) -> list[int]:
        return [t for t, e in self.of(RecordsChanged, step) if e.cause == RecordEvent.LOCK_TIMEOUT]

    def acquired_ms(self, by: str, step: int | None = None) -> list[int]:
        return [
            t
            for t, e in self.of(RecordsChanged, step)
            if e.cause == RecordEvent.ACQUIRE and self.names[str(e.member_id)] == by
        ]

    def only(self, kind: type[E], step: int) -> tuple[int, E]:
        """The single event of a type in a step."""
        (found,) = self.of(kind, step)
        return found

    def spso(self) -> int:
        return [event.spso for _, event in self.of(WindowMoved)][-1]


def numbers(text: str) -> list[float]:
    """The numbers of an answer, in order."""
    return [float(number.replace(",", "")) for number in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", text)]


# ---- all stories -----------------------------------------------------------------------------------------------------


def test_the_presets_of_the_panel_from_the_simplest_on() -> None:
    assert list(STORIES) == [
        "poison",
        "crashed consumer",
        "slow consumer and zombie acknowledgement",
        "head-of-line blocking",
        "window full",
        "leader failover",
        "coordinator failover",
        "rolling restart",
    ]


@pytest.mark.parametrize("name", STORIES)
def test_a_story_shows_its_progress(name: str) -> None:
    story = STORIES[name].begin()
    assert (story.position, story.answer, story.done) == (0, "", False)
    for place in range(story.count):
        assert story.position == place
        assert story.text.endswith(".")
        assert story.question.endswith("?")
        asked = story.step
        answer = story.next()
        assert answer.endswith(".")
        assert answer == story.answer == story.answers[place]
        assert story.step is not asked
    assert (story.done, story.text, story.question, story.step) == (True, "", "", None)
    with pytest.raises(IllegalStateException, match=rf"the story '{name}' has ended after {story.count} steps"):
        story.next()
    story.close()


@pytest.mark.parametrize("name", STORIES)
def test_a_story_always_has_the_same_course_and_its_program_repeats_it(name: str) -> None:
    def begun() -> Story:
        story = STORIES[name].begin()
        while not story.done:
            story.next()
        return story

    one, other = begun(), begun()
    assert one.answers == other.answers
    assert list(one.steering.cluster.journal) == list(other.steering.cluster.journal)
    names: dict[str, Any] = {}
    exec(one.steering.program, names)
    assert _without_messages(names["cluster"]) == _without_messages(one.steering.cluster)


def _without_messages(cluster: Cluster) -> list[tuple[Any, ...]]:
    """The events of a cluster with their times; the evidence of an answer asks the brokers, a program does not."""
    entries = [entry for entry in cluster.journal if not isinstance(entry.event, (RequestSent, ResponseSent))]
    return [(entry.time_ms, entry.broker_id, entry.event) for entry in entries]


# ---- what the answers say --------------------------------------------------------------------------------------------


def test_head_of_line_blocking() -> None:
    played = Played("head-of-line blocking")
    assert played.answers[0].startswith("A holds record 0, B holds 1–5: SPSO 0, SPEO 5.")
    assert set(played.offsets(RecordEvent.ACQUIRE, 1, by="A")) == {0}
    assert set(played.offsets(RecordEvent.ACQUIRE, 1, by="B")) == set(range(1, 6))
    assert set(played.accepted(2)) == set(range(1, 30))
    assert played.answers[1].startswith("29 of 30 records are acknowledged, all behind record 0")
    assert {event.spso for _, event in played.of(WindowMoved, 2)} == {0}
    assert set(played.accepted(3)) == {0}
    moved_ms, moved = played.only(WindowMoved, 3)
    assert moved.spso == 30
    assert f"at {seconds(moved_ms)} the SPSO moves from 0 to 30 at once" in played.answers[2]


def test_poison() -> None:
    played = Played("poison")
    assert played.offsets(RecordEvent.ACQUIRE, 1)[9] == 5
    assert set(played.archived(1)) == {9}
    assert set(played.accepted(1)) == set(range(9))
    assert played.answers[0].startswith("Record 9 was delivered 5 times in ")
    assert "share.delivery.count.limit is 5. The other 9 records are acknowledged." in played.answers[0]
    assert played.offsets(RecordEvent.ACQUIRE, 2)[19] == 1
    assert set(played.archived(2)) == {19}
    assert played.answers[1].startswith("Record 19 was delivered once, and archived 0.5 s later, at delivery count 1.")
    assert played.spso() == 20


def test_crashed_consumer() -> None:
    played = Played("crashed consumer")
    (acquired_ms,) = played.acquired_ms("A")
    assert played.answers[0].startswith(f"A acquired records 0–4 at {seconds(acquired_ms)}; their locks run for 30 s.")
    assert not played.acquired_ms("B", 2)
    assert "5 records are still locked for A, for another 8 s" in played.answers[1]
    (expired_ms,) = played.timeouts_ms()
    assert expired_ms - acquired_ms == 30_000
    assert played.acquired_ms("B") == [expired_ms]
    assert played.offsets(RecordEvent.ACQUIRE, by="B", delivery_count=2) == Counter(range(5))
    assert (
        "exactly 30 s after the acquisition. B acquired the 5 records at once, with delivery count 2"
        in played.answers[2]
    )
    left_ms, left = played.only(MemberLeft, 4)
    assert (played.names[left.member_id], left.reason) == ("A", "session expired")
    last_ms = [t for t, e in played.of(HeartbeatReceived) if played.names.get(e.member_id) == "A"][-1]
    assert left_ms - last_ms == 45_000
    assert played.answers[3].startswith(f"The group removes A at {seconds(left_ms)} (session expired)")
    assert set(played.accepted()) == set(range(5))


def test_slow_consumer_and_zombie_acknowledgement() -> None:
    played = Played("slow consumer and zombie acknowledgement")
    (expired_ms,) = played.timeouts_ms(1)
    assert played.acquired_ms("B", 1) == [expired_ms] == [played.acquired_ms("A", 1)[0] + 30_000]
    assert f"At {seconds(expired_ms)} the locks of records 0–4 ran out" in played.answers[0]
    for step in (2, 5):  # a slow consumer, and one that was frozen
        refused_ms, refused = played.only(AcknowledgementRefused, step)
        assert (played.names[refused.member_id], refused.error) == ("A", Errors.INVALID_RECORD_STATE)
        assert f"{seconds(refused_ms)}" in played.answers[step - 1]
        assert "INVALID_RECORD_STATE" in played.answers[step - 1]
        errors = [e.error for _, e in played.of(AcknowledgementsSent, step) if played.names[e.member_id] == "A"]
        assert Errors.INVALID_RECORD_STATE in errors
    assert played.offsets(RecordEvent.RENEW, 3).total() == 6
    assert "A renewed its locks 2 times, 6 records in all, and 0 locks ran out." in played.answers[2]
    assert not played.timeouts_ms(3)
    assert played.offsets(RecordEvent.ACQUIRE, 3) == Counter(range(5, 10))
    (expired_ms,), (left_ms, _) = played.timeouts_ms(4), played.only(MemberLeft, 4)
    assert expired_ms < left_ms
    assert f"ran out at {seconds(expired_ms)}, and the group removed it at {seconds(left_ms)}" in played.answers[3]
    rejoined_ms, rejoined = played.only(MemberJoined, 5)
    assert played.names[rejoined.member_id] == "A"
    assert f"A joins the group again at {seconds(rejoined_ms)}" in played.answers[4]
    assert played.accepted() == Counter(range(15))


def test_window_full() -> None:
    played = Played("window full")
    assert played.accepted(1) == Counter(range(5, 100))
    assert max(played.offsets(RecordEvent.ACQUIRE, 1)) == 99
    assert max(event.window_end - event.spso for _, event in played.of(WindowMoved)) == 100
    assert played.answers[0].startswith("B finished 95 records")
    assert "SPSO 0, SPEO 99: 100 records in flight, which is share.partition.max.record.locks=100." in played.answers[0]
    assert "200 records wait above the window" in played.answers[0]
    assert played.offsets(SETTLED, 2, why=RecordEvent.SESSION_RELEASE) == Counter(range(5))
    moved_ms, moved = next((t, e) for t, e in played.of(WindowMoved, 2) if e.spso)
    assert (moved.spso, min(offset for offset in played.offsets(RecordEvent.ACQUIRE, 2) if offset > 4)) == (100, 100)
    assert f"at {seconds(moved_ms)} the SPSO moved to 100" in played.answers[1]
    assert played.accepted() == Counter(range(300))


def test_leader_failover() -> None:
    played = Played("leader failover")
    held = played.offsets(RecordEvent.ACQUIRE, 1)
    assert held == Counter(range(10))
    assert "A holds records 0–4, B holds 5–9. SPSO 0, SPEO 9." in played.answers[0]
    _, stopped = played.only(BrokerStopped, 2)
    elected = next(e for _, e in played.of(LeaderElected, 2) if e.topic == "jobs")
    loaded_ms, loaded = played.only(SharePartitionLoaded, 2)
    assert (stopped.broker_id, stopped.killed, elected.leader) == (0, True, 1)
    assert (loaded.spso, loaded.runs) == (0, ())  # neither locks nor attempts
    assert played.answers[1].startswith(
        f"Broker 0 died, and broker 1 leads since 11 s, with leader epoch {elected.leader_epoch}."
    )
    assert f"At {seconds(loaded_ms)}" in played.answers[1]
    assert played.offsets(RecordEvent.ACQUIRE, 2, delivery_count=1) == held
    assert "10 were acquired once more, with delivery count 1" in played.answers[1]
    assert played.accepted() == Counter(range(20))
    assert played.answers[2].startswith("20 of 20 records are acknowledged, 0 are lost: SPSO 20")
    assert played.offsets(RecordEvent.ACQUIRE).total() - 20 == 10
    assert played.answers[2].endswith(
        "10 records were acquired again, because a new leader knows no locks of the old one."
    )
    assert "it read from the state topic that SPSO is 0, and no result of any record" in played.answers[1]


def test_coordinator_failover() -> None:
    played = Played("coordinator failover")
    killed_ms, stopped = played.only(BrokerStopped, 2)
    (replayed,) = [e for _, e in played.of(CoordinatorLoaded, 2) if e.topic == GROUP_METADATA_TOPIC and e.record_count]
    beats: dict[str, int] = {}
    for time_ms, beat in played.of(HeartbeatReceived, 2):
        assert beat.error == Errors.NONE
        beats.setdefault(played.names[beat.member_id], time_ms)
    assert not [*played.of(MemberJoined, 2), *played.of(MemberLeft, 2)]
    assert f"Broker {stopped.broker_id} died at {seconds(killed_ms)}" in played.answers[1]
    assert f"replayed {replayed.record_count} records" in played.answers[1]
    assert f"A's at {seconds(beats['A'])} and B's at {seconds(beats['B'])}" in played.answers[1]
    assert "0 members joined anew, and the group epoch changed 0 times" in played.answers[1]
    assert f"Meanwhile {len(played.accepted(2))} records were acknowledged" in played.answers[1]
    assert played.accepted() == Counter(range(250))
    assert played.answers[2].startswith("250 of 250 records are acknowledged, 0 are lost")
    assert [event.leader for _, event in played.of(LeaderElected) if event.topic == "jobs"] == [0]
    assert played.offsets(RecordEvent.ACQUIRE) == Counter(range(250))
    assert "new leader" not in played.answers[2]
    assert "No record was acquired twice" in played.answers[2]


def test_rolling_restart() -> None:
    played = Played("rolling restart")
    stopped = [event for _, event in played.of(BrokerStopped)]
    assert [(event.broker_id, event.killed) for event in stopped] == [(0, False), (1, False), (2, False)]
    leaders = [event.leader for _, event in played.of(LeaderElected) if event.topic == "jobs"]
    assert f"({' → '.join(map(str, leaders))})" in played.answers[1]
    assert numbers(played.answers[1])[:3] == [3, 0, len(leaders) - 1]
    delivered = Counter[int]()
    for _, event in played.of(RecordsDelivered):
        delivered.update(range(event.first, event.end))
    assert set(delivered) == set(played.accepted()) == set(range(350))
    assert max(played.accepted().values()) == 1
    repeated = played.offsets(RecordEvent.ACQUIRE).total() - 350
    assert "350 of 350 records are acknowledged, 0 are lost: SPSO 350" in played.answers[2]
    assert f"{repeated} records were acquired again" in played.answers[2]
