"""Reads of the backend's logs for share-partition leaders.

BEHAVIOUR.md, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.fetches import fetch_request, fetched_partitions
from shareq.broker.backend.log_watch import LogWatch, Watched
from shareq.broker.loop import EventLoop
from shareq.log.records import record_keys
from shareq.model.actor import MAX_OFFSET, Answer, FindOffset, LogRead, OffsetFound, ReadLog
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition, TopicPartition
from shareq.model.image import ClusterImage, PartitionImage
from shareq.model.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListOffsetsRequest, ListOffsetsResponse
from shareq.model.messages.fetch import FetchResponse
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.model.states import IsolationLevel

READS = "reads"
"""The lane of reads that do not wait."""

KEPT_MS = 20
"""How long what was read serves further reads of the partition. A leader reads a batch again for each part of it that
fits in the window."""

SWEEP_MS = 100
"""How often what was kept is dropped."""

FIRST_BYTES = 1 << 20
"""The most that the first read of a partition returns beyond a batch, before the size of its records is known."""

RETRY_MS = 100

UNREACHABLE = Errors.NOT_LEADER_OR_FOLLOWER
"""The error of reads while the backend does not answer. It does not show that another process leads: a leader keeps its
locks, and reads again."""

_STALE = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.NETWORK_EXCEPTION,
    }
)
"""Errors after which the metadata is read again; with a storage error, another broker may soon be the leader."""


class _Read(NamedTuple):
    at: TopicIdPartition
    effect: ReadLog
    done: Callable[[LogRead], object]


class _Kept(NamedTuple):
    """What has just been read of a partition."""

    partition: FetchResponse.Partition
    isolation_level: int
    until_ms: int

    def serves(self, effect: ReadLog, now_ms: int) -> bool:
        """True if it has all that a read can use: up to its end offset, or to the end of the log."""
        records = self.partition.records
        if not records or self.isolation_level != effect.isolation_level or now_ms > self.until_ms:
            return False
        end = records[-1].last_offset + 1
        wanted = min(effect.end_offset, self.partition.high_watermark)
        return records[0].base_offset <= effect.offset < end and end >= wanted


class _Sizes(NamedTuple):
    """The sizes of a partition's records and batches, as last read."""

    per_record: float
    batch: int

    @classmethod
    def of(cls, batches: Sequence[RecordBatch]) -> _Sizes:
        sizes = [batch.size for batch in batches]
        return cls(sum(sizes) / (batches[-1].last_offset + 1 - batches[0].base_offset), max(sizes))

    def of_read(self, effect: ReadLog) -> int:
        """About the bytes up to the end offset, with the rest of the batches at both ends."""
        return int((effect.end_offset - effect.offset) * self.per_record) + 2 * self.batch


