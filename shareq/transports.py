"""The transport for an address: `inproc://blue-fox` names a cluster in this process, `host:port` a broker over TCP.

`inproc://alice@blue-fox` is the same cluster for a client of the user alice: in process no client has to authenticate.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol
from weakref import WeakValueDictionary

from shareq.model.actor import ANONYMOUS, Actor
from shareq.model.errors import KafkaError, KafkaException
from shareq.model.transport import Connection, Transport

IN_PROCESS = "inproc"
_COLOURS = ("amber", "azure", "blue", "coral", "green", "grey", "indigo", "ivory", "jade", "plum", "red", "rose")
_ANIMALS = ("crane", "finch", "fox", "hare", "heron", "ibis", "lynx", "mole", "newt", "otter", "owl", "wren")


class LocalCluster(Protocol):
    """A cluster in this process, as its clients see it."""

    closed: bool

    def connect(self, actor: Actor, client_id: str, principal: str) -> Connection: ...
    def client_rng(self) -> random.Random: ...


_local: WeakValueDictionary[str, LocalCluster] = WeakValueDictionary()
"""The clusters in this process by name. A cluster that is no longer referenced disappears."""


def publish(cluster: LocalCluster, rng: random.Random) -> str:
    """Give a cluster a name such as blue-fox (blue-fox-2 if an open cluster has that name); return its address."""
    taken = 1
    name = unique = f"{rng.choice(_COLOURS)}-{rng.choice(_ANIMALS)}"
    while unique in _local and not _local[unique].closed:
        taken += 1
        unique = f"{name}-{taken}"
    _local[unique] = cluster
    return f"{IN_PROCESS}://{unique}"


def transport_for(bootstrap_servers: str, conf: Mapping[str, Any] = MappingProxyType({})) -> Transport:
    """The transport for an address. Raises KafkaException (_TRANSPORT or _INVALID_ARG) if there is none.

    `conf`: the socket settings of the client's configuration, by key; a cluster in this process uses none.
    """
    scheme, _, name = bootstrap_servers.partition("://")
    if scheme != IN_PROCESS:
        from shareq.wire.client import TcpTransport  # a program without TCP loads no sockets

        return TcpTransport(bootstrap_servers, conf)
    user, separator, name = name.rpartition("@")
    return InProcessTransport(_find(name), f"User:{user}" if separator else ANONYMOUS)


class InProcessTransport:
    """Connects clients to a cluster in this process; their actors run on the cluster's event loop."""

    def __init__(self, cluster: LocalCluster, principal: str) -> None:
        self._cluster = cluster
        self._principal = principal

    def connect(self, actor: Actor, client_id: str) -> Connection:
        return self._cluster.connect(actor, client_id, self._principal)

    def rng(self) -> random.Random:
        return self._cluster.client_rng()


def _find(name: str) -> LocalCluster:
    cluster = _local.get(name)
    if cluster is None or cluster.closed:
        known = ", ".join(f"{IN_PROCESS}://{n}" for n, c in _local.items() if not c.closed) or "none"
        raise KafkaException(
            KafkaError(KafkaError._TRANSPORT, f"no cluster is running at {IN_PROCESS}://{name}; running now: {known}")
        )
    return cluster
