"""Events of clients, and of the messages between clients and brokers."""

from __future__ import annotations

from typing import NamedTuple


class RecordsDelivered(NamedTuple):
    """A poll returned these records to the application. `delivery_count` 0: unknown."""

    group_id: str
    member_id: str
    client_id: str
    topic: str
    partition: int
    first: int
    end: int
    record_count: int
    delivery_count: int = 0


class AcknowledgementsSent(NamedTuple):
    """`counts` by acknowledge type from GAP on, summed over the offsets of a partition."""

    group_id: str
    member_id: str
    topic: str
    partition: int
    counts: tuple[int, ...]
    error: int


class RequestSent(NamedTuple):
    """A request was sent; `api` is its class name. Recorded only if the cluster traces messages.

    `exchange` is the number of the request and its response; `version` is the version on the wire, or
    `NEWEST_VERSION` in process; `body` is the content as JSON.
    """

    source: str
    target: str
    api: str
    exchange: int = -1
    client_id: str = ""
    version: int = -1
    body: str = ""


class ResponseSent(NamedTuple):
    """The response to the request of this `exchange`; `error` is its top-level error code."""

    source: str
    target: str
    api: str
    error: int
    exchange: int = -1
    body: str = ""
