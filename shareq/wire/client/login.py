"""A client's login by SASL on one connection: which requests it sends. Source: KIP-43, KIP-152, KIP-368."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response
from shareq.model.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from shareq.wire.client.sasl_mechanisms import SaslClient


class LoginFailed(Exception):
    """The broker refuses the client, or the broker is not the right one."""

    def __init__(self, error: Errors, reason: str) -> None:
        super().__init__(reason)
        self.error = error


class Login:
    """`first()` is the first request, `next(response)` the one after a response; None at the end."""

    def __init__(self, mechanism: str, client: SaslClient) -> None:
        self.lifetime_ms = 0
        """How long the login is valid; 0: without limit. Known at the end."""
        self._mechanism = mechanism
        self._client = client

    def first(self) -> Request:
        return SaslHandshakeRequest(mechanism=self._mechanism)

    def next(self, response: Response) -> Request | None:
        """Raises LoginFailed."""
        data: bytes | None = None
        if isinstance(response, SaslHandshakeResponse):
            self._check_mechanism(response)
        else:
            assert isinstance(response, SaslAuthenticateResponse)
            if response.error_code:
                raise LoginFailed(response.error_code, f"refuses the login: {response.error_message or 'no reason'}")
            data, self.lifetime_ms = response.auth_bytes, response.session_lifetime_ms
        try:
            answer = self._client.step(data)
        except ValueError as problem:
            raise LoginFailed(Errors.SASL_AUTHENTICATION_FAILED, f"cannot be trusted: {problem}") from None
        return None if answer is None else SaslAuthenticateRequest(auth_bytes=answer)

    def _check_mechanism(self, response: SaslHandshakeResponse) -> None:
        if response.error_code is Errors.UNSUPPORTED_SASL_MECHANISM:
            known = ", ".join(response.mechanisms) or "none"
            raise LoginFailed(response.error_code, f"does not support SASL {self._mechanism}; it supports: {known}")
        if response.error_code is Errors.ILLEGAL_SASL_STATE:
            raise LoginFailed(response.error_code, "requires no login: set security.protocol to plaintext or ssl")
        if response.error_code:
            raise LoginFailed(response.error_code, f"refuses SASL {self._mechanism}")
