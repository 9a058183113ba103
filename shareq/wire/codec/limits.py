"""How much a request may contain. A message beyond these limits is malformed: its connection is closed.

Kafka bounds a request by its bytes alone; decoding and answering it costs a Python process many times as much per
element, and no other client is served meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import FindCoordinatorRequest
from shareq.model.messages.data import ProduceRequest

MOST_ELEMENTS: Mapping[type[Request], int] = MappingProxyType({FindCoordinatorRequest: 10_000, ProduceRequest: 10_000})
"""The elements of all arrays of a request, and its tags, where fewer than usual can be meant."""

USUAL_ELEMENTS = 100_000
"""Enough for an operation on 50,000 partitions, ten times as many as a broker has by Kafka's recommendation."""

MOST_BYTES_WITHOUT_RECORDS = 10 << 20
"""The size of a request other than Produce. A coordinator could not store a larger one: its record would be above
`message.max.bytes`."""

_UNBOUNDED = 1 << 62


def most_elements(cls: type[Request | Response]) -> int:
    """Responses come from a broker that the client has chosen, and describe whole clusters."""
    return MOST_ELEMENTS.get(cls, USUAL_ELEMENTS) if issubclass(cls, Request) else _UNBOUNDED
