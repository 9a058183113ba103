"""What a letter becomes when it is redriven: the record of its source, or the copy in the letter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shareq.admin.arguments import PartitionLike
from shareq.admin.dead_letters import DeadLetter
from shareq.admin.record_reader import Span
from shareq.admin.redrive.calls import AdminCalls
from shareq.log.records import Headers, Record

SourceOffset = tuple[str, int, int]
"""Topic, partition and offset of a record."""

GONE = "its content was not copied, and the source no longer has the record"
PERHAPS_A_MARKER = "it looks like a transaction marker, and the source no longer has the record"
_MARKER_KEYS = (bytes(4), b"\0\0\0\1")
_MARKER_VALUE_BYTES = 6


class Content(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Marker(NamedTuple):
    """The letter stands for a transaction marker, of which Kafka makes letters, too: there is nothing to redrive."""


class Skipped(NamedTuple):
    """Why a letter cannot be redriven."""

    reason: str


def source_records(
    admin: AdminCalls, letters: Iterable[DeadLetter], partitions: Mapping[str, int], timeout: float
) -> dict[SourceOffset, Record | Marker]:
    """What the sources still have of the letters' records. `partitions`: the number of partitions of each topic that
    exists."""
    offsets: dict[tuple[str, int], set[int]] = {}
    for letter in letters:
        if letter.partition < partitions.get(letter.topic, 0):
            offsets.setdefault((letter.topic, letter.partition), set()).add(letter.offset)
    spans: dict[PartitionLike, list[Span]] = {
        place: [(offset, offset + 1) for offset in sorted(wanted)] for place, wanted in offsets.items()
    }
    found: dict[SourceOffset, Record | Marker] = {}
    for read in admin.read_batches(spans, timeout=timeout):
        place = read.topic, read.partition
        for batch in read.batches:
            if batch.is_control:
                found[*place, batch.base_offset] = Marker()
        for record in read.records(spans[place]):
            found[*place, record.offset] = record
    return found


def content_of(letter: DeadLetter, source: Record | Marker | None) -> Content | Marker | Skipped:
    """The content to write. Letters have no headers of their source: they come from the source, if its record is still
    the one that was copied. A letter without a copy takes what the source has at its offset."""
    if isinstance(source, Marker):
        return source
    copied = letter.key is not None or letter.value is not None
    if source is not None and (not copied or (source.key, source.value) == (letter.key, letter.value)):
        return Content(source.key, source.value, source.headers)
    if not copied:
        return Skipped(GONE)
    if letter.key in _MARKER_KEYS and letter.value is not None and len(letter.value) == _MARKER_VALUE_BYTES:
        return Skipped(PERHAPS_A_MARKER)
    return Content(letter.key, letter.value)
