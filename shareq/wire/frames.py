"""Frames: a size, a header and a message.

    request   int32 size | api key, version, correlation id, client id [tags] | body
    response  int32 size | correlation id [tags]                             | body

Headers have tags in flexible versions, except in the response to ApiVersions, so that an old client can read it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Collection
from functools import cache

from shareq.model.errors import Errors
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.base import Request, Response
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.passed import PassedRequest, PassedResponse
from shareq.wire.apis import API_BY_KEY, Api
from shareq.wire.codec import MessageReader, MessageWriter, reader, writer
from shareq.wire.codec.primitives import skip_tags
from shareq.wire.errors import MalformedFrame, RequestHeader, TlsInstead, UnsupportedVersion

MAX_FRAME_BYTES = 104857600
"""Kafka's default of `socket.request.max.bytes`."""

_API_VERSIONS = ApiVersionsRequest.API_KEY
_SIZE = struct.Struct(">i")
_API_KEY = struct.Struct(">h")
_REQUEST = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
_UNSUPPORTED = struct.pack(">h", Errors.UNSUPPORTED_VERSION)

_TLS = (b"\x16\x03", b"\x15\x03")
"""The first bytes of TLS, a handshake and an alert, which are no size of a frame."""

_BAD_BYTES = (IndexError, ValueError, struct.error)
"""The exceptions of reading invalid bytes."""


def decode_request(
    frame: bytes, passed: Collection[int] = (), hidden: Collection[int] = ()
) -> tuple[RequestHeader, Request]:
    """A request from a frame without its size. Trailing bytes, unknown tagged fields and a null client id are accepted.
    `passed`: the keys of APIs whose requests are returned as bytes; `hidden`: of those that are as unknown here.

    ApiVersions in an unsupported version, the first request of a newer client, is returned without its fields, with
    `header.api_version` as in the frame. Raises MalformedFrame, UnsupportedVersion.
    """
    try:
        header, at = _request_header(frame)
        found = None if header.api_key in hidden else _request_reader(header.api_key, header.api_version)
        if found is None:
            if header.api_key == _API_VERSIONS:
                return header, ApiVersionsRequest()
            if header.api_key in passed:
                return header, PassedRequest(api_key=header.api_key, api_version=header.api_version, frame=frame)
            raise UnsupportedVersion(f"API {header.api_key} version {header.api_version} is not supported", header)
        if found.flexible:
            at = _skip_tags(frame, at)
        request, end = found.read(frame, at)
    except UnsupportedVersion:
        raise
    except _BAD_BYTES as error:
        raise MalformedFrame(f"request of {len(frame)} bytes: {error}") from error
    if end > len(frame):
        raise MalformedFrame(f"request of {len(frame)} bytes ends at {end}")
    return header, request


def encode_response(header: RequestHeader, response: Response) -> bytes:
    """The frame of a response, in the request's version."""
    return b"".join(response_pieces(header, response))


def response_pieces(header: RequestHeader, response: Response, throttle_ms: int = 0) -> list[bytes]:
    """The frame of a response in pieces, of which record batches are not copies. `throttle_ms`: how long the client is
    throttled.

    The response to ApiVersions in an unsupported version has version 0, which every client can read.
    """
    version = header.api_version
    head = _CORRELATION_ID.pack(header.correlation_id)
    found = _response_writer(header.api_key, version)
    if found is None:
        if isinstance(response, PassedResponse):
            return _sized([b"", head, response.frame[_CORRELATION_ID.size :]])
        found = _response_writer(_API_VERSIONS, 0)
        assert found is not None
    parts = [b"", head + b"\0" if found.flexible and header.api_key != _API_VERSIONS else head]
    found.write(parts.append, response, throttle_ms)
    return _sized(parts)


