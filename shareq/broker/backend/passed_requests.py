"""Brokers in the requests that pass to the backend as bytes: nodes become brokers. BEHAVIOUR.md, 5.4.

Of the APIs that shareq does not know and clients use, only these name brokers. The ids are replaced in place, and every
other byte stays.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping

from shareq.broker.backend.processes import backend_id
from shareq.model.messages.passed import PassedRequest
from shareq.wire.codec.primitives import skip_tags, uvarint
from shareq.wire.errors import MalformedFrame

_ID = struct.Struct(">i")
_CLIENT_ID_SIZE = struct.Struct(">h")
_CLIENT_ID_AT = 8
"""After the API key, its version and the correlation id."""

_TIMEOUT_BYTES = 4
_INDEX_BYTES = 4


def to_brokers(request: PassedRequest) -> PassedRequest:
    """The same request with the ids of brokers. One in an unknown version, or without the layout of its version, stays
    as it is: the backend refuses it."""
    found = _PLACES.get((request.api_key, request.api_version))
    if found is None:
        return request
    frame = bytearray(request.frame)
    try:
        for at in found(frame, _body(frame)):
            (node,) = _ID.unpack_from(frame, at)
            _ID.pack_into(frame, at, backend_id(node) if node >= 0 else node)
    except (IndexError, struct.error, MalformedFrame):
        return request
    return PassedRequest(api_key=request.api_key, api_version=request.api_version, frame=bytes(frame))


def _body(frame: bytearray) -> int:
    """The end of a header with tagged fields."""
    (size,) = _CLIENT_ID_SIZE.unpack_from(frame, _CLIENT_ID_AT)
    return skip_tags(frame, _CLIENT_ID_AT + _CLIENT_ID_SIZE.size + max(size, 0))


def _unregistered(frame: bytearray, at: int) -> Iterator[int]:
    """UnregisterBroker: the id is the first field."""
    del frame
    yield at


def _reassigned(options: int) -> Callable[[bytearray, int], Iterator[int]]:
    """AlterPartitionReassignments: the replicas of each partition. `options`: the bytes between time-out and topics."""

    def places(frame: bytearray, at: int) -> Iterator[int]:
        topics, at = uvarint(frame, at + _TIMEOUT_BYTES + options)
        for _ in range(topics - 1):
            size, at = uvarint(frame, at)
            partitions, at = uvarint(frame, at + size - 1)
            for _ in range(partitions - 1):
                replicas, at = uvarint(frame, at + _INDEX_BYTES)
                end = at + max(replicas - 1, 0) * _ID.size  # null cancels a reassignment
                yield from range(at, end, _ID.size)
                at = skip_tags(frame, end)
            at = skip_tags(frame, at)

    return places


_PLACES: Mapping[tuple[int, int], Callable[[bytearray, int], Iterator[int]]] = {
    (45, 0): _reassigned(0),
    (45, 1): _reassigned(1),
    (64, 0): _unregistered,
}
"""The places of ids in the body of a request, by API and version."""
