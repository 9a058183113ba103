"""A topic-partition in memory.

Replication is synchronous and in process, so the high watermark is the log end. Finding an offset is a binary search
over batches; a read returns the stored batches; an append copies a batch once, to stamp its offset.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from heapq import merge

from shareq.log.batches import ControlType, CorruptBatch, control_batch, parse_batch, restamp
from shareq.log.compaction import Compactor, History
from shareq.log.config import LogConfig
from shareq.log.hidden_batches import HiddenBatches, hidden_batch
from shareq.log.leader_epochs import LeaderEpochs
from shareq.log.producer_states import ProducerStates
from shareq.log.results import AppendResult, EpochEndOffset, OffsetForTimestamp, ProducerState, ReadResult
from shareq.log.segments import Segments, SegmentView, retained_from
from shareq.log.timestamp_lookup import find_timestamp
from shareq.log.validation import BatchRefusal, admit
from shareq.model.errors import Errors
from shareq.model.records import AbortedTransaction, CoordinatorRecord, RecordBatch
from shareq.model.states import IsolationLevel


class MemoryLog:
    """One topic-partition. `config` may be replaced at any time and applies from the next call on.

    `capacity_bytes` bounds the log, to simulate a full disk: an append beyond it is KAFKA_STORAGE_ERROR.
    """

    def __init__(self, config: LogConfig | None = None, *, capacity_bytes: int | None = None) -> None:
        self.config = config or LogConfig()
        self.capacity_bytes = capacity_bytes
        self._batches: list[RecordBatch] = []
        self._last_offsets: list[int] = []
        self._log_start_offset = 0
        self._log_end_offset = 0
        self._visible_end = 0
        self._size_in_bytes = 0
        self.bytes_written = 0
        """The size of all batches ever appended: it only grows."""
        self._epochs = LeaderEpochs()
        self._producers = ProducerStates()
        self._segments = Segments()
        self._compactor = Compactor()
        self.hidden = HiddenBatches()
        """Share state in this log, which readers do not see: control records of the persister of that name."""
        self.hides_share_state = True
        """False: readers get the control records that are appended from then on, as they would without a filter. Each
        makes a share group that reads the log write another one: without latency, at one moment of a virtual clock."""

    @property
    def log_start_offset(self) -> int:
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        """Exclusive: the offset of the next record."""
        return self._log_end_offset

    @property
    def high_watermark(self) -> int:
        """The end for readers: hidden batches after the last other one are not counted."""
        return self._visible_end

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, else the high watermark."""
        unstable = self._producers.first_unstable_offset
        return self._visible_end if unstable is None else max(unstable, self._log_start_offset)

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """True if the producer has an open transaction at exactly this epoch in this partition."""
        return self._producers.has_open_transaction(producer_id, producer_epoch)

    def is_fenced(self, producer_id: int, producer_epoch: int) -> bool:
        """True if the partition has a later epoch of the producer: writes at this epoch are fenced."""
        return self._producers.is_fenced(producer_id, producer_epoch)

    @property
    def size_in_bytes(self) -> int:
        return self._size_in_bytes

    def __repr__(self) -> str:
        span = f"[{self._log_start_offset}, {self._log_end_offset})"
        return f"MemoryLog({span}, {len(self._batches)} batches, {self._size_in_bytes} bytes)"

    def append(
        self,
        data: bytes,
        *,
        now_ms: int,
        leader_epoch: int,
        validate: bool = True,
        transaction_version: int = 0,
        from_coordinator: bool = False,
    ) -> AppendResult:
        """Append one record batch of a producer, with base offset 0.

        `validate=False` skips the CRC and the checks of single records, for batches from this process's own encoder;
        the producer's state is checked anyway. `transaction_version`: the feature level of the request (Produce v12+:
        2). `from_coordinator`: the batch is a coordinator's write in a producer's transaction and has no sequence.
        Errors: NOT_LEADER_OR_FOLLOWER below the log's leader epoch, then those of Produce, in the order of Kafka's
        checks.
        """
        if leader_epoch < self._epochs.latest:
            return self._deposed(leader_epoch)
        batch = admit(data, self.config, now_ms, validate, from_coordinator=from_coordinator)
        if isinstance(batch, BatchRefusal):
            return AppendResult(batch.error, message=batch.message, record_errors=batch.record_errors)
        if batch.producer_id >= 0:
            earlier = self._producers.duplicate(batch)
            if earlier is not None:
                return AppendResult(
                    Errors.NONE,
                    earlier.base_offset,
                    earlier.last_offset,
                    earlier.max_timestamp,
                    self._log_start_offset,
                )
            error, message = self._producers.check(batch, transaction_version)
            if error:
                return AppendResult(error, message=message)
        if self._is_full(batch):
            return self._full()
        log_append_time_ms = now_ms if self.config.log_append_time else -1
        batch = self._write(batch, now_ms, leader_epoch)
        if batch.producer_id >= 0:
            self._producers.appended(batch, now_ms)
        return AppendResult(
            Errors.NONE, batch.base_offset, batch.last_offset, log_append_time_ms, self._log_start_offset
        )

    def append_control(
        self,
        *,
        committed: bool,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        now_ms: int,
        leader_epoch: int,
    ) -> AppendResult:
        """End a producer's transaction with a marker, which takes one offset.

        Errors: NOT_LEADER_OR_FOLLOWER below the log's leader epoch, INVALID_PRODUCER_EPOCH below the producer's epoch
        in this partition, TRANSACTION_COORDINATOR_FENCED below the coordinator epoch of the last marker,
        KAFKA_STORAGE_ERROR.
        """
        if leader_epoch < self._epochs.latest:
            return self._deposed(leader_epoch)
        error, message = self._producers.check_marker(producer_id, producer_epoch, coordinator_epoch)
        if error:
            return AppendResult(error, message=message)
        marker = parse_batch(
            control_batch(
                ControlType.COMMIT if committed else ControlType.ABORT,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp_ms=now_ms,
            )
        )
        if self._is_full(marker):
            return self._full()
        marker = self._write(marker, now_ms, leader_epoch)
        self._producers.ended(marker, committed=committed, coordinator_epoch=coordinator_epoch, now_ms=now_ms)
        return AppendResult(
            Errors.NONE, marker.base_offset, marker.last_offset, log_start_offset=self._log_start_offset
        )

    def append_share_state(self, record: CoordinatorRecord, *, now_ms: int, leader_epoch: int) -> AppendResult:
        """Append a control record of share state, in a batch of its own that readers do not see, if it is hidden.

        Errors: NOT_LEADER_OR_FOLLOWER below the log's leader epoch, KAFKA_STORAGE_ERROR.
        """
        if leader_epoch < self._epochs.latest:
            return self._deposed(leader_epoch)
        batch = parse_batch(hidden_batch(record))
        if self._is_full(batch):
            return self._full()
        if self.hides_share_state:
            batch = self._stamped(batch, now_ms, leader_epoch)
            self.hidden.appended(batch, record)
        else:
            batch = self._write(batch, now_ms, leader_epoch)
            self.hidden.index(batch.base_offset, record)
        return AppendResult(Errors.NONE, batch.base_offset, batch.last_offset, log_start_offset=self._log_start_offset)

    def _deposed(self, leader_epoch: int) -> AppendResult:
        """The error for a broker that appends although a later leader epoch has begun."""
        text = f"leader epoch {leader_epoch} is over: the current leader epoch is {self._epochs.latest}"
        return AppendResult(Errors.NOT_LEADER_OR_FOLLOWER, message=text)

    def _is_full(self, batch: RecordBatch) -> bool:
        return self.capacity_bytes is not None and self._size_in_bytes + batch.size > self.capacity_bytes

    def _full(self) -> AppendResult:
        text = f"log full: {self._size_in_bytes} of {self.capacity_bytes} bytes are taken"
        return AppendResult(Errors.KAFKA_STORAGE_ERROR, message=text)

    def _write(self, batch: RecordBatch, now_ms: int, leader_epoch: int) -> RecordBatch:
        """Stamp a batch with base offset 0, append it at the log end, and return the stored batch."""
        batch = self._stamped(batch, now_ms, leader_epoch)
        self._batches.append(batch)
        self._last_offsets.append(batch.last_offset)
        self._visible_end = self._log_end_offset
        return batch

    def _stamped(self, batch: RecordBatch, now_ms: int, leader_epoch: int) -> RecordBatch:
        """Give a batch its place at the log end, and return it with its offsets."""
        base_offset = self._log_end_offset
        last_offset = base_offset + batch.last_offset
        data = restamp(batch.data, base_offset, leader_epoch)
        batch = RecordBatch._make((base_offset, last_offset, leader_epoch, *batch[3:-1], data))
        self.begin_epoch(leader_epoch)
        self._segments.appended(batch, self.config, now_ms)
        self._size_in_bytes += len(data)
        self.bytes_written += len(data)
        self._log_end_offset = last_offset + 1
        return batch

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        isolation: IsolationLevel,
        min_one_batch: bool = True,
        end_offset: int | None = None,
    ) -> ReadResult:
        """Whole batches from the one that contains `offset` (or follows it, in a gap), together at most `max_bytes`.

        The first batch is returned even if it is larger, unless `min_one_batch` is False. READ_COMMITTED ends below the
        last stable offset. Batches that begin at `end_offset` or above are left out, except the first: it shows where
        a gap ends. At the log end there are no batches. Errors: OFFSET_OUT_OF_RANGE outside [log start, log end].
        """
        error = Errors.NONE
        batches: tuple[RecordBatch, ...] = ()
        aborted: tuple[AbortedTransaction, ...] = ()
        stable = self.last_stable_offset
        if not self._log_start_offset <= offset <= self._log_end_offset:
            error = Errors.OFFSET_OUT_OF_RANGE
        elif isolation is IsolationLevel.READ_UNCOMMITTED:
            batches = self._take(offset, self._visible_end, end_offset, max_bytes, min_one_batch)
        else:
            batches = self._take(offset, stable, end_offset, max_bytes, min_one_batch)
            aborted = self._producers.aborted(offset, batches[-1].last_offset + 1) if batches else ()
        return ReadResult(error, batches, self._visible_end, self._log_start_offset, stable, aborted)

    def _take(
        self, offset: int, readable: int, wanted: int | None, max_bytes: int, min_one_batch: bool
    ) -> tuple[RecordBatch, ...]:
        """Whole batches from `offset` on, at most `max_bytes`: all end below `readable`; all but the first begin below
        `wanted`."""
        batches = self._batches
        first = last = bisect_left(self._last_offsets, offset)
        stop = bisect_left(self._last_offsets, readable)
        if wanted is not None and wanted <= readable:
            at = bisect_left(self._last_offsets, wanted)
            begins_below = at < len(batches) and batches[at].base_offset < wanted
            stop = min(stop, max(at + begins_below, first + 1))
        left = max_bytes
        while last < stop:
            left -= len(batches[last].data)
            if left < 0 and (last > first or not min_one_batch):
                break
            last += 1
        return tuple(batches[first:last])

    def offset_for_timestamp(self, timestamp: int, isolation: IsolationLevel) -> OffsetForTimestamp:
        """Kafka's ListOffsets: -1 latest, -2 earliest, -3 largest timestamp, -4 earliest local, else the first record
        with that timestamp or a later one. Errors: UNSUPPORTED_VERSION below -6, CORRUPT_MESSAGE."""
        committed = isolation is IsolationLevel.READ_COMMITTED
        end_offset = self.last_stable_offset if committed else self._visible_end
        found = find_timestamp(self._batches, timestamp, self._log_start_offset, end_offset)
        return found._replace(leader_epoch=self._epochs.at(found.offset)) if found.offset >= 0 else found

    def begin_epoch(self, leader_epoch: int) -> None:
        """Begin a leader epoch: it applies to all later appends. Idempotent."""
        self._epochs.begin(leader_epoch, self._log_end_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """Kafka's OffsetForLeaderEpoch; (-1, -1) for an epoch above the current one."""
        return self._epochs.end_offset(leader_epoch, self._log_end_offset)

    def active_producers(self) -> list[ProducerState]:
        """The state of the producers that wrote here recently, for DescribeProducers."""
        return self._producers.states()

    def delete_records(self, offset: int) -> Errors:
        """Raise the log start to `offset` (-1: the high watermark); a no-op at or below the log start.

        A batch that contains the new start is still read whole. The log start stays at or below the high watermark.
        Errors: OFFSET_OUT_OF_RANGE above the log end or below -1, POLICY_VIOLATION if the cleanup policy is `compact`
        only.
        """
        if not self.config.delete:
            return Errors.POLICY_VIOLATION
        if not -1 <= offset <= self._log_end_offset:
            return Errors.OFFSET_OUT_OF_RANGE
        self._raise_log_start(self._visible_end if offset == -1 else offset)
        return Errors.NONE

    def clean(self, now_ms: int) -> int:
        """Run retention, compaction and the expiration of producers, by the topic's configuration.

        Returns the log start offset.
        """
        if self.config.compact:
            self._compact(now_ms)
        if self.config.delete:
            views = self._views()
            start = retained_from(views, self.config, now_ms)
            if start is not None:
                self._raise_log_start(start)
        self._producers.forget_idle(now_ms)
        return self._log_start_offset

    def _raise_log_start(self, offset: int) -> None:
        """Raise the log start to `offset`, at most to the visible end, and drop the batches that end below it; a no-op
        at or below the log start."""
        offset = min(offset, self._visible_end)
        if offset <= self._log_start_offset:
            return
        self._log_start_offset = offset
        self._replace(bisect_left(self._last_offsets, offset), [])
        self._size_in_bytes -= self.hidden.cut(offset)
        first = next(iter(self._all()), None)
        self._segments.log_start_moved(first)
        self._compactor.log_start_moved(first.base_offset if first else offset)
        self._producers.log_start_moved(offset)
        self._epochs.log_start_moved(offset)

    def _compact(self, now_ms: int) -> None:
        unstable = self._producers.first_unstable_offset
        stable = self._log_end_offset if unstable is None else unstable
        until = self._compactor.cleanable_until(self._views(), stable, self.config, now_ms)
        if until is None:
            return
        count = bisect_left(self._last_offsets, until)
        old = self._batches[:count]
        history = History(self._producers.aborted(0, until), self._producers.last_offsets())
        try:
            kept = self._compactor.compact(old, until, history, self.config, now_ms)
        except CorruptBatch:  # as in Kafka, whose cleaner skips a log with a corrupt batch
            return
        self._replace(count, kept)
        markers = {batch.base_offset for batch in old if batch.is_control}
        self._producers.markers_compacted(markers - {batch.base_offset for batch in kept})

    def clean_share_state(self) -> tuple[int, int]:
        """Drop the share state that later checkpoints replace, in all segments but the active one; the number of
        batches and their bytes."""
        views = self._views() if self.hidden else []
        number, size = self.hidden.clean(views[-1].base_offset) if views else (0, 0)
        self._size_in_bytes -= size
        return number, size

    def rebuild_share_index(self) -> int:
        """Make the index of share state anew from the log, as a replica does that has lost it; the number of headers
        read. What a cut has removed from the log is then lost."""
        newest_first = merge(reversed(self._batches), self.hidden.newest_first(), reverse=True)
        return self.hidden.rebuild_index(newest_first)

    def _all(self) -> Sequence[RecordBatch]:
        """All batches, hidden ones included."""
        if not self.hidden:
            return self._batches
        return list(merge(self._batches, self.hidden.batches))

    def _views(self) -> list[SegmentView]:
        return self._segments.views(self._all(), self._log_end_offset)

    def _replace(self, count: int, kept: list[RecordBatch]) -> None:
        """Replace the first `count` batches by `kept`."""
        gone = sum(batch.size for batch in self._batches[:count])
        self._size_in_bytes += sum(batch.size for batch in kept) - gone
        self._batches[:count] = kept
        self._last_offsets[:count] = [batch.last_offset for batch in kept]
