"""InitProducerId: a new epoch of a transactional id, which fences its former producer.

Source: KIP-98, KIP-360 (producers that continue after an error); Kafka's TransactionCoordinator.handleInitProducerId.
"""

from __future__ import annotations

from shareq.coordinator.runtime.turn import Append
from shareq.coordinator.transactions.context import TransactionContext
from shareq.coordinator.transactions.decisions import LAST_EPOCH, abort
from shareq.coordinator.transactions.markers import Endings
from shareq.coordinator.transactions.producer_ids import ProducerIds
from shareq.coordinator.transactions.records import Transaction, encode_transaction
from shareq.coordinator.transactions.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.model.errors import Errors
from shareq.model.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from shareq.model.records import NO_PRODUCER_ID
from shareq.model.workflow import Workflow

_NO_EPOCH = -1


def check_request(request: InitProducerIdRequest, max_timeout_ms: int) -> Errors:
    """The error of a request that can be found without the state of the transactional id."""
    if request.transactional_id == "" or (request.producer_id == NO_PRODUCER_ID) != (
        request.producer_epoch == _NO_EPOCH
    ):
        return Errors.INVALID_REQUEST
    if request.transactional_id is not None and not 0 < request.transaction_timeout_ms <= max_timeout_ms:
        return Errors.INVALID_TRANSACTION_TIMEOUT
    return Errors.NONE


def init_producer_id(
    context: TransactionContext, endings: Endings, request: InitProducerIdRequest
) -> Workflow[InitProducerIdResponse]:
    """InitProducerId: a producer id and epoch that were never used. An open transaction of the id is aborted first."""
    error = check_request(request, context.image.broker_config["transaction.max.timeout.ms"])
    if error:
        return _failure(error)
    if not (yield from context.ids.wait_until_available()):
        return _failure(Errors.COORDINATOR_LOAD_IN_PROGRESS)
    if request.transactional_id is None:
        producer_id = context.ids.take()
        assert producer_id is not None, "wait_until_available() has returned True"
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    shard = yield context.turn(request.transactional_id, _failure, request.transaction_timeout_ms)
    known = shard.transactions.get(request.transactional_id)
    last_epoch = shard.last_epochs.get(request.transactional_id, _NO_EPOCH)
    if (
        known is not None
        and known.state is TransactionState.ONGOING
        and (_matched_epoch(request, known, last_epoch) is not None)
    ):
        # The abort raises the epoch. The client repeats InitProducerId, and gets the epoch after that.
        aborted = yield from abort(context, endings, known, shard, last_epoch=request.producer_epoch)
        return _failure(aborted or Errors.CONCURRENT_TRANSACTIONS)
    begun = _begin(context, request, known, last_epoch)
    if isinstance(begun, Errors):
        return _failure(begun)
    transaction, last_epoch = begun
    error = yield Append([encode_transaction(transaction)])
    if error:
        return _failure(error)
    shard.remember_epoch(transaction.transactional_id, last_epoch)
    return InitProducerIdResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)


def _begin(
    context: TransactionContext, request: InitProducerIdRequest, known: Transaction | None, last_epoch: int
) -> tuple[Transaction, int] | Errors:
    """The transaction with its new producer id or epoch, and the epoch before; or the error."""
    if known is None:
        producer_id = context.ids.take()
        if producer_id is None:
            return Errors.COORDINATOR_LOAD_IN_PROGRESS
        new = Transaction(request.transactional_id or "", producer_id, 0, request.transaction_timeout_ms)
        return new._replace(last_update_ms=context.day_ms), _NO_EPOCH
    if known.state.is_preparing:
        return Errors.CONCURRENT_TRANSACTIONS
    matched_epoch = _matched_epoch(request, known, last_epoch)
    if matched_epoch is None:
        return Errors.PRODUCER_FENCED
    renewed: Transaction | None = known
    if matched_epoch == known.producer_epoch:
        renewed = _renew(known, context.ids)
        if renewed is None:
            return Errors.COORDINATOR_LOAD_IN_PROGRESS
        last_epoch = request.producer_epoch
    assert renewed is not None
    return renewed._replace(
        state=TRANSITIONS[known.state, TransactionEvent.INIT],
        timeout_ms=request.transaction_timeout_ms,
        last_update_ms=context.day_ms,
        start_ms=-1,
    ), last_epoch


def _matched_epoch(request: InitProducerIdRequest, known: Transaction, last_epoch: int) -> int | None:
    """The known epoch that the request matches: the present one, or for a repeated request the one before; else None.

    A request without producer id and epoch, from a new producer, matches the present one.
    """
    if request.producer_id == NO_PRODUCER_ID:
        return known.producer_epoch
    if request.producer_id == known.producer_id and request.producer_epoch == known.producer_epoch:
        return known.producer_epoch
    same_id = request.producer_id == known.producer_id
    rotated = request.producer_id == known.previous_producer_id and request.producer_epoch == LAST_EPOCH
    if (same_id or rotated) and request.producer_epoch == last_epoch:
        return last_epoch
    return None


def _renew(known: Transaction, ids: ProducerIds) -> Transaction | None:
    """The next epoch; a new producer id if the epochs are used up, None if no producer id is available."""
    if known.producer_epoch < LAST_EPOCH:
        return known._replace(producer_epoch=known.producer_epoch + 1)
    producer_id = ids.take()
    if producer_id is None:
        return None
    return known._replace(producer_id=producer_id, producer_epoch=0, previous_producer_id=known.producer_id)


def _failure(error: Errors) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error)
