"""Records with header names that are not UTF-8, as clients in C, Go and .NET may send them.

Kafka's brokers store such names as they are, and its clients read them as this does: with U+FFFD for what is no UTF-8.
The codecs of Python refuse them, and with them the whole batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from shareq.log.batches import HEADER_BYTES, LOG_APPEND_TIME
from shareq.model.records import RecordBatch

_SURROGATES = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
"""Java reads an encoded surrogate as one bad character, Python as three."""

_MOST_VARINT_BYTES = 10


class LenientRecord(NamedTuple):
    """Has the interface of `Record`."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def lenient_records(batch: RecordBatch) -> Iterator[LenientRecord]:
    """The records of a batch that is not compressed. ValueError or IndexError for an invalid one."""
    data, at = batch.data, HEADER_BYTES
    for _ in range(batch.record_count):
        size, at = _varint(data, at)
        end = at + size
        if not at < end <= len(data):
            raise ValueError(f"a record of {size} bytes")
        yield _record(batch, data[at + 1 : end])  # behind its attributes, which are not used
        at = end
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes behind the last record")


def _record(batch: RecordBatch, data: bytes) -> LenientRecord:
    timestamp_delta, at = _varint(data, 0)
    offset_delta, at = _varint(data, at)
    key, at = _nullable(data, at)
    value, at = _nullable(data, at)
    count, at = _varint(data, at)
    if not 0 <= count <= len(data):
        raise ValueError(f"{count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _nullable(data, at)
        if name is None:
            raise ValueError("a header without a name")
        content, at = _nullable(data, at)
        headers.append((_SURROGATES.sub(b"\xff", name).decode(errors="replace"), content))
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes behind the headers")
    stamped = bool(batch.attributes & LOG_APPEND_TIME)
    timestamp = batch.max_timestamp if stamped else batch.base_timestamp + timestamp_delta
    return LenientRecord(batch.base_offset + offset_delta, timestamp, int(stamped), key, value, headers)


def _nullable(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Bytes behind their length, and their end; a negative length is None."""
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise ValueError(f"{size} bytes, {len(data) - at} are left")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint and its end."""
    value = 0
    for place in range(_MOST_VARINT_BYTES):
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at + place + 1
    raise ValueError("a number of more than 10 bytes")
