"""The security of a client's connections, from confluent-kafka's configuration keys."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

from shareq.client.security_config import truth
from shareq.model.errors import ConfigException, Errors, KafkaError, KafkaException
from shareq.model.scram import ScramMechanism
from shareq.wire.client.addresses import PROTOCOLS
from shareq.wire.client.login import Login, LoginFailed
from shareq.wire.client.tls import client_context

if TYPE_CHECKING:
    from shareq.wire.client.sasl_mechanisms import SaslClient

_SCRAM = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
MECHANISMS = ("PLAIN", *_SCRAM, "OAUTHBEARER")

MakeClient = Callable[[], "SaslClient"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecurity:
    """`context` None: no TLS. `mechanism` empty: no login. Shows no secret."""

    context: ssl.SSLContext | None = field(default=None, repr=False)
    mechanism: str = ""
    make_client: MakeClient | None = field(default=None, repr=False)

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> Self:
        """The security that a configuration describes. KafkaException (_INVALID_ARG) for an impossible one."""
        try:
            protocol = str(conf.get("security.protocol") or "plaintext").lower()
            if protocol not in PROTOCOLS:
                allowed = ", ".join(PROTOCOLS)
                raise ConfigException(f"security.protocol={conf['security.protocol']!r}: must be one of {allowed}")
            context = _context(conf) if protocol.endswith("ssl") else None
            if not protocol.startswith("sasl"):
                return cls(context=context)
            mechanism = str(conf.get("sasl.mechanisms") or conf.get("sasl.mechanism") or "GSSAPI").upper()
            return cls(context=context, mechanism=mechanism, make_client=_client_maker(mechanism, conf))
        except ConfigException as problem:
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, str(problem))) from None

    @property
    def protocol(self) -> str:
        """The value of `security.protocol`."""
        return f"{'sasl_' if self.mechanism else ''}{'ssl' if self.context is not None else 'plaintext'}"

    async def begin_login(self) -> Login | None:
        """A new login; None if none is needed. A callback for tokens runs in a thread of its own: it may wait.

        LoginFailed if there is no token; the text of the callback's exception may contain it, and is not shown.
        """
        return await asyncio.to_thread(self.new_login) if self.mechanism == "OAUTHBEARER" else self.new_login()

    def new_login(self) -> Login | None:
        """The same at once."""
        if self.make_client is None:
            return None
        try:
            return Login(self.mechanism, self.make_client())
        except Exception as failure:
            raise LoginFailed(Errors._AUTHENTICATION, f"there is no token: {type(failure).__name__}") from None


PLAINTEXT = ClientSecurity()


# ---- TLS -------------------------------------------------------------------------------------------------------------


def _context(conf: Mapping[str, Any]) -> ssl.SSLContext:
    ca = conf.get("ssl.ca.location")
    ca_pem = conf.get("ssl.ca.pem")
    with _FileOf(conf, "ssl.certificate") as certificate, _FileOf(conf, "ssl.key") as key:
        context = client_context(
            ca or None, certificate, key, ca_pem=ca_pem or None, key_password=conf.get("ssl.key.password") or None
        )
    algorithm = str(conf.get("ssl.endpoint.identification.algorithm", "https") or "none").lower()
    if algorithm not in ("https", "none"):
        raise ConfigException(f"ssl.endpoint.identification.algorithm={algorithm!r}: must be https or none")
    if algorithm == "none":
        context.check_hostname = False
    if not truth("enable.ssl.certificate.verification", conf.get("enable.ssl.certificate.verification", True)):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if ciphers := conf.get("ssl.cipher.suites"):
        try:
            context.set_ciphers(str(ciphers))
        except ssl.SSLError:
            raise ConfigException(f"ssl.cipher.suites={ciphers!r}: not ciphers of OpenSSL") from None
    return context


class _FileOf:
    """The file of a certificate or a key: the one that is named, or for the block one of the text that is given, which
    OpenSSL does not take otherwise."""

    def __init__(self, conf: Mapping[str, Any], what: str) -> None:
        self._location = conf.get(f"{what}.location") or None
        self._pem = conf.get(f"{what}.pem") or None
        self._temporary: Path | None = None

    def __enter__(self) -> str | None:
        if self._location is not None or self._pem is None:
            return self._location
        import tempfile  # here, because most clients need none

        with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as file:  # only this user can read it
            self._temporary = Path(file.name)
            file.write(self._pem)
        return file.name

    def __exit__(self, *exc: object) -> None:
        if self._temporary is not None:
            self._temporary.unlink()


# ---- SASL ------------------------------------------------------------------------------------------------------------


def _client_maker(mechanism: str, conf: Mapping[str, Any]) -> MakeClient:
    from shareq.wire.client.sasl_mechanisms import PlainClient, ScramClient  # late: most clients do not log in

    if mechanism == "OAUTHBEARER":
        return _token_client(conf)
    if mechanism not in MECHANISMS:
        raise ConfigException(f"sasl.mechanism={mechanism!r}: must be one of {', '.join(MECHANISMS)}")
    username, password = conf.get("sasl.username"), conf.get("sasl.password")
    if not username or not password:
        raise ConfigException(f"sasl.mechanism={mechanism!r}: needs sasl.username and sasl.password")
    if mechanism == "PLAIN":
        return lambda: PlainClient(str(username), str(password))
    scram = _SCRAM[mechanism]
    return lambda: ScramClient(scram, str(username), str(password))


def _token_client(conf: Mapping[str, Any]) -> MakeClient:
    """`oauth_cb(config)` returns (token, ...) as for confluent-kafka; else the token is in a file."""
    from shareq.wire.client.sasl_mechanisms import OauthBearerClient

    callback, url = conf.get("oauth_cb"), conf.get("sasl.oauthbearer.token.endpoint.url")
    text = conf.get("sasl.oauthbearer.config") or ""
    if callable(callback):
        return lambda: OauthBearerClient(str(callback(text)[0]))
    if not url:
        why = "oauth_cb, or sasl.oauthbearer.token.endpoint.url with the URL of a file, file:///..."
        raise ConfigException(f"sasl.mechanism='OAUTHBEARER': needs {why}")
    parts = urlsplit(str(url))
    if parts.scheme != "file":
        why = "must be the URL of a file, file:///...; oauth_cb can get a token from elsewhere"
        raise ConfigException(f"sasl.oauthbearer.token.endpoint.url: {why}")  # a URL may have a password
    path = Path(unquote(parts.path))
    return lambda: OauthBearerClient(path.read_text(encoding="utf-8").strip())
