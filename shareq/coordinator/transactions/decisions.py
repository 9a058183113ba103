"""The end of transactions: the result of EndTxn in each state, and the record of the decision.

The decision is recorded first (Prepare*), then markers are written to all partitions, then the completion is recorded.
With transaction.version 2 every end raises the epoch, so that late requests cannot get into the next transaction; when
the epochs of a producer id are used up, a new id follows. Source: KIP-98, KIP-360, KIP-890; Kafka's
TransactionCoordinator.endTransaction.
"""

from __future__ import annotations

from enum import StrEnum

from shareq.coordinator.runtime.turn import Append
from shareq.coordinator.transactions.context import TransactionContext
from shareq.coordinator.transactions.markers import Endings
from shareq.coordinator.transactions.producer_ids import ProducerIds
from shareq.coordinator.transactions.records import Transaction, encode_transaction
from shareq.coordinator.transactions.state import TransactionShard
from shareq.coordinator.transactions.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.transactions import EndTxnRequest, EndTxnResponse
from shareq.model.records import NO_PRODUCER_ID
from shareq.model.workflow import Workflow

LAST_EPOCH = 32766
"""The last epoch of a producer id; after it a new producer id follows (an int16 ends at 32767)."""

BUMPING_VERSION = 5
"""The first version of EndTxn that raises the epoch (transaction.version 2)."""

_S = TransactionState


class Verdict(StrEnum):
    """The result of an EndTxn that is not refused: decide now, or the decision was made before."""

    DECIDE = "decide"
    DONE = "done"


_DECIDE, _DONE = Verdict
_INVALID, _FENCED, _CONCURRENT = Errors.INVALID_TXN_STATE, Errors.PRODUCER_FENCED, Errors.CONCURRENT_TRANSACTIONS

KEEPING: dict[TransactionState, tuple[Verdict | Errors, Verdict | Errors]] = {
    _S.EMPTY: (_INVALID, _INVALID),
    _S.ONGOING: (_DECIDE, _DECIDE),
    _S.PREPARE_COMMIT: (_CONCURRENT, _INVALID),
    _S.PREPARE_ABORT: (_INVALID, _CONCURRENT),
    _S.COMPLETE_COMMIT: (_DONE, _INVALID),
    _S.COMPLETE_ABORT: (_INVALID, _DONE),
}
"""EndTxn 1 to 4, which keeps the epoch: (commit, abort)."""

BUMPING: dict[TransactionState, tuple[Verdict | Errors, Verdict | Errors, Verdict | Errors, Verdict | Errors]] = {
    _S.EMPTY: (_INVALID, _FENCED, _DECIDE, _FENCED),
    _S.ONGOING: (_DECIDE, _FENCED, _DECIDE, _FENCED),
    _S.PREPARE_COMMIT: (_FENCED, _CONCURRENT, _FENCED, _INVALID),
    _S.PREPARE_ABORT: (_FENCED, _INVALID, _FENCED, _CONCURRENT),
    _S.COMPLETE_COMMIT: (_INVALID, _DONE, _DECIDE, _INVALID),
    _S.COMPLETE_ABORT: (_INVALID, _INVALID, _DECIDE, _DONE),
}
"""EndTxn 5: (commit, its retry, abort, its retry). A retry has the epoch before the present one."""


def verdict_on(known: Transaction | None, request: EndTxnRequest, version: int) -> Verdict | Errors:
    """The verdict on a request, or its error."""
    if known is None:
        return Errors.INVALID_PRODUCER_ID_MAPPING
    rotated = (
        known.previous_producer_id == request.producer_id
        and request.producer_epoch == LAST_EPOCH
        and known.producer_epoch == 0
    )
    if known.producer_id != request.producer_id and not rotated:
        return Errors.INVALID_PRODUCER_ID_MAPPING
    same = not rotated and request.producer_epoch == known.producer_epoch
    if version < BUMPING_VERSION:
        if any(at.topic == SHARE_STATE_TOPIC for at in known.partitions):
            return Errors.UNSUPPORTED_VERSION  # what is staged there belongs to one epoch, and not to the next too
        return KEEPING[known.state][not request.committed] if same else _FENCED
    retry = rotated or request.producer_epoch == known.producer_epoch - 1
    if not (same or retry):
        return _FENCED
    return BUMPING[known.state][(0 if request.committed else 2) + retry]


