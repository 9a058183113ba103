"""Transactions of producers: who may write under which epoch, and the markers that end what they wrote.

One table for the whole cluster, kept in this process: it outlives every broker. Partitions join a transaction with the
first batch that is produced to them (Kafka's transaction.version 2), and every end of a transaction raises the epoch.
Source: KIP-98, KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from shareq.broker.loop import EventLoop, Timer
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

MAX_TIMEOUT_MS = 900_000
LAST_EPOCH = 32766


class TransactionState(StrEnum):
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


class _Transaction:
    """One transactional id: its producer, and the partitions that its open transaction has reached."""

    __slots__ = ("epoch", "partitions", "producer_id", "state", "timeout_ms", "timer")

    def __init__(self, producer_id: int, timeout_ms: int) -> None:
        self.producer_id = producer_id
        self.epoch = 0
        self.timeout_ms = timeout_ms
        self.state = TransactionState.EMPTY
        self.partitions: set[TopicPartition] = set()
        self.timer: Timer | None = None


class Transactions:
    """Hands out producer ids and ends transactions.

    `mark(topic_partition, committed, producer_id, producer_epoch)` writes one marker; the epoch in a marker is the one
    after the transaction's, so that nothing late can follow it.
    """

    def __init__(self, loop: EventLoop, mark: Callable[[TopicPartition, bool, int, int], None]) -> None:
        self._loop = loop
        self._mark = mark
        self._known: dict[str, _Transaction] = {}
        self._last_producer_id = 999

    def init_producer_id(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        """A producer id and epoch. An open transaction of a transactional id is aborted, its old self fenced."""
        if request.transactional_id is None:
            return InitProducerIdResponse(producer_id=self._new_producer_id(), producer_epoch=0)
        if not request.transactional_id:
            return InitProducerIdResponse(error_code=Errors.INVALID_REQUEST)
        if not 0 < request.transaction_timeout_ms <= MAX_TIMEOUT_MS:
            return InitProducerIdResponse(error_code=Errors.INVALID_TRANSACTION_TIMEOUT)
        known = self._known.get(request.transactional_id)
        if known is None:
            known = _Transaction(self._new_producer_id(), request.transaction_timeout_ms)
            self._known[request.transactional_id] = known
        else:
            self._end(known, committed=False)
            known.timeout_ms = request.transaction_timeout_ms
            known.state = TransactionState.EMPTY
        return InitProducerIdResponse(producer_id=known.producer_id, producer_epoch=known.epoch)

    def admit(self, request: ProduceRequest, producer_id: int, epoch: int, at: TopicPartition) -> Errors:
        """Whether a transactional batch may be written; its partition then belongs to the transaction."""
        known = self._known.get(request.transactional_id or "")
        if known is None or known.producer_id != producer_id:
            return Errors.INVALID_PRODUCER_ID_MAPPING
        if known.epoch != epoch:
            return Errors.INVALID_PRODUCER_EPOCH
        if known.state is not TransactionState.ONGOING:
            known.state = TransactionState.ONGOING
            due_ms = self._loop.now_ms() + known.timeout_ms
            known.timer = self._loop.at(due_ms, lambda: self._end(known, committed=False))
        known.partitions.add(at)
        return Errors.NONE

    def end(self, request: EndTxnRequest) -> EndTxnResponse:
        """Commit or abort; the answer carries the epoch of the next transaction. A repeated request is recognised."""
        known = self._known.get(request.transactional_id)
        if known is None or known.producer_id != request.producer_id:
            return EndTxnResponse(error_code=Errors.INVALID_PRODUCER_ID_MAPPING)
        ended = TransactionState.COMPLETE_COMMIT if request.committed else TransactionState.COMPLETE_ABORT
        if request.producer_epoch == known.epoch - 1 and known.state is ended:
            return EndTxnResponse(producer_id=known.producer_id, producer_epoch=known.epoch)
        if request.producer_epoch != known.epoch:
            return EndTxnResponse(error_code=Errors.PRODUCER_FENCED)
        if known.state is not TransactionState.ONGOING and request.committed:
            return EndTxnResponse(error_code=Errors.INVALID_TXN_STATE)
        self._end(known, committed=request.committed)
        return EndTxnResponse(producer_id=known.producer_id, producer_epoch=known.epoch)

    def _end(self, known: _Transaction, *, committed: bool) -> None:
        if known.timer is not None:
            known.timer.cancel()
            known.timer = None
        for at in sorted(known.partitions):
            self._mark(at, committed, known.producer_id, known.epoch + 1)
        known.partitions.clear()
        known.state = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
        known.epoch += 1
        if known.epoch >= LAST_EPOCH:
            known.producer_id, known.epoch = self._new_producer_id(), 0

    def _new_producer_id(self) -> int:
        self._last_producer_id += 1
        return self._last_producer_id
