"""The locks of a share-partition at random moments of random runs equal a recount, record by record."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from shareq.model.events import (
    BrokerStopped,
    DurableStateRead,
    Event,
    HoldEnded,
    LeaderElected,
    MemberJoined,
    MemberLeft,
    RecordsChanged,
    RecordsHeld,
    Run,
    SharePartitionDropped,
    SharePartitionLoaded,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.states import RecordState
from shareq.trace import Journal
from shareq.trace.analysis import locks
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.locks import ENDED_KEPT, LEADER_LOST, RENEWALS_KEPT, TOPIC_GONE, Lock, LockFold
from tests.budgets import cases
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded
from tests.trace.random_groups import random_journal

AVAILABLE, ACQUIRED, ACKNOWLEDGED, _, ARCHIVED = RecordState


class Held(NamedTuple):
    """What is known of one held record."""

    member_id: str | None
    delivery_count: int
    acquired_ms: int | None
    set_ms: int | None
    deadline_ms: int | None
    renewals: tuple[int, ...] = ()
    write: str = ""


class Recount:
    """The held records of a share-partition, and for each record the last end of a lock: (time, how, state)."""

    def __init__(self, journal: Journal, topic: str, partition: int, until: int) -> None:
        self.held: dict[int, Held] = {}
        self.ended: dict[int, tuple[int, str, int]] = {}
        self.leader = -1
        for entry in journal.entries()[:until]:
            event: Any = entry.event
            if isinstance(event, BrokerStopped) and event.broker_id == self.leader:
                self.lose(entry.time_ms)
            if (getattr(event, "topic", ""), getattr(event, "partition", -1)) != (topic, partition):
                continue
            if isinstance(event, SharePartitionLoaded):
                self.lose(entry.time_ms)
                self.leader = entry.broker_id
            elif entry.broker_id == self.leader and isinstance(event, SharePartitionDropped):
                self.lose(entry.time_ms)
            elif entry.broker_id == self.leader and isinstance(event, RecordsChanged):
                for offset in range(event.first, event.end):
                    self.change(entry.time_ms, offset, event)
            elif entry.broker_id == self.leader and isinstance(event, WindowMoved):
                for offset in [offset for offset in self.held if offset < event.spso]:
                    del self.held[offset]
                    self.ended[offset] = entry.time_ms, "log_start", ARCHIVED

    def lose(self, time_ms: int) -> None:
        self.ended |= dict.fromkeys(self.held, (time_ms, LEADER_LOST, AVAILABLE))
        self.held, self.leader = {}, -1

    def change(self, time_ms: int, offset: int, event: RecordsChanged) -> None:
        if event.cause == "acquire" and event.state == ACQUIRED:
            self.held[offset] = Held(event.member_id, event.delivery_count, time_ms, time_ms, event.deadline_ms)
        elif event.cause == "renew":
            held = self.held[offset]
            renewals = (*held.renewals, time_ms)
            self.held[offset] = held._replace(set_ms=time_ms, deadline_ms=event.deadline_ms, renewals=renewals)
        elif event.cause in ("prepared", "abandoned"):
            write = str(event.why) if event.cause == "prepared" else ""
            self.held[offset] = self.held[offset]._replace(write=write)
        elif offset in self.held:
            del self.held[offset]
            how = str(event.why if event.cause == "settled" else event.cause)
            self.ended[offset] = time_ms, how, event.state


def shown(lock: Lock) -> Held:
    assert lock.acquired_ms is not None
    assert lock.set_ms is not None
    assert lock.renewed == len(lock.renewals) or lock.renewed > RENEWALS_KEPT
    return Held(*lock[2:7], lock.renewals, lock.write)


@pytest.mark.parametrize("fold_from", [1, 16, 512])
@pytest.mark.parametrize("seed", range(cases(2, 4)))
def test_locks_at_random_moments_equal_a_recount(seed: int, fold_from: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late the fold begins, locks are complete; those that ended before `since_ms` need not be."""
    monkeypatch.setattr(locks, "FOLD_FROM", fold_from)
    journal, draw = random_journal(seed), random.Random(seed)
    history = GroupHistory(journal, "g")
    history.refresh()
    for until in [draw.randrange(1, history.total + 1) for _ in range(25)]:
        since_ms = journal[until - 1].time_ms - draw.choice([0, 5_000, 60_000])
        for topic, partition in history.share_partitions(until):
            fold, expected = history.locks(topic, partition, until, since_ms), Recount(journal, topic, partition, until)
            held = {offset: shown(lock) for lock in fold.held for offset in range(lock.first, lock.end)}
            assert held == expected.held
            ended = fold.ended(since_ms)
            assert [e.ended_ms for e in ended] == sorted([e.ended_ms for e in ended], reverse=True)
            latest: dict[int, tuple[int, str, int]] = {}
            for lock, ended_ms, how, state, _ in ended:
                for offset in range(lock.first, lock.end):
                    latest.setdefault(offset, (ended_ms, how, state))
            recent = {offset: end for offset, end in expected.ended.items() if end[0] >= since_ms}
            assert latest.items() <= recent.items()
            assert len(latest) == len(recent) or len(fold._ended) >= ENDED_KEPT
            assert all(end.lock.acquired_ms is not None for end in ended)


