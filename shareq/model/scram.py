"""SCRAM credentials: what a cluster keeps of a password. Source: RFC 5802, section 3; Kafka's ScramFormatter.

A credential proves that a client knows the password, and does not contain it: `stored_key` and `server_key`
alone do not suffice to log in by SCRAM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Self

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
SALT_BYTES = 16


class ScramMechanism(IntEnum):
    """A mechanism by its number in requests."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """The name in SASL, such as SCRAM-SHA-256."""
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        """The name of the hash function, for hashlib."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    def hash(self, data: bytes) -> bytes:
        """RFC 5802's H."""
        import hashlib  # here and below, because programs that log in nowhere need none of OpenSSL's

        return hashlib.new(self.digest, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """RFC 5802's HMAC."""
        import hmac

        return hmac.digest(key, data, self.digest)

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """The slow function: PBKDF2. As in Kafka the password is not normalized."""
        import hashlib

        return hashlib.pbkdf2_hmac(self.digest, password.encode(), salt, iterations)

    def client_key(self, salted_password: bytes) -> bytes:
        """RFC 5802's ClientKey, which proves that a client knows the password."""
        return self.hmac(salted_password, b"Client Key")

    def server_key(self, salted_password: bytes) -> bytes:
        """RFC 5802's ServerKey, which proves that a server knows the credential."""
        return self.hmac(salted_password, b"Server Key")


@dataclass(frozen=True, slots=True)
class ScramCredentialInfo:
    """What a cluster shows of a credential, and what a client chooses for one."""

    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """The credential of a user for one mechanism; only the iterations are shown."""

    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of_salted_password(
        cls, mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
    ) -> Self:
        """The credential of a password that a client has salted."""
        return cls(
            iterations=iterations,
            salt=salt,
            stored_key=mechanism.hash(mechanism.client_key(salted_password)),
            server_key=mechanism.server_key(salted_password),
        )

    @classmethod
    def of_password(
        cls, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int = MIN_ITERATIONS
    ) -> Self:
        """The credential of a password."""
        salted = mechanism.salted_password(password, salt, iterations)
        return cls.of_salted_password(mechanism, salted, salt, iterations)

    def fits(self, mechanism: ScramMechanism, password: str) -> bool:
        """True if this is the credential of the password."""
        import hmac

        salted = mechanism.salted_password(password, self.salt, self.iterations)
        return hmac.compare_digest(mechanism.hash(mechanism.client_key(salted)), self.stored_key)


Users = Mapping[str, Mapping[ScramMechanism, ScramCredential]]
"""The credentials of users by name."""

UserChanges = Mapping[tuple[str, ScramMechanism], ScramCredential | None]
"""Credentials to set, by user and mechanism; None removes one."""


def altered_users(users: Users, changes: UserChanges) -> Users:
    """The users after changes; one without a credential is no user any more."""
    altered = {name: dict(credentials) for name, credentials in users.items()}
    for (name, mechanism), credential in changes.items():
        altered.setdefault(name, {}).pop(mechanism, None)
        if credential is not None:
            altered[name][mechanism] = credential
    kept = {name: MappingProxyType(credentials) for name, credentials in altered.items() if credentials}
    return MappingProxyType(kept)
