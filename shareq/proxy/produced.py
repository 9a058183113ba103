"""The ends of logs that Produce responses name: the base offset in the response and the size of the batch before it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from shareq.model.ids import TopicId
from shareq.model.messages.data import ProduceRequest, ProduceResponse

_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23
"""The place of the field in a record batch: there is one batch for each partition."""


class Produced(NamedTuple):
    """The number of offsets of each batch in a request, by topic (its name, or its id from version 13 on)."""

    offsets: dict[tuple[str | TopicId, int], int]


def produced_by(request: ProduceRequest) -> Produced:
    return Produced(
        {
            (topic.name or topic.topic_id, partition.index): _offsets(partition.records)
            for topic in request.topics
            for partition in topic.partitions
        }
    )


def _offsets(batch: bytes) -> int:
    if len(batch) < _LAST_OFFSET_DELTA_AT + _LAST_OFFSET_DELTA.size:
        return 0
    (delta,) = _LAST_OFFSET_DELTA.unpack_from(batch, _LAST_OFFSET_DELTA_AT)
    return int(delta) + 1


def ends_of(produced: Produced, response: ProduceResponse) -> Iterator[tuple[str | TopicId, int, int]]:
    """The topic (its name or id), partition and end of each log that has grown."""
    for topic in response.responses:
        for partition in topic.partitions:
            key = (topic.name or topic.topic_id, partition.index)
            offsets = produced.offsets.get(key, 0)
            if not partition.error_code and partition.base_offset >= 0 and offsets > 0:
                yield *key, partition.base_offset + offsets