def end_transaction(
    context: TransactionContext, endings: Endings, request: EndTxnRequest, version: int
) -> Workflow[EndTxnResponse]:
    """EndTxn: record the decision, answer, then write the markers in the background."""
    if not request.transactional_id:
        return _failure(Errors.INVALID_REQUEST)
    if request.producer_epoch >= LAST_EPOCH and not (yield from context.ids.wait_until_available()):
        return _failure(Errors.COORDINATOR_LOAD_IN_PROGRESS)
    shard = yield context.turn(request.transactional_id, _failure)
    known = shard.transactions.get(request.transactional_id)
    verdict = verdict_on(known, request, version)
    if isinstance(verdict, Errors):
        return _failure(verdict)
    assert known is not None
    if verdict is Verdict.DONE:
        return _answered(known.producer_id, known.producer_epoch, version)
    event = TransactionEvent.COMMIT if request.committed else TransactionEvent.ABORT
    bumps = version >= BUMPING_VERSION
    decided = decide(known, event, context.day_ms, context.ids, bumps=bumps)
    if decided is None:
        return _failure(Errors.COORDINATOR_LOAD_IN_PROGRESS)
    decided = decided._replace(client_version=2 if bumps else 0)
    error = yield Append([encode_transaction(decided)])
    if error:
        return _failure(error)
    if bumps:
        shard.remember_epoch(known.transactional_id, known.producer_epoch)
    endings.start(decided)
    return _answered(*decided.next_pair(), version)


def _failure(error: Errors) -> EndTxnResponse:
    return EndTxnResponse(error_code=error)


def _answered(producer_id: int, producer_epoch: int, version: int) -> EndTxnResponse:
    """The successful response. From version 5 on it contains the producer id and epoch of the next transaction."""
    if version < BUMPING_VERSION:
        return EndTxnResponse()
    return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def decide(
    known: Transaction, event: TransactionEvent, now_ms: int, ids: ProducerIds, *, bumps: bool
) -> Transaction | None:
    """The transaction in Prepare*. None if a new producer id is needed and none is available.

    `bumps`: raise the epoch. An abort without open transaction gets `now_ms` as its start.
    """
    epoch, next_producer_id = known.producer_epoch, NO_PRODUCER_ID
    if bumps:
        if epoch >= LAST_EPOCH:
            taken = ids.take()
            if taken is None:
                return None
            next_producer_id = taken
        epoch += 1
    return known._replace(
        state=TRANSITIONS[known.state, event],
        producer_epoch=epoch,
        next_producer_id=next_producer_id,
        last_update_ms=now_ms,
        start_ms=known.start_ms if known.state is _S.ONGOING else now_ms,
    )


def abort(
    context: TransactionContext, endings: Endings, known: Transaction, shard: TransactionShard, *, last_epoch: int = -1
) -> Workflow[Errors]:
    """During a turn, abort the open transaction of a fenced or timed-out producer; this always raises the epoch.

    `last_epoch`: the epoch with which the producer may still request its next one by InitProducerId; -1 for none.
    Returns the error of the append.
    """
    decided = decide(known, TransactionEvent.ABORT, context.day_ms, context.ids, bumps=True)
    if decided is None:
        return Errors.COORDINATOR_LOAD_IN_PROGRESS
    error: Errors = yield Append([encode_transaction(decided)])
    if not error:
        shard.remember_epoch(known.transactional_id, last_epoch)
        endings.start(decided)
    return error
