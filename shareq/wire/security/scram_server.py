"""SCRAM, the server's side. Source: RFC 5802; Kafka's ScramSaslServer.

A user that does not exist is refused where one with a wrong password is, at the second message: until then it has a
salt of its own, as RFC 5802 recommends. Kafka refuses it at the first.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode
from collections.abc import Mapping

from shareq.model.scram import MIN_ITERATIONS, SALT_BYTES, ScramCredential, ScramMechanism
from shareq.wire.security.sasl_failure import SaslRefused
from shareq.wire.security.scram_messages import FINAL, FIRST, MOST_BYTES, decoded, decoded_name, exclusive_or

NONCE_BYTES = 24


class SecretSalts:
    """Credentials of users that do not exist: always the same for a name, and no password fits."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def fake_credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        salt = mechanism.hmac(self._secret, user.encode())[:SALT_BYTES]
        nothing = bytes(len(mechanism.hash(b"")))
        return ScramCredential(iterations=MIN_ITERATIONS, salt=salt, stored_key=nothing, server_key=nothing)


class ScramServer:
    """One login: two messages of the client."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        users: Mapping[str, Mapping[ScramMechanism, ScramCredential]],
        salts: SecretSalts,
    ) -> None:
        self.user: str | None = None
        self.lifetime_ms: int | None = None
        self._mechanism = mechanism
        self._users = users
        self._salts = salts
        self._claimed = ""
        self._credential: ScramCredential | None = None
        self._header = self._first_messages = self._nonce = b""

    def step(self, data: bytes) -> bytes:
        try:
            if len(data) > MOST_BYTES:
                raise ValueError(f"a message of {len(data)} bytes")
            return self._first(data) if self._credential is None else self._final(self._credential, data)
        except ValueError as problem:
            raise SaslRefused(f"invalid SCRAM message: {problem}", user=self._claimed) from None

    def _first(self, data: bytes) -> bytes:
        found = FIRST.fullmatch(data)
        if found is None:
            raise ValueError("not a client's first message")
        self._claimed = user = decoded_name(found["user"])
        if found["authorization"] is not None and decoded_name(found["authorization"]) != user:
            why = "Authentication failed: Client requested an authorization id that is different from username"
            raise SaslRefused(why.partition(": ")[2], why, user)
        known = self._users.get(user, {}).get(self._mechanism)
        self._credential = known or self._salts.fake_credential(self._mechanism, user)
        self._header, self._nonce = found["header"], found["nonce"] + secrets.token_urlsafe(NONCE_BYTES).encode()
        salt = b64encode(self._credential.salt)
        answer = b"r=%b,s=%b,i=%d" % (self._nonce, salt, self._credential.iterations)
        self._first_messages = found["bare"] + b"," + answer
        return answer

    def _final(self, credential: ScramCredential, data: bytes) -> bytes:
        found = FINAL.fullmatch(data)
        if found is None or found["nonce"] != self._nonce or decoded(found["binding"]) != self._header:
            raise ValueError("not the client's final message")
        auth_message = self._first_messages + b"," + found["bare"]
        proof = decoded(found["proof"])
        signature = self._mechanism.hmac(credential.stored_key, auth_message)
        if len(proof) != len(signature):
            raise ValueError("a proof of another length")
        client_key = exclusive_or(proof, signature)
        if not hmac.compare_digest(self._mechanism.hash(client_key), credential.stored_key):
            raise SaslRefused("Invalid username or password", user=self._claimed)
        self.user = self._claimed
        return b"v=" + b64encode(self._mechanism.hmac(credential.server_key, auth_message))
