"""Configurations of clients: a table for each client, with confluent-kafka's keys and exceptions.

Unknown keys and values out of range raise KafkaException (_INVALID_ARG); keys that make no sense for the client raise
ValueError. Every message names the key, and for a bad value the value and what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from shareq.client.arguments import text
from shareq.client.security_config import SECURITY_KEYS
from shareq.model.configs import GROUP_CONFIGS, INT_MAX, ConfigDef
from shareq.model.errors import ConfigException, KafkaError, KafkaException
from shareq.model.hidden_values import shown
from shareq.model.near_names import did_you_mean
from shareq.model.numbers import plain

COMMON = (
    ConfigDef("bootstrap.servers", "", "Where the cluster is: inproc://name, or host:port."),
    ConfigDef("client.id", "shareq", "The name of this client in requests, descriptions and the journal."),
    ConfigDef("request.timeout.ms", 30000, "How long a request may take.", 1, INT_MAX),
    ConfigDef("retry.backoff.ms", 100, "The pause before the first retry.", 1, 300000),
    ConfigDef("retry.backoff.max.ms", 1000, "The longest pause between two retries.", 1, 300000),
)
"""The keys of every client."""

SOCKETS = (
    ConfigDef("reconnect.backoff.ms", 50, "The pause before a broken connection is made anew.", 0, 3600000),
    ConfigDef("reconnect.backoff.max.ms", 1000, "The longest such pause; each failure doubles it.", 0, 3600000),
    ConfigDef("socket.connection.setup.timeout.ms", 10000, "How long connecting may take.", 1000, INT_MAX),
    ConfigDef("socket.keepalive.enable", False, "Probe idle connections."),
    ConfigDef("socket.nagle.disable", True, "Whether small requests go out at once."),
    ConfigDef("socket.receive.buffer.bytes", 0, "The system's buffer; 0 leaves it to the system.", 0, 100000000),
    ConfigDef("socket.send.buffer.bytes", 0, "The system's buffer; 0 leaves it to the system.", 0, 100000000),
    ConfigDef("metadata.cluster.check.enable", True, "Whether a broker checks that it is the node a client expects."),
)
"""The keys about connections over TCP. In this process they are checked, and have no effect."""

_CARRIED_OVER = """
api.version.fallback.ms api.version.request api.version.request.timeout.ms broker.address.family broker.address.ttl
broker.version.fallback builtin.features client.dns.lookup connections.max.idle.ms debug enable.metrics.push
enable.sasl.oauthbearer.unsecure.jwt error_cb internal.termination.signal
log.connection.close log.queue log.thread.name log_cb log_level logger max.in.flight
max.in.flight.requests.per.connection message.max.bytes metadata.broker.list metadata.max.age.ms
metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy open_cb
receive.message.max.bytes sasl.kerberos.keytab
sasl.kerberos.principal sasl.kerberos.service.name socket.blocking.max.ms socket.max.fails
socket.timeout.ms statistics.interval.ms stats_cb
throttle_cb topic.metadata.propagation.max.ms topic.metadata.refresh.fast.interval.ms
topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
"""
TRANSPORT_KEYS = SECURITY_KEYS | frozenset(_CARRIED_OVER.split())
"""librdkafka's other keys about connections, logging and metadata: accepted, so that a configuration can be carried
over. Those of security have an effect over TCP, the others none; the value of socket.timeout.ms there is that of
request.timeout.ms here."""

CONNECTION_KEYS = TRANSPORT_KEYS | {definition.key for definition in (*COMMON, *SOCKETS)}
"""The keys that each client accepts."""


def _refusal(why: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, why))


def of_the_group(key: object) -> str:
    """The call that sets a configuration of a group."""
    return f"{key} is a configuration of the group: Admin.alter_group_configs(GROUP, {{{key!r}: ...}})"


def _unknown_key(key: object, value: object, known: set[str]) -> str:
    hint = f"; {of_the_group(key)}" if key in GROUP_CONFIGS else did_you_mean(key, known)
    return f'No such configuration property: "{key}" (value {shown(key, value)}){hint}'


class ClientConfig:
    """A client's configuration, with a value for each key of its table: `config["max.poll.records"]`.

    `rejected`: keys that are refused, each with what to use instead, or with "". `contradiction`: what is raised for
    values that are good by themselves, and make no sense together.
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        definitions: Iterable[ConfigDef],
        *,
        ignored: frozenset[str] = frozenset(),
        rejected: Mapping[str, str] = MappingProxyType({}),
        client: str = "client",
        contradiction: Callable[[str], Exception] = _refusal,
    ) -> None:
        table = {definition.key: definition for definition in (*COMMON, *SOCKETS, *definitions)}
        present = sorted(key for key in conf if key in rejected)
        if present:
            hints = [rejected[key] for key in present if rejected[key]]
            raise ValueError("; ".join([f"not applicable to a {client}: {', '.join(present)}", *hints]))
        self._values: dict[str, Any] = {key: definition.default for key, definition in table.items()}
        for key, value in conf.items():
            if key in table:
                self._values[key] = _parse(table[key], value)
            elif key not in ignored and key not in TRANSPORT_KEYS:
                raise _refusal(_unknown_key(key, value, {*table, *ignored, *TRANSPORT_KEYS}))
        if not self._values["bootstrap.servers"]:
            raise _refusal("bootstrap.servers must be set: inproc://name or host:port")
        self._security = {key: conf[key] for key in SECURITY_KEYS if key in conf}
        first, longest = self._values["reconnect.backoff.ms"], self._values["reconnect.backoff.max.ms"]
        if longest < first:
            raise contradiction(f"reconnect.backoff.max.ms={longest}: must be at least reconnect.backoff.ms={first}")

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    @property
    def sockets(self) -> Mapping[str, Any]:
        """The keys about connections over TCP, with their values; of security only those that are set."""
        return {**{definition.key: self._values[definition.key] for definition in SOCKETS}, **self._security}


