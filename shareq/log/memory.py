"""A topic-partition in memory.

Replication is synchronous in process, so the high watermark is the log's end. Finding an offset costs a binary search
over batches; reading hands out the batches as they are; appending copies a batch once, to stamp its offset.
"""

from __future__ import annotations

from bisect import bisect_left

from shareq.log.batches import ControlType, CorruptBatch, control_batch, parse_batch, restamp
from shareq.log.compaction import Compactor, History
from shareq.log.config import LogConfig
from shareq.log.leader_epochs import LeaderEpochs
from shareq.log.producer_states import ProducerStates
from shareq.log.results import AppendResult, EpochEndOffset, OffsetForTimestamp, ProducerState, ReadResult
from shareq.log.segments import Segments, retained_from
from shareq.log.timestamp_lookup import find_timestamp
from shareq.log.validation import Refusal, admit
from shareq.model.errors import Errors
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.model.states import IsolationLevel


class MemoryLog:
    """One topic-partition. `config` may be replaced at any time and applies from the next call.

    `capacity_bytes` bounds the log, to simulate a full disk: what does not fit is a KAFKA_STORAGE_ERROR.
    """

    def __init__(self, config: LogConfig | None = None, *, capacity_bytes: int | None = None) -> None:
        self.config = config or LogConfig()
        self.capacity_bytes = capacity_bytes
        self._batches: list[RecordBatch] = []
        self._last_offsets: list[int] = []
        self._log_start_offset = 0
        self._log_end_offset = 0
        self._size_in_bytes = 0
        self._epochs = LeaderEpochs()
        self._producers = ProducerStates()
        self._segments = Segments()
        self._compactor = Compactor()

    @property
    def log_start_offset(self) -> int:
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        """Exclusive: the offset that the next record gets."""
        return self._log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, else the high watermark."""
        unstable = self._producers.first_unstable_offset
        return self._log_end_offset if unstable is None else max(unstable, self._log_start_offset)

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer's transaction, at this very epoch, has reached this partition and goes on."""
        return self._producers.has_open_transaction(producer_id, producer_epoch)

    def is_fenced(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer is known here at a later epoch: whatever comes from this one is refused."""
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
        """Append one record batch as a producer sent it, with base offset 0.

        `validate=False` trusts that the batch came undamaged from this process's own encoder and saves the CRC and the
        walk through its records; what a producer may do is checked all the same. `transaction_version` is the level of
        the feature that the request speaks (Produce v12+: 2). `from_coordinator`: what a coordinator of this broker
        writes in a producer's transaction has no sequence. Errors: NOT_LEADER_OR_FOLLOWER below the log's leader epoch,
        then Produce's, in the order of Kafka's checks.
        """
        if leader_epoch < self._epochs.latest:
            return self._deposed(leader_epoch)
        batch = admit(data, self.config, now_ms, validate, from_coordinator=from_coordinator)
        if isinstance(batch, Refusal):
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
        here, TRANSACTION_COORDINATOR_FENCED for an older coordinator than the one before, KAFKA_STORAGE_ERROR.
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

    def _deposed(self, leader_epoch: int) -> AppendResult:
        """A broker appends that does not know its successor yet. In Kafka it leads no log of its own any more."""
        text = f"leader epoch {leader_epoch} is over: the log is led at epoch {self._epochs.latest}"
        return AppendResult(Errors.NOT_LEADER_OR_FOLLOWER, message=text)

    def _is_full(self, batch: RecordBatch) -> bool:
        return self.capacity_bytes is not None and self._size_in_bytes + batch.size > self.capacity_bytes

    def _full(self) -> AppendResult:
        text = f"log full: {self._size_in_bytes} of {self.capacity_bytes} bytes are taken"
        return AppendResult(Errors.KAFKA_STORAGE_ERROR, message=text)

    def _write(self, batch: RecordBatch, now_ms: int, leader_epoch: int) -> RecordBatch:
        """Put a batch with base offset 0 at the log's end; answers it as it stands there."""
        base_offset = self._log_end_offset
        last_offset = base_offset + batch.last_offset
        data = restamp(batch.data, base_offset, leader_epoch)
        batch = RecordBatch._make((base_offset, last_offset, leader_epoch, *batch[3:-1], data))
        self.begin_epoch(leader_epoch)
        self._segments.appended(batch, self.config, now_ms)
        self._batches.append(batch)
        self._last_offsets.append(last_offset)
        self._size_in_bytes += len(data)
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
        """Whole batches from the one that contains `offset` (or follows it, in a gap) up to `max_bytes` together.

        The first comes even if it is larger, unless `min_one_batch` is False. READ_COMMITTED ends below the last stable
        offset. Batches that begin at `end_offset` or above are left out, but for the first: it shows how far the log is
        empty. At the log's end there are no batches. Errors: OFFSET_OUT_OF_RANGE outside [log start, log end].
        """
        error = Errors.NONE
        batches: tuple[RecordBatch, ...] = ()
        aborted: tuple[AbortedTransaction, ...] = ()
        stable = self.last_stable_offset
        if not self._log_start_offset <= offset <= self._log_end_offset:
            error = Errors.OFFSET_OUT_OF_RANGE
        elif isolation is IsolationLevel.READ_UNCOMMITTED:
            batches = self._take(offset, self._log_end_offset, end_offset, max_bytes, min_one_batch)
        else:
            batches = self._take(offset, stable, end_offset, max_bytes, min_one_batch)
            aborted = self._producers.aborted(offset, batches[-1].last_offset + 1) if batches else ()
        return ReadResult(error, batches, self._log_end_offset, self._log_start_offset, stable, aborted)

    def _take(
        self, offset: int, readable: int, wanted: int | None, max_bytes: int, min_one_batch: bool
    ) -> tuple[RecordBatch, ...]:
        """Whole batches from `offset` on, as many as `max_bytes` allow: all end below `readable`, and all but the first
        begin below `wanted`."""
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
        end_offset = self.last_stable_offset if committed else self._log_end_offset
        found = find_timestamp(self._batches, timestamp, self._log_start_offset, end_offset)
        return found._replace(leader_epoch=self._epochs.at(found.offset)) if found.offset >= 0 else found

    def begin_epoch(self, leader_epoch: int) -> None:
        """A leader took over: what is appended from here on belongs to this epoch. Repeatable."""
        self._epochs.begin(leader_epoch, self._log_end_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """Kafka's OffsetForLeaderEpoch; (-1, -1) for an epoch above the current one."""
        return self._epochs.end_offset(leader_epoch, self._log_end_offset)

    def active_producers(self) -> list[ProducerState]:
        """The producers that have written here lately, for DescribeProducers."""
        return self._producers.states()

    def delete_records(self, offset: int) -> Errors:
        """Raise the log start to `offset` (-1: the high watermark); below it nothing happens.

        A batch across the new start is still read whole. Errors: OFFSET_OUT_OF_RANGE above the high watermark or below
        -1, POLICY_VIOLATION where the topic is compacted only.
        """
        if not self.config.delete:
            return Errors.POLICY_VIOLATION
        if not -1 <= offset <= self._log_end_offset:
            return Errors.OFFSET_OUT_OF_RANGE
        self._raise_log_start(self._log_end_offset if offset == -1 else offset)
        return Errors.NONE

    def clean(self, now_ms: int) -> int:
        """Retention, compaction and forgetting of old producers, as the topic's configuration says.

        Answers the log start offset after it.
        """
        if self.config.compact:
            self._compact(now_ms)
        if self.config.delete:
            views = self._segments.views(self._batches, self._log_end_offset)
            start = retained_from(views, self.config, now_ms)
            if start is not None:
                self._raise_log_start(start)
        self._producers.forget_idle(now_ms)
        return self._log_start_offset

    def _raise_log_start(self, offset: int) -> None:
        """The log starts at `offset` from now on, if it did not start above it; batches that end below it go."""
        if offset <= self._log_start_offset:
            return
        self._log_start_offset = offset
        self._replace(bisect_left(self._last_offsets, offset), [])
        first = self._batches[0] if self._batches else None
        self._segments.log_start_moved(first)
        self._compactor.log_start_moved(first.base_offset if first else offset)
        self._producers.log_start_moved(offset)
        self._epochs.log_start_moved(offset)

    def _compact(self, now_ms: int) -> None:
        views = self._segments.views(self._batches, self._log_end_offset)
        until = self._compactor.cleanable_until(views, self.last_stable_offset, self.config, now_ms)
        if until is None:
            return
        count = bisect_left(self._last_offsets, until)
        old = self._batches[:count]
        history = History(self._producers.aborted(0, until), self._producers.last_offsets())
        try:
            kept = self._compactor.compact(old, until, history, self.config, now_ms)
        except CorruptBatch:  # such a log stays as it is, as in Kafka, where the cleaner gives it up
            return
        self._replace(count, kept)
        markers = {batch.base_offset for batch in old if batch.is_control}
        self._producers.markers_compacted(markers - {batch.base_offset for batch in kept})

    def _replace(self, count: int, kept: list[RecordBatch]) -> None:
        """Put `kept` in the place of the first `count` batches."""
        gone = sum(batch.size for batch in self._batches[:count])
        self._size_in_bytes += sum(batch.size for batch in kept) - gone
        self._batches[:count] = kept
        self._last_offsets[:count] = [batch.last_offset for batch in kept]
