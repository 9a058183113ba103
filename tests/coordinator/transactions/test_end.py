"""EndTxn: the tables of versions 1 to 4 and of version 5, wrong ids, and the last epoch."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from shareq.coordinator.transactions.decisions import LAST_EPOCH
from shareq.coordinator.transactions.records import Transaction, encode_transaction
from shareq.coordinator.transactions.states import TransactionState
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, TopicPartition
from shareq.model.messages.transactions import EndTxnResponse
from tests.coordinator.transactions.stage import BLOCK, HOME, ID, ORDERS, Stage

S = TransactionState
WRONG, FENCED, CONCURRENT = Errors.INVALID_TXN_STATE, Errors.PRODUCER_FENCED, Errors.CONCURRENT_TRANSACTIONS
EPOCH = 4


def stage_in(state: S, *, epoch: int = EPOCH, **fields: Any) -> Stage:
    """A stage whose log has the id in this state; markers are held, so that Prepare* lasts."""
    stage = Stage()
    stage.holding_markers = True
    known = Transaction(ID, BLOCK, epoch, 60_000, state, last_update_ms=stage.now_ms)
    if state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT):
        known = known._replace(partitions=frozenset({ORDERS}), start_ms=stage.now_ms)
    stage.logs[HOME] = [encode_transaction(known._replace(**fields))]
    stage.start()
    return stage


# ---- version 5: commit, its retry, abort, its retry ------------------------------------------------------------------

DECIDED = "decided"
CURRENT = "the current pair"

V5: dict[S, tuple[Errors | str, ...]] = {
    S.EMPTY: (WRONG, FENCED, DECIDED, FENCED),
    S.ONGOING: (DECIDED, FENCED, DECIDED, FENCED),
    S.PREPARE_COMMIT: (FENCED, CONCURRENT, FENCED, WRONG),
    S.PREPARE_ABORT: (FENCED, WRONG, FENCED, CONCURRENT),
    S.COMPLETE_COMMIT: (WRONG, CURRENT, DECIDED, WRONG),
    S.COMPLETE_ABORT: (WRONG, WRONG, DECIDED, CURRENT),
}

COLUMNS = {
    "commit": (True, False),
    "commit, retry": (True, True),
    "abort": (False, False),
    "abort, retry": (False, True),
}
V5_ROWS = [
    pytest.param(state, *commit_and_retry, V5[state][column], id=f"{state}: {title}")
    for state in V5
    for column, (title, commit_and_retry) in enumerate(COLUMNS.items())
]


@pytest.mark.parametrize(("state", "commit", "retry", "expected"), V5_ROWS)
def test_result_of_version_5_in_each_state(state: S, commit: bool, retry: bool, expected: Errors | str) -> None:
    """BEHAVIOUR.md 32."""
    stage = stage_in(state)
    response = stage.end(EPOCH - retry, commit=commit)
    if isinstance(expected, Errors):
        assert response == EndTxnResponse(error_code=expected)
        assert len(stage.history()) == 1
    elif expected == CURRENT:
        assert response == EndTxnResponse(producer_id=BLOCK, producer_epoch=EPOCH)
        assert len(stage.history()) == 1
    else:
        assert response == EndTxnResponse(producer_id=BLOCK, producer_epoch=EPOCH + 1)
        decided = stage.history()[1]
        assert decided is not None
        assert decided.state is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT)
        assert (decided.producer_epoch, decided.client_version) == (EPOCH + 1, 2)


@pytest.mark.parametrize("state", list(V5))
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("epoch", [EPOCH - 2, EPOCH + 1], ids=["older", "later"])
def test_any_other_epoch_is_fenced_in_version_5(state: S, commit: bool, epoch: int) -> None:
    """BEHAVIOUR.md 32."""
    assert stage_in(state).end(epoch, commit=commit).error_code is FENCED


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_abort_without_transaction_writes_no_markers(state: S) -> None:
    """BEHAVIOUR.md 32."""
    stage = stage_in(state)
    stage.end(EPOCH, commit=False)
    assert [t.state for t in stage.history() if t] == [state, S.PREPARE_ABORT, S.COMPLETE_ABORT]
    assert stage.held_markers == []
    assert stage.known().producer_epoch == EPOCH + 1
    assert stage.known().start_ms == stage.now_ms


# ---- versions 1 to 4 -------------------------------------------------------------------------------------------------

V4: dict[S, tuple[Errors | str, Errors | str]] = {
    S.EMPTY: (WRONG, WRONG),
    S.ONGOING: (DECIDED, DECIDED),
    S.PREPARE_COMMIT: (CONCURRENT, WRONG),
    S.PREPARE_ABORT: (WRONG, CONCURRENT),
    S.COMPLETE_COMMIT: (CURRENT, WRONG),
    S.COMPLETE_ABORT: (WRONG, CURRENT),
}


@pytest.mark.parametrize(
    ("state", "commit", "expected"),
    [
        pytest.param(state, commit, V4[state][not commit], id=f"{state}: {'commit' if commit else 'abort'}")
        for state, commit in product(V4, (True, False))
    ],
)
@pytest.mark.parametrize("version", [1, 2, 3, 4], ids=lambda v: f"v{v}")
def test_result_of_versions_1_to_4_in_each_state(state: S, commit: bool, expected: Errors | str, version: int) -> None:
    """BEHAVIOUR.md 31."""
    stage = stage_in(state)
    response = stage.end(EPOCH, commit=commit, version=version)
    assert response == EndTxnResponse(error_code=expected if isinstance(expected, Errors) else Errors.NONE)
    if expected == DECIDED:
        assert (stage.known().producer_epoch, stage.known().client_version) == (EPOCH, 0)
        assert stage.known().state is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT)
    else:
        assert len(stage.history()) == 1


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_transaction_with_share_acknowledgements_needs_an_end_that_raises_the_epoch(commit: bool) -> None:
    """leader/experiments/BEHAVIOUR.md 7.16."""
    stage = stage_in(S.ONGOING, partitions=frozenset({ORDERS, TopicPartition(SHARE_STATE_TOPIC, 3)}))
    assert stage.end(EPOCH, commit=commit, version=4) == EndTxnResponse(error_code=Errors.UNSUPPORTED_VERSION)
    assert len(stage.history()) == 1
    assert not stage.end(EPOCH, commit=commit).error_code


@pytest.mark.parametrize("state", list(V4))
@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1], ids=["previous", "later"])
@pytest.mark.parametrize(
    ("version", "error"),
    [
        pytest.param(1, Errors.INVALID_PRODUCER_EPOCH, id="v1"),
        pytest.param(2, FENCED, id="v2"),
        pytest.param(4, FENCED, id="v4"),
    ],
)
def test_any_other_epoch_is_fenced_in_versions_1_to_4(state: S, epoch: int, version: int, error: Errors) -> None:
    """BEHAVIOUR.md 31."""
    assert stage_in(state).end(epoch, version=version).error_code is error


# ---- wrong ids and failures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 4, 5], ids=lambda v: f"v{v}")
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"id_": "unknown"}, Errors.INVALID_PRODUCER_ID_MAPPING, id="unknown transactional id"),
        pytest.param({"producer_id": 9}, Errors.INVALID_PRODUCER_ID_MAPPING, id="another producer id"),
        pytest.param({"id_": ""}, Errors.INVALID_REQUEST, id="empty transactional id"),
    ],
)
def test_unknown_ids_are_refused(fields: dict[str, Any], error: Errors, version: int) -> None:
    assert stage_in(S.ONGOING).end(EPOCH, version=version, **fields).error_code is error


def test_end_at_another_broker_is_refused() -> None:
    stage = stage_in(S.ONGOING)
    stage.resign()
    assert stage.end(EPOCH).error_code is Errors.NOT_COORDINATOR


def test_failed_append_of_a_decision_decides_nothing() -> None:
    """BEHAVIOUR.md 33."""
    stage = stage_in(S.ONGOING)
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    assert stage.end(EPOCH).error_code is Errors.COORDINATOR_NOT_AVAILABLE
    stage.append_error = Errors.NONE
    assert stage.held_markers == []
    assert stage.end(EPOCH).error_code is Errors.NONE


# ---- last epoch ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_end_at_the_last_epoch_continues_with_a_new_producer_id(commit: bool) -> None:
    stage = stage_in(S.ONGOING, producer_id=7, epoch=LAST_EPOCH)
    answer = stage.end(LAST_EPOCH, commit=commit, producer_id=7)
    assert (answer.producer_id, answer.producer_epoch) == (BLOCK, 0)
    assert (stage.known().producer_id, stage.known().next_producer_id) == (7, BLOCK)
    assert stage.end(LAST_EPOCH, commit=commit, producer_id=7).error_code is CONCURRENT
    stage.release_markers()
    assert stage.marked == [(ORDERS, commit, 7, LAST_EPOCH + 1)]
    known = stage.known()
    assert (known.producer_id, known.producer_epoch, known.previous_producer_id) == (BLOCK, 0, 7)
    assert stage.end(LAST_EPOCH, commit=commit, producer_id=7) == answer
    assert stage.end(LAST_EPOCH, commit=not commit, producer_id=7).error_code is WRONG
    assert stage.end(LAST_EPOCH - 1, commit=commit, producer_id=7).error_code is Errors.INVALID_PRODUCER_ID_MAPPING


def test_end_at_the_last_epoch_can_be_repeated_until_the_next_transaction() -> None:
    stage = stage_in(S.ONGOING, producer_id=7, epoch=LAST_EPOCH)
    stage.end(LAST_EPOCH, producer_id=7)
    stage.release_markers()
    assert stage.end(LAST_EPOCH, producer_id=7, version=4).error_code is FENCED
    stage.add(ORDERS)
    assert stage.end(LAST_EPOCH, producer_id=7).error_code is FENCED
    stage.end(0)
    assert stage.end(LAST_EPOCH, producer_id=7).error_code is Errors.INVALID_PRODUCER_ID_MAPPING


def test_end_at_the_last_epoch_can_be_repeated_after_a_failover() -> None:
    stage = stage_in(S.ONGOING, producer_id=7, epoch=LAST_EPOCH)
    answer = stage.end(LAST_EPOCH, producer_id=7)
    stage.start()
    stage.release_markers()
    assert stage.end(LAST_EPOCH, producer_id=7) == answer


def test_old_versions_stay_at_the_last_epoch_until_init_producer_id() -> None:
    stage = stage_in(S.ONGOING, producer_id=7, epoch=LAST_EPOCH)
    stage.end(LAST_EPOCH, producer_id=7, version=4)
    stage.release_markers()
    assert (stage.known().producer_id, stage.known().producer_epoch) == (7, LAST_EPOCH)
    assert (stage.init().producer_id, stage.init().producer_epoch) == (BLOCK, 1)


def test_end_at_the_last_epoch_without_an_available_producer_id_is_retriable() -> None:
    stage = stage_in(S.ONGOING, producer_id=7, epoch=LAST_EPOCH)
    stage.ids_error = Errors.NETWORK_EXCEPTION
    assert stage.end(LAST_EPOCH, producer_id=7).error_code is Errors.COORDINATOR_LOAD_IN_PROGRESS
    stage.ids_error = Errors.NONE
    assert stage.end(LAST_EPOCH, producer_id=7).error_code is Errors.NONE
