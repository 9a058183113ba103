"""InitProducerId: who a producer is from now on. Rows are the lines of Kafka's behaviour, states, and old versions."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.other.transaction.decisions import LAST_EPOCH
from shareq.coordinator.other.transaction.records import Transaction, encode_transaction
from shareq.coordinator.other.transaction.states import TransactionState
from shareq.model.actor import ImageChanged
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.messages.transactions import AllocateProducerIdsRequest, InitProducerIdRequest
from tests.coordinator.other.transaction.stage import BLOCK, HOME, ID, NO_STATE_TOPIC, ORDERS, Stage

S = TransactionState


def pair(stage: Stage, producer_id: int = -1, producer_epoch: int = -1) -> tuple[int, int] | Errors:
    """The producer id and epoch that a producer is given, or the error."""
    response = stage.init(producer_id, producer_epoch)
    return response.error_code or (response.producer_id, response.producer_epoch)


def put(stage: Stage, **fields: Any) -> None:
    """Let the coordinator find this in its log."""
    known = Transaction(ID, BLOCK, 0, 60_000, last_update_ms=stage.now_ms)._replace(**fields)
    stage.logs[HOME] = [encode_transaction(known)]
    stage.start()


# ---- requests that need no shard -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"transactional_id": ""}, Errors.INVALID_REQUEST, id="an empty transactional id"),
        pytest.param({"producer_id": 1}, Errors.INVALID_REQUEST, id="a producer id without epoch"),
        pytest.param({"producer_epoch": 1}, Errors.INVALID_REQUEST, id="an epoch without producer id"),
        pytest.param({"transaction_timeout_ms": 0}, Errors.INVALID_TRANSACTION_TIMEOUT, id="no time"),
        pytest.param({"transaction_timeout_ms": -1}, Errors.INVALID_TRANSACTION_TIMEOUT, id="negative time"),
        pytest.param({"transaction_timeout_ms": 900_001}, Errors.INVALID_TRANSACTION_TIMEOUT, id="too much time"),
        pytest.param({"transaction_timeout_ms": 900_000}, Errors.NONE, id="the most time"),
        pytest.param({"transaction_timeout_ms": 1}, Errors.NONE, id="the least time"),
        pytest.param(
            {"transactional_id": None, "transaction_timeout_ms": -1}, Errors.NONE, id="idempotent, as librdkafka asks"
        ),
        pytest.param(
            {"transactional_id": None, "transaction_timeout_ms": 2147483647}, Errors.NONE, id="idempotent, as Java asks"
        ),
    ],
)
def test_what_is_asked_for_is_checked(fields: dict[str, Any], error: Errors) -> None:
    response = Stage().ask(InitProducerIdRequest(**{"transactional_id": ID, **fields}))
    assert response.error_code is error
    assert (response.producer_id >= 0) == (not error)


def test_without_transactional_id_everybody_gets_an_id_of_its_own() -> None:
    stage = Stage(load=False)
    assert [stage.init(id_=None).producer_id for _ in range(3)] == [BLOCK, BLOCK + 1, BLOCK + 2]
    assert stage.logs == {}


@pytest.mark.parametrize(
    ("prepare", "error"),
    [
        pytest.param(lambda s: s.resign(), Errors.NOT_COORDINATOR, id="another broker leads"),
        pytest.param(
            lambda s: s.handle(ImageChanged(NO_STATE_TOPIC)), Errors.COORDINATOR_NOT_AVAILABLE, id="no state topic"
        ),
        pytest.param(
            lambda s: setattr(s, "append_error", Errors.NOT_ENOUGH_REPLICAS),
            Errors.COORDINATOR_NOT_AVAILABLE,
            id="the append fails",
        ),
    ],
)
def test_where_nothing_can_be_stored_nobody_gets_an_id(prepare: Any, error: Errors) -> None:
    stage = Stage()
    prepare(stage)
    assert pair(stage) is error
    assert stage.history() == []


# ---- blocks of producer ids ------------------------------------------------------------------------------------------


def blocks(stage: Stage) -> int:
    return sum(isinstance(call.request, AllocateProducerIdsRequest) for call in stage.called)


def test_ids_come_in_blocks_and_the_next_one_is_asked_for_in_time() -> None:
    stage = Stage()
    assert blocks(stage) == 0
    ids = [stage.init(id_=None).producer_id for _ in range(899)]
    assert blocks(stage) == 1
    ids += [stage.init(id_=None).producer_id for _ in range(2200)]
    assert ids == list(range(BLOCK, BLOCK + 3099))
    assert blocks(stage) == 4


def test_who_asks_while_no_ids_can_be_had_is_told_to_come_back() -> None:
    stage = Stage()
    stage.ids_error = Errors.NETWORK_EXCEPTION
    assert pair(stage) is Errors.COORDINATOR_LOAD_IN_PROGRESS
    stage.ids_error = Errors.NONE
    assert pair(stage) == (BLOCK, 0)


# ---- transactional ids -----------------------------------------------------------------------------------------------


def test_a_new_transactional_id_starts_at_epoch_0() -> None:
    stage = Stage()
    assert pair(stage) == (BLOCK, 0)
    assert stage.known() == Transaction(ID, BLOCK, 0, 60_000, last_update_ms=stage.now_ms)


def test_for_a_new_transactional_id_the_producers_own_pair_does_not_matter() -> None:
    assert pair(Stage(), 77, 5) == (BLOCK, 0)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_with_nothing_open_the_epoch_is_raised(state: S) -> None:
    stage = Stage()
    put(stage, state=state, producer_epoch=4, start_ms=stage.now_ms)
    assert pair(stage) == (BLOCK, 5)
    assert (stage.known().state, stage.known().start_ms) == (S.EMPTY, -1)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_while_a_transaction_is_being_completed_clients_come_back(state: S) -> None:
    stage = Stage()
    stage.silent = True
    put(stage, state=state, producer_epoch=4, partitions=frozenset({ORDERS}))
    assert pair(stage) is Errors.CONCURRENT_TRANSACTIONS
    stage.speak()
    assert pair(stage) == (BLOCK, 5)


def test_what_is_open_is_aborted_at_a_raised_epoch_and_the_retry_raises_it_again() -> None:
    stage = Stage()
    put(stage, state=S.ONGOING, producer_epoch=4, partitions=frozenset({ORDERS}), start_ms=stage.now_ms)
    assert pair(stage) is Errors.CONCURRENT_TRANSACTIONS
    assert stage.marked == [(ORDERS, False, BLOCK, 5)]
    assert stage.known().state is S.COMPLETE_ABORT
    assert pair(stage) == (BLOCK, 6)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
@pytest.mark.parametrize(
    ("asked", "given"),
    [
        pytest.param((BLOCK, 1), (BLOCK, 2), id="equal to current: one more"),
        pytest.param((BLOCK, 0), Errors.PRODUCER_FENCED, id="the one before, but of another producer"),
        pytest.param((BLOCK, 2), Errors.PRODUCER_FENCED, id="from the future"),
        pytest.param((BLOCK + 9, 1), Errors.PRODUCER_FENCED, id="another producer id"),
    ],
)
def test_a_producer_that_goes_on_says_who_it_is(
    state: S, asked: tuple[int, int], given: tuple[int, int] | Errors
) -> None:
    stage = Stage()
    put(stage, state=state, producer_epoch=1)
    assert pair(stage, *asked) == given


def test_a_repeated_request_gets_the_same_answer_without_a_bump() -> None:
    stage = Stage()
    assert pair(stage) == (BLOCK, 0)
    assert pair(stage, BLOCK, 0) == (BLOCK, 1)
    assert pair(stage, BLOCK, 0) == (BLOCK, 1)
    assert pair(stage, BLOCK, 0) == (BLOCK, 1)
    assert pair(stage, BLOCK, 1) == (BLOCK, 2)
    assert pair(stage, BLOCK, 0) is Errors.PRODUCER_FENCED


def test_a_new_producer_fences_the_one_before_it() -> None:
    stage = Stage()
    stage.init()
    assert pair(stage) == (BLOCK, 1)
    assert pair(stage, BLOCK, 0) is Errors.PRODUCER_FENCED
    assert pair(stage, BLOCK, 1) == (BLOCK, 2)


def test_a_zombie_does_not_abort_what_its_successor_has_begun() -> None:
    stage = Stage()
    stage.init()
    stage.init()
    assert stage.add(ORDERS, epoch=1) is Errors.NONE
    assert pair(stage, BLOCK, 0) is Errors.PRODUCER_FENCED
    assert stage.known().state is S.ONGOING


def test_a_producer_that_goes_on_while_its_own_transaction_is_open_gets_the_epoch_of_its_abort() -> None:
    stage = Stage()
    stage.init()
    stage.add(ORDERS)
    assert pair(stage, BLOCK, 0) is Errors.CONCURRENT_TRANSACTIONS
    assert stage.marked == [(ORDERS, False, BLOCK, 1)]
    assert pair(stage, BLOCK, 0) == (BLOCK, 1)


def test_after_a_failover_only_the_present_epoch_counts() -> None:
    stage = Stage()
    stage.init()
    stage.init(BLOCK, 0)
    stage.start()
    assert pair(stage, BLOCK, 0) is Errors.PRODUCER_FENCED
    assert pair(stage, BLOCK, 1) == (BLOCK, 2)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        pytest.param(3, Errors.INVALID_PRODUCER_EPOCH, id="v3 does not know PRODUCER_FENCED"),
        pytest.param(4, Errors.PRODUCER_FENCED, id="v4 does"),
    ],
)
def test_older_versions_are_told_in_their_own_words(version: int, error: Errors) -> None:
    stage = Stage()
    stage.init()
    request = InitProducerIdRequest(transactional_id=ID, producer_id=BLOCK, producer_epoch=9)
    assert stage.ask(request, version).error_code is error


def test_the_time_out_is_that_of_the_last_request() -> None:
    stage = Stage()
    stage.init(timeout_ms=60_000)
    stage.init(timeout_ms=5_000)
    assert stage.known().timeout_ms == 5_000


# ---- the end of the epochs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_at_the_last_epoch_a_fresh_producer_id_takes_over(state: S) -> None:
    stage = Stage()
    put(stage, producer_id=7, producer_epoch=LAST_EPOCH, state=state)
    assert pair(stage) == (BLOCK, 0)
    assert stage.known().previous_producer_id == 7


def test_a_repeated_request_at_the_last_epoch_gets_the_same_fresh_id() -> None:
    stage = Stage()
    put(stage, producer_id=7, producer_epoch=LAST_EPOCH)
    assert pair(stage, 7, LAST_EPOCH) == (BLOCK, 0)
    assert pair(stage, 7, LAST_EPOCH) == (BLOCK, 0)
    assert pair(stage, BLOCK, 0) == (BLOCK, 1)
    assert pair(stage, 7, LAST_EPOCH) is Errors.PRODUCER_FENCED


def test_an_abort_at_the_last_epoch_leads_to_a_fresh_id_too() -> None:
    stage = Stage()
    put(stage, producer_id=7, producer_epoch=LAST_EPOCH, state=S.ONGOING, partitions=frozenset({ORDERS}))
    assert pair(stage) is Errors.CONCURRENT_TRANSACTIONS
    assert stage.marked == [(ORDERS, False, 7, LAST_EPOCH + 1)]
    assert pair(stage) == (BLOCK, 1)


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING], ids=["at rest", "open"])
def test_without_a_fresh_id_at_hand_nothing_changes(state: S) -> None:
    stage = Stage()
    put(stage, producer_id=7, producer_epoch=LAST_EPOCH, state=state, partitions=frozenset[TopicPartition]())
    stage.ids_error = Errors.NETWORK_EXCEPTION
    assert pair(stage) is Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert len(stage.history()) == 1
