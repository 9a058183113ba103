"""Producer state of a partition: sequences, which detect duplicates, and open and aborted transactions.

Source: KIP-98 and KIP-360; KIP-890 for the stricter start of a transaction (`transaction_version` 2).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import NamedTuple

from shareq.log.results import ProducerState
from shareq.model.errors import Errors
from shareq.model.records import AbortedTransaction, RecordBatch

BATCHES_REMEMBERED = 5
PRODUCER_ID_EXPIRATION_MS = 86_400_000
NO_SEQUENCE = -1
"""A coordinator's write on behalf of a producer (offsets in a transaction) has no sequence."""
_SEQUENCES = 1 << 31
OK = (Errors.NONE, None)

Verdict = tuple[Errors, str | None]


class AppendedBatch(NamedTuple):
    """An appended batch of a producer: sequences and offsets, all inclusive."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class ProducerStateEntry:
    """One producer id in one partition. `open_from`: the first offset of its open transaction, or None."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_seen_ms", "open_from")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[AppendedBatch] = deque(maxlen=BATCHES_REMEMBERED)
        self.coordinator_epoch = -1
        self.last_seen_ms = -1
        self.open_from: int | None = None

    def enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    @property
    def next_sequence(self) -> int:
        return (self.batches[-1].last_sequence + 1) % _SEQUENCES if self.batches else 0


def last_sequence(batch: RecordBatch) -> int:
    """The sequence of the last record; 2147483647 is followed by 0."""
    return (batch.base_sequence + batch.last_offset - batch.base_offset) % _SEQUENCES


