"""The ledger of every record: for written histories, against a recount by offset, and after lost leaders."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from shareq.model.errors import ConfigException
from shareq.model.events import (
    Event,
    ExpiredRecordsSkipped,
    LogStartMoved,
    RecordsAppended,
    RecordsChanged,
    SharePartitionDropped,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.states import RecordState
from shareq.trace import Journal, Ledger, attempts, lag_over_time, ledger
from tests.trace.histories import GROUP, TOPIC, WHERE, loaded, random_history


def acquire(first: int, end: int, count: int = 1) -> RecordsChanged:
    return RecordsChanged(*WHERE, "acquire", first, end, 1, count, "m", 99)


def prepare(first: int, end: int, to_state: int, write_id: int = 0, count: int = 1) -> RecordsChanged:
    cause = {0: "release", 2: "accept", 3: "reject", 4: "reject"}[to_state]
    return RecordsChanged(*WHERE, "prepared", first, end, 1, count, "m", 99, write_id, to_state, cause)


def settle(first: int, end: int, state: int, count: int = 1) -> RecordsChanged:
    cause = {0: "release", 2: "accept", 3: "reject", 4: "reject"}[state]
    return RecordsChanged(*WHERE, "settled", first, end, state, count, None, None, None, None, cause)


def timeout(first: int, end: int, state: int, count: int = 1) -> RecordsChanged:
    return RecordsChanged(*WHERE, "lock_timeout", first, end, state, count)


@dataclass
class ByBroker:
    """An event of a broker that is not the leader."""

    broker: int
    event: Event


def journal_of(*events: Event | ByBroker, step_ms: int = 0) -> Journal:
    journal = Journal()
    for number, event in enumerate(events):
        by = event if isinstance(event, ByBroker) else ByBroker(0, event)
        journal.record(number * step_ms, by.broker, by.event)
    return journal


BEGIN = (TopicCreated(TOPIC, "id", 1), RecordsAppended(TOPIC, 0, 0, 10), loaded(0, 0))
SIX = (acquire(0, 6), WindowMoved(*WHERE, 0, 6))
WRITE, WRITTEN = StateWritePrepared(*WHERE, 0, 0, 0, ()), StateWriteSettled(*WHERE, 0, 0)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], {"records": 10, "never_delivered": 10, "attempts": {}}, id="no delivery"),
        pytest.param([*SIX], {"in_flight": 6, "never_delivered": 4, "attempts": {1: 6}}, id="acquired"),
        pytest.param(
            [*SIX, prepare(0, 4, 2), WRITE], {"accepted": 0, "in_flight": 6}, id="an accept in flight"
        ),
        pytest.param(
            [*SIX, prepare(0, 4, 2), prepare(4, 5, 4), WRITE, WRITTEN, settle(0, 4, 2), settle(4, 5, 4),
             WindowMoved(*WHERE, 5, 6)],
            {"accepted": 4, "archived": 1, "in_flight": 1, "never_delivered": 4, "attempts": {1: 6}},
            id="accepted and rejected",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 3), WRITE, WRITTEN, settle(0, 2, 3)],
            {"in_flight": 6, "archived": 0, "never_delivered": 4},
            id="on the way to the dead-letter queue",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 3), WRITE, WRITTEN, settle(0, 2, 3), settle(0, 1, 4)],
            {"in_flight": 5, "archived": 1, "never_delivered": 4},
            id="in the dead-letter queue",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 3), WRITE, WRITTEN, settle(0, 2, 3), LogStartMoved(TOPIC, 0, 2),
             WindowMoved(*WHERE, 2, 6)],
            {"in_flight": 4, "archived": 2, "never_delivered": 4},
            id="the log's start moves over records on the way to the dead-letter queue",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 3), WRITE, WRITTEN, settle(0, 2, 3), prepare(0, 2, 4, write_id=1), loaded(2, 2)],
            {"in_flight": 4, "archived": 2, "never_delivered": 4},
            id="a lost leader had finished the way to the dead-letter queue",
        ),
        pytest.param(
            [*SIX, timeout(0, 6, 0), acquire(0, 2, 2), timeout(0, 2, 4, 2)],
            {"archived": 2, "in_flight": 4, "attempts": {1: 4, 2: 2}},
            id="time-outs",
        ),
        pytest.param(
            [*SIX, acquire(6, 8)._replace(state=0, delivery_count=0, member_id=None)],
            {"in_flight": 6, "never_delivered": 4},
            id="available records of the window were never delivered",
        ),
        pytest.param(
            [*SIX, LogStartMoved(TOPIC, 0, 8), WindowMoved(*WHERE, 8, 8)],
            {"archived": 6, "passed_over": 2, "never_delivered": 2, "in_flight": 0},
            id="the log's start moves over held and over unseen records",
        ),
        pytest.param(
            [*SIX, timeout(0, 2, 3), LogStartMoved(TOPIC, 0, 8), WindowMoved(*WHERE, 8, 8)],
            {"archived": 6, "in_flight": 0},
            id="the log's start moves over records on the way to a dead-letter queue",
        ),
        pytest.param(
            [*SIX, timeout(0, 2, 3)],
            {"archived": 0, "in_flight": 6, "never_delivered": 4},
            id="records on the way to a dead-letter queue are in flight",
        ),
        pytest.param(
            [*SIX, settle(0, 2, 2), timeout(0, 2, 0), acquire(0, 2, 2), settle(0, 2, 2, 2)],
            {"accepted": 2, "accepted_twice": 2, "in_flight": 4},
            id="a record accepted twice is counted",
        ),
        pytest.param(
            [*SIX, settle(0, 1, 2), SharePartitionDropped(*WHERE, "x"), loaded(0, 6, (0, 1, 2, 1), (1, 3, 0, 1))],
            {"accepted": 1, "accepted_twice": 0, "in_flight": 5},
            id="a new leader keeps the accepted record and makes the others available",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 2), prepare(2, 3, 4), WRITE, loaded(0, 6, (0, 2, 2, 1), (2, 3, 4, 1))],
            {"accepted": 2, "archived": 1, "in_flight": 3},
            id="a durable write without a recorded result is seen in the loaded state",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 2), prepare(2, 3, 4), WRITE, loaded(3, 3)],
            {"accepted": 2, "archived": 1, "in_flight": 3, "accepted_twice": 0},
            id="a durable write without a recorded result is seen in the SPSO",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 4), prepare(0, 2, 2, write_id=1), loaded(2, 2)],
            {"accepted": 2, "archived": 0, "in_flight": 4},
            id="of two writes without a recorded result the later one counts: accept after reject",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 2), prepare(0, 2, 4, write_id=1), loaded(2, 2)],
            {"accepted": 0, "archived": 2, "in_flight": 4},
            id="of two writes without a recorded result the later one counts: reject after accept",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 2), WRITE, StateWriteSettled(*WHERE, 0, 7), timeout(0, 2, 0), loaded(2, 2)],
            {"accepted": 2, "in_flight": 4},
            id="a write recorded as failed turns out to be durable",
        ),
        pytest.param(
            [*SIX, prepare(0, 2, 2), WRITE, loaded(0, 0)], {"accepted": 0, "in_flight": 6}, id="a lost write"
        ),
        pytest.param(
            [*SIX, loaded(0, 0), acquire(0, 6), settle(0, 6, 2)],
            {"accepted": 6, "accepted_twice": 0, "attempts": {1: 6}},
            id="delivered again by the next leader",
        ),
        pytest.param(
            [*SIX, ByBroker(1, timeout(0, 6, 4)), ByBroker(1, WindowMoved(*WHERE, 6, 6))],
            {"in_flight": 6},
            id="superseded leader",
        ),
        pytest.param(
            [ExpiredRecordsSkipped(*WHERE, 0, 4), WindowMoved(*WHERE, 4, 4)],
            {"archived": 4, "passed_over": 0, "never_delivered": 6},
            id="records that the window passes because they are too old",
        ),
        pytest.param(
            [ByBroker(1, ExpiredRecordsSkipped(*WHERE, 0, 4))],
            {"archived": 0, "never_delivered": 10},
            id="records that a superseded leader passes",
        ),
        pytest.param(
            [*SIX, settle(0, 6, 2), TopicDeleted(TOPIC, "id"), TopicCreated(TOPIC, "id-2", 1),
             RecordsAppended(TOPIC, 0, 0, 3)],
            {"records": 3, "accepted": 0, "never_delivered": 3},
            id="a topic created again is another topic",
        ),
    ],
)  # fmt: skip
def test_the_figures_of_a_ledger(events: list[Event | ByBroker], expected: dict[str, Any]) -> None:
    account = ledger(journal_of(*BEGIN, *events), GROUP, TOPIC)
    assert {name: getattr(account, name) for name in expected} == expected
    adds_up(account)


def adds_up(account: Ledger) -> None:
    parts = (account.accepted, account.archived, account.in_flight, account.never_delivered, account.passed_over)
    assert sum(parts) == account.records
    assert all(part >= 0 for part in parts)
    assert sum(account.attempts.values()) <= account.records


def test_the_arrays_of_a_partition() -> None:
    events = (prepare(0, 4, 2), WRITE, WRITTEN, settle(0, 4, 2), timeout(4, 6, 0), acquire(4, 6, 2))
    part = ledger(journal_of(*BEGIN, *SIX, *events), GROUP, TOPIC)[0]
    assert (part.base, part.spso, part.records) == (0, 0, 10)
    assert part.state.tolist() == [2, 2, 2, 2, 1, 1, -1, -1, -1, -1]
    assert part.delivery_count.tolist() == [1, 1, 1, 1, 2, 2, 0, 0, 0, 0]
    assert part.deliveries.tolist() == [1, 1, 1, 1, 2, 2, 0, 0, 0, 0]
    assert part.times_accepted.tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert part.times_archived.tolist() == [0] * 10


def test_a_log_that_starts_above_zero() -> None:
    account = ledger(
        journal_of(TopicCreated(TOPIC, "id", 1), RecordsAppended(TOPIC, 0, 1000, 1010), loaded(1004, 1004)),
        GROUP,
        TOPIC,
    )
    assert (account[0].base, account.records, account.passed_over, account.never_delivered) == (1000, 10, 4, 6)


class Recount:
    """The ledger offset by offset, without the unsettled writes that turn out to be durable."""

    def __init__(self) -> None:
        self.state: dict[int, int] = {}
        self.accepted: Counter[int] = Counter()
        self.archived: Counter[int] = Counter()
        self.deliveries: Counter[int] = Counter()

    def take(self, event: Event) -> None:
        if isinstance(event, RecordsChanged) and event.cause != "prepared":
            for offset in range(event.first, event.end):
                self.state[offset] = event.state
                self.accepted[offset] += event.state == RecordState.ACKNOWLEDGED
                self.archived[offset] += event.state == RecordState.ARCHIVED
                self.deliveries[offset] += event.cause == "acquire" and event.state == RecordState.ACQUIRED


def test_the_ledger_equals_a_recount(seed: int) -> None:
    """With a single leader both are equal; after a lost leader every recorded acceptance still counts."""
    checked = 0
    for number in range(25):
        recount, loads = Recount(), 0
        *_, (journal, _) = random_history(Random(f"{seed}/{number}"), 120)
        for entry in journal:
            loads += type(entry.event).__name__ == "SharePartitionLoaded"
            recount.take(entry.event)
        account = ledger(journal, GROUP, TOPIC)
        adds_up(account)
        assert account.accepted_twice == 0
        part = account[0]
        final = {part.base + i: int(state) for i, state in enumerate(part.state)}
        accepted = {offset for offset, times in recount.accepted.items() if times}
        assert all(final[offset] == RecordState.ACKNOWLEDGED for offset in accepted)
        if loads == 1 and recount.state:
            checked += 1
            expected = {o: s if o >= part.spso or s in (2, 4) else 4 for o, s in recount.state.items()}
            assert {o: s for o, s in final.items() if s >= 0} == expected
            for name, times in (("times_accepted", recount.accepted), ("times_archived", recount.archived)):
                assert {part.base + i: n for i, n in enumerate(getattr(part, name).tolist()) if n} == +times
            assert {part.base + i: n for i, n in enumerate(part.deliveries.tolist()) if n} == +recount.deliveries
    assert checked


def test_figures_are_summed_over_partitions() -> None:
    journal = journal_of(*BEGIN, *SIX, settle(0, 6, 2), RecordsAppended(TOPIC, 3, 0, 5))
    account = ledger(journal, GROUP, TOPIC)
    assert (list(account), account.records, account.accepted, account[3].never_delivered) == ([0, 3], 15, 6, 5)
    assert repr(account) == (
        "<Ledger g on t: records 15, accepted 6, archived 0, in flight 0, never delivered 9, passed over 0, "
        "accepted twice 0>"
    )
    frame = account.to_frame()
    assert frame.shape == (15, 7)
    assert frame[frame.state == "acknowledged"]["offset"].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("journal", "topic", "cause"),
    [
        pytest.param(journal_of(*BEGIN), "nope", "topic='nope': must have", id="an unknown topic"),
        pytest.param(None, TOPIC, "must be complete", id="a bounded journal"),
    ],
)
def test_a_ledger_that_cannot_be_exact_is_refused(journal: Journal | None, topic: str, cause: str) -> None:
    if journal is None:
        journal = Journal(capacity=1)
        for event in BEGIN:
            journal.record(0, 0, event)
    with pytest.raises(ConfigException, match=cause):
        ledger(journal, GROUP, topic)


def test_a_ledger_of_an_unknown_group_is_refused() -> None:
    """Its figures would be zeros, as if the group had received nothing."""
    with pytest.raises(ConfigException, match=f"group='paymnts': the journal has no such group, it has '{GROUP}'"):
        ledger(journal_of(*BEGIN, *SIX), "paymnts", TOPIC)


# ---- attempts and lag ------------------------------------------------------------------------------------------------


def test_attempts_have_counts_and_latencies() -> None:
    events = (*BEGIN, *SIX, prepare(0, 3, 2), WRITE, WRITTEN, settle(0, 3, 2), timeout(3, 6, 0), acquire(3, 6, 2))
    found = attempts(journal_of(*events, settle(3, 5, 2, 2), step_ms=100), GROUP, TOPIC)
    assert found.deliveries == {1: 3, 2: 3}
    assert found.latency_ms == {50: 500.0, 95: 500.0, 99: 500.0, 100: 500.0}  # three took 500 ms, two 100 ms
    assert attempts(journal_of(*BEGIN), GROUP, TOPIC).latency_ms == {}


def test_latency_runs_from_the_last_acquisition_and_not_from_a_renewal() -> None:
    renewed = acquire(0, 6)._replace(cause="renew", deadline_ms=199)
    events = (*BEGIN, *SIX, renewed, settle(0, 3, 2), timeout(3, 6, 0), acquire(3, 6, 2), settle(3, 6, 2, 2))
    found = attempts(journal_of(*events, step_ms=100), GROUP, TOPIC)
    assert (found.latency_ms[50], found.latency_ms[100]) == (200.0, 300.0)  # three took 300 ms, three 100 ms


def test_lag_over_time_has_one_value_for_each_change() -> None:
    events = (*BEGIN, *SIX, prepare(0, 3, 2), WRITE, WRITTEN, settle(0, 3, 2), WindowMoved(*WHERE, 3, 6))
    journal = journal_of(*events, RecordsAppended(TOPIC, 0, 10, 12), step_ms=100)
    assert lag_over_time(journal, GROUP, TOPIC) == [(0, 0), (100, 10), (500, 7), (1000, 9)]
    assert lag_over_time(journal_of(*events), GROUP, TOPIC) == [(0, 7)]
    assert lag_over_time(Journal(), GROUP, TOPIC) == []
