"""InitProducerId: producer ids and epochs in each state, validation, and old versions."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.transactions.decisions import LAST_EPOCH
from shareq.coordinator.transactions.records import Transaction, encode_transaction
from shareq.coordinator.transactions.states import TransactionState
from shareq.model.actor import ImageChanged
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.messages.transactions import AllocateProducerIdsRequest, InitProducerIdRequest
from tests.coordinator.transactions.stage import BLOCK, HOME, ID, NO_STATE_TOPIC, ORDERS, Stage

S = TransactionState


def init_result(stage: Stage, producer_id: int = -1, producer_epoch: int = -1) -> tuple[int, int] | Errors:
    """The producer id and epoch of the response, or its error."""
    response = stage.init(producer_id, producer_epoch)
    return response.error_code or (response.producer_id, response.producer_epoch)


def restart_with(stage: Stage, **fields: Any) -> None:
    """Start a coordinator whose log contains this transaction."""
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
        pytest.param({"transaction_timeout_ms": 0}, Errors.INVALID_TRANSACTION_TIMEOUT, id="timeout 0"),
        pytest.param({"transaction_timeout_ms": -1}, Errors.INVALID_TRANSACTION_TIMEOUT, id="negative timeout"),
        pytest.param(
            {"transaction_timeout_ms": 900_001}, Errors.INVALID_TRANSACTION_TIMEOUT, id="timeout above the maximum"
        ),
        pytest.param({"transaction_timeout_ms": 900_000}, Errors.NONE, id="maximum timeout"),
        pytest.param({"transaction_timeout_ms": 1}, Errors.NONE, id="minimum timeout"),
        pytest.param(
            {"transactional_id": None, "transaction_timeout_ms": -1},
            Errors.NONE,
            id="idempotent, as librdkafka sends it",
        ),
        pytest.param(
            {"transactional_id": None, "transaction_timeout_ms": 2147483647},
            Errors.NONE,
            id="idempotent, as the Java client sends it",
        ),
    ],
)
def test_request_is_validated(fields: dict[str, Any], error: Errors) -> None:
    """BEHAVIOUR.md 28."""
    response = Stage().ask(InitProducerIdRequest(**{"transactional_id": ID, **fields}))
    assert response.error_code is error
    assert (response.producer_id >= 0) == (not error)


def test_each_idempotent_producer_gets_a_new_producer_id() -> None:
    """BEHAVIOUR.md 28."""
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
def test_no_producer_id_is_returned_without_a_record(prepare: Any, error: Errors) -> None:
    stage = Stage()
    prepare(stage)
    assert init_result(stage) is error
    assert stage.history() == []


# ---- blocks of producer ids ------------------------------------------------------------------------------------------


def blocks(stage: Stage) -> int:
    return sum(isinstance(call.request, AllocateProducerIdsRequest) for call in stage.calls)


def test_next_block_is_requested_before_the_present_one_is_used_up() -> None:
    stage = Stage()
    assert blocks(stage) == 0
    ids = [stage.init(id_=None).producer_id for _ in range(899)]
    assert blocks(stage) == 1
    ids += [stage.init(id_=None).producer_id for _ in range(2200)]
    assert ids == list(range(BLOCK, BLOCK + 3099))
    assert blocks(stage) == 4


def test_request_without_available_producer_ids_is_retriable() -> None:
    """BEHAVIOUR.md 28."""
    stage = Stage()
    stage.ids_error = Errors.NETWORK_EXCEPTION
    assert init_result(stage) is Errors.COORDINATOR_LOAD_IN_PROGRESS
    stage.ids_error = Errors.NONE
    assert init_result(stage) == (BLOCK, 0)


# ---- transactional ids -----------------------------------------------------------------------------------------------


def test_new_transactional_id_gets_epoch_0() -> None:
    """BEHAVIOUR.md 29."""
    stage = Stage()
    assert init_result(stage) == (BLOCK, 0)
    assert stage.known() == Transaction(ID, BLOCK, 0, 60_000, last_update_ms=stage.now_ms)


def test_producer_id_in_the_request_is_ignored_for_a_new_transactional_id() -> None:
    assert init_result(Stage(), 77, 5) == (BLOCK, 0)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_known_transactional_id_at_rest_gets_the_next_epoch(state: S) -> None:
    """BEHAVIOUR.md 29."""
    stage = Stage()
    restart_with(stage, state=state, producer_epoch=4, start_ms=stage.now_ms)
    assert init_result(stage) == (BLOCK, 5)
    assert (stage.known().state, stage.known().start_ms) == (S.EMPTY, -1)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_transaction_in_prepare_is_concurrent_transactions(state: S) -> None:
    """BEHAVIOUR.md 29."""
    stage = Stage()
    stage.holding_markers = True
    restart_with(stage, state=state, producer_epoch=4, partitions=frozenset({ORDERS}))
    assert init_result(stage) is Errors.CONCURRENT_TRANSACTIONS
    stage.release_markers()
    assert init_result(stage) == (BLOCK, 5)


def test_open_transaction_is_aborted_and_the_retry_gets_the_next_epoch() -> None:
    """BEHAVIOUR.md 29."""
    stage = Stage()
    restart_with(stage, state=S.ONGOING, producer_epoch=4, partitions=frozenset({ORDERS}), start_ms=stage.now_ms)
    assert init_result(stage) is Errors.CONCURRENT_TRANSACTIONS
    assert stage.marked == [(ORDERS, False, BLOCK, 5)]
    assert stage.known().state is S.COMPLETE_ABORT
    assert init_result(stage) == (BLOCK, 6)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param((BLOCK, 1), (BLOCK, 2), id="present epoch"),
        pytest.param((BLOCK, 0), Errors.PRODUCER_FENCED, id="previous epoch, of another producer"),
        pytest.param((BLOCK, 2), Errors.PRODUCER_FENCED, id="later epoch"),
        pytest.param((BLOCK + 9, 1), Errors.PRODUCER_FENCED, id="another producer id"),
    ],
)
def test_producer_id_and_epoch_in_the_request_are_checked(
    state: S, requested: tuple[int, int], expected: tuple[int, int] | Errors
) -> None:
    """BEHAVIOUR.md 29."""
    stage = Stage()
    restart_with(stage, state=state, producer_epoch=1)
    assert init_result(stage, *requested) == expected


def test_repeated_request_gets_the_same_epoch() -> None:
    """BEHAVIOUR.md 29."""
    stage = Stage()
    assert init_result(stage) == (BLOCK, 0)
    assert init_result(stage, BLOCK, 0) == (BLOCK, 1)
    assert init_result(stage, BLOCK, 0) == (BLOCK, 1)
    assert init_result(stage, BLOCK, 0) == (BLOCK, 1)
    assert init_result(stage, BLOCK, 1) == (BLOCK, 2)
    assert init_result(stage, BLOCK, 0) is Errors.PRODUCER_FENCED


def test_new_producer_fences_the_former_one() -> None:
    """BEHAVIOUR.md 29."""
    stage = Stage()
    stage.init()
    assert init_result(stage) == (BLOCK, 1)
    assert init_result(stage, BLOCK, 0) is Errors.PRODUCER_FENCED
    assert init_result(stage, BLOCK, 1) == (BLOCK, 2)


def test_fenced_producer_does_not_abort_the_transaction_of_its_successor() -> None:
    stage = Stage()
    stage.init()
    stage.init()
    assert stage.add(ORDERS, epoch=1) is Errors.NONE
    assert init_result(stage, BLOCK, 0) is Errors.PRODUCER_FENCED
    assert stage.known().state is S.ONGOING


def test_producer_whose_own_transaction_was_aborted_gets_the_epoch_of_the_abort() -> None:
    stage = Stage()
    stage.init()
    stage.add(ORDERS)
    assert init_result(stage, BLOCK, 0) is Errors.CONCURRENT_TRANSACTIONS
    assert stage.marked == [(ORDERS, False, BLOCK, 1)]
    assert init_result(stage, BLOCK, 0) == (BLOCK, 1)


def test_repeated_request_is_fenced_after_a_failover() -> None:
    stage = Stage()
    stage.init()
    stage.init(BLOCK, 0)
    stage.start()
    assert init_result(stage, BLOCK, 0) is Errors.PRODUCER_FENCED
    assert init_result(stage, BLOCK, 1) == (BLOCK, 2)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        pytest.param(3, Errors.INVALID_PRODUCER_EPOCH, id="v3"),
        pytest.param(4, Errors.PRODUCER_FENCED, id="v4"),
    ],
)
def test_old_versions_get_invalid_producer_epoch(version: int, error: Errors) -> None:
    stage = Stage()
    stage.init()
    request = InitProducerIdRequest(transactional_id=ID, producer_id=BLOCK, producer_epoch=9)
    assert stage.ask(request, version).error_code is error


def test_transaction_timeout_is_that_of_the_last_request() -> None:
    stage = Stage()
    stage.init(timeout_ms=60_000)
    stage.init(timeout_ms=5_000)
    assert stage.known().timeout_ms == 5_000


# ---- last epoch ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_new_producer_id_follows_the_last_epoch(state: S) -> None:
    """BEHAVIOUR.md 29."""
    stage = Stage()
    restart_with(stage, producer_id=7, producer_epoch=LAST_EPOCH, state=state)
    assert init_result(stage) == (BLOCK, 0)
    assert stage.known().previous_producer_id == 7


def test_repeated_request_at_the_last_epoch_gets_the_same_new_producer_id() -> None:
    """BEHAVIOUR.md 29."""
    stage = Stage()
    restart_with(stage, producer_id=7, producer_epoch=LAST_EPOCH)
    assert init_result(stage, 7, LAST_EPOCH) == (BLOCK, 0)
    assert init_result(stage, 7, LAST_EPOCH) == (BLOCK, 0)
    assert init_result(stage, BLOCK, 0) == (BLOCK, 1)
    assert init_result(stage, 7, LAST_EPOCH) is Errors.PRODUCER_FENCED


def test_abort_at_the_last_epoch_leads_to_a_new_producer_id() -> None:
    stage = Stage()
    restart_with(stage, producer_id=7, producer_epoch=LAST_EPOCH, state=S.ONGOING, partitions=frozenset({ORDERS}))
    assert init_result(stage) is Errors.CONCURRENT_TRANSACTIONS
    assert stage.marked == [(ORDERS, False, 7, LAST_EPOCH + 1)]
    assert init_result(stage) == (BLOCK, 1)


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING], ids=["at rest", "open"])
def test_no_change_without_an_available_producer_id(state: S) -> None:
    stage = Stage()
    restart_with(stage, producer_id=7, producer_epoch=LAST_EPOCH, state=state, partitions=frozenset[TopicPartition]())
    stage.ids_error = Errors.NETWORK_EXCEPTION
    assert init_result(stage) is Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert len(stage.history()) == 1
