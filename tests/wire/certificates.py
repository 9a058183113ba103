"""Certificates and tokens that are made on the spot."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jwt
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

PASSWORD = "correct-horse-battery"
"""The password of alice; tests look for it where no secret may be."""


@dataclass(frozen=True)
class Certificate:
    """Files of a certificate with its chain and of its key, PEM."""

    cert: str
    key: str


class Authority:
    """A certificate authority, and what it issues in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._authority = trustme.CA()
        self._authority.cert_pem.write_to_path(self.file)

    @property
    def file(self) -> str:
        """The certificate of the authority, PEM."""
        return str(self._folder / f"{self._name}-ca.pem")

    def issue(self, *names: str, common_name: str | None = None, organization: str | None = None) -> Certificate:
        """A certificate of these hosts, for servers and clients."""
        made = self._authority.issue_cert(*names, common_name=common_name, organization_name=organization)
        stem = self._folder / f"{self._name}-{common_name or names[0]}"
        files = Certificate(f"{stem}.pem", f"{stem}-key.pem")
        for number, part in enumerate(made.cert_chain_pems):
            part.write_to_path(files.cert, append=number > 0)
        made.private_key_pem.write_to_path(files.key)
        return files


class TokenIssuer:
    """Signs tokens, and publishes its key in a JWKS file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @cached_property
    def url(self) -> str:
        """The URL of the file of keys."""
        path = self._folder / "keys.json"
        public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        path.write_text(json.dumps({"keys": [{**public, "kid": "first", "use": "sig", "alg": "RS256"}]}))
        return path.as_uri()

    def token(self, user: str = "alice", lifetime_s: float = 600, **claims: Any) -> str:
        now = time.time()
        content = {"sub": user, "iat": now - 1, "exp": now + lifetime_s, "iss": "issuer", "aud": "kafka", **claims}
        return jwt.encode(content, self._key, "RS256", headers={"kid": "first"})

    @property
    def private_jwk(self) -> dict[str, Any]:
        """The key that signs, as it is before its private parts are taken away for the file of keys."""
        return {**RSAAlgorithm.to_jwk(self._key, as_dict=True), "kid": "first"}

    @property
    def private_pem(self) -> bytes:
        """The key that signs, PEM."""
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
