"""The ends of logs that Produce responses name: the base offset in the response and the size of the batch before it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from shareq.model.ids import TopicId
from shareq.model.messages.data import ProduceResponse
from shareq.wire.codec.primitives import skip_tags, topic_id, uvarint
from shareq.wire.errors import MalformedFrame

VERSIONS = range(10, 14)
"""The versions of Produce with the layout that `produced_by` follows."""
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
    (client_id_size,) = _INT16.unpack_from(frame, _CLIENT_ID_AT)
    at = skip_tags(frame, _CLIENT_ID_AT + _INT16.size + max(client_id_size, 0))
    _, at = _sized(frame, at)  # the transactional id
    topics, at = uvarint(frame, at + _ACKS_AND_TIMEOUT_BYTES)
    for _ in range(topics - 1):
        if version >= _FIRST_WITH_IDS:
            name: str | TopicId = topic_id(bytes(frame[at : at + _ID_BYTES]))
            at += _ID_BYTES
        else:
            begin, at = _sized(frame, at)
            name = frame[begin:at].decode(errors="replace")
        partitions, at = uvarint(frame, at)
        for _ in range(partitions - 1):
            (index,) = _INT32.unpack_from(frame, at)
            begin, at = _sized(frame, at + _INT32.size)
            yield (name, index), _offsets(frame, begin, at)
            at = skip_tags(frame, at)
        at = skip_tags(frame, at)
    skip_tags(frame, at)


def _sized(frame: bytes | bytearray, at: int) -> tuple[int, int]:
    """The begin and the end of compact text or bytes; null has none."""
    size, begin = uvarint(frame, at)
    return begin, begin + max(size - 1, 0)


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
