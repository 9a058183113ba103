"""How transactions end: the result of EndTxn in each state, and how the decision is recorded.

A decision is stored first (Prepare*), then markers go to all partitions, then it is complete. With transaction.version
2 every end raises the epoch, so that nothing late can slip into the next transaction; when the epochs of a producer id
are used up, a fresh id takes over. Source: KIP-98, KIP-360, KIP-890; Kafka's TransactionCoordinator.endTransaction.
"""

from __future__ import annotations

from enum import StrEnum

from shareq.coordinator.other.transaction.context import Context
from shareq.coordinator.other.transaction.markers import Endings
from shareq.coordinator.other.transaction.producer_ids import ProducerIds
from shareq.coordinator.other.transaction.records import Transaction, encode_transaction
from shareq.coordinator.other.transaction.state import TransactionShard
from shareq.coordinator.other.transaction.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.coordinator.turn import Append
from shareq.model.errors import Errors
from shareq.model.messages.transactions import EndTxnRequest, EndTxnResponse
from shareq.model.records import NO_PRODUCER_ID
from shareq.model.workflow import Workflow

LAST_EPOCH = 32766
"""A producer that has got so far goes on with another producer id (int16 ends at 32767)."""

BUMPING_VERSION = 5
"""Since this version of EndTxn the end of a transaction raises the epoch (transaction.version 2)."""

_S = TransactionState


class Verdict(StrEnum):
    """What EndTxn comes to where it is not refused: a decision, or a decision that has been made already."""

    DECIDE = "decide"
    DONE = "done"


_DECIDE, _DONE = Verdict
_WRONG, _FENCED, _SOON = Errors.INVALID_TXN_STATE, Errors.PRODUCER_FENCED, Errors.CONCURRENT_TRANSACTIONS

KEEPING: dict[TransactionState, tuple[Verdict | Errors, Verdict | Errors]] = {
    _S.EMPTY: (_WRONG, _WRONG),
    _S.ONGOING: (_DECIDE, _DECIDE),
    _S.PREPARE_COMMIT: (_SOON, _WRONG),
    _S.PREPARE_ABORT: (_WRONG, _SOON),
    _S.COMPLETE_COMMIT: (_DONE, _WRONG),
    _S.COMPLETE_ABORT: (_WRONG, _DONE),
}
"""EndTxn 1 to 4, which keeps the epoch: (commit, abort)."""

BUMPING: dict[TransactionState, tuple[Verdict | Errors, Verdict | Errors, Verdict | Errors, Verdict | Errors]] = {
    _S.EMPTY: (_WRONG, _FENCED, _DECIDE, _FENCED),
    _S.ONGOING: (_DECIDE, _FENCED, _DECIDE, _FENCED),
    _S.PREPARE_COMMIT: (_FENCED, _SOON, _FENCED, _WRONG),
    _S.PREPARE_ABORT: (_FENCED, _WRONG, _FENCED, _SOON),
    _S.COMPLETE_COMMIT: (_WRONG, _DONE, _DECIDE, _WRONG),
    _S.COMPLETE_ABORT: (_WRONG, _WRONG, _DECIDE, _DONE),
}
"""EndTxn 5: (commit, its retry, abort, its retry); a retry comes with the epoch before the present one."""


def judge(known: Transaction | None, request: EndTxnRequest, version: int) -> Verdict | Errors:
    """What the request comes to."""
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
        return KEEPING[known.state][not request.committed] if same else _FENCED
    retry = rotated or request.producer_epoch == known.producer_epoch - 1
    if not (same or retry):
        return _FENCED
    return BUMPING[known.state][(0 if request.committed else 2) + retry]


def end_transaction(
    context: Context, endings: Endings, request: EndTxnRequest, version: int
) -> Workflow[EndTxnResponse]:
    """Commit or abort at a producer's request. The answer comes when the decision is stored, markers follow."""
    if not request.transactional_id:
        return _failure(Errors.INVALID_REQUEST)
    if request.producer_epoch >= LAST_EPOCH and not (yield from context.ids.stocked()):
        return _failure(Errors.COORDINATOR_LOAD_IN_PROGRESS)
    shard = yield context.turn(request.transactional_id, _failure)
    known = shard.transactions.get(request.transactional_id)
    verdict = judge(known, request, version)
    if isinstance(verdict, Errors):
        return _failure(verdict)
    assert known is not None
    if verdict is Verdict.DONE:
        return _answered(known.producer_id, known.producer_epoch, version)
    event = TransactionEvent.COMMIT if request.committed else TransactionEvent.ABORT
    bumps = version >= BUMPING_VERSION
    decided = decide(known, event, context.now_ms, context.ids, bumps=bumps)
    if decided is None:
        return _failure(Errors.COORDINATOR_LOAD_IN_PROGRESS)
    decided = decided._replace(client_version=2 if bumps else 0)
    error = yield Append([encode_transaction(decided)])
    if error:
        return _failure(error)
    if bumps:
        shard.remember_epoch(known.transactional_id, known.producer_epoch)
    endings.announce(decided)
    return _answered(*decided.next_pair(), version)


def _failure(error: Errors) -> EndTxnResponse:
    return EndTxnResponse(error_code=error)


def _answered(producer_id: int, producer_epoch: int, version: int) -> EndTxnResponse:
    """The producer goes on with these; older versions are not told."""
    if version < BUMPING_VERSION:
        return EndTxnResponse()
    return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def decide(
    known: Transaction, event: TransactionEvent, now_ms: int, ids: ProducerIds, *, bumps: bool
) -> Transaction | None:
    """The transaction with its end decided. None where another producer id is needed and none is at hand.

    An abort of nothing has its beginning now, since it has no other.
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
    context: Context, endings: Endings, known: Transaction, shard: TransactionShard, *, last_epoch: int = -1
) -> Workflow[Errors]:
    """During a turn, abort what is open: the producer is fenced or too slow, so the epoch is raised in any version.

    `last_epoch`: by which the producer may still ask for its next one; -1: it may not.
    """
    decided = decide(known, TransactionEvent.ABORT, context.now_ms, context.ids, bumps=True)
    if decided is None:
        return Errors.COORDINATOR_LOAD_IN_PROGRESS
    error: Errors = yield Append([encode_transaction(decided)])
    if not error:
        shard.remember_epoch(known.transactional_id, last_epoch)
        endings.announce(decided)
    return error
