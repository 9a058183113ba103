"""The results of a log's operations.

A log returns errors of Kafka as values and does not raise them. Offsets are absolute, timestamps ms since the epoch, -1
where unknown. Batches are returned as stored, neither copied nor decoded.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.errors import Errors
from shareq.model.records import AbortedTransaction, RecordBatch


class AppendResult(NamedTuple):
    """The result of appending one batch; on an error nothing was written and the offsets are -1.

    A duplicate is NONE with the offsets of its first append; its largest timestamp is the append time, whatever
    `message.timestamp.type` is, as in Kafka. `last_offset` is inclusive. `record_errors`: (index in the batch, text) of
    each invalid record.
    """

    error: Errors
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()


class ReadResult(NamedTuple):
    """Whole batches in offset order, and the log's offsets, which are set on an error, too.

    The first batch may begin below the requested offset and contain it. `aborted` is set for READ_COMMITTED: the
    aborted transactions that overlap these batches.
    """

    error: Errors
    batches: tuple[RecordBatch, ...]
    high_watermark: int
    log_start_offset: int
    last_stable_offset: int
    aborted: tuple[AbortedTransaction, ...] = ()


class OffsetForTimestamp(NamedTuple):
    """The first offset for a timestamp; all -1 if there is none."""

    error: Errors = Errors.NONE
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


class EpochEndOffset(NamedTuple):
    """The largest known leader epoch up to the requested one, and its end offset (exclusive)."""

    leader_epoch: int = -1
    end_offset: int = -1


class ProducerState(NamedTuple):
    """The state of one producer in a log; -1 where a field is not set.

    `open_from` is the first offset of its open transaction, `last_timestamp_ms` the time of its last batch.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    open_from: int
