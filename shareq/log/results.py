"""What a topic-partition is: the one interface that brokers know, whatever keeps the bytes.

A log answers with values, never with exceptions: errors are Kafka's. Offsets are absolute, timestamps ms since the
epoch, -1 where unknown. Batches are handed out as they stand in the log; nobody copies or decodes them on the way.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.errors import Errors
from shareq.model.records import AbortedTransaction, RecordBatch


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
    """Whole batches in offset order, and where the log stood; the watermarks are set on an error, too.

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

    `open_from` is the first offset of its open transaction, `last_timestamp_ms` the time of its last batch.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    open_from: int
