"""A connection whose client has to log in by SASL before its requests reach the broker.

Until then it may send ApiVersions, SaslHandshake and SaslAuthenticate, one after the other, in frames of at most
`sasl.server.max.receive.size`. The response to a failed login is held back for
`connection.failed.authentication.delay.ms`, and the connection is closed with it.
"""

from __future__ import annotations

import asyncio
import struct
from time import perf_counter

from shareq.model.actor import Answer
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.base import Request, Response
from shareq.model.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from shareq.wire.codec.limits import MOST_BYTES_WITHOUT_RECORDS
from shareq.wire.connection import ClientListener, ServerConnection, Service
from shareq.wire.errors import MalformedFrame, RequestHeader, UnsupportedVersion
from shareq.wire.frames import decode_request
from shareq.wire.security.channel_security import Login
from shareq.wire.security.sasl_session import SaslSession, SaslState

_API_KEY = struct.Struct(">h")
_SIZE = struct.Struct(">i")
_HANDSHAKE = _API_KEY.pack(SaslHandshakeRequest.API_KEY)
_BYTES_OF_SASL = RequestHeader(-1, -1, -1)
"""The header of SASL's bytes without a request around them."""


class SaslConnection(ServerConnection):
    """`login`: the mechanisms, and the limits that are read when the connection is made."""

    def __init__(
        self,
        service: Service,
        listener: ClientListener,
        broker_id: int,
        connection_id: int,
        max_frame_bytes: int,
        *,
        address: str = "",
        login: Login,
    ) -> None:
        limits = login.limits
        super().__init__(service, listener, broker_id, connection_id, limits.max_bytes, address=address)
        self._session = SaslSession(login.mechanisms, limits.max_reauth_ms)
        self._max_frame_bytes = max_frame_bytes
        self._failure_delay_ms = limits.failure_delay_ms

    def _begin(self, frame: bytes) -> None:
        session = self._session
        if session.state is not SaslState.COMPLETE or self._logs_in_again(frame):
            self._log_in(frame)
        elif session.expired(self._service.loop.time_ms()):
            self.close("the client has not authenticated again in time")
        else:
            super()._begin(frame)

    def _logs_in_again(self, frame: bytes) -> bool:
        return frame.startswith(_HANDSHAKE) and self._session.begins_again(self._service.loop.time_ms())

    def _log_in(self, frame: bytes) -> None:
        """A frame of the login."""
        self._kept_bytes -= len(frame)
        self._began = perf_counter()
        session = self._session
        if session.raw:
            self._header, self._request_size = _BYTES_OF_SASL, len(frame)
            self._authenticate(frame)
            return
        api_key = _API_KEY.unpack_from(frame)[0] if len(frame) >= _API_KEY.size else -1
        legal = session.accepts(api_key)
        request: Request | None = None
        try:
            if legal or api_key == SaslHandshakeRequest.API_KEY:  # other requests are not even parsed
                self._header, request = decode_request(frame)
        except (MalformedFrame, UnsupportedVersion) as problem:
            self.close(str(problem))
            return
        self._request_size = len(frame)
        if not legal:
            session.refuse(api_key, request)
            self._refused()
        elif isinstance(request, ApiVersionsRequest):
            self._tell_versions(request)
        elif isinstance(request, SaslHandshakeRequest):
            self._choose(request)
        elif isinstance(request, SaslAuthenticateRequest):
            self._authenticate(request.auth_bytes)

    def _tell_versions(self, request: ApiVersionsRequest) -> None:
        assert self._header is not None
        response: ApiVersionsResponse = self._service.api_versions(request, self._header.api_version, self.broker_id)
        if not response.error_code:
            self._session.versions_sent()
        self._answer = Answer(0, response)

    def _choose(self, request: SaslHandshakeRequest) -> None:
        assert self._header is not None
        self._answered(self._session.handshake(request, self._header.api_version))

    def _authenticate(self, data: bytes) -> None:
        response = self._session.authenticate(data, self._service.loop.time_ms())
        if self._session.user is not None and self._session.state is SaslState.COMPLETE:
            self._context = self._context._replace(principal=f"User:{self._session.user}")
            self._frames.allow(self._max_frame_bytes, MOST_BYTES_WITHOUT_RECORDS)
        if self._header is _BYTES_OF_SASL and self._session.failure is None:
            self._header = None
            answer = _SIZE.pack(len(response.auth_bytes)) + response.auth_bytes
            self._outbox.add((answer,), len(answer))
            return
        self._answered(response)

    def _answered(self, response: Response) -> None:
        if self._session.failure is None:
            self._answer = Answer(0, response)
        else:
            self._refused()

    # ---- failures ----------------------------------------------------------------------------------------------------

    def _refused(self) -> None:
        """Journal the failure; close the connection after the delay, and read no more until then."""
        failure = self._session.failure
        assert failure is not None
        self._header = self._header or _BYTES_OF_SASL  # a request is open: no other one begins
        self.refused(failure.mechanism, failure.user, failure.reason)
        asyncio.get_running_loop().call_later(self._failure_delay_ms / 1000, self._end, failure.response)

    def _end(self, response: Response | None) -> None:
        if response is not None and self._header is not None:
            self._finish(Answer(0, response))
        self.close("the client is not authenticated")

    def regulate(self) -> None:
        if self._session.failure is None:
            super().regulate()
        elif self._transport is not None and self._reading and not self._ending:
            self._reading = False
            self._transport.pause_reading()
