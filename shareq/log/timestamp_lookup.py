"""Offsets by timestamp, for ListOffsets. Only the batch that contains the answer is decoded."""

from __future__ import annotations

from collections.abc import Sequence

from shareq.log.records import CorruptBatch, Record, stream
from shareq.log.results import OffsetForTimestamp
from shareq.model.errors import Errors
from shareq.model.records import RecordBatch

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_NOT_FOUND = OffsetForTimestamp()


def find_timestamp(
    batches: Sequence[RecordBatch], timestamp: int, start_offset: int, end_offset: int
) -> OffsetForTimestamp:
    """The first matching offset within [start_offset, end_offset), without the leader epoch. There is no tiering."""
    if timestamp < EARLIEST_PENDING_UPLOAD:
        return OffsetForTimestamp(Errors.UNSUPPORTED_VERSION)
    if timestamp == LATEST:
        return OffsetForTimestamp(offset=end_offset)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return OffsetForTimestamp(offset=start_offset)
    try:
        if timestamp == MAX_TIMESTAMP:
            timestamp = _largest_timestamp(batches, start_offset)
        record = _first_record(batches, timestamp, start_offset) if timestamp >= 0 else None
    except CorruptBatch:
        return OffsetForTimestamp(Errors.CORRUPT_MESSAGE)
    if record is None or record.offset >= end_offset:
        return _NOT_FOUND
    return OffsetForTimestamp(offset=record.offset, timestamp=record.timestamp)


def _largest_timestamp(batches: Sequence[RecordBatch], start_offset: int) -> int:
    """The largest timestamp of a record at or above `start_offset`; -1 if there is none."""
    largest = -1
    for batch in batches:
        if batch.base_offset < start_offset:  # only the first batch can reach across the start
            largest = max((r.timestamp for r in stream(batch) if r.offset >= start_offset), default=-1)
        elif batch.record_count:
            largest = max(largest, batch.max_timestamp)
    return largest


def _first_record(batches: Sequence[RecordBatch], timestamp: int, start_offset: int) -> Record | None:
    """The first record at or above `start_offset` whose timestamp is at least `timestamp`."""
    for batch in batches:
        if batch.max_timestamp >= timestamp:
            for record in stream(batch):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return record
    return None
