"""Helpers of the compiled functions: lengths, tags, ids and errors of the protocol."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from functools import lru_cache

from shareq.log.batches import split_batches
from shareq.model.errors import Errors
from shareq.model.ids import topic_id_from_bytes, topic_id_to_bytes
from shareq.model.records import RecordBatch
from shareq.wire.errors import MalformedFrame, UnsupportedVersion

MAX_VARINT_BYTES = 5
MAX_STRING_BYTES = 0x7FFF
MAX_UNKNOWN_TAGS = 100
"""No version of a header has any."""

topic_id = lru_cache(maxsize=4096)(topic_id_from_bytes)
uuid = lru_cache(maxsize=4096)(topic_id_to_bytes)


# ---- reading ---------------------------------------------------------------------------------------------------------


class _ErrorsByCode(dict[int, Errors]):
    """Errors by code; an unknown code, from a newer broker, is UNKNOWN_SERVER_ERROR, as in Java's client."""

    def __missing__(self, code: int) -> Errors:
        return Errors.UNKNOWN_SERVER_ERROR


errors = _ErrorsByCode({int(error): error for error in Errors if error >= Errors.UNKNOWN_SERVER_ERROR})


def uvarint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """An unsigned varint and its end: seven bits per byte, the lowest first."""
    value = 0
    for i in range(MAX_VARINT_BYTES):
        byte = data[at + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, at + i + 1
    raise MalformedFrame(f"a varint of more than {MAX_VARINT_BYTES} bytes")


def string_length(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """The length of a compact string plus one, and its end. Kafka's requests and responses have no longer strings."""
    length, end = uvarint(data, at)
    if length > MAX_STRING_BYTES + 1:
        raise MalformedFrame(f"a string of {length - 1} bytes: must be at most {MAX_STRING_BYTES}")
    return length, end


def read_tags(
    data: bytes | bytearray, at: int, known: Container[int], left: int
) -> tuple[dict[int, tuple[int, int]], int, int]:
    """The known tagged fields at the end of a struct, each with its first byte and its end; the end of the struct; and
    how many of the `left` elements that the message may still have remain. Unknown fields are skipped."""
    found = {}
    count, at = uvarint(data, at)
    left -= count
    if left < 0:
        raise too_many()
    for _ in range(count):
        tag, at = uvarint(data, at)
        size, at = uvarint(data, at)
        if tag in known:
            found[tag] = (at, at + size)
        at += size
    return found, at, left


def pass_tags(data: bytes | bytearray, at: int, left: int) -> tuple[int, int]:
    """The end of a struct whose tagged fields are all unknown, and what remains of the `left` elements."""
    return read_tags(data, at, (), left)[1:]


def skip_tags(data: bytes | bytearray, at: int) -> int:
    """The end of a header, or of another struct outside of a message, whose tagged fields are all unknown."""
    return pass_tags(data, at, MAX_UNKNOWN_TAGS)[0]


def too_many() -> MalformedFrame:
    return MalformedFrame("more elements and tags than a request can mean")


@lru_cache(maxsize=256)
def many(letter: str, count: int) -> Callable[..., tuple[int, ...]]:
    """A function that unpacks an array of numbers."""
    return struct.Struct(f">{count}{letter}").unpack_from


def batches(data: bytes, start: int, end: int) -> tuple[RecordBatch, ...]:
    """The complete record batches of a `records` field; each is copied from the frame once."""
    return tuple(split_batches(memoryview(data)[start:end]))


def illegal_null(name: str) -> MalformedFrame:
    return MalformedFrame(f"{name} is null")


def wrong_size(name: str) -> MalformedFrame:
    return MalformedFrame(f"the tagged field {name} does not have its stated size")


# ---- writing ---------------------------------------------------------------------------------------------------------


class _Lengths(dict[int, bytes]):
    """Encoded lengths; -1 is null. Those below 128 are precomputed."""

    def __init__(self, write: Callable[[int], bytes]) -> None:
        super().__init__({length: write(length) for length in range(-1, 128)})
        self._write = write

    def __missing__(self, length: int) -> bytes:
        return self._write(length)


def write_uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


compact = _Lengths(lambda length: write_uvarint(length + 1))
int16 = _Lengths(struct.Struct(">h").pack)
int32 = _Lengths(struct.Struct(">i").pack)


@lru_cache(maxsize=256)
def pack_many(letter: str, count: int) -> Callable[..., bytes]:
    """A function that packs an array of numbers."""
    return struct.Struct(f">{count}{letter}").pack


def tag_section(tags: list[tuple[int, list[bytes]]]) -> bytes:
    """The tagged fields at the end of a struct, the lowest tag first."""
    parts = [write_uvarint(len(tags))]
    for tag, value in tags:
        body = b"".join(value)
        parts += write_uvarint(tag), write_uvarint(len(body)), body
    return b"".join(parts)


def cannot_be_null(name: str) -> UnsupportedVersion:
    return UnsupportedVersion(f"{name} must not be null in this version")


def cannot_travel(name: str) -> UnsupportedVersion:
    return UnsupportedVersion(f"{name} is not part of this version")
