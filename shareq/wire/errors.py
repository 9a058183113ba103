"""Errors of bytes from outside."""

from __future__ import annotations

from typing import NamedTuple


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


class MalformedFrame(ValueError):
    """Invalid bytes. Kafka closes such a connection without a response."""


class TlsInstead(MalformedFrame):
    """The peer speaks TLS where a frame was expected."""


class UnsupportedVersion(ValueError):
    """An API or version that is not in the table, or a field that a version lacks.

    `header`: of a received request; None for a request that could not be encoded.
    """

    def __init__(self, reason: str, header: RequestHeader | None = None) -> None:
        super().__init__(reason)
        self.header = header