def encode_request(request: Request, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The frame of a request. UnsupportedVersion for a field that `version` lacks."""
    found = _request_writer(request.API_KEY, version)
    if found is None:
        if isinstance(request, PassedRequest):
            return b"".join(_sized([b"", request.frame[:4], _CORRELATION_ID.pack(correlation_id), request.frame[8:]]))
        raise UnsupportedVersion(f"{type(request).__name__} version {version} is not supported")
    name = None if client_id is None else client_id.encode()
    parts = [
        b"",
        _REQUEST.pack(request.API_KEY, version, correlation_id, -1 if name is None else len(name)),
        name or b"",
    ]
    if found.flexible:
        parts.append(b"\0")
    found.write(parts.append, request)
    return b"".join(_sized(parts))


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[int, Response]:
    """The correlation id and the response from a frame without its size. Raises MalformedFrame.

    A broker that does not support the version of ApiVersions responds in version 0.
    """
    if api_key == _API_VERSIONS and frame[4:6] == _UNSUPPORTED:
        version = 0
    found = _response_reader(api_key, version)
    if found is None:
        raise UnsupportedVersion(f"API {api_key} version {version} is not supported")
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        at = _skip_tags(frame, 4) if found.flexible and api_key != _API_VERSIONS else 4
        response, end = found.read(frame, at)
    except _BAD_BYTES as error:
        raise MalformedFrame(f"response of {len(frame)} bytes: {error}") from error
    if end > len(frame):
        raise MalformedFrame(f"response of {len(frame)} bytes ends at {end}")
    return correlation_id, response


def passed_response(frame: bytes) -> tuple[int, PassedResponse]:
    """The correlation id and the response to a PassedRequest. Raises MalformedFrame."""
    if len(frame) < _CORRELATION_ID.size:
        raise MalformedFrame(f"response of {len(frame)} bytes")
    return _CORRELATION_ID.unpack_from(frame)[0], PassedResponse(frame=frame)


class FrameReader:
    """Splits a stream of bytes, which may arrive in any pieces, into frames.

    A size that is not positive, or above `max_bytes`, ends the stream before memory is allocated: `failure` is set. The
    frames before it are returned, the bytes after it ignored. `max_plain_bytes`: the same for requests other than
    Produce.
    """

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES, max_plain_bytes: int = MAX_FRAME_BYTES) -> None:
        self.failure: MalformedFrame | None = None
        self._max_bytes = max_bytes
        self._max_plain_bytes = max_plain_bytes
        self._held = bytearray()
        self.begun_bytes = 0
        """The size of the frame of which a part has arrived, its own size included; 0 if there is none."""
        self.unsplit_bytes = 0
        """The bytes that have arrived and are not looked at yet, because they follow the most frames of a `feed`."""

    @property
    def held_bytes(self) -> int:
        """The bytes that have arrived and are not part of a returned frame."""
        return len(self._held)

    def allow(self, max_bytes: int, max_plain_bytes: int) -> None:
        """Change the limits, for frames that have not begun."""
        self._max_bytes, self._max_plain_bytes = max_bytes, max_plain_bytes

    def end(self) -> None:
        """Ignore all bytes from now on."""
        self.failure = self.failure or MalformedFrame("the connection is closing")
        self._held = bytearray()
        self.unsplit_bytes = 0

    def feed(self, data: bytes | memoryview, most: int = sys.maxsize) -> list[bytes]:
        """The frames that are now complete, without their sizes: at most `most`, the next ones with the next data,
        which may be empty."""
        if self.failure is not None:
            return []
        held = self._held
        if held:
            held += data
        elif len(data) > _SIZE.size and _SIZE.unpack_from(data)[0] == len(data) - _SIZE.size <= self._max_bytes:
            return [bytes(data[_SIZE.size :])]  # the usual case: one whole frame
        frames: list[bytes] = []
        at = self.begun_bytes = self.unsplit_bytes = 0
        with memoryview(held or data) as view:
            while len(view) - at >= _SIZE.size:
                if len(frames) == most:
                    self.unsplit_bytes = len(view) - at
                    break
                (size,) = _SIZE.unpack_from(view, at)
                if not 0 < size <= self._max_bytes or size > self._max_plain_bytes:
                    self.failure = self._refusal(size, view[at:])
                    if self.failure is not None:
                        break
                end = at + _SIZE.size + size
                if end > len(view):
                    self.begun_bytes = end - at
                    break
                frames.append(bytes(view[at + _SIZE.size : end]))
                at = end
            if not held:
                self._held = bytearray(view[at:])
        del held[:at]
        return frames

    def _refusal(self, size: int, view: memoryview) -> MalformedFrame | None:
        """Why there is no frame of this size; None if there may be one: its API key is that of Produce, or has not
        arrived yet."""
        if not 0 < size <= self._max_bytes:
            kind = TlsInstead if view[:2] in _TLS else MalformedFrame
            return kind(f"frame size {size}: must be 1..{self._max_bytes}")
        key = view[_SIZE.size : _SIZE.size + _API_KEY.size]
        if len(key) < _API_KEY.size or _API_KEY.unpack(key)[0] == ProduceRequest.API_KEY:
            return None
        return MalformedFrame(f"frame size {size}: a request without records must be smaller")


def _request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """The fields that all versions of the header have, and their end; the client id is nullable."""
    api_key, version, correlation_id, length = _REQUEST.unpack_from(frame)
    end = _REQUEST.size + max(length, 0)
    client_id = frame[_REQUEST.size : end].decode(errors="replace") if length >= 0 else None
    return RequestHeader(api_key, version, correlation_id, client_id), end


def _skip_tags(frame: bytes, at: int) -> int:
    return at + 1 if frame[at] == 0 else skip_tags(frame, at)


def _sized(parts: list[bytes]) -> list[bytes]:
    """The parts with their size in place of the first one."""
    parts[0] = _SIZE.pack(sum(map(len, parts)))
    return parts


@cache
def _request_reader(api_key: int, version: int) -> MessageReader | None:
    api = _offered(api_key, version)
    return api and reader(api.request, api_key, version)


@cache
def _request_writer(api_key: int, version: int) -> MessageWriter | None:
    api = _offered(api_key, version)
    return api and writer(api.request, api_key, version)


@cache
def _response_reader(api_key: int, version: int) -> MessageReader | None:
    api = _offered(api_key, version)
    return api and reader(api.response, api_key, version)


@cache
def _response_writer(api_key: int, version: int) -> MessageWriter | None:
    api = _offered(api_key, version)
    return api and writer(api.response, api_key, version)


def _offered(api_key: int, version: int) -> Api | None:
    api = API_BY_KEY.get(api_key)
    return api if api and api.min_version <= version <= api.max_version else None
