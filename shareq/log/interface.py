"""What a topic-partition is: the one interface that brokers know, whatever keeps the bytes.

A log answers with values, never with exceptions: errors are Kafka's. Offsets are absolute, timestamps ms since the
epoch, -1 where unknown. Batches are handed out as they stand in the log; nobody copies or decodes them on the way.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from shareq.log.config import LogConfig
from shareq.model.errors import Errors
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.model.states import IsolationLevel


class AppendResult(NamedTuple):
    """What became of one batch: on an error nothing was written, and the offsets are -1.

    A duplicate answers NONE with the offsets it was given the first time, and its largest timestamp as the time of the
    append, whatever the topic's type of timestamps, as in Kafka. `last_offset` is inclusive.
    `record_errors` are (index in the batch, text) where single records are to blame.
    """

    error: Errors
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()


class ReadResult(NamedTuple):
    """Whole batches in offset order, and where the log stood; the watermarks are told on an error too.

    `batches` may begin below the offset asked for, where a batch contains it. `aborted` is filled for READ_COMMITTED:
    the aborted transactions that reach into these batches.
    """

    error: Errors
    batches: tuple[RecordBatch, ...]
    high_watermark: int
    log_start_offset: int
    last_stable_offset: int
    aborted: tuple[AbortedTransaction, ...] = ()


class OffsetForTimestamp(NamedTuple):
    """Where a point in time is in the log; all -1 where there is no such offset."""

    error: Errors = Errors.NONE
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


class EpochEndOffset(NamedTuple):
    """The largest leader epoch known up to the one asked for, and the offset at which it ended (exclusive)."""

    leader_epoch: int = -1
    end_offset: int = -1


class ProducerState(NamedTuple):
    """What a log remembers of one producer; -1 where there is nothing to remember.

    `open_from` is the first offset of its open transaction, `last_timestamp_ms` when it was last heard of.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    open_from: int


class Log(Protocol):
    """One topic-partition. `config` may be replaced at any time and holds from then on."""

    config: LogConfig

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int:
        """Exclusive: the offset that the next record gets."""
        ...

    @property
    def high_watermark(self) -> int: ...
    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, else the high watermark."""
        ...

    @property
    def size_in_bytes(self) -> int: ...

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer's transaction, at this very epoch, has reached this partition and goes on."""
        ...

    def is_fenced(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer is known here at a later epoch: whatever comes from this one is refused."""
        ...

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
        ...

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
        ...

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
        ...

    def offset_for_timestamp(self, timestamp: int, isolation: IsolationLevel) -> OffsetForTimestamp:
        """Kafka's ListOffsets: -1 latest, -2 earliest, -3 largest timestamp, -4 earliest local, else the first record
        with that timestamp or a later one. Errors: UNSUPPORTED_VERSION below -6, CORRUPT_MESSAGE."""
        ...

    def begin_epoch(self, leader_epoch: int) -> None:
        """A leader took over: what is appended from here on belongs to this epoch. Repeatable."""
        ...

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """Kafka's OffsetForLeaderEpoch; (-1, -1) for an epoch above the current one."""
        ...

    def active_producers(self) -> list[ProducerState]:
        """Kafka's DescribeProducers: who has written here lately."""
        ...

    def delete_records(self, offset: int) -> Errors:
        """Raise the log start to `offset` (-1: the high watermark); below it nothing happens.

        A batch across the new start is still read whole. Errors: OFFSET_OUT_OF_RANGE above the high watermark or below
        -1, POLICY_VIOLATION where the topic is compacted only.
        """
        ...

    def clean(self, now_ms: int) -> int:
        """Retention, compaction and forgetting of old producers, as the topic's configuration says.

        Answers the log start offset after it.
        """
        ...
