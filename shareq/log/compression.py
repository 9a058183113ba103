"""Compression of record batches, and decompression with a bound on the output.

A few hundred bytes of zstd can stand for gigabytes. The output is written into a room of fixed size, so a batch that
does not fit is refused when the room is full: neither its own claims nor its contents make the process allocate more.
The room is anonymous memory, of which only the pages that are written exist.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from mmap import mmap
from typing import Any

from shareq.log.batches import ATTRIBUTES_AT, CODEC_MASK, HEADER_BYTES, LENGTH_PREFIX_BYTES, CorruptBatch, stamp_crc
from shareq.model.records import RecordBatch

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""The code in the batch attributes by the name of the codec."""

EXPANSION = 16
"""A broker accepts a batch whose records take up to this many times `max.message.bytes` when they are decompressed."""

MOST_BYTES = 1 << 28
"""Nothing decompresses a batch to more than this, 256 MiB. It is the limit of readers, which do not know the topic's
`max.message.bytes`."""

_GUESSED_EXPANSION = 8
_SMALL_ROOM = 1 << 20
_ATTRIBUTES_LOW = ATTRIBUTES_AT + 1
_LZ4_LEVEL, _ZSTD_LEVEL = 9, 3
"""Kafka's defaults, KIP-390."""
_LENGTH = struct.Struct(">i")
_XERIAL = b"\x82SNAPPY\0"
_XERIAL_HEADER_BYTES = 16
_XERIAL_BLOCK_BYTES = 4
_NO_ROOM = "failed to write whole buffer"
"""The error of cramjam, which passes on that of Rust's `Write`, when the room is full."""

Compress = Callable[[memoryview], Any]
Decompress = Callable[[memoryview, memoryview], int]
"""`decompress(data, room) -> size`: writes the decompressed data to `room`."""


class OversizedBatch(CorruptBatch):
    """A batch that takes more bytes than allowed when it is decompressed."""


class _NoRoomError(Exception):
    """The decompressed data does not fit."""


def limit_of(max_message_bytes: int) -> int:
    """How many bytes of records a batch may have, decompressed, in a topic with this `max.message.bytes`."""
    return min(EXPANSION * max_message_bytes, MOST_BYTES)


def compressed(batch: bytearray, codec: int) -> bytes:
    """The batch of uncompressed records in a codec, with a new CRC."""
    header = batch[:HEADER_BYTES]
    header[_ATTRIBUTES_LOW] |= codec
    with memoryview(batch)[HEADER_BYTES:] as records:
        packed = memoryview(_compressors()[codec](records))
    _LENGTH.pack_into(header, LENGTH_PREFIX_BYTES - _LENGTH.size, HEADER_BYTES + len(packed) - LENGTH_PREFIX_BYTES)
    return stamp_crc(header + packed)


def uncompressed(batch: RecordBatch, limit_bytes: int = MOST_BYTES) -> RecordBatch:
    """The batch without compression; the batch itself if it has none. Its CRC is not computed again.

    Raises OversizedBatch above `limit_bytes` of records, CorruptBatch for data that the codec cannot read.
    """
    codec = batch.attributes & CODEC_MASK
    if not codec:
        return batch
    data = memoryview(batch.data)[HEADER_BYTES:]
    decompress = _decompressors().get(codec)
    if decompress is None:
        raise CorruptBatch(batch.base_offset, f"codec {codec} is unknown")
    try:
        header = bytearray(batch.data[:HEADER_BYTES])
        header[_ATTRIBUTES_LOW] &= ~CODEC_MASK
        return batch._replace(
            attributes=batch.attributes & ~CODEC_MASK, data=_expanded(header, data, decompress, limit_bytes)
        )
    except _NoRoomError:
        raise OversizedBatch(batch.base_offset, f"takes more than {limit_bytes} bytes when decompressed") from None
    except Exception as error:  # the codecs raise several types for invalid bytes
        raise CorruptBatch(batch.base_offset, f"{type(error).__name__}: {error}") from error


def _expanded(header: bytearray, data: memoryview, decompress: Decompress, limit_bytes: int) -> bytes:
    """Header and decompressed data: first in a small room, which most batches fit and which costs no system call."""
    guess = min(_GUESSED_EXPANSION * len(data), limit_bytes)
    if guess <= _SMALL_ROOM:
        with suppress(_NoRoomError):
            return _joined(header, memoryview(bytearray(guess)), data, decompress)
    with mmap(-1, limit_bytes) as room:
        return _joined(header, memoryview(room)[:limit_bytes], data, decompress)


def _joined(header: bytearray, room: memoryview, data: memoryview, decompress: Decompress) -> bytes:
    with room:
        size = decompress(data, room)
        _LENGTH.pack_into(header, LENGTH_PREFIX_BYTES - _LENGTH.size, HEADER_BYTES + size - LENGTH_PREFIX_BYTES)
        with room[:size] as records:
            return b"".join((header, records))


@cache
def _cramjam() -> Any:
    # Imported at first use: most batches are not compressed.
    return import_module("cramjam")


@cache
def _compressors() -> dict[int, Compress]:
    codecs = _cramjam()
    return {
        CODECS["gzip"]: codecs.gzip.compress,
        CODECS["snappy"]: codecs.snappy.compress_raw,
        CODECS["lz4"]: _lz4,
        CODECS["zstd"]: partial(codecs.zstd.compress, level=_ZSTD_LEVEL),
    }


def _lz4(data: memoryview) -> Any:
    """Kafka reads no linked blocks, KIP-57."""
    compressor = _cramjam().lz4.Compressor(level=_LZ4_LEVEL, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))
    return compressor.finish()


@cache
def _decompressors() -> dict[int, Decompress]:
    codecs = _cramjam()
    return {
        CODECS["gzip"]: partial(_framed, codecs.gzip.decompress_into),
        CODECS["snappy"]: _snappy,
        CODECS["lz4"]: partial(_framed, codecs.lz4.decompress_into),
        CODECS["zstd"]: partial(_framed, codecs.zstd.decompress_into),
    }


def _framed(decompress_into: Decompress, data: memoryview, room: memoryview) -> int:
    try:
        return decompress_into(data, room)
    except _cramjam().DecompressionError as error:
        if _NO_ROOM in str(error):
            raise _NoRoomError from None
        raise


def _snappy(data: memoryview, room: memoryview) -> int:
    """One block, or the framing of xerial's library, which Java's clients use: blocks with their lengths."""
    if data[: len(_XERIAL)] != _XERIAL:
        return _snappy_block(data, room)
    at, size = _XERIAL_HEADER_BYTES, 0
    while at < len(data):
        start = at + _XERIAL_BLOCK_BYTES
        at = start + _LENGTH.unpack_from(data, start - _XERIAL_BLOCK_BYTES)[0]
        if not start < at <= len(data):
            raise ValueError(f"a block of snappy ends at {at} of {len(data)} bytes")
        with room[size:] as rest:
            size += _snappy_block(data[start:at], rest)
    return size


def _snappy_block(data: memoryview, room: memoryview) -> int:
    """A block states its size."""
    snappy = _cramjam().snappy
    if snappy.decompress_raw_len(data) > len(room):
        raise _NoRoomError
    size: int = snappy.decompress_raw_into(data, room)
    return size
