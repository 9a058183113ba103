"""What can be wrong with bytes from outside."""

from __future__ import annotations

from typing import NamedTuple


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


class MalformedFrame(ValueError):
    """Bytes that are not what they claim to be. Kafka closes such a connection without an answer."""


class UnsupportedVersion(ValueError):
    """An API or a version of it that the table lacks, or a field that a version cannot carry.

    `header`: that of a received request, None for a request that could not be encoded.
    """

    def __init__(self, reason: str, header: RequestHeader | None = None) -> None:
        super().__init__(reason)
        self.header = header
