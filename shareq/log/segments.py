"""Segments without files: the unit of retention, and the bound of compaction.

`retention.ms` and `retention.bytes` remove whole segments in Kafka. To keep their meaning, the log in memory records
where a Kafka broker would have begun a new file. The last segment is active and is not compacted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shareq.log.config import LogConfig
from shareq.model.records import RecordBatch


class Segment:
    """`roll_from_ms`: the start of `segment.ms`, the first batch's timestamp or, without one, its append time."""

    __slots__ = ("base_offset", "last_append_ms", "roll_from_ms", "size_bytes")

    def __init__(self, base_offset: int, roll_from_ms: int) -> None:
        self.base_offset = base_offset
        self.roll_from_ms = roll_from_ms
        self.last_append_ms = -1
        self.size_bytes = 0


class SegmentView(NamedTuple):
    """A segment at the moment: [base_offset, end_offset), its size, its largest timestamp."""

    base_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp: int


class Segments:
    """The segments of a log. Only the active one's size is tracked; `views` measures all, as cleaning changes them."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []

    def appended(self, batch: RecordBatch, config: LogConfig, now_ms: int) -> None:
        """Add a batch, with its offset in the log, to the active segment, or to a new one if that is full."""
        size, time_ms = batch.size, batch.max_timestamp if batch.max_timestamp >= 0 else now_ms
        if not self._segments or self._is_full(self._segments[-1], size, time_ms, config):
            self._segments.append(Segment(batch.base_offset, time_ms))
        active = self._segments[-1]
        active.size_bytes += size
        active.last_append_ms = now_ms

    @staticmethod
    def _is_full(active: Segment, size: int, time_ms: int, config: LogConfig) -> bool:
        too_large = active.size_bytes + size > config.segment_bytes
        return too_large or time_ms - active.roll_from_ms > config.segment_span_ms

    def log_start_moved(self, first_batch: RecordBatch | None) -> None:
        """Remove the segments below the first batch; all if no batch is left."""
        if first_batch is None:
            self._segments.clear()
            return
        while len(self._segments) > 1 and self._segments[1].base_offset <= first_batch.base_offset:
            del self._segments[0]

    def views(self, batches: Sequence[RecordBatch], log_end_offset: int) -> list[SegmentView]:
        """All segments, oldest first, measured over their present batches."""
        if not self._segments:
            return []
        ends = [segment.base_offset for segment in self._segments[1:]] + [log_end_offset]
        views = []
        index = 0
        for segment, end_offset in zip(self._segments, ends, strict=True):
            size, largest = 0, -1
            while index < len(batches) and batches[index].base_offset < end_offset:
                size += batches[index].size
                largest = max(largest, batches[index].max_timestamp)
                index += 1
            largest = largest if largest >= 0 else segment.last_append_ms
            views.append(SegmentView(segment.base_offset, end_offset, size, largest))
        return views


def retained_from(segments: Sequence[SegmentView], config: LogConfig, now_ms: int) -> int | None:
    """The new log start after removing the segments that `retention.ms` and `retention.bytes` expire; None: no change.

    The active segment is removed, too, once all of it is too old. A segment is removed by size only if at least
    `retention.bytes` are left.
    """
    left = sum(segment.size_bytes for segment in segments)
    start = None
    for segment in segments:
        too_old = 0 <= config.retention_ms < now_ms - segment.max_timestamp
        too_much = 0 <= config.retention_bytes <= left - segment.size_bytes
        if not (too_old or too_much):
            break
        left -= segment.size_bytes
        start = segment.end_offset
    return start
