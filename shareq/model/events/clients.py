"""What clients do, and the messages that fly."""

from __future__ import annotations

from typing import NamedTuple


class RecordsDelivered(NamedTuple):
    """A poll returned these records to the application."""

    group_id: str
    member_id: str
    client_id: str
    topic: str
    partition: int
    first: int
    end: int
    record_count: int


class AcknowledgementsSent(NamedTuple):
    """`counts` by acknowledge type, GAP to RENEW; offsets were taken together per partition."""

    group_id: str
    member_id: str
    topic: str
    partition: int
    counts: tuple[int, int, int, int, int]
    error: int


class RequestSent(NamedTuple):
    """A message flies: `api` is its class name. Recorded only where the cluster traces messages."""

    source: str
    target: str
    api: str


class ResponseSent(NamedTuple):
    source: str
    target: str
    api: str
    error: int
