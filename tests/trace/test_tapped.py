"""A share-partition seen by an observer through which all or some members are connected: holders, deadlines, ends."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.model.events import (
    DurableStateRead,
    Event,
    HoldEnded,
    LeaderElected,
    MemberJoined,
    MemberLeft,
    MembersBypass,
    RecordsAppended,
    RecordsHeld,
    Run,
    TopicCreated,
)
from shareq.model.states import RecordEvent, RecordState
from shareq.trace import Journal, raster, view
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.record_history import RecordHistory
from shareq.trace.analysis.record_moves import RecordMoves
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, fold

LOCK_MS = 30_000
STATES = {"accept": RecordState.ACKNOWLEDGED, "reject": RecordState.ARCHIVED, "gap": RecordState.ARCHIVED}
ALL_SEEN, ANNA_SEEN = MembersBypass(GROUP, ()), MembersBypass(GROUP, ("b",))


def read(spso: int, *runs: tuple[int, int, int, int]) -> DurableStateRead:
    return DurableStateRead(*WHERE, spso, tuple(Run(*run) for run in runs), -1, 0, 1, 0)


def held(member: str, first: int, end: int, count: int = 1, second: int = 30) -> RecordsHeld:
    return RecordsHeld(*WHERE, member, first, end, count, ORIGIN_MS + 1000 * second)


def ended(cause: str, first: int, end: int, count: int = 1, member: str = "a") -> HoldEnded:
    state = STATES.get(cause, RecordState.AVAILABLE)
    inferred = cause in (RecordEvent.LOCK_TIMEOUT, RecordEvent.SESSION_RELEASE)
    return HoldEnded(*WHERE, member, cause, first, end, state, count, inferred)


START: list[Event] = [
    TopicCreated(TOPIC, "id", 1),
    LeaderElected(TOPIC, 0, 1, 0),
    MemberJoined(GROUP, "a", "anna", (TOPIC,)),
    MemberJoined(GROUP, "b", "ben", (TOPIC,)),
]
TEN: list[Event] = [*START, read(0), RecordsAppended(TOPIC, 0, 0, 10), ALL_SEEN]


def journal_of(events: list[Event]) -> Journal:
    journal = Journal(ORIGIN_MS)
    for second, event in enumerate(events):
        journal.record(ORIGIN_MS + 1000 * second, -1, event)
    return journal


@pytest.mark.parametrize(
    ("events", "text"),
    [
        pytest.param(TEN, "SPSO 0 | empty", id="no record was delivered"),
        pytest.param([*TEN, held("a", 0, 3)], "SPSO 0 | A A A | SPEO 2", id="held: the window ends with it"),
        pytest.param(
            [*TEN, held("a", 0, 3), ended("accept", 1, 2)], "SPSO 0 | A ✓ A | SPEO 2", id="accepted above the SPSO"
        ),
        pytest.param(
            [*TEN, held("a", 0, 3), ended("accept", 0, 2)], "SPSO 2 | A | SPEO 2", id="the SPSO passes at once"
        ),
        pytest.param(
            [*TEN, held("a", 0, 3), ended("release", 0, 1), ended("reject", 2, 3)],
            "SPSO 0 | ○ A ✕ | SPEO 2",
            id="released is available, as no member is elsewhere",
        ),
        pytest.param(
            [*TEN, held("a", 0, 2), ended("lock_timeout", 0, 2), held("b", 0, 1, 2)],
            "SPSO 0 | B2 ○ | SPEO 1",
            id="the next delivery",
        ),
        pytest.param(
            [*TEN, held("a", 0, 2), ended("accept", 0, 2), read(0, (0, 1, 0, 1))],
            "SPSO 2 | empty",
            id="a durable state that was read before the acknowledgement",
        ),
        pytest.param(
            [*TEN, held("a", 0, 2), ended("accept", 1, 2), read(0, (1, 2, 2, 1)), ended("accept", 0, 1), read(2)],
            "SPSO 2 | empty",
            id="a durable state that has it",
        ),
        pytest.param(
            [*TEN, held("a", 0, 2), ended("accept", 0, 2), read(2), read(0)],
            "SPSO 0 | empty",
            id="the offsets of the group were reset",
        ),
        pytest.param(
            [*TEN, held("a", 0, 2), ended("release", 0, 2), held("b", 0, 2, 2), ended("lock_timeout", 0, 2)],
            "SPSO 0 | B2 B2 | SPEO 1",
            id="the late end of an earlier delivery",
        ),
        pytest.param(
            [*TEN, held("a", 0, 4), ended("accept", 2, 3), LeaderElected(TOPIC, 0, 2, 1)],
            "SPSO 0 | ○ ○ ✓ | SPEO 2",
            id="a new leader: locks are void, confirmed acknowledgements stay",
        ),
        pytest.param(
            [*TEN, held("a", 0, 2), ended("release", 0, 2), LeaderElected(TOPIC, 0, 2, 1), held("b", 0, 2)],
            "SPSO 0 | B B | SPEO 1",
            id="a new leader without the count of the old one",
        ),
        pytest.param(
            [*TEN, held("a", 0, 2), MemberLeft(GROUP, "a", "left")],
            "SPSO 0 | A A | SPEO 1",
            id="a member that leaves keeps its locks until its session ends",
        ),
        pytest.param(
            [*TEN, ANNA_SEEN, held("a", 0, 2), ended("release", 0, 1)],
            "SPSO 0 | ◌1 A ?×8 | log end 10",
            id="a member is connected elsewhere",
        ),
        pytest.param(
            [*START, ALL_SEEN, read(-1), held("a", 4, 6), ended("accept", 4, 5)],
            "SPSO 4 | ✓ A | SPEO 5 (nothing durable)",
            id="no durable state yet",
        ),
    ],
)
def test_the_text_after_a_history(events: list[Event], text: str) -> None:
    journal = journal_of(events)
    snapshot = view(journal, GROUP, TOPIC).snapshot()
    assert snapshot["text"] == text
    assert fold(journal, *WHERE).spso == snapshot["spso"]
    assert snapshot["tapped"] == (not snapshot["observed"])
    assert (snapshot["in_flight"] is None) == snapshot["observed"]


def test_a_holder_has_a_deadline() -> None:
    snapshot = view(journal_of([*TEN, held("b", 1, 3, second=40)]), GROUP, TOPIC).snapshot()
    assert {m["name"]: (m["held"], m["deadline_ms"]) for m in snapshot["members"]} == {
        "anna": (0, None),
        "ben": (2, ORIGIN_MS + 40_000),
    }


def test_locks_are_renewed_and_end() -> None:
    """The second delivery with the same count is a renewal; the end of a part leaves the rest."""
    events: list[Event] = [
        *TEN,
        held("a", 0, 4),
        held("a", 0, 4, second=50),
        ended("accept", 0, 1),
        ended("release", 3, 4),
    ]
    history = GroupHistory(journal_of(events), GROUP)
    history.refresh()
    fold = history.locks(TOPIC, 0, len(events), 0)
    assert [(lock.first, lock.end, lock.deadline_ms, lock.renewed) for lock in fold.held] == [
        (1, 3, ORIGIN_MS + 50_000, 1)
    ]
    assert {(one.lock.first, one.how, one.state.name) for one in fold.ended(0)} == {
        (0, "accept", "ACKNOWLEDGED"),
        (3, "release", "AVAILABLE"),
    }


def test_the_moves_of_records() -> None:
    events: list[Event] = [*TEN, held("a", 0, 2), ended("accept", 0, 1), ended("lock_timeout", 1, 2)]
    timeline = PartitionTimeline(journal_of(events), GROUP, TOPIC, 0)
    timeline.refresh()
    moves = RecordMoves(timeline).between(len(TEN), len(events)).moves
    assert [(m.first, m.end, m.event, m.source.name, m.target.name, m.member_id) for m in moves] == [
        (0, 2, "acquire", "AVAILABLE", "ACQUIRED", "a"),
        (0, 1, "accept", "ACQUIRED", "ACKNOWLEDGED", "a"),
        (1, 2, "lock_timeout", "ACQUIRED", "AVAILABLE", "a"),
    ]


def test_the_history_of_a_record() -> None:
    events: list[Event] = [
        *TEN, held("a", 0, 2), held("a", 0, 2, second=50), ended("lock_timeout", 0, 2), held("b", 1, 2, 2),
        MemberLeft(GROUP, "b", "left"), ended("accept", 1, 2, 2, "b"),
    ]  # fmt: skip
    timeline = PartitionTimeline(journal_of(events), GROUP, TOPIC, 0)
    timeline.refresh()
    history = RecordHistory(timeline, 1)
    history.refresh()
    assert [(c.what, c.delivery_count, c.member_id) for c in history.changes] == [
        ("appended", 0, None),
        ("delivered", 1, "a"),
        ("renew", 1, "a"),
        ("lock_timeout", 1, "a"),
        ("delivered", 2, "b"),
        ("accept", 2, "b"),
    ]


def test_the_raster_counts_outcomes_once() -> None:
    """By the acknowledgement, and by the durable state that has it."""
    events: list[Event] = [*TEN, held("a", 0, 4), ended("lock_timeout", 3, 4), ended("accept", 0, 2)]
    events += [read(2, (2, 3, 4, 1)), read(3)]
    assert "2 acknowledged, 1 archived" in raster(journal_of(events), GROUP, TOPIC).text


def test_a_journal_is_equal_after_writing_and_reading(tmp_path: Any) -> None:
    seen = view(journal_of([*TEN, held("a", 0, 4), ended("accept", 1, 2)]), GROUP, TOPIC)
    seen.source.to_jsonl(tmp_path / "journal.jsonl")
    again = view(Journal.from_jsonl(tmp_path / "journal.jsonl"), GROUP, TOPIC)
    assert again.snapshot() == seen.snapshot()