def test_equal_locks_of_adjacent_records_are_one() -> None:
    for seed in range(4):
        history = GroupHistory(random_journal(seed), "g")
        history.refresh()
        for topic, partition in history.share_partitions(history.total):
            for until in range(0, history.total, 100):
                held = history.locks(topic, partition, until, 0).held
                pairs = list(pairwise(held))
                assert all(one.end < two.first or one[2:] != two[2:] for one, two in pairs)


# ---- single events ---------------------------------------------------------------------------------------------------


def changed(cause: str, first: int, end: int, state: int = ACQUIRED, **more: Any) -> RecordsChanged:
    if state == ACQUIRED:
        more = {"member_id": "a", "deadline_ms": 30_000, **more}
    return RecordsChanged(*WHERE, cause, first, end, state, 1, **more)


def folded(*events: tuple[int, int, Event]) -> LockFold:
    """The fold of (time, broker, event)."""
    journal = Journal(ORIGIN_MS)
    for time_ms, broker_id, event in events:
        journal.record(time_ms, broker_id, event)
    history = GroupHistory(journal, GROUP)
    history.refresh()
    return history.locks(TOPIC, 0, history.total, 0)


BEGIN = ((0, 1, loaded(0, 0)), (1, 1, changed("acquire", 0, 5)))
ENDS: list[tuple[Event, int, list[tuple[int, int]], tuple[str, int] | None]] = [
    (changed("lock_timeout", 1, 3, AVAILABLE), 1, [(0, 1), (3, 5)], ("lock_timeout", AVAILABLE)),
    (changed("lock_timeout", 0, 5, ARCHIVED), 1, [], ("lock_timeout", ARCHIVED)),
    (changed("settled", 0, 2, ACKNOWLEDGED, why="accept"), 1, [(2, 5)], ("accept", ACKNOWLEDGED)),
    (changed("settled", 4, 5, ARCHIVED, why="reject"), 1, [(0, 4)], ("reject", ARCHIVED)),
    (WindowMoved(*WHERE, 2, 5), 1, [(2, 5)], ("log_start", ARCHIVED)),
    (SharePartitionDropped(*WHERE, "moved"), 1, [], (LEADER_LOST, AVAILABLE)),
    (BrokerStopped(1, True), -1, [], (LEADER_LOST, AVAILABLE)),
    (loaded(0, 0), 2, [], (LEADER_LOST, AVAILABLE)),
    (TopicDeleted(TOPIC, "id"), -1, [], (TOPIC_GONE, AVAILABLE)),
    (TopicCreated(TOPIC, "id", 1), -1, [], (TOPIC_GONE, AVAILABLE)),
    (LeaderElected(TOPIC, 0, 2, 1), -1, [(0, 5)], None),
    (BrokerStopped(2, True), -1, [(0, 5)], None),
    (SharePartitionDropped(*WHERE, "fenced"), 2, [(0, 5)], None),
    (WindowMoved(*WHERE, 5, 5), 2, [(0, 5)], None),
    (changed("lock_timeout", 0, 5, AVAILABLE), 2, [(0, 5)], None),
    (MemberLeft(GROUP, "a", "left"), 0, [(0, 5)], None),
]


