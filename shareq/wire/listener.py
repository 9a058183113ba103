"""A listener by its name, as clients choose one: its security, and a port for each broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence

from shareq.model.errors import ConfigException
from shareq.model.image import Addresses, ClusterImage
from shareq.wire.acceptor import Acceptor, ports_of
from shareq.wire.address import Address
from shareq.wire.broker_addresses import Lookup
from shareq.wire.security.channel_security import ChannelSecurity
from shareq.wire.security.listener_address import ListenerAddress, listener_addresses
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.served_cluster import ServedCluster


class Listener:
    """`image` is read at each use. `is_main`: the metadata has the addresses of this listener; responses to clients of
    another one are changed on their way. The owner opens `ports`."""

    def __init__(
        self, address: ListenerAddress, security: ChannelSecurity, image: Callable[[], ClusterImage], *, is_main: bool
    ) -> None:
        self.name = address.name or security.protocol
        self.host = address.host
        self.security = security
        self.ports: dict[int, Acceptor] = {}
        self.lookup: Lookup | None = None if is_main else self._lookup
        """The address in place of the one in a response to a client that has come by this listener."""
        self._wanted = address.ports
        self._image = image

    def first_ports(self, brokers: Iterable[int]) -> list[tuple[int, int]]:
        """Each broker with its port, 0 for a free one. ConfigException names an invalid host or port."""
        known = sorted(brokers)
        return list(zip(known, ports_of(self.host, self._wanted, len(known)), strict=True))

    @property
    def addresses(self) -> Addresses:
        """The host and port of each broker."""
        return {broker_id: (port.host, port.port) for broker_id, port in self.ports.items()}

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the cluster by this listener."""
        return ",".join(str(Address(host, port)) for host, port in self.addresses.values())

    def principal(self, transport: asyncio.Transport) -> str | None:
        """The principal of a connection before any login; None if it has no acceptable name."""
        return self.security.principal(transport)

    def _lookup(self, node_id: int, shown: Address) -> Address | None:
        """A broker without this listener keeps the address that is shown."""
        del shown
        broker = self._image().brokers.get(node_id)
        found = None if broker is None else broker.listeners.get(self.name)
        return None if found is None else Address(*found)


def server_listeners(
    cluster: ServedCluster, wanted: Sequence[str] | ListenerAddress, security: ListenerSecurity
) -> list[Listener]:
    """The listeners of a server: those of the texts, or the one that has all of the security. ConfigException for what
    cannot work, and for security that no listener uses."""
    config = cluster.image.broker_config
    addresses = [wanted] if isinstance(wanted, ListenerAddress) else listener_addresses(wanted, config)
    secured = [ChannelSecurity(cluster, security, address) for address in addresses]
    if security.tls_cert is not None and not any(one.context for one in secured):
        raise ConfigException("security: tls_cert is given, and no listener has TLS")
    if security.users is not None and not any(one.login for one in secured):
        raise ConfigException("security: users are given, and no listener has a login")
    if (secured[0].context or secured[0].login) and not cluster.front.knows_secured_peers:
        raise ConfigException(
            "security: processes on a backend reach each other by their first listener; one with TLS or a login needs "
            "peer_config (--peer-config), the configuration of such a client"
        )
    found = [
        Listener(address, own, lambda: cluster.image, is_main=number == 0)
        for number, (address, own) in enumerate(zip(addresses, secured, strict=True))
    ]
    _check_ports(found, cluster.front.brokers)
    return found


def _check_ports(listeners: Iterable[Listener], brokers: Collection[int]) -> None:
    """ConfigException if two listeners want one port: the ports of a listener's brokers follow one another."""
    taken: dict[tuple[str, int], str] = {}
    for listener in listeners:
        for _, port in listener.first_ports(brokers):
            other = taken.setdefault((listener.host, port), listener.name) if port else listener.name
            if other != listener.name:
                raise ConfigException(
                    f"listeners {other} and {listener.name}: both want port {port} of {listener.host}"
                )
