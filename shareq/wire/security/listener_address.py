"""Where a listener is and how it is secured, as text: `SASL_SSL://127.0.0.1:9093`.

The name is a security protocol, or any name that `listener.security.protocol.map` gives one. Source: Kafka's EndPoint
and `listeners`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException
from shareq.model.security_configs import PROTOCOL_MAP

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class ListenerAddress(NamedTuple):
    """`protocol`: one of PROTOCOLS; empty: TLS and a login if the server has what they need. `ports` as for `ports_of`:
    None for free ones, the first broker's, or one for each broker."""

    name: str
    protocol: str
    host: str
    ports: int | Sequence[int] | None

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def has_login(self) -> bool:
        return self.protocol.startswith("SASL")


def listener_addresses(texts: Iterable[str], config: BrokerConfig) -> list[ListenerAddress]:
    """The listeners of these texts. ConfigException for one of another form, for names that are not unique, and for a
    name without a protocol."""
    protocols = _protocols(config[PROTOCOL_MAP])
    found = [_listener(text, protocols) for text in texts]
    names = [one.name for one in found]
    if not names or len(set(names)) < len(names):
        raise ConfigException(f"listeners={names}: must have different names, one at least")
    return found


def _listener(text: str, protocols: dict[str, str]) -> ListenerAddress:
    name, separator, place = text.strip().partition("://")
    try:
        parts = urlsplit(f"//{place}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not (name and separator and host) or port is None or place != parts.netloc or "@" in place:
        raise ConfigException(f"listener {text!r}: must be NAME://host:port, such as SASL_SSL://127.0.0.1:9093")
    name = name.upper()
    if name not in protocols:
        known = ", ".join(protocols)
        raise ConfigException(f"listener {text!r}: {PROTOCOL_MAP} has no protocol for {name}; it has {known}")
    return ListenerAddress(name, protocols[name], host, port or None)


def _protocols(text: str) -> dict[str, str]:
    """Protocols by the names of listeners."""
    found: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = (part.strip().upper() for part in pair.partition(":"))
        if not name or protocol not in PROTOCOLS:
            raise ConfigException(f"{PROTOCOL_MAP}={text!r}: {pair!r} must be NAME:PROTOCOL, of {', '.join(PROTOCOLS)}")
        found[name] = protocol
    return found
