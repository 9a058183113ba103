"""InitProducerId: who is the producer behind a transactional id from now on. Whoever was it before is fenced.

Source: KIP-98, KIP-360 (producers that go on after an error); Kafka's TransactionCoordinator.handleInitProducerId.
"""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.shard import Outcome
from shareq.coordinator.transaction.decisions import LAST_EPOCH, Means, abort
from shareq.coordinator.transaction.producer_ids import ProducerIds
from shareq.coordinator.transaction.records import Transaction, encode_transaction
from shareq.coordinator.transaction.state import TransactionShard
from shareq.coordinator.transaction.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.model.actor import Effect
from shareq.model.errors import Errors
from shareq.model.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from shareq.model.records import NO_PRODUCER_ID

_NO_EPOCH = -1

Refusable = Outcome[InitProducerIdResponse]


def check_request(request: InitProducerIdRequest, max_timeout_ms: int) -> Errors:
    """What can be said against a request without knowing the transactional id."""
    if request.transactional_id == "" or (request.producer_id == NO_PRODUCER_ID) != (
        request.producer_epoch == _NO_EPOCH
    ):
        return Errors.INVALID_REQUEST
    if request.transactional_id is not None and not 0 < request.transaction_timeout_ms <= max_timeout_ms:
        return Errors.INVALID_TRANSACTION_TIMEOUT
    return Errors.NONE


def init_producer_id(request: InitProducerIdRequest, means: Means, shard: TransactionShard, now_ms: int) -> Refusable:
    """Give the transactional id a producer id and an epoch that nobody has used; abort what its former self left."""
    assert request.transactional_id is not None, "whoever has no transactional id is served without a shard"
    known = shard.transactions.get(request.transactional_id)
    if known is None:
        producer_id = means.ids.take()
        if producer_id is None:
            return _refused(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        new = Transaction(request.transactional_id, producer_id, 0, request.transaction_timeout_ms)
        return _begun(shard, new._replace(last_update_ms=now_ms), _NO_EPOCH)
    if known.state.is_preparing:
        return _refused(Errors.CONCURRENT_TRANSACTIONS)
    last_epoch = shard.last_epochs.get(known.transactional_id, _NO_EPOCH)
    standing = _standing(request, known, last_epoch)
    if standing is None:
        return _refused(Errors.PRODUCER_FENCED)
    if known.state is TransactionState.ONGOING:
        return _fenced(request, known, means, shard, now_ms)
    if standing == known.producer_epoch:
        renewed = _renew(known, means.ids)
        if renewed is None:
            return _refused(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        last_epoch = request.producer_epoch
    else:
        renewed = known
    return _begun(
        shard,
        renewed._replace(
            state=TRANSITIONS[known.state, TransactionEvent.INIT],
            timeout_ms=request.transaction_timeout_ms,
            last_update_ms=now_ms,
            start_ms=-1,
        ),
        last_epoch,
    )


def _standing(request: InitProducerIdRequest, known: Transaction, last_epoch: int) -> int | None:
    """The epoch that the caller speaks for: the present one, or in a repeated request the one before it; else None.

    Without producer id and epoch a new producer speaks, which takes over from the present one.
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
    """One epoch more; a fresh producer id where the epochs are used up, None where there is none at hand."""
    if known.producer_epoch < LAST_EPOCH:
        return known._replace(producer_epoch=known.producer_epoch + 1)
    producer_id = ids.take()
    if producer_id is None:
        return None
    return known._replace(producer_id=producer_id, producer_epoch=0, previous_producer_id=known.producer_id)


def _begun(shard: TransactionShard, transaction: Transaction, last_epoch: int) -> Refusable:
    def after(now_ms: int) -> Iterable[Effect]:
        del now_ms
        shard.remember_epoch(transaction.transactional_id, last_epoch)
        return ()

    answer = InitProducerIdResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)
    return Outcome(answer, [encode_transaction(transaction)], after)


def _fenced(
    request: InitProducerIdRequest, known: Transaction, means: Means, shard: TransactionShard, now_ms: int
) -> Refusable:
    """Abort what is open, at an epoch that no client gets unless it is its own successor; it comes back when that is
    done."""
    outcome = abort(known, means, shard, now_ms, last_epoch=request.producer_epoch)
    error = outcome.response or Errors.CONCURRENT_TRANSACTIONS
    return Outcome(InitProducerIdResponse(error_code=error), outcome.records, outcome.after)


def _refused(error: Errors) -> Refusable:
    return Outcome(InitProducerIdResponse(error_code=error))
