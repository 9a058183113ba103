"""What happens unasked: transactions that take too long, transactional ids that nobody uses; and what tools see."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.other.transaction.states import TransactionState
from shareq.model.actor import ImageChanged, ShardElected, Tick
from shareq.model.errors import Errors
from shareq.model.events import TransactionChanged
from shareq.model.messages.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
)
from tests.coordinator.other.transaction.stage import BLOCK, HOME, ID, NO_STATE_TOPIC, OFFSETS, ORDERS, Stage
from tests.coordinator.other.transaction.test_end import EPOCH, staged

S = TransactionState
SCAN_MS = 10_000
DAY_MS = 86_400_000


def begun(timeout_ms: int, at_ms: int = 0) -> Stage:
    """A transaction with this much time, begun so long after the coordinator."""
    stage = Stage()
    stage.init(timeout_ms=timeout_ms)
    stage.advance(at_ms)
    stage.add(ORDERS)
    return stage


# ---- time-outs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout_ms", "begun_ms", "aborted_ms"),
    [
        pytest.param(1, 0, 10_000, id="at the first scan"),
        pytest.param(1, 9_998, 10_000, id="just before a scan"),
        pytest.param(1, 9_999, 20_000, id="not overdue yet at the scan"),
        pytest.param(10_000, 0, 20_000, id="its time ends with the scan: the next one"),
        pytest.param(9_999, 0, 10_000, id="a moment earlier: this one"),
        pytest.param(60_000, 35_000, 100_000, id="minutes later"),
    ],
)
def test_a_transaction_is_aborted_at_the_scan_after_its_time(timeout_ms: int, begun_ms: int, aborted_ms: int) -> None:
    stage = begun(timeout_ms, begun_ms)
    stage.advance(aborted_ms - begun_ms - 1)
    assert stage.known().state is S.ONGOING
    stage.advance(1)
    assert stage.known().state is S.COMPLETE_ABORT
    assert stage.marked == [(ORDERS, False, BLOCK, 1)]


def test_what_ends_in_time_is_left_alone() -> None:
    stage = begun(15_000)
    stage.advance(14_000)
    stage.end()
    stage.advance(60_000)
    assert [t.state for t in stage.history() if t] == [S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.COMPLETE_COMMIT]


def test_what_grows_has_no_more_time_for_it() -> None:
    stage = begun(15_000)
    stage.advance(14_000)
    stage.add(OFFSETS)
    stage.advance(6_000)
    assert stage.known().state is S.COMPLETE_ABORT


def test_nobody_is_woken_while_nothing_is_open() -> None:
    stage = Stage()
    stage.init()
    stage.add(ORDERS)
    stage.end()
    stage.handle(Tick())
    assert stage.coordinator.wake_at_ms == stage.now_ms + 3_600_000


def test_the_time_goes_on_under_a_new_coordinator() -> None:
    stage = begun(15_000)
    stage.advance(12_000)
    stage.start()
    stage.advance(SCAN_MS - 1)
    assert stage.known().state is S.ONGOING
    stage.advance(1)
    assert stage.known().state is S.COMPLETE_ABORT


def test_an_abort_that_cannot_be_stored_is_tried_at_the_next_scan() -> None:
    stage = begun(1)
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.advance(SCAN_MS)
    assert stage.known().state is S.ONGOING
    stage.append_error = Errors.NONE
    stage.advance(SCAN_MS)
    assert stage.known().state is S.COMPLETE_ABORT


def test_what_its_producer_is_told_then() -> None:
    stage = begun(1)
    stage.advance(SCAN_MS)
    assert stage.add(ORDERS) is Errors.PRODUCER_FENCED
    assert stage.end(0, commit=True).error_code is Errors.INVALID_TXN_STATE
    aborted = stage.end(0, commit=False)
    assert (aborted.error_code, aborted.producer_epoch) == (Errors.NONE, 1)
    assert stage.end(0, version=4).error_code is Errors.PRODUCER_FENCED
    assert stage.init(BLOCK, 0).error_code is Errors.PRODUCER_FENCED


# ---- expiry ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_an_id_at_rest_is_forgotten_after_a_week(state: S) -> None:
    stage = staged(state)
    stage.advance(7 * DAY_MS - 1)
    assert len(stage.history()) == 1
    stage.advance(1)
    assert stage.history()[-1] is None
    assert (stage.init().producer_id, stage.init().producer_epoch) == (BLOCK, 1)


def test_nothing_is_left_of_an_id_that_is_forgotten() -> None:
    stage = Stage()
    stage.init()
    shard = stage.coordinator._runtime.shard(HOME)
    assert shard is not None
    assert shard.last_epochs
    stage.advance(8 * DAY_MS)
    assert (shard.transactions, shard.last_epochs, shard.open) == ({}, {}, set())


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_an_id_in_use_is_kept(state: S) -> None:
    stage = staged(state)
    stage.advance(30 * DAY_MS)
    assert stage.known().state is state


def test_an_id_that_is_used_is_kept_for_another_week() -> None:
    stage = staged(S.EMPTY)
    stage.advance(6 * DAY_MS)
    stage.init()
    stage.advance(6 * DAY_MS)
    assert stage.known().state is S.EMPTY
    stage.advance(DAY_MS)
    assert stage.history()[-1] is None


# ---- tools -----------------------------------------------------------------------------------------------------------

State = DescribeTransactionsResponse.TransactionState


def described(stage: Stage, id_: str = ID) -> State:
    (state,) = stage.ask(DescribeTransactionsRequest(transactional_ids=(id_,)), 0).transaction_states
    assert isinstance(state, State)
    return state


def test_a_transaction_is_described_with_its_partitions() -> None:
    stage = Stage()
    stage.init(timeout_ms=5_000)
    stage.advance(70)
    stage.add(ORDERS, OFFSETS)
    topic = DescribeTransactionsResponse.Topic
    assert described(stage) == State(
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
def test_a_state_is_described_by_its_name(state: S) -> None:
    assert described(staged(state)).transaction_state == state.value


@pytest.mark.parametrize(
    ("prepare", "id_", "error"),
    [
        pytest.param(lambda s: None, "nobody", Errors.TRANSACTIONAL_ID_NOT_FOUND, id="unknown"),
        pytest.param(lambda s: None, "", Errors.INVALID_REQUEST, id="empty"),
        pytest.param(lambda s: s.resign(), ID, Errors.NOT_COORDINATOR, id="another broker's"),
        pytest.param(
            lambda s: s.handle(ImageChanged(NO_STATE_TOPIC)), ID, Errors.COORDINATOR_NOT_AVAILABLE, id="no topic"
        ),
    ],
)
def test_what_cannot_be_described(prepare: Any, id_: str, error: Errors) -> None:
    stage = staged(S.ONGOING)
    prepare(stage)
    assert described(stage, id_).error_code is error


@pytest.fixture(scope="module")
def many() -> Stage:
    """a: Empty, b: Ongoing for 5 s, c: CompleteCommit."""
    stage = Stage()
    for id_ in "abc":
        stage.init(id_=id_)
    stage.add(ORDERS, id_="b", producer_id=BLOCK + 1)
    stage.add(ORDERS, id_="c", producer_id=BLOCK + 2)
    stage.end(id_="c", producer_id=BLOCK + 2)
    stage.advance(5_000)
    return stage


@pytest.mark.parametrize(
    ("filters", "ids", "unknown"),
    [
        pytest.param({}, "abc", (), id="no filter"),
        pytest.param({"state_filters": ("Ongoing",)}, "b", (), id="a state"),
        pytest.param({"state_filters": ("Empty", "CompleteCommit")}, "ac", (), id="two states"),
        pytest.param({"state_filters": ("Asleep", "Empty")}, "a", ("Asleep",), id="an unknown state is told"),
        pytest.param({"state_filters": ("ongoing",)}, "", ("ongoing",), id="states are spelled as they are"),
        pytest.param({"producer_id_filters": (BLOCK, BLOCK + 2)}, "ac", (), id="producer ids"),
        pytest.param({"duration_filter": 4_999}, "abc", (), id="what has no beginning has always been there"),
        pytest.param({"duration_filter": 4_999, "state_filters": ("Ongoing",)}, "b", (), id="open for longer"),
        pytest.param({"duration_filter": 5_000, "state_filters": ("Ongoing",)}, "", (), id="open for exactly that"),
        pytest.param({"transactional_id_pattern": "[bc]"}, "bc", (), id="a pattern"),
        pytest.param({"transactional_id_pattern": "c|bx"}, "c", (), id="the whole id has to match"),
        pytest.param({"transactional_id_pattern": ""}, "abc", (), id="an empty pattern is none"),
        pytest.param({"state_filters": ("Empty",), "producer_id_filters": (BLOCK + 1,)}, "", (), id="all filters hold"),
    ],
)
def test_lists_are_filtered(many: Stage, filters: dict[str, Any], ids: str, unknown: tuple[str, ...]) -> None:
    response = many.ask(ListTransactionsRequest(**filters), 2)
    assert sorted(t.transactional_id for t in response.transaction_states) == list(ids)
    assert response.unknown_state_filters == unknown


def test_a_pattern_that_is_none(many: Stage) -> None:
    response = many.ask(ListTransactionsRequest(transactional_id_pattern="(["), 2)
    assert response.error_code is Errors.INVALID_REGULAR_EXPRESSION


def test_a_list_waits_until_all_is_loaded() -> None:
    stage = staged(S.EMPTY)
    effects = stage.coordinator.handle(ShardElected(HOME, 99), stage.now_ms)
    assert len(effects) == 1
    assert stage.ask(ListTransactionsRequest(), 2).error_code is Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert described(stage).error_code is Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert stage.end(EPOCH).error_code is Errors.COORDINATOR_LOAD_IN_PROGRESS


# ---- what the journal is told ----------------------------------------------------------------------------------------


def phases(stage: Stage) -> list[tuple[str, int, int]]:
    """(phase, epoch, partitions) of all that was told."""
    changes = [event for event in stage.told if isinstance(event, TransactionChanged)]
    assert {(event.transactional_id, event.producer_id) for event in changes} <= {(ID, BLOCK)}
    return [(event.phase, event.producer_epoch, event.partition_count) for event in changes]


def test_the_life_of_a_transactional_id_is_told() -> None:
    stage = Stage(traced=True)
    stage.init()
    stage.add(ORDERS)
    stage.add(ORDERS)  # it takes part already: nothing is new
    stage.add(OFFSETS)
    stage.end()
    stage.advance(8 * DAY_MS)
    assert phases(stage) == [
        ("Empty", 0, 0),
        ("Ongoing", 0, 1),
        ("Ongoing", 0, 2),
        ("PrepareCommit", 1, 2),
        ("CompleteCommit", 1, 0),
        ("Dead", 1, 0),
    ]


def test_what_is_loaded_has_been_told_already() -> None:
    stage = Stage(traced=True)
    stage.init()
    stage.add(ORDERS)
    stage.told.clear()
    stage.start()
    assert phases(stage) == []
    stage.end(commit=False)
    assert phases(stage) == [("PrepareAbort", 1, 1), ("CompleteAbort", 1, 0)]


def test_who_keeps_no_journal_is_told_nothing() -> None:
    stage = Stage()
    stage.init()
    stage.add(ORDERS)
    assert stage.told == []
