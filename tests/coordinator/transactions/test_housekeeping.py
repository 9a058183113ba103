"""Timed-out transactions, expired transactional ids, DescribeTransactions, ListTransactions and the journal."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.transactions.states import TransactionState
from shareq.model.actor import ImageChanged, ShardElected, Tick
from shareq.model.errors import Errors
from shareq.model.events import TransactionChanged
from shareq.model.messages.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
)
from tests.coordinator.transactions.stage import BLOCK, HOME, ID, NO_STATE_TOPIC, OFFSETS, ORDERS, Stage
from tests.coordinator.transactions.test_end import EPOCH, stage_in

S = TransactionState
ROUND_MS = 10_000
"""The default of transaction.abort.timed.out.transaction.cleanup.interval.ms."""
DAY_MS = 86_400_000


def ongoing_stage(timeout_ms: int, at_ms: int = 0) -> Stage:
    """A stage with an open transaction of this timeout, begun `at_ms` after the start of the coordinator."""
    stage = Stage()
    stage.init(timeout_ms=timeout_ms)
    stage.wait(at_ms)
    stage.add(ORDERS)
    return stage


# ---- timeouts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout_ms", "begun_ms", "aborted_ms"),
    [
        pytest.param(1, 0, 10_000, id="at the first round"),
        pytest.param(1, 9_998, 10_000, id="just before a round"),
        pytest.param(1, 9_999, 20_000, id="not timed out yet at the round"),
        pytest.param(10_000, 0, 20_000, id="timeout ends at the round: the next round"),
        pytest.param(9_999, 0, 10_000, id="timeout ends 1 ms before the round: this round"),
        pytest.param(60_000, 35_000, 100_000, id="long timeout"),
    ],
)
def test_timed_out_transaction_is_aborted_at_the_next_round(timeout_ms: int, begun_ms: int, aborted_ms: int) -> None:
    """BEHAVIOUR.md 34."""
    stage = ongoing_stage(timeout_ms, begun_ms)
    stage.wait(aborted_ms - begun_ms - 1)
    assert stage.known().state is S.ONGOING
    stage.wait(1)
    assert stage.known().state is S.COMPLETE_ABORT
    assert stage.marked == [(ORDERS, False, BLOCK, 1)]


def test_transaction_that_ends_in_time_is_not_aborted() -> None:
    stage = ongoing_stage(15_000)
    stage.wait(14_000)
    stage.end()
    stage.wait(60_000)
    assert [t.state for t in stage.history() if t] == [S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.COMPLETE_COMMIT]


def test_adding_partitions_does_not_extend_the_timeout() -> None:
    stage = ongoing_stage(15_000)
    stage.wait(14_000)
    stage.add(OFFSETS)
    stage.wait(6_000)
    assert stage.known().state is S.COMPLETE_ABORT


def test_abort_rounds_pause_without_open_transactions() -> None:
    stage = Stage()
    stage.init()
    stage.add(ORDERS)
    stage.end()
    stage.handle(Tick())
    assert stage.coordinator.wake_at_ms == stage.now_ms + 3_600_000


def test_transaction_timeout_continues_after_a_failover() -> None:
    stage = ongoing_stage(15_000)
    stage.wait(12_000)
    stage.start()
    stage.wait(ROUND_MS - 1)
    assert stage.known().state is S.ONGOING
    stage.wait(1)
    assert stage.known().state is S.COMPLETE_ABORT


def test_failed_append_of_an_abort_is_repeated_in_the_next_round() -> None:
    stage = ongoing_stage(1)
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.wait(ROUND_MS)
    assert stage.known().state is S.ONGOING
    stage.append_error = Errors.NONE
    stage.wait(ROUND_MS)
    assert stage.known().state is S.COMPLETE_ABORT


def test_producer_of_a_timed_out_transaction_is_fenced() -> None:
    """BEHAVIOUR.md 30 to 32, 34."""
    stage = ongoing_stage(1)
    stage.wait(ROUND_MS)
    assert stage.add(ORDERS) is Errors.PRODUCER_FENCED
    assert stage.end(0, commit=True).error_code is Errors.INVALID_TXN_STATE
    aborted = stage.end(0, commit=False)
    assert (aborted.error_code, aborted.producer_epoch) == (Errors.NONE, 1)
    assert stage.end(0, version=4).error_code is Errors.PRODUCER_FENCED
    assert stage.init(BLOCK, 0).error_code is Errors.PRODUCER_FENCED


# ---- expiry ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_transactional_id_at_rest_expires_after_a_week(state: S) -> None:
    """BEHAVIOUR.md 34."""
    stage = stage_in(state)
    stage.wait(7 * DAY_MS - 1)
    assert len(stage.history()) == 1
    stage.wait(1)
    assert stage.history()[-1] is None
    assert (stage.init().producer_id, stage.init().producer_epoch) == (BLOCK, 1)


def test_expired_transactional_id_leaves_no_state() -> None:
    stage = Stage()
    stage.init()
    shard = stage.coordinator._runtime.shard(HOME)
    assert shard is not None
    assert shard.last_epochs
    stage.wait(8 * DAY_MS)
    assert (shard.transactions, shard.last_epochs, shard.open) == ({}, {}, set())


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_transactional_id_in_prepare_does_not_expire(state: S) -> None:
    """BEHAVIOUR.md 34."""
    stage = stage_in(state)
    stage.wait(30 * DAY_MS)
    assert stage.known().state is state


def test_init_producer_id_restarts_the_expiration() -> None:
    stage = stage_in(S.EMPTY)
    stage.wait(6 * DAY_MS)
    stage.init()
    stage.wait(6 * DAY_MS)
    assert stage.known().state is S.EMPTY
    stage.wait(DAY_MS)
    assert stage.history()[-1] is None


# ---- tools -----------------------------------------------------------------------------------------------------------

State = DescribeTransactionsResponse.TransactionState


def describe(stage: Stage, id_: str = ID) -> State:
    (state,) = stage.ask(DescribeTransactionsRequest(transactional_ids=(id_,)), 0).transaction_states
    assert isinstance(state, State)
    return state


def test_described_transaction_has_its_partitions() -> None:
    stage = Stage()
    stage.init(timeout_ms=5_000)
    stage.wait(70)
    stage.add(ORDERS, OFFSETS)
    topic = DescribeTransactionsResponse.Topic
    assert describe(stage) == State(
        transactional_id=ID,
        transaction_state="Ongoing",
        transaction_timeout_ms=5_000,
        transaction_start_time_ms=stage.now_ms,
        producer_id=BLOCK,
        producer_epoch=0,
        topics=(
            topic(topic=OFFSETS.topic, partitions=(OFFSETS.partition,)),
            topic(topic="orders", partitions=(0,)),
        ),
    )


@pytest.mark.parametrize("state", [s for s in S if s is not S.DEAD])
def test_described_state_is_its_name(state: S) -> None:
    assert describe(stage_in(state)).transaction_state == state.value


@pytest.mark.parametrize(
    ("prepare", "id_", "error"),
    [
        pytest.param(lambda s: None, "unknown", Errors.TRANSACTIONAL_ID_NOT_FOUND, id="unknown"),
        pytest.param(lambda s: None, "", Errors.INVALID_REQUEST, id="empty"),
        pytest.param(lambda s: s.resign(), ID, Errors.NOT_COORDINATOR, id="another broker"),
        pytest.param(
            lambda s: s.handle(ImageChanged(NO_STATE_TOPIC)), ID, Errors.COORDINATOR_NOT_AVAILABLE, id="no topic"
        ),
    ],
)
def test_describe_errors(prepare: Any, id_: str, error: Errors) -> None:
    stage = stage_in(S.ONGOING)
    prepare(stage)
    assert describe(stage, id_).error_code is error


@pytest.fixture(scope="module")
def many() -> Stage:
    """a: Empty, b: Ongoing for 5 s, c: CompleteCommit."""
    stage = Stage()
    for id_ in "abc":
        stage.init(id_=id_)
    stage.add(ORDERS, id_="b", producer_id=BLOCK + 1)
    stage.add(ORDERS, id_="c", producer_id=BLOCK + 2)
    stage.end(id_="c", producer_id=BLOCK + 2)
    stage.wait(5_000)
    return stage


@pytest.mark.parametrize(
    ("filters", "ids", "unknown"),
    [
        pytest.param({}, "abc", (), id="no filter"),
        pytest.param({"state_filters": ("Ongoing",)}, "b", (), id="a state"),
        pytest.param({"state_filters": ("Empty", "CompleteCommit")}, "ac", (), id="two states"),
        pytest.param({"state_filters": ("Asleep", "Empty")}, "a", ("Asleep",), id="an unknown state is returned"),
        pytest.param({"state_filters": ("ongoing",)}, "", ("ongoing",), id="states are case-sensitive"),
        pytest.param({"producer_id_filters": (BLOCK, BLOCK + 2)}, "ac", (), id="producer ids"),
        pytest.param({"duration_filter": 4_999}, "abc", (), id="duration, ids without start time pass"),
        pytest.param(
            {"duration_filter": 4_999, "state_filters": ("Ongoing",)}, "b", (), id="open for longer than the duration"
        ),
        pytest.param(
            {"duration_filter": 5_000, "state_filters": ("Ongoing",)}, "", (), id="open for exactly the duration"
        ),
        pytest.param({"transactional_id_pattern": "[bc]"}, "bc", (), id="a pattern"),
        pytest.param({"transactional_id_pattern": "c|bx"}, "c", (), id="the whole id has to match"),
        pytest.param({"transactional_id_pattern": ""}, "abc", (), id="an empty pattern is none"),
        pytest.param(
            {"state_filters": ("Empty",), "producer_id_filters": (BLOCK + 1,)}, "", (), id="all filters must match"
        ),
    ],
)
def test_list_transactions_filters(many: Stage, filters: dict[str, Any], ids: str, unknown: tuple[str, ...]) -> None:
    response = many.ask(ListTransactionsRequest(**filters), 2)
    assert sorted(t.transactional_id for t in response.transaction_states) == list(ids)
    assert response.unknown_state_filters == unknown


def test_invalid_pattern_is_refused(many: Stage) -> None:
    response = many.ask(ListTransactionsRequest(transactional_id_pattern="(["), 2)
    assert response.error_code is Errors.INVALID_REGULAR_EXPRESSION


def test_requests_during_the_load_are_refused() -> None:
    stage = stage_in(S.EMPTY)
    effects = stage.coordinator.handle(ShardElected(HOME, 99), stage.now_ms)
    assert len(effects) == 1
    assert stage.ask(ListTransactionsRequest(), 2).error_code is Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert describe(stage).error_code is Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert stage.end(EPOCH).error_code is Errors.COORDINATOR_LOAD_IN_PROGRESS


# ---- journal ---------------------------------------------------------------------------------------------------------


def traced_changes(stage: Stage) -> list[tuple[str, int, int]]:
    """(phase, epoch, partition count) of the traced events."""
    changes = [event for event in stage.events if isinstance(event, TransactionChanged)]
    assert {(event.transactional_id, event.producer_id) for event in changes} <= {(ID, BLOCK)}
    return [(event.phase, event.producer_epoch, event.partition_count) for event in changes]


def test_journal_has_the_changes_of_a_transactional_id() -> None:
    stage = Stage(traced=True)
    stage.init()
    stage.add(ORDERS)
    stage.add(ORDERS)  # already in the transaction: no event
    stage.add(OFFSETS)
    stage.end()
    stage.wait(8 * DAY_MS)
    assert traced_changes(stage) == [
        ("Empty", 0, 0),
        ("Ongoing", 0, 1),
        ("Ongoing", 0, 2),
        ("PrepareCommit", 1, 2),
        ("CompleteCommit", 1, 0),
        ("Dead", 1, 0),
    ]


def test_loaded_state_is_not_traced_again() -> None:
    stage = Stage(traced=True)
    stage.init()
    stage.add(ORDERS)
    stage.events.clear()
    stage.start()
    assert traced_changes(stage) == []
    stage.end(commit=False)
    assert traced_changes(stage) == [("PrepareAbort", 1, 1), ("CompleteAbort", 1, 0)]


def test_untraced_coordinator_emits_no_events() -> None:
    stage = Stage()
    stage.init()
    stage.add(ORDERS)
    assert stage.events == []
