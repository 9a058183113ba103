"""The history of a record: the same as the events that name it, and as the fold of its share-partition."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shareq.model.events import (
    BrokerStopped,
    ConfigChanged,
    DurableStateRead,
    Event,
    LogStartMoved,
    MemberLeft,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    Run,
    SharePartitionDropped,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.states import RecordState
from shareq.trace import Journal
from shareq.trace.analysis.group_history import RECORDS_KEPT, GroupHistory
from shareq.trace.analysis.record_history import (
    APPENDED,
    DELIVERED,
    DURABLE,
    LOADED,
    MEMBER_LEFT,
    PASSED,
    REMOVED,
    UNLOADED,
    Config,
    RecordChange,
)
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded
from tests.trace.random_groups import random_journal

AVAILABLE, ACQUIRED, ACKNOWLEDGED, _, ARCHIVED = RecordState


@pytest.mark.parametrize("seed", range(4))
def test_random_records_at_random_moments(seed: int) -> None:
    journal, draw = random_journal(seed), random.Random(seed)
    history = GroupHistory(journal, "g")
    history.refresh()
    for _ in range(150):
        until = draw.randrange(1, history.total + 1)
        places = history.share_partitions(until)
        if not places:
            continue
        topic, partition = draw.choice(places)
        state = history.share_partition(topic, partition, until)
        offset = draw.randrange(max(state.spso - 20, 0), max(state.log_end, 0) + 3)
        changes = history.record(topic, partition, offset).until(until)
        assert [c.what for c in changes[:1]] == ([APPENDED] if offset < state.log_end else [])
        assert [c.time_ms for c in changes] == sorted(c.time_ms for c in changes)
        assert (PASSED in [c.what for c in changes]) == (offset < state.spso and offset < state.log_end)
        assert (REMOVED in [c.what for c in changes]) == (offset < state.log_start)
        if offset >= state.spso and changes:
            found = state.runs.overlap(offset, offset + 1)
            status = found[0][2] if found else None
            assert changes[-1].state == (status.state if status else None)
            assert status is None or changes[-1].delivery_count == status.delivery_count
            if status is not None and status.state is ACQUIRED:
                assert changes[-1].member_id == status.member_id


@pytest.mark.parametrize("seed", range(4))
def test_deliveries_are_the_acquisitions_in_the_journal(seed: int) -> None:
    journal = random_journal(seed)
    history = GroupHistory(journal, "g")
    history.refresh()
    for topic, partition in history.share_partitions(history.total):
        entries = journal.select(RecordsChanged, group="g", topic=topic, partition=partition)
        events: list[Any] = [entry.event for entry in entries]
        for offset in range(0, history.share_partition(topic, partition, history.total).spso, 3):
            acquired = [
                (e.member_id, e.delivery_count, e.deadline_ms)
                for e in events
                if e.first <= offset < e.end and e.cause == "acquire" and e.state == ACQUIRED
            ]
            changes = history.record(topic, partition, offset).until(history.total)
            acquisitions = [c for c in changes if c.what == "acquire" and c.state is ACQUIRED]
            assert [(c.member_id, c.delivery_count, c.deadline_ms) for c in acquisitions] == acquired
            assert all((c.deadline_ms or 0) - c.time_ms == c.config.lock_duration_ms for c in acquisitions)


def test_the_latest_records_are_kept() -> None:
    history = GroupHistory(random_journal(0), "g")
    history.refresh()
    first = history.record("orders", 0, 0)
    for offset in range(1, RECORDS_KEPT):
        history.record("orders", 0, offset)
    assert history.record("orders", 0, 0) is first
    for offset in range(1, RECORDS_KEPT + 1):
        history.record("orders", 0, offset)
    assert history.record("orders", 0, 0) is not first


# ---- single events ---------------------------------------------------------------------------------------------------


def changes_of(*events: tuple[int, Event], offset: int = 2) -> list[RecordChange]:
    """The changes after (broker, event), one a millisecond."""
    journal = Journal(ORIGIN_MS)
    for time_ms, (broker_id, event) in enumerate(events):
        journal.record(time_ms, broker_id, event)
    history = GroupHistory(journal, GROUP)
    history.refresh()
    return history.record(TOPIC, 0, offset).until(history.total)


def changed(cause: str, state: int = ACQUIRED, first: int = 0, end: int = 5, **more: Any) -> RecordsChanged:
    if state == ACQUIRED:
        more = {"member_id": "a", "deadline_ms": 30_000, **more}
    return RecordsChanged(*WHERE, cause, first, end, state, 1, **more)


PREPARED = changed("prepared", write_id=4, to_state=ACKNOWLEDGED, why="accept")
HELD = ((1, RecordsAppended(TOPIC, 0, 0, 9)), (1, loaded(0, 0)), (1, changed("acquire")))
CASES: list[tuple[list[tuple[int, Event]], list[tuple[str, int | None, str | None]]]] = [
    ([(1, changed("acquire", first=3)), (1, RecordsAppended(TOPIC, 0, 9, 12))], []),
    ([(1, changed("renew"))], [("renew", ACQUIRED, "a")]),
    ([(1, PREPARED)], [("prepared", ACQUIRED, "a")]),
    (
        [(1, PREPARED), (1, changed("settled", ACKNOWLEDGED, why="accept")), (1, WindowMoved(*WHERE, 5, 5))],
        [("prepared", ACQUIRED, "a"), ("accept", ACKNOWLEDGED, "a"), (PASSED, ACKNOWLEDGED, None)],
    ),
    ([(1, changed("lock_timeout", AVAILABLE))], [("lock_timeout", AVAILABLE, "a")]),
    ([(2, changed("lock_timeout", AVAILABLE)), (2, WindowMoved(*WHERE, 5, 5))], []),
    ([(1, BrokerStopped(1, True))], [(UNLOADED, ACQUIRED, "a")]),
    ([(1, BrokerStopped(2, True)), (2, SharePartitionDropped(*WHERE, "moved"))], []),
    (
        [(1, SharePartitionDropped(*WHERE, "moved")), (2, loaded(0, 5, (2, 3, AVAILABLE, 0)))],
        [(UNLOADED, ACQUIRED, "a"), (LOADED, AVAILABLE, None)],
    ),
    ([(2, loaded(0, 0))], [(LOADED, None, None)]),
    ([(2, loaded(3, 3))], [(PASSED, ACQUIRED, "a")]),
    ([(1, LogStartMoved(TOPIC, 0, 2)), (1, LogStartMoved(TOPIC, 0, 3))], [(REMOVED, ACQUIRED, "a")]),
    ([(-1, RecordsHeld(*WHERE, "b", 2, 4, 2))], [(DELIVERED, ACQUIRED, "b")]),
    (
        [(-1, RecordsHeld(*WHERE, "b", 2, 4, 2)), (-1, MemberLeft(GROUP, "b", "left"))],
        [(DELIVERED, ACQUIRED, "b"), (MEMBER_LEFT, None, "b")],
    ),
    ([(-1, MemberLeft(GROUP, "a", "left"))], []),
    (
        [(-1, DurableStateRead(*WHERE, 3, (Run(2, 3, ARCHIVED, 2),), 0, 0, 1, 0))],
        [(DURABLE, ARCHIVED, "a"), (PASSED, ARCHIVED, None)],
    ),
    (
        [(-1, DurableStateRead(*WHERE, 4, (), 0, 0, 1, 0, (Run(2, 3, ARCHIVED, 2), Run(3, 4, ACKNOWLEDGED, 1))))],
        [(DURABLE, ARCHIVED, "a"), (PASSED, ARCHIVED, None)],
    ),
]


@pytest.mark.parametrize(("events", "expected"), CASES)
def test_what_an_event_changes(
    events: list[tuple[int, Event]], expected: list[tuple[str, int | None, str | None]]
) -> None:
    changes = changes_of(*HELD, *events)
    assert [c.what for c in changes[:2]] == [APPENDED, "acquire"]
    assert [(c.what, c.state, c.member_id) for c in changes[2:]] == expected


def test_a_failed_write_has_its_error() -> None:
    failed = StateWriteSettled(*WHERE, 4, 56)
    other = StateWriteSettled(*WHERE, 3, 7)
    changes = changes_of(*HELD, (1, PREPARED), (1, failed), (1, other), (1, changed("abandoned", why="accept")))
    assert [(c.what, c.why, c.error) for c in changes[2:]] == [("prepared", "accept", 0), ("abandoned", "accept", 56)]


def test_the_configuration_is_that_of_the_time() -> None:
    lock = "share.record.lock.duration.ms"
    changes = changes_of(
        *HELD,
        (1, ConfigChanged(f"group:{GROUP}", lock, "15000")),
        (1, changed("renew")),
        (1, ConfigChanged(f"group:{GROUP}", "share.auto.offset.reset", "earliest")),
        (1, ConfigChanged(f"group:{GROUP}", lock, None)),
        (1, changed("renew")),
    )
    assert [c.config for c in changes[1:]] == [
        Config(30_000, 5, 20),
        Config(15_000, 5, 20, ((lock, "15000"),)),
        Config(30_000, 5, 20, (("share.auto.offset.reset", "earliest"),)),
    ]


def test_a_topic_that_is_created_again_has_other_records() -> None:
    again: list[tuple[int, Event]] = [(-1, TopicDeleted(TOPIC, "id")), (-1, TopicCreated(TOPIC, "id2", 1))]
    assert changes_of(*HELD, *again) == []
    assert [c.what for c in changes_of(*HELD, *again, *HELD)] == [APPENDED, "acquire"]


def test_a_record_below_the_first_spso_was_passed_by_the_load() -> None:
    assert [(c.what, c.state, c.why) for c in changes_of((1, loaded(3, 3)))] == [(PASSED, None, LOADED)]
