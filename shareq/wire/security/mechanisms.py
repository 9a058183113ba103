"""The server's side of the SASL mechanisms by name: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from shareq.model.scram import ScramCredential, ScramMechanism
from shareq.wire.security.oauth_bearer import OauthBearerServer, TokenCheck
from shareq.wire.security.sasl_failure import SaslRefused
from shareq.wire.security.scram_server import ScramServer, SecretSalts

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
SCRAM = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
OF_USERS = (PLAIN, *SCRAM)
"""The mechanisms of users with a password."""

Users = Callable[[], Mapping[str, Mapping[ScramMechanism, ScramCredential]]]


class SaslServer(Protocol):
    """One run of a mechanism."""

    user: str | None
    """The authenticated user; None until the mechanism is complete."""
    lifetime_ms: int | None
    """How long the credential is valid from now on; None: without limit."""

    def step(self, data: bytes) -> bytes:
        """The answer to bytes of the client. SaslRefused ends the run."""
        ...


class Mechanisms:
    """The mechanisms that a listener accepts. `users` is read at each login."""

    def __init__(self, names: tuple[str, ...], users: Users, check_token: TokenCheck | None) -> None:
        self.names = names
        self._users = users
        self._salts = SecretSalts()
        self._check_token = check_token

    def begin(self, name: str) -> SaslServer:
        """A run of a mechanism in `names`."""
        if name in SCRAM:
            return ScramServer(SCRAM[name], self._users(), self._salts)
        if name == PLAIN:
            return PlainServer(self._users(), self._salts)
        assert self._check_token is not None
        return OauthBearerServer(self._check_token)


class PlainServer:
    """PLAIN (RFC 4616): `authorization id NUL user NUL password`.

    The password is compared with the SCRAM credentials of the user, so there is one set of users, and no password in
    memory. A user that does not exist takes the same time.
    """

    def __init__(self, users: Mapping[str, Mapping[ScramMechanism, ScramCredential]], salts: SecretSalts) -> None:
        self.user: str | None = None
        self.lifetime_ms: int | None = None
        self._users = users
        self._salts = salts

    def step(self, data: bytes) -> bytes:
        try:
            tokens = data.decode().split("\0")
        except UnicodeDecodeError:
            raise SaslRefused("a PLAIN response that is not UTF-8") from None
        if len(tokens) != 3:
            why = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}"
            raise SaslRefused(why)
        authorization_id, user, password = tokens
        if not user:
            _refuse("Authentication failed: username not specified")
        if not password:
            _refuse("Authentication failed: password not specified", user)
        credentials = self._users.get(user, {})
        mechanism = max(credentials, default=ScramMechanism.SCRAM_SHA_256)
        credential = credentials.get(mechanism) or self._salts.fake_credential(mechanism, user)
        if not credential.fits(mechanism, password):
            _refuse("Authentication failed: Invalid username or password", user)
        if authorization_id not in ("", user):
            _refuse("Authentication failed: Client requested an authorization id that is different from username", user)
        self.user = user
        return b""


def _refuse(why: str, user: str = "") -> None:
    raise SaslRefused(why.removeprefix("Authentication failed: "), why, user)