_BOOLS: Mapping[object, str] = {"1": "true", "t": "true", "0": "false", "f": "false"}
"""librdkafka's other words for true and false."""


def _parse(definition: ConfigDef, value: object) -> object:
    """The typed value. None leaves a text at its default."""
    value = plain(value)
    if isinstance(definition.default, bool):
        value = _BOOLS.get(str(value).strip().lower(), value)
    elif isinstance(definition.default, str):
        if value is None:
            return definition.default
        if not isinstance(value, (str, bool, int, float)):
            several = ", with commas between several" if isinstance(value, (list, tuple)) else ""
            raise _refusal(f"{definition.key}={value!r}: must be {definition.allowed}{several}")
        _check_text(definition.key, str(value))
    try:
        return definition.parse(value)
    except ConfigException as error:
        raise _refusal(str(error)) from None


def _check_text(key: str, value: str) -> None:
    """Refuse a text that no request can contain: an id of a client, a group or a transaction."""
    try:
        text(key, value, empty=True)
    except ValueError as error:
        raise _refusal(str(error)) from None


def connection_config(bootstrap_servers: str, conf: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The settings of connections in a configuration that has nothing else, for `transport_for`. KafkaException
    (_INVALID_ARG) for an unknown key or an invalid value."""
    config = {"bootstrap.servers": bootstrap_servers, **(conf or {})}
    return ClientConfig({**config, "bootstrap.servers": bootstrap_servers}, ()).sockets


def merged(conf: Mapping[str, Any] | None, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The dict, the keyword arguments, or both; keywords win, and may be written with underscores for dots."""
    if conf is None and not kwargs:
        raise TypeError("expected configuration dict")
    if conf is not None and not isinstance(conf, Mapping):
        raise TypeError(f"expected configuration dict, not {type(conf).__name__}")
    dotted = {key if key in TRANSPORT_KEYS else key.replace("_", "."): value for key, value in kwargs.items()}
    return {**(conf or {}), **dotted}