class ProducerStates:
    """All producers of a partition, and its aborted transactions."""

    def __init__(self) -> None:
        self._known: dict[int, ProducerStateEntry] = {}
        self._open: dict[int, int] = {}
        self._aborted: list[AbortedTransaction] = []

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction."""
        # The dict is in the order in which the transactions began, and offsets only grow.
        return next(iter(self._open.values()), None)

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """True if the producer has an open transaction at exactly this epoch in this partition."""
        known = self._known.get(producer_id)
        return known is not None and known.open_from is not None and known.epoch == producer_epoch

    def is_fenced(self, producer_id: int, producer_epoch: int) -> bool:
        """True if the partition has a later epoch of the producer: writes at this epoch are fenced."""
        known = self._known.get(producer_id)
        return known is not None and producer_epoch < known.epoch

    def duplicate(self, batch: RecordBatch) -> AppendedBatch | None:
        """The earlier append of the same sequences, if it is one of the last five of the producer's epoch."""
        known = self._known.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            return None
        sequences = (batch.base_sequence, last_sequence(batch))
        return next((earlier for earlier in known.batches if earlier[:2] == sequences), None)

    def check(self, batch: RecordBatch, transaction_version: int) -> Verdict:
        """The error, if any, of appending this batch now. The caller has excluded duplicates."""
        known = self._known.get(batch.producer_id)
        if known is None:
            if batch.is_transactional and transaction_version >= 2 and batch.base_sequence > 0:
                return self._out_of_order(batch, 0)
            return OK
        if batch.producer_epoch < known.epoch:
            return self._stale_epoch(batch.producer_id, batch.producer_epoch, known)
        if batch.base_sequence == NO_SEQUENCE:
            return OK
        expected = known.next_sequence if batch.producer_epoch == known.epoch else 0
        if batch.base_sequence != expected:
            return self._out_of_order(batch, expected)
        if known.open_from is not None and not batch.is_transactional:
            return Errors.INVALID_TXN_STATE, f"producer {batch.producer_id} has a transaction open here"
        return OK

    def appended(self, batch: RecordBatch, now_ms: int) -> None:
        """Record an appended batch, with its offset in the log."""
        known = self._known.get(batch.producer_id)
        if known is None:
            known = self._known[batch.producer_id] = ProducerStateEntry(batch.producer_epoch)
        known.enter_epoch(batch.producer_epoch)
        if batch.base_sequence != NO_SEQUENCE:
            sequences = batch.base_sequence, last_sequence(batch)
            known.batches.append(AppendedBatch(*sequences, batch.base_offset, batch.last_offset, batch.max_timestamp))
        known.last_seen_ms = now_ms
        if batch.is_transactional and known.open_from is None:
            known.open_from = self._open[batch.producer_id] = batch.base_offset

    def check_marker(self, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> Verdict:
        """The error, if any, of ending the producer's transaction. An unknown producer is not an error."""
        known = self._known.get(producer_id)
        if known is None:
            return OK
        if producer_epoch < known.epoch:
            return self._stale_epoch(producer_id, producer_epoch, known)
        if coordinator_epoch < known.coordinator_epoch:
            return (
                Errors.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {coordinator_epoch} is older than {known.coordinator_epoch}",
            )
        return OK

    def ended(self, marker: RecordBatch, *, committed: bool, coordinator_epoch: int, now_ms: int) -> None:
        """Record an appended marker, with its offset in the log; the producer's epoch is now the marker's.

        A marker without data before it does not enter the list of aborted transactions.
        """
        known = self._known.setdefault(marker.producer_id, ProducerStateEntry(marker.producer_epoch))
        known.enter_epoch(marker.producer_epoch)
        known.coordinator_epoch = coordinator_epoch
        known.last_seen_ms = now_ms
        first_offset = self._open.pop(marker.producer_id, None)
        known.open_from = None
        if first_offset is not None and not committed:
            self._aborted.append(AbortedTransaction(marker.producer_id, first_offset, marker.base_offset))

    def aborted(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that overlap [start, end): a marker at or after `start`, data before `end`."""
        if not self._aborted:
            return ()
        at = bisect_left(self._aborted, start, key=_marker_offset)
        return tuple(t for t in self._aborted[at:] if t.first_offset < end)

    def log_start_moved(self, log_start_offset: int) -> None:
        """Remove the aborted transactions that end below the log start."""
        del self._aborted[: bisect_left(self._aborted, log_start_offset, key=_marker_offset)]

    def markers_compacted(self, gone: set[int]) -> None:
        """Remove the aborted transactions whose markers, and therefore data, were compacted away."""
        self._aborted = [t for t in self._aborted if t.last_offset not in gone]

    def last_offsets(self) -> set[int]:
        """The last offset of the last batch of each known producer."""
        return {known.batches[-1].last_offset for known in self._known.values() if known.batches}

    def states(self) -> list[ProducerState]:
        """The state of every known producer, by producer id."""
        return [
            ProducerState(
                producer_id=producer_id,
                producer_epoch=known.epoch,
                last_sequence=known.batches[-1].last_sequence if known.batches else -1,
                last_timestamp_ms=known.last_seen_ms,
                coordinator_epoch=known.coordinator_epoch,
                open_from=-1 if known.open_from is None else known.open_from,
            )
            for producer_id, known in sorted(self._known.items())
        ]

    def forget_idle(self, now_ms: int) -> None:
        """Remove producers without an open transaction that have not written for a day."""
        silent_since = now_ms - PRODUCER_ID_EXPIRATION_MS
        for producer_id, known in list(self._known.items()):
            if known.open_from is None and known.last_seen_ms <= silent_since:
                del self._known[producer_id]

    @staticmethod
    def _stale_epoch(producer_id: int, epoch: int, known: ProducerStateEntry) -> Verdict:
        return Errors.INVALID_PRODUCER_EPOCH, f"producer {producer_id} is at epoch {known.epoch}, not {epoch}"

    @staticmethod
    def _out_of_order(batch: RecordBatch, expected: int) -> Verdict:
        text = f"producer {batch.producer_id} sent sequence {batch.base_sequence}, expected {expected}"
        return Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, text


def _marker_offset(transaction: AbortedTransaction) -> int:
    return transaction.last_offset