@pytest.mark.parametrize(("event", "broker_id", "held", "end"), ENDS)
def test_what_ends_a_lock(
    event: Event, broker_id: int, held: list[tuple[int, int]], end: tuple[str, int] | None
) -> None:
    """Events of a broker that does not lead the share-partition end nothing."""
    fold = folded(*BEGIN, (9, broker_id, event))
    assert [(lock.first, lock.end) for lock in fold.held] == held
    assert [(e.ended_ms, e.how, e.state) for e in fold.ended(0)] == ([] if end is None else [(9, *end)])


def test_a_renewal_sets_the_deadline_and_keeps_the_acquisition() -> None:
    fold = folded(*BEGIN, (7, 1, changed("renew", 1, 2, deadline_ms=30_007)))
    assert [(lock.first, lock.acquired_ms, lock.set_ms, lock.duration_ms) for lock in fold.held] == [
        (0, 1, 1, 29_999),
        (1, 1, 7, 30_000),
        (2, 1, 1, 29_999),
    ]


def test_only_the_latest_renewals_are_kept_and_all_are_counted() -> None:
    renewals = [(time, 1, changed("renew", 0, 5, deadline_ms=time)) for time in range(10, 40)]
    (lock,) = folded(*BEGIN, *renewals).held
    assert (lock.renewed, lock.renewals) == (30, tuple(range(40 - RENEWALS_KEPT, 40)))


def test_what_a_bounded_journal_has_dropped_is_not_known() -> None:
    fold = folded((5, 1, changed("prepared", 0, 2, write_id=1, to_state=ACKNOWLEDGED, why="accept")))
    assert fold.held == [Lock(0, 2, "a", 1, None, None, 30_000, write="accept")]
    assert fold.held[0].duration_ms is None


def test_only_recent_ends_are_listed() -> None:
    ends = [(time, 1, changed("lock_timeout", time, time + 1, AVAILABLE)) for time in range(5)]
    assert [e.lock.first for e in folded(*BEGIN, *ends).ended(3)] == [4, 3]


def test_an_observer_knows_deliveries_without_deadlines() -> None:
    events: list[Event] = [
        MemberJoined(GROUP, "a", "anna", (TOPIC,)),
        RecordsHeld(*WHERE, "a", 0, 5, 1),
        RecordsHeld(*WHERE, "b", 3, 6, 2),
        DurableStateRead(*WHERE, 1, (Run(1, 2, ACKNOWLEDGED, 1),), 1, 0, 1, 0),
    ]
    fold = folded(*[(time, -1, event) for time, event in enumerate(events)])
    assert fold.held == [Lock(1, 3, "a", 1, 1), Lock(3, 6, "b", 2, 2)]
    fold = folded(*[(time, -1, event) for time, event in enumerate([*events, MemberLeft(GROUP, "a", "left")])])
    assert fold.held == [Lock(3, 6, "b", 2, 2)]


@pytest.mark.parametrize(
    ("event", "end"),
    [
        (HoldEnded(*WHERE, "a", "accept", 0, 5, ACKNOWLEDGED, 1), ("accept", ACKNOWLEDGED, False)),
        (
            HoldEnded(*WHERE, "a", "lock_timeout", 0, 5, AVAILABLE, 1, inferred=True),
            ("lock_timeout", AVAILABLE, True),
        ),
        (LeaderElected(TOPIC, 0, 2, 1), (LEADER_LOST, AVAILABLE, False)),
    ],
)
def test_the_locks_of_members_behind_a_proxy_end_with_a_response_by_inference_or_with_their_leader(
    event: Event, end: tuple[str, int, bool]
) -> None:
    fold = folded((0, -1, RecordsHeld(*WHERE, "a", 0, 5, 1, 30_000)), (9, -1, event))
    assert fold.held == []
    assert [ended[1:] for ended in fold.ended(0)] == [(9, *end)]
