"""The ends of logs that Produce responses name: the base offset in the response and the size of the batch before it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from shareq.model.ids import TopicId
from shareq.model.messages.data import ProduceResponse
from shareq.wire.codec.primitives import skip_tags, topic_id, uvarint
from shareq.wire.errors import MalformedFrame

VERSIONS = range(3, 14)
"""The versions of Produce with the layout that `produced_by` follows."""
_FIRST_FLEXIBLE = 9
_FIRST_WITH_IDS = 13

_CLIENT_ID_AT = 12
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_ACKS_AND_TIMEOUT_BYTES = 2 + 4
_ID_BYTES = 16
_LAST_OFFSET_DELTA = _INT32
_LAST_OFFSET_DELTA_AT = 23
"""The place of the field in a record batch: there is one batch for each partition."""


class Produced(NamedTuple):
    """The number of offsets of each batch in a request, by topic (its name, or its id from version 13 on)."""

    offsets: dict[tuple[str | TopicId, int], int]


def produced_by(version: int, frame: bytes | bytearray) -> Produced:
    """From a request in a frame with its size before it, of one of `VERSIONS`; the records are not copied.
    MalformedFrame."""
    try:
        return Produced(dict(_batches(version, frame)))
    except (IndexError, ValueError, struct.error) as problem:
        raise MalformedFrame(f"Produce request of {len(frame)} bytes: {problem}") from problem


def _batches(version: int, frame: bytes | bytearray) -> Iterator[tuple[tuple[str | TopicId, int], int]]:
    flexible = version >= _FIRST_FLEXIBLE
    (client_id_size,) = _INT16.unpack_from(frame, _CLIENT_ID_AT)
    at = _skip_tags(frame, _CLIENT_ID_AT + _INT16.size + max(client_id_size, 0), flexible)
    _, at = _sized(frame, at, flexible, _INT16)  # the transactional id
    topics, at = _length(frame, at + _ACKS_AND_TIMEOUT_BYTES, flexible, _INT32)
    for _ in range(topics):
        if version >= _FIRST_WITH_IDS:
            name: str | TopicId = topic_id(bytes(frame[at : at + _ID_BYTES]))
            at += _ID_BYTES
        else:
            begin, at = _sized(frame, at, flexible, _INT16)
            name = frame[begin:at].decode(errors="replace")
        partitions, at = _length(frame, at, flexible, _INT32)
        for _ in range(partitions):
            (index,) = _INT32.unpack_from(frame, at)
            begin, at = _sized(frame, at + _INT32.size, flexible, _INT32)
            yield (name, index), _offsets(frame, begin, at)
            at = _skip_tags(frame, at, flexible)
        at = _skip_tags(frame, at, flexible)
    if _skip_tags(frame, at, flexible) > len(frame):
        raise ValueError("it ends beyond the frame")


def _length(frame: bytes | bytearray, at: int, flexible: bool, fixed: struct.Struct) -> tuple[int, int]:
    """A length, -1 for null, and its end; `fixed`: its form before flexible versions."""
    if flexible:
        size, at = uvarint(frame, at)
        return size - 1, at
    return fixed.unpack_from(frame, at)[0], at + fixed.size


def _sized(frame: bytes | bytearray, at: int, flexible: bool, fixed: struct.Struct) -> tuple[int, int]:
    """The begin and the end of text or bytes; null has none."""
    size, begin = _length(frame, at, flexible, fixed)
    return begin, begin + max(size, 0)


def _skip_tags(frame: bytes | bytearray, at: int, flexible: bool) -> int:
    return skip_tags(frame, at) if flexible else at


def _offsets(frame: bytes | bytearray, begin: int, end: int) -> int:
    if end - begin < _LAST_OFFSET_DELTA_AT + _LAST_OFFSET_DELTA.size:
        return 0
    (delta,) = _LAST_OFFSET_DELTA.unpack_from(frame, begin + _LAST_OFFSET_DELTA_AT)
    return int(delta) + 1


def ends_of(produced: Produced, response: ProduceResponse) -> Iterator[tuple[str | TopicId, int, int]]:
    """The topic (its name or id), partition and end of each log that has grown."""
    for topic in response.responses:
        for partition in topic.partitions:
            key = (topic.name or topic.topic_id, partition.index)
            offsets = produced.offsets.get(key, 0)
            if not partition.error_code and partition.base_offset >= 0 and offsets > 0:
                yield *key, partition.base_offset + offsets
