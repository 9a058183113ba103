"""OAUTHBEARER, the server's side (RFC 7628), and the check of a signed token (RFC 7519) with the keys of a file.

Source for the rules: Kafka's BrokerJwtValidator. Keys are asymmetric: a token that claims another algorithm is refused.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from shareq.extras import install_command
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException
from shareq.model.security_configs import (
    ANY_AUDIENCE,
    ANY_ISSUER,
    AUDIENCE,
    CLOCK_SKEW_S,
    ISSUER,
    JWKS_URL,
    SUBJECT_CLAIM,
)
from shareq.wire.security.sasl_failure import SaslRefused

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")

_INITIAL = re.compile(rb"n,(?:a=(?P<authorization>[^,]+))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)+)\x01")
_BEARER = re.compile(rb"[Bb]earer +(?P<token>[A-Za-z0-9._~+/=-]+)")
_ACCEPT_FAILURE = b"\x01"
_FAILURE = json.dumps({"status": "invalid_token"}, separators=(",", ":"))


class Token(NamedTuple):
    """What a valid token says; `lifetime_ms`: from now on."""

    user: str
    lifetime_ms: int


TokenCheck = Callable[[str], Token]
"""The content of a token; ValueError for one that is not valid."""


class OauthBearerServer:
    """One login: a token, and after an invalid one a message that only ends the exchange."""

    def __init__(self, check: TokenCheck) -> None:
        self.user: str | None = None
        self.lifetime_ms: int | None = None
        self._check = check
        self._refusal = ""

    def step(self, data: bytes) -> bytes:
        if self._refusal:
            raise SaslRefused(self._refusal, _FAILURE if data == _ACCEPT_FAILURE else None)
        found = _INITIAL.fullmatch(data)
        pairs = [] if found is None else found["pairs"].rstrip(b"\x01").split(b"\x01")
        bearer = next((_BEARER.fullmatch(pair[5:]) for pair in pairs if pair.startswith(b"auth=")), None)
        if found is None or bearer is None:
            raise SaslRefused("invalid OAUTHBEARER message")
        try:
            token = self._check(bearer["token"].decode())
        except ValueError as problem:
            self._refusal = f"invalid token: {problem}"
            return _FAILURE.encode()
        if found["authorization"] not in (None, token.user.encode()):
            raise SaslRefused("Client requested an authorization id that is different from the token's user")
        self.user, self.lifetime_ms = token.user, token.lifetime_ms
        return b""


class JwtCheck:
    """The check by a JWKS file, which is read again when it changes. ConfigException for a file without keys."""

    def __init__(self, config: BrokerConfig) -> None:
        self._path = _file(config[JWKS_URL])
        self._subject: str = config[SUBJECT_CLAIM]
        self._skew_s: int = config[CLOCK_SKEW_S]
        self._issuer: str | None = None if config[ANY_ISSUER] else _required(config, ISSUER, ANY_ISSUER)
        self._audience = [] if config[ANY_AUDIENCE] else _required(config, AUDIENCE, ANY_AUDIENCE).split(",")
        self._read_at: tuple[int, int] | None = None
        self._keys: dict[str | None, Any] = {}
        try:
            self._read()
        except ValueError as problem:
            raise ConfigException(f"{JWKS_URL}={config[JWKS_URL]!r}: {problem}") from None

    def __call__(self, token: str) -> Token:
        import jwt

        try:
            self._read()
            kid = jwt.get_unverified_header(token).get("kid")
            claims = jwt.decode(
                token,
                self._key(kid),
                algorithms=list(ALGORITHMS),
                audience=self._audience or None,
                issuer=self._issuer,
                leeway=self._skew_s,
                options={"require": ["exp", "iat", self._subject], "verify_aud": bool(self._audience)},
            )
        except (jwt.PyJWTError, TypeError) as problem:
            raise ValueError(str(problem)) from None
        user = claims[self._subject]
        if not isinstance(user, str) or not user.strip():
            raise ValueError(f"its claim {self._subject} is not a name")
        return Token(user, max(0, int((claims["exp"] - time.time()) * 1000)))

    def _key(self, kid: str | None) -> Any:
        """The key that a token names; a token may name none if there is only one."""
        if kid in self._keys:
            return self._keys[kid]
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        raise ValueError("it is signed with a key that is not in the file of keys")

    def _read(self) -> None:
        try:
            import jwt
        except ModuleNotFoundError as missing:
            raise ConfigException(f"OAUTHBEARER needs the package PyJWT: {install_command('kafka')}") from missing
        try:
            stat = self._path.stat()
            stamp = stat.st_mtime_ns, stat.st_size
            if stamp == self._read_at:
                return
            keys = jwt.PyJWKSet.from_json(self._path.read_text(encoding="utf-8")).keys
            self._keys = {key.key_id: _public(key.key) for key in keys}
        except (OSError, jwt.PyJWTError, KeyError, TypeError, AttributeError) as problem:
            raise ValueError(f"no keys can be read: {problem}") from None
        self._read_at = stamp


def _public(key: Any) -> Any:
    """The part of a key that checks signatures: the file may have the one that signs, too."""
    return key.public_key() if hasattr(key, "public_key") else key


def _required(config: BrokerConfig, key: str, opposite: str) -> str:
    """Kafka 4.4: tokens for others, and of others, must be excluded or be allowed on purpose."""
    value: str = config[key]
    if not value:
        raise ConfigException(f"{key} must be set for OAUTHBEARER, or {opposite}=true")
    return value


def _file(url: str) -> Path:
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path:
        raise ConfigException(f"{JWKS_URL}={url!r}: must be the URL of a file, file:///path/to/keys.json")
    return Path(unquote(parts.path))
