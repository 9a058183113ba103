"""The states of a connection's SASL login. Source: Kafka's SaslServerAuthenticator (KIP-12, KIP-152, KIP-368).

    HANDSHAKE_OR_VERSIONS --ApiVersions--> HANDSHAKE --SaslHandshake--> AUTHENTICATE --...--> COMPLETE
    COMPLETE --SaslHandshake--> AUTHENTICATE: the client authenticates again, as the same user

It has no clock and no socket. After a failure the connection has to be closed.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from shareq.model.errors import Errors
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.base import Request, Response
from shareq.model.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from shareq.wire.security.mechanisms import Mechanisms, SaslServer
from shareq.wire.security.sasl_failure import SaslRefused

LEAST_REAUTH_INTERVAL_MS = 1000
"""A client that authenticates more often gets ILLEGAL_SASL_STATE from the broker, as in Kafka."""


class SaslState(Enum):
    HANDSHAKE_OR_VERSIONS = "a SaslHandshake or ApiVersions request"
    HANDSHAKE = "a SaslHandshake request"
    AUTHENTICATE = "a SaslAuthenticate request"
    COMPLETE = "any request"
    FAILED = "nothing"


class Failure(NamedTuple):
    """The end of a login. `response`: the last one, None if there is none."""

    reason: str
    mechanism: str = ""
    user: str = ""
    response: Response | None = None


class SaslSession:
    """The login of one connection; times are in ms. `max_reauth_ms` 0: logins do not end by themselves."""

    def __init__(self, mechanisms: Mechanisms, max_reauth_ms: int = 0) -> None:
        self.state = SaslState.HANDSHAKE_OR_VERSIONS
        self.user: str | None = None
        self.raw = False
        """True if the next frames are bytes of SASL without a request around them."""
        self.failure: Failure | None = None
        self._mechanisms = mechanisms
        self._max_reauth_ms = max_reauth_ms
        self._mechanism = ""
        self._former_mechanism: str | None = None
        self._run: SaslServer | None = None
        self._expires_ms: int | None = None
        self._began_ms: int | None = None

    def expired(self, now_ms: int) -> bool:
        """True if the client should have authenticated again."""
        return self._expires_ms is not None and now_ms >= self._expires_ms

    def begins_again(self, now_ms: int) -> bool:
        """A SaslHandshake arrives after the login: True if a new login begins, False if it is too early for one."""
        if self._began_ms is not None and now_ms - self._began_ms < LEAST_REAUTH_INTERVAL_MS:
            return False
        self._began_ms = now_ms
        self._former_mechanism = self._mechanism
        self.state = SaslState.HANDSHAKE
        return True

    def accepts(self, api_key: int) -> bool:
        """True if a request of this API may be parsed in this state; else the login has failed without a response."""
        if self.state is SaslState.AUTHENTICATE:
            legal = api_key == SaslAuthenticateRequest.API_KEY
        elif self.state is SaslState.HANDSHAKE:
            legal = api_key == SaslHandshakeRequest.API_KEY
        else:
            legal = api_key in (SaslHandshakeRequest.API_KEY, ApiVersionsRequest.API_KEY)
        return legal

    def refuse(self, api_key: int, request: Request | None) -> None:
        """A request that is not accepted: the login has failed."""
        response: Response | None = None
        if self.state is SaslState.AUTHENTICATE and isinstance(request, SaslHandshakeRequest):
            response = SaslHandshakeResponse(error_code=Errors.ILLEGAL_SASL_STATE)
        self._fail(f"a request of API {api_key} arrived where {self.state.value} was expected", response)

    def versions_sent(self) -> None:
        """ApiVersions was answered without an error."""
        self.state = SaslState.HANDSHAKE

    def handshake(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
        """The choice of the mechanism."""
        names = self._mechanisms.names
        if request.mechanism not in names:
            refused = SaslHandshakeResponse(error_code=Errors.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
            self._fail(f"unsupported SASL mechanism {request.mechanism[:100]!r}", refused)
            return refused
        self._mechanism = request.mechanism
        self._run = self._mechanisms.begin(request.mechanism)
        self.raw = version == 0
        self.state = SaslState.AUTHENTICATE
        return SaslHandshakeResponse(mechanisms=names)

    def authenticate(self, data: bytes, now_ms: int) -> SaslAuthenticateResponse:
        """A step of the mechanism. After the last one `user` is known, and the state is COMPLETE."""
        assert self._run is not None
        if self._former_mechanism not in (None, self._mechanism):
            why = (
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for re-authentication "
                f"of mechanism '{self._former_mechanism}'"
            )
            return self._refused(why, why, self.user or "")
        try:
            answer = self._run.step(data)
        except SaslRefused as refusal:
            again = "re-authentication" if self._former_mechanism else "authentication"
            general = f"Authentication failed during {again} due to invalid credentials with SASL mechanism "
            return self._refused(str(refusal), refusal.answer or general + self._mechanism, refusal.user)
        user = self._run.user
        if user is None:
            return SaslAuthenticateResponse(auth_bytes=answer)
        if self.user not in (None, user):
            why = f"Cannot change principals during re-authentication from User.{self.user}: User.{user}"
            return self._refused(why, why, user)
        self.user = user
        self.state = SaslState.COMPLETE
        self.raw = False
        return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=self._lifetime_ms(now_ms))

    def _lifetime_ms(self, now_ms: int) -> int:
        """The time until the next login is due, 0 for never; the end of a token comes first."""
        limits = [self._max_reauth_ms] if self._max_reauth_ms > 0 else []
        if self._run is not None and self._run.lifetime_ms is not None:
            limits.append(self._run.lifetime_ms)
        lifetime_ms = min(limits, default=0)
        self._expires_ms = now_ms + lifetime_ms if limits else None
        self._run = None
        return lifetime_ms

    def _refused(self, reason: str, answer: str, user: str) -> SaslAuthenticateResponse:
        refused = SaslAuthenticateResponse(error_code=Errors.SASL_AUTHENTICATION_FAILED, error_message=answer)
        self._fail(reason, None if self.raw else refused, user)
        return refused

    def _fail(self, reason: str, response: Response | None, user: str = "") -> None:
        self.state = SaslState.FAILED
        self._run = None
        self.failure = Failure(reason, self._mechanism, user, response)
