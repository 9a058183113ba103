"""What clients do, and the messages that fly."""

from __future__ import annotations

from typing import NamedTuple


class RecordsDelivered(NamedTuple):
    """A poll returned these records to the application. `delivery_count` 0: not told."""

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
    """`counts` by acknowledge type, GAP to RENEW; offsets were taken together per partition."""

    group_id: str
    member_id: str
    topic: str
    partition: int
    counts: tuple[int, int, int, int, int]
    error: int


class RequestSent(NamedTuple):
    """A message flies: `api` is its class name. Recorded only where the cluster traces messages.

    `exchange` ties the answer to it; `version` is that of the wire, where it came over one; `body` is JSON of what it
    says.
    """

    source: str
    target: str
    api: str
    exchange: int = -1
    client_id: str = ""
    version: int = -1
    body: str = ""


class ResponseSent(NamedTuple):
    """The answer to the request of this `exchange`; `error` is its top-level one."""

    source: str
    target: str
    api: str
    error: int
    exchange: int = -1
    body: str = ""