class LogReads:
    """The reads of the share-partition leader of one broker, which are sent to the same broker of the backend.

    `stale()` is called when an answer shows that the image is out of date, and `moved(partition, log start, high
    watermark)` with the offsets in each answer. `waits(partition)` tells whether a fetch waits for its records.
    """

    def __init__(
        self,
        node: int,
        client: BackendClient,
        loop: EventLoop,
        *,
        stale: Callable[[], object],
        moved: Callable[[TopicIdPartition, int, int], object],
        waits: Callable[[TopicPartition], bool] = lambda _: True,
    ) -> None:
        self.image = ClusterImage()
        self._closed = False
        self._node = node
        self._client = client
        self._loop = loop
        self._stale = stale
        self._moved = moved
        self._reads: list[_Read] = []
        self._kept: dict[TopicIdPartition, _Kept] = {}
        self._deletions = 0
        self._sweeps = False
        self._sizes: dict[TopicIdPartition, _Sizes] = {}
        self._watch = LogWatch(node, client, loop, stale=stale, grown=self._grown, waits=waits)

    def close(self) -> None:
        """Read and watch nothing more; results under way are dropped."""
        self._closed = True
        self._reads.clear()
        self._watch.close()

    def forget(self) -> None:
        """Records were deleted: what was read before that serves no further read."""
        self._kept.clear()
        self._deletions += 1

    def image_changed(self, image: ClusterImage, leader: int) -> None:
        """Forget the sizes of records in partitions that `leader`, the node of these reads, does not lead any more."""
        self.image = image
        for at in [at for at in self._sizes if not _leads(leader, image.partition(at.topic_id, at.partition))]:
            del self._sizes[at]

    # ---- reads -------------------------------------------------------------------------------------------------------

    def read(self, effect: ReadLog, done: Callable[[LogRead], object], grew: Callable[[], object] | None) -> None:
        """Read; `done` gets the result. After a read up to the end of the log, `grew()` is called once when there are
        more records, and after a failed one when it is time for the next; None: the log is not watched. Reads of one
        turn of the loop are sent together."""
        topic = self.image.topics.get(effect.topic_partition.topic)
        if topic is None:
            self._loop.post(done, LogRead(effect.id, Errors.UNKNOWN_TOPIC_OR_PARTITION))
            return
        at = TopicIdPartition(topic.topic_id, effect.topic_partition.partition)

        def take(read: LogRead) -> None:
            done(read)
            if grew is not None and _reached_end(effect, read):
                self._watch.add(Watched(at, effect.topic_partition, read.high_watermark, grew))
            elif grew is not None and read.error in _STALE:
                self._loop.at(self._loop.time_ms() + RETRY_MS, grew)

        kept = self._kept.get(at)
        if kept is not None and kept.serves(effect, self._loop.time_ms()):
            self._loop.post(take, _log_read(effect, kept.partition))
            return
        if not self._reads:
            self._loop.post(self._send)
        self._reads.append(_Read(at, effect, take))

    def _send(self) -> None:
        """Send the collected reads: one request for each isolation level, and for each read of the same partition."""
        reads, self._reads = self._reads, []
        while reads:
            level = reads[0].effect.isolation_level
            chosen: dict[TopicIdPartition, _Read] = {}
            later = []
            for read in reads:
                if read.effect.isolation_level == level and read.at not in chosen:
                    chosen[read.at] = read
                else:
                    later.append(read)
            reads = later
            self._fetch(chosen, level)

    def _fetch(self, reads: dict[TopicIdPartition, _Read], level: int) -> None:
        partitions = [(read.at, read.effect.offset, self._limit(read)) for read in reads.values()]
        total = sum(limit for _, _, limit in partitions)
        request = fetch_request(partitions, total, level, max_wait_ms=0)
        before = self._deletions
        self._client.call(self._node, request, lambda answer: self._fetched(reads, before, answer), lane=READS)

    def _limit(self, read: _Read) -> int:
        """The bytes that a read can use; the backend returns a first batch that is larger whole."""
        if read.effect.end_offset == MAX_OFFSET:
            return read.effect.max_bytes
        sizes = self._sizes.get(read.at)
        return min(read.effect.max_bytes, sizes.of_read(read.effect) if sizes else FIRST_BYTES)

    def _keep(self, at: TopicIdPartition, partition: FetchResponse.Partition, level: int) -> None:
        """Keep what was read, for a short time."""
        if partition.records:
            now_ms = self._loop.time_ms()
            self._kept[at] = _Kept(partition, level, now_ms + KEPT_MS)
            self._sizes[at] = _Sizes.of(partition.records)
            if not self._sweeps:
                self._sweep_at(now_ms + SWEEP_MS)

    def _grown(self, at: TopicIdPartition, partition: FetchResponse.Partition) -> None:
        """The watch has new records."""
        self._moved(at, partition.log_start_offset, partition.high_watermark)
        self._keep(at, partition, IsolationLevel.READ_UNCOMMITTED)

    def _sweep_at(self, due_ms: int) -> None:
        """Drop what serves no more reads: one timer for all, because each wakes the thread of the event loop."""
        self._sweeps = True
        self._loop.at(due_ms, self._sweep)

    def _sweep(self) -> None:
        now_ms = self._loop.time_ms()
        self._kept = {at: kept for at, kept in self._kept.items() if kept.until_ms >= now_ms}
        self._sweeps = False
        if self._kept:
            self._sweep_at(now_ms + SWEEP_MS)

    def _fetched(self, reads: dict[TopicIdPartition, _Read], deletions: int, answer: Answer) -> None:
        """`deletions`: how many were known when the request was sent."""
        found = fetched_partitions(answer)
        for at, read in reads.items():
            partition = found.get(at)
            error = UNREACHABLE if partition is None else partition.error_code
            if error in _STALE:
                self._stale()
            if partition is not None and not error:
                self._moved(at, partition.log_start_offset, partition.high_watermark)
                if deletions == self._deletions:
                    self._keep(at, partition, read.effect.isolation_level)
                read.done(_log_read(read.effect, partition))
            elif error is Errors.OFFSET_OUT_OF_RANGE:
                self._find_bounds(read)
            else:
                read.done(LogRead(read.effect.id, error))

    def _find_bounds(self, read: _Read) -> None:
        """Look up the offsets of the log, which Kafka's response with OFFSET_OUT_OF_RANGE does not have."""
        bounds: list[int] = []

        def take(error: Errors, offset: int) -> None:
            bounds.append(offset)
            if error:
                read.done(LogRead(read.effect.id, error))
            elif len(bounds) == 1:
                self._look_up(read.effect.topic_partition, LATEST_TIMESTAMP, take)
            else:
                start, end = bounds
                read.done(LogRead(read.effect.id, Errors.OFFSET_OUT_OF_RANGE, (), end, start, end))

        self._look_up(read.effect.topic_partition, EARLIEST_TIMESTAMP, take)

    # ---- offsets -----------------------------------------------------------------------------------------------------

    def find_offset(self, effect: FindOffset, done: Callable[[OffsetFound], object]) -> None:
        """Look an offset up by timestamp; `done` gets the result."""
        at, timestamp = effect.topic_partition, effect.timestamp
        self._look_up(at, timestamp, lambda error, offset: done(OffsetFound(effect.id, error, offset)))

    def _look_up(self, at: TopicPartition, timestamp: int, done: Callable[[Errors, int], object]) -> None:
        partition = ListOffsetsRequest.Partition(partition_index=at.partition, timestamp=timestamp)
        topic = ListOffsetsRequest.Topic(name=at.topic, partitions=(partition,))
        request = ListOffsetsRequest(topics=(topic,))

        def take(answer: Answer) -> None:
            found = answer.response.topics if isinstance(answer.response, ListOffsetsResponse) else ()
            result = next((p for one in found for p in one.partitions), None)
            error = UNREACHABLE if result is None else result.error_code
            if error in _STALE:
                self._stale()
            done(error, -1 if result is None else result.offset)

        self._client.call(self._node, request, take)


