"""The client's side of the SASL mechanisms: PLAIN, SCRAM, OAUTHBEARER."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode
from typing import Protocol

from shareq.model.scram import MIN_ITERATIONS, ScramMechanism
from shareq.wire.security.scram_messages import (
    SERVER_FINAL,
    SERVER_FIRST,
    decoded,
    encoded_name,
    exclusive_or,
)

MOST_ITERATIONS = 1_000_000
"""Half a second: a server must not make its clients compute for longer."""


class SaslClient(Protocol):
    """One login. `step(None)` is the first message; ValueError for an answer of the server that proves nothing."""

    def step(self, data: bytes | None) -> bytes | None:
        """The answer to the server's bytes; None at the end."""
        ...


class PlainClient:
    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def step(self, data: bytes | None) -> bytes | None:
        return self._message if data is None else None


class OauthBearerClient:
    """Source: RFC 7628. After a failure the server waits for one more message before it says so."""

    def __init__(self, token: str) -> None:
        self._message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()

    def step(self, data: bytes | None) -> bytes | None:
        if data is None:
            return self._message
        return b"\x01" if data else None


class ScramClient:
    """Source: RFC 5802. The server proves that it knows the password, too."""

    def __init__(self, mechanism: ScramMechanism, username: str, password: str) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = secrets.token_urlsafe(24).encode()
        self._bare = b"n=" + encoded_name(username) + b",r=" + self._nonce
        self._signature: bytes | None = None

    def step(self, data: bytes | None) -> bytes | None:
        if data is None:
            return b"n,," + self._bare
        if self._signature is None:
            return self._final(data)
        found = SERVER_FINAL.fullmatch(data)
        if found is None or not hmac.compare_digest(decoded(found["signature"]), self._signature):
            raise ValueError("the server has not proved that it knows the password")
        return None

    def _final(self, data: bytes) -> bytes:
        found = SERVER_FIRST.fullmatch(data)
        if found is None or not found["nonce"].startswith(self._nonce) or found["nonce"] == self._nonce:
            raise ValueError("the server's first message of SCRAM is invalid")
        iterations = int(found["iterations"])
        if not MIN_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise ValueError(f"the server demands {iterations} iterations: must be {MIN_ITERATIONS}..{MOST_ITERATIONS}")
        salted = self._mechanism.salted_password(self._password, decoded(found["salt"]), iterations)
        bare = b"c=biws,r=" + found["nonce"]  # biws: "n,,", no channel binding
        auth_message = b",".join((self._bare, data, bare))
        client_key = self._mechanism.client_key(salted)
        proof = exclusive_or(client_key, self._mechanism.hmac(self._mechanism.hash(client_key), auth_message))
        self._signature = self._mechanism.hmac(self._mechanism.server_key(salted), auth_message)
        return bare + b",p=" + b64encode(proof)
