"""The records that dead letters refer to, as read from the log of their share-partition.

They are read when the letters arrive, and kept until the letters are written, so that their content survives a log that
is cut meanwhile. Batches stay encoded until a copy is made.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from shareq.log.batches import CODEC_MASK
from shareq.log.records import CorruptBatch, Record, decode
from shareq.model.records import RecordBatch


class Content(NamedTuple):
    """A record of the source: its key and value, None for both if they cannot be copied."""

    offset: int
    key: bytes | None = None
    value: bytes | None = None


class Stretch(NamedTuple):
    """[first, end) of the log: within one batch, or without a batch. `lost`: deleted before it was read, so that
    it is not known which of its offsets had a record."""

    first: int
    end: int
    batch: RecordBatch | None
    lost: bool = False


class SourceRecords:
    """The stretches that are known, ascending and disjoint."""

    def __init__(self) -> None:
        self._stretches: list[Stretch] = []
        self._decoded: tuple[RecordBatch, list[Record] | None] | None = None
        """The batch that was decoded last: letters of single records follow each other in it."""

    def first_unknown(self, first: int, end: int) -> int:
        """The first offset of [first, end) that has not been read; `end` if all have."""
        position = first
        while position < end:
            at = bisect_right(self._stretches, position, key=_first) - 1
            if at < 0 or self._stretches[at].end <= position:
                return position
            position = self._stretches[at].end
        return end

    def first_known(self, offset: int) -> int | None:
        """The first known offset above `offset`; None if there is none."""
        at = bisect_right(self._stretches, offset, key=_first)
        return self._stretches[at].first if at < len(self._stretches) else None

    def add(self, stretch: Stretch) -> None:
        """Keep what has been read, as far as it is not known yet: a read that fills a gap may return whole batches
        above it, too."""
        first = self.first_unknown(stretch.first, stretch.end)
        while first < stretch.end:
            limit = self.first_known(first)
            end = stretch.end if limit is None else min(stretch.end, limit)
            at = bisect_left(self._stretches, first, key=_first)
            self._stretches.insert(at, stretch._replace(first=first, end=end))
            first = self.first_unknown(end, stretch.end)

    def forget_below(self, offset: int) -> None:
        """Drop what lies below `offset`."""
        count = 0
        while count < len(self._stretches) and self._stretches[count].end <= offset:
            count += 1
        del self._stretches[:count]

    def contents(self, first: int, end: int, *, copy: bool, max_bytes: int) -> Iterator[Content]:
        """The records of [first, end), which is known. With `copy` with their keys and values, unless one of them, or
        its batch after decompression, is larger than `max_bytes`, or cannot be read."""
        at = max(bisect_right(self._stretches, first, key=_first) - 1, 0)
        while at < len(self._stretches) and self._stretches[at].first < end:
            stretch = self._stretches[at]
            low, high = max(first, stretch.first), min(end, stretch.end)
            if stretch.batch is not None:
                yield from self._of_batch(stretch.batch, low, high, copy=copy, max_bytes=max_bytes)
            elif stretch.lost:
                yield from map(Content, range(low, high))
            at += 1

    def _of_batch(self, batch: RecordBatch, first: int, end: int, *, copy: bool, max_bytes: int) -> Iterator[Content]:
        if batch.is_control:
            return
        is_whole = batch.record_count == batch.last_offset - batch.base_offset + 1
        records = None if is_whole and not copy else self._decode(batch)
        if records is None:  # no content is wanted, or it is not known which offsets have a record
            yield from map(Content, range(first, end))
            return
        too_large = batch.attributes & CODEC_MASK and sum(map(_size, records)) > max_bytes
        at = bisect_left(records, first, key=_offset)
        while at < len(records) and records[at].offset < end:
            record = records[at]
            fits = copy and not too_large and _size(record) <= max_bytes
            yield Content(record.offset, record.key, record.value) if fits else Content(record.offset)
            at += 1

    def _decode(self, batch: RecordBatch) -> list[Record] | None:
        """The records of a batch, None if it cannot be read."""
        if self._decoded is None or self._decoded[0] is not batch:
            try:
                self._decoded = batch, decode(batch)
            except CorruptBatch:
                self._decoded = batch, None
        return self._decoded[1]


def _first(stretch: Stretch) -> int:
    return stretch.first


def _offset(record: Record) -> int:
    return record.offset


def _size(record: Record) -> int:
    """The bytes of a record's key, value and headers."""
    headers = sum(len(key) + len(value or b"") for key, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