def _leads(node: int, partition: PartitionImage | None) -> bool:
    return partition is not None and partition.leader == node


def _reached_end(effect: ReadLog, read: LogRead) -> bool:
    """True if the read has returned all that can be read now. A log that has lost records may end before its offset."""
    if read.error:
        return read.error is Errors.OFFSET_OUT_OF_RANGE and effect.offset > read.log_start_offset
    committed = effect.isolation_level == IsolationLevel.READ_COMMITTED
    end = read.last_stable_offset if committed else read.high_watermark
    return not read.batches or read.batches[-1].last_offset + 1 >= end


def _log_read(effect: ReadLog, partition: FetchResponse.Partition) -> LogRead:
    """The result of a read: the batches from its offset on, at most `max_bytes` beyond the first one."""
    batches = [batch for batch in partition.records if batch.last_offset >= effect.offset]
    sizes = accumulate(batch.size for batch in batches)
    limit = effect.max_bytes
    taken = tuple(batch for n, (batch, size) in enumerate(zip(batches, sizes, strict=True)) if not n or size <= limit)
    return LogRead(
        effect.id,
        Errors.NONE,
        taken,
        partition.high_watermark,
        partition.log_start_offset,
        partition.last_stable_offset,
        tuple(_aborted(one, partition.records) for one in partition.aborted_transactions or ()),
        record_keys(taken) if effect.keys else (),
    )


def _aborted(one: FetchResponse.AbortedTransaction, batches: Sequence[RecordBatch]) -> AbortedTransaction:
    """An aborted transaction with the offset of its marker: a response has only the first offset. Without a marker in
    these batches it lasts beyond them."""
    markers = (b.base_offset for b in batches if b.is_control and b.producer_id == one.producer_id)
    last_offset = next((offset for offset in markers if offset >= one.first_offset), MAX_OFFSET)
    return AbortedTransaction(one.producer_id, one.first_offset, last_offset)
