"""Record batches as bytes: this module reads and stamps headers; records stay encoded.

A broker needs only the header of a batch, so its cost does not depend on the record count. Source: Kafka's message
format v2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Any

from shareq.model.records import RecordBatch

HEADER = struct.Struct(">qiibIhiqqqhii")
"""base offset, length, leader epoch, magic, crc, attributes, last offset delta, base and max timestamp, producer id,
producer epoch, base sequence, record count."""

HEADER_BYTES = HEADER.size
LENGTH_PREFIX_BYTES = 12
"""Size of base offset and length; the length field counts the bytes after it."""

MAGIC = 2
CRC_AT = 17
ATTRIBUTES_AT = 21
"""The CRC covers the bytes from here on. The bytes before can be stamped without a new CRC."""

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

_STAMP = struct.Struct(">qii")
_CRC = struct.Struct(">I")
_LENGTH = struct.Struct(">i")
_CONTROL_RECORD = struct.Struct(">bbbbbhhbhib")


class CorruptBatch(ValueError):
    """A batch that cannot be read. `base_offset` is -1 if the bytes end before the base offset is known."""

    def __init__(self, base_offset: int, reason: str) -> None:
        super().__init__(f"record batch at offset {base_offset}: {reason}")
        self.base_offset = base_offset
        self.reason = reason


class ControlType(IntEnum):
    """How a control batch ends its producer's transaction; the value is the type in the record's key."""

    ABORT = 0
    COMMIT = 1


def parse_batch(data: bytes | memoryview) -> RecordBatch:
    """Parse the header of exactly one complete batch; records are not decoded. Raises CorruptBatch."""
    size = len(data)
    if size < HEADER_BYTES:
        base_offset = int.from_bytes(data[:8], "big", signed=True) if size >= LENGTH_PREFIX_BYTES else -1
        raise CorruptBatch(base_offset, f"{size} bytes are shorter than a header of {HEADER_BYTES}")
    fields = HEADER.unpack_from(data)
    base_offset, length, leader_epoch, magic, _, attributes, last_offset_delta = fields[:7]
    if magic != MAGIC:
        raise CorruptBatch(base_offset, f"magic is {magic} instead of {MAGIC}")
    if length != size - LENGTH_PREFIX_BYTES:
        raise CorruptBatch(base_offset, f"is {size} bytes long, but its header states {length + LENGTH_PREFIX_BYTES}")
    last_offset = base_offset + last_offset_delta
    return RecordBatch._make((base_offset, last_offset, leader_epoch, *fields[7:], attributes, bytes(data)))


def complete_size(data: bytes | memoryview, start: int = 0) -> int:
    """The size in bytes of the complete batch that begins at `start`; 0 if it is cut off or not a batch."""
    if len(data) - start < HEADER_BYTES:
        return 0
    size = LENGTH_PREFIX_BYTES + int(_LENGTH.unpack_from(data, start + 8)[0])
    return size if HEADER_BYTES <= size <= len(data) - start else 0


def split_batches(data: bytes | memoryview) -> list[RecordBatch]:
    """The complete, consecutive batches in `data`; an incomplete one at the end is dropped.

    A fetch response may end in an incomplete batch. Raises CorruptBatch for a magic other than 2.
    """
    view = memoryview(data)
    batches = []
    start = 0
    while size := complete_size(view, start):
        batches.append(parse_batch(view[start : start + size]))
        start += size
    return batches


def restamp(data: bytes | memoryview, base_offset: int, leader_epoch: int) -> bytes:
    """The same batch at another offset and leader epoch. The CRC covers neither, so it stays."""
    stamp = _STAMP.pack(base_offset, len(data) - LENGTH_PREFIX_BYTES, leader_epoch)
    return b"".join((stamp, memoryview(data)[_STAMP.size :]))


@cache
def _crc32c() -> Callable[[Any], int]:
    # Imported at first use: the package reads its own metadata, which takes a tenth of a server's start.
    found: Callable[[Any], int]
    try:
        found = import_module("crc32c").crc32c
    except ModuleNotFoundError:  # Pyodide whose own packages are out of reach: 150 times as slow
        found = import_module("kafka.record.util").calc_crc32c
    return found


def crc_matches(data: bytes | memoryview) -> bool:
    """True if the CRC-32C of a complete batch equals the one in its header."""
    return bool(_crc32c()(memoryview(data)[ATTRIBUTES_AT:]) == _CRC.unpack_from(data, CRC_AT)[0])


def stamp_crc(data: bytearray) -> bytes:
    """Write the CRC into a batch whose covered bytes have changed, and return the batch."""
    _CRC.pack_into(data, CRC_AT, _crc32c()(memoryview(data)[ATTRIBUTES_AT:]))
    return bytes(data)


def control_batch(
    kind: ControlType, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp_ms: int
) -> bytes:
    """The marker that ends a transaction: 78 bytes, base offset 0. It takes one offset of the log."""
    # Zigzag varints: record length 16, key length 4, value length 6.
    record = _CONTROL_RECORD.pack(32, 0, 0, 0, 8, 0, kind, 12, 0, coordinator_epoch, 0)
    data = bytearray(HEADER_BYTES + len(record))
    HEADER.pack_into(
        data,
        0,
        0,
        len(data) - LENGTH_PREFIX_BYTES,
        -1,
        MAGIC,
        0,
        TRANSACTIONAL | CONTROL,
        0,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        -1,
        1,
    )
    data[HEADER_BYTES:] = record
    return stamp_crc(data)
