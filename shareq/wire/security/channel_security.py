"""What the ports of one listener have in common: the context of TLS, the rules of principals, the logins."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import NamedTuple

from shareq.model.actor import ANONYMOUS
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException
from shareq.model.security_configs import FAILURE_DELAY_MS, JWKS_URL, MAX_REAUTH_MS, MAX_RECEIVE_BYTES, PRINCIPAL_RULES
from shareq.wire.address import is_loopback
from shareq.wire.security.listener_address import ListenerAddress
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.security.mechanisms import OAUTHBEARER, Mechanisms
from shareq.wire.security.oauth_bearer import JwtCheck
from shareq.wire.security.principal_rules import PrincipalRules
from shareq.wire.served_cluster import ServedCluster

_log = logging.getLogger("shareq.server")


class Login:
    """The SASL logins of a listener; the configurations are read at each connection."""

    def __init__(self, cluster: ServedCluster, names: tuple[str, ...]) -> None:
        self._cluster = cluster
        check = JwtCheck(cluster.image.broker_config) if OAUTHBEARER in names else None
        self.mechanisms = Mechanisms(names, lambda: cluster.image.users, check)

    @property
    def limits(self) -> LoginLimits:
        """The limits of a new connection."""
        config = self._cluster.image.broker_config
        return LoginLimits(config[MAX_RECEIVE_BYTES], config[MAX_REAUTH_MS], config[FAILURE_DELAY_MS])


class LoginLimits(NamedTuple):
    """`max_bytes`: of a request before the login is complete. `max_reauth_ms`: 0 for no limit."""

    max_bytes: int
    max_reauth_ms: int
    failure_delay_ms: int


class ChannelSecurity:
    """The security of one listener: what its protocol has of that of the server, or all of it. ConfigException for what
    cannot work."""

    def __init__(
        self, cluster: ServedCluster, security: ListenerSecurity, listener: ListenerAddress | None = None
    ) -> None:
        config: BrokerConfig = cluster.image.broker_config
        of_all = listener is None or not listener.protocol
        self.context: ssl.SSLContext | None = None
        names: tuple[str, ...] = ()
        if of_all or (listener is not None and listener.has_tls):
            self.context = security.server_context(config)
        if of_all or (listener is not None and listener.has_login):
            names = security.mechanisms(config)
        if listener is not None and listener.has_tls and self.context is None:
            raise ConfigException(f"listener {listener.name}: {listener.protocol} needs tls_cert, a certificate")
        if listener is not None and listener.has_login and not names:
            raise ConfigException(f"listener {listener.name}: {listener.protocol} needs users, or {JWKS_URL}")
        self.login = Login(cluster, names) if names else None
        self._rules = PrincipalRules(config[PRINCIPAL_RULES])

    @property
    def protocol(self) -> str:
        """The security protocol, as the names of listeners have it."""
        return ("SASL_" if self.login else "") + ("SSL" if self.context else "PLAINTEXT")

    @property
    def client_settings(self) -> str:
        """What clients have to set, in words; empty for plaintext without a login."""
        protocol = self.protocol.lower()
        if protocol == "plaintext":
            return ""
        mechanisms = f", sasl.mechanism: {', '.join(self.login.mechanisms.names)}" if self.login else ""
        return f"security.protocol={protocol}{mechanisms}"

    @property
    def authenticates(self) -> bool:
        """True if no client gets in without a password, a token or a certificate."""
        return self.login is not None or (self.context is not None and self.context.verify_mode is ssl.CERT_REQUIRED)

    def warn(self, address: str) -> None:
        """Warn of an address that others can reach, if they may read along, or need no login."""
        open_to_all = not (self.context is not None and self.authenticates)
        if open_to_all and not is_loopback(address):
            text = "serving on %s without TLS and SASL: each program that reaches this address can read and change all"
            _log.warning(text, address)

    def principal(self, transport: asyncio.Transport) -> str | None:
        """The principal of a certificate, ANONYMOUS without one or before a login; None if no rule matches."""
        if self.context is None or self.login is not None:
            return ANONYMOUS
        certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        from shareq.wire.security.distinguished_name import distinguished_name  # only certificates need the library

        name = self._rules.name_of(distinguished_name(certificate))
        return None if name is None else f"User:{name}"
