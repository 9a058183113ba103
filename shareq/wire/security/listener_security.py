"""The security of a server's listeners: certificates, and users with passwords.

What Kafka has a configuration of the broker for is there: `ssl.client.auth`, `sasl.enabled.mechanisms` and the others
of `shareq.model.security_configs`.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException
from shareq.model.hidden_values import check_file_names
from shareq.model.scram import SALT_BYTES, ScramCredential, ScramMechanism
from shareq.model.security_configs import CLIENT_AUTH, JWKS_URL, MECHANISMS
from shareq.wire.security.mechanisms import OAUTHBEARER, OF_USERS

_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """The security of a server: of all its ports, or of those listeners whose protocol has TLS or a login. The default
    is plaintext without a login.

    `tls_cert`, `tls_key`: the server's certificate, with the chain to its CA, and its key, PEM; the key may be in the
    file of the certificate. `tls_client_ca`: the CA of clients' certificates, which are then required unless the
    broker's `ssl.client.auth` says otherwise. `users`: passwords by name, for PLAIN and SCRAM; the cluster keeps only
    salted credentials of them. OAUTHBEARER needs the broker's `sasl.oauthbearer.jwks.endpoint.url`.
    """

    tls_cert: str | Path | None = None
    tls_key: str | Path | None = None
    tls_key_password: str | None = field(default=None, repr=False)
    tls_client_ca: str | Path | None = None
    users: Mapping[str, str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_file_names(tls_cert=self.tls_cert, tls_key=self.tls_key, tls_client_ca=self.tls_client_ca)

    def server_context(self, config: BrokerConfig) -> ssl.SSLContext | None:
        """The context of TLS 1.2 and 1.3, None without a certificate. ConfigException for files that cannot be used."""
        if self.tls_cert is None:
            if self.tls_key is not None or self.tls_client_ca is not None:
                raise ConfigException("tls_key and tls_client_ca need tls_cert, the server's certificate")
            if CLIENT_AUTH in config.overrides and config[CLIENT_AUTH] != "none":
                raise ConfigException(
                    f"{CLIENT_AUTH}={config[CLIENT_AUTH]!r}: needs tls_cert, the server's certificate"
                )
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        password = self.tls_key_password or ""  # without one OpenSSL would ask in the terminal
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key, password)
        except (OSError, ValueError) as problem:
            key = str(self.tls_key or self.tls_cert)
            raise ConfigException(f"tls_cert={str(self.tls_cert)!r}, tls_key={key!r}: {_why(problem)}") from None
        self._trust_clients(context, config)
        return context

    def _trust_clients(self, context: ssl.SSLContext, config: BrokerConfig) -> None:
        wanted = config[CLIENT_AUTH]
        if CLIENT_AUTH not in config.overrides and self.tls_client_ca is not None:
            wanted = "required"
        if wanted != "none" and self.tls_client_ca is None:
            raise ConfigException(f"{CLIENT_AUTH}={wanted!r}: needs tls_client_ca, the CA of the clients")
        context.verify_mode = _VERIFY[wanted]
        if self.tls_client_ca is not None:
            try:
                context.load_verify_locations(self.tls_client_ca)
            except OSError as problem:
                raise ConfigException(f"tls_client_ca={str(self.tls_client_ca)!r}: {_why(problem)}") from None

    def mechanisms(self, config: BrokerConfig) -> tuple[str, ...]:
        """The SASL mechanisms, none without SASL. ConfigException for one that cannot be served."""
        possible = OF_USERS if self.users is not None else ()
        if config[JWKS_URL]:
            possible += (OAUTHBEARER,)
        if MECHANISMS not in config.overrides:
            return possible
        named = tuple(config[MECHANISMS].split(",")) if config[MECHANISMS] else ()
        for name in named:
            if name not in possible:
                known = ", ".join(possible) or f"none without users or {JWKS_URL}"
                raise ConfigException(f"{MECHANISMS}={config[MECHANISMS]!r}: {name} is not one of: {known}")
        return named

    def credentials(self) -> dict[tuple[str, ScramMechanism], ScramCredential | None]:
        """The salted credentials of the users, for `Controller.alter_users`. ConfigException for an empty password."""
        made: dict[tuple[str, ScramMechanism], ScramCredential | None] = {}
        for name, password in (self.users or {}).items():
            if not isinstance(name, str) or not isinstance(password, str) or not name or not password:
                raise ConfigException(f"user {name!r}: must have a name and a password")
            for mechanism in ScramMechanism:
                made[name, mechanism] = ScramCredential.of_password(
                    mechanism, password, secrets.token_bytes(SALT_BYTES)
                )
        return made


def _why(problem: Exception) -> str:
    if isinstance(problem, ssl.SSLError):
        if problem.reason == "KEY_VALUES_MISMATCH":
            return "the key is not that of the certificate"
        return f"must be PEM, and the key readable with its password ({problem.reason or problem})"
    return getattr(problem, "strerror", None) or str(problem)
