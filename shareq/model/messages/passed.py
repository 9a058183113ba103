"""Requests and responses that pass through a server as bytes: it does not know their API."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.messages.base import Request, Response, message


@message
class PassedRequest(Request):
    """`frame`: header and body as received, without the size."""

    API_KEY: ClassVar[int] = -1

    api_key: int
    api_version: int
    frame: bytes


@message
class PassedResponse(Response):
    """`frame`: header and body as received, without the size."""

    frame: bytes
