"""The nodes that this process knows: its own, one for each broker of the backend, and those of the other processes.

BEHAVIOUR.md, section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.node import BackendNode
from shareq.broker.backend.processes import NODES, backend_id, node_id
from shareq.broker.backend.remote_node import RemoteNode
from shareq.broker.network import Caller, Network
from shareq.model.actor import Call, ClientContext
from shareq.model.gauges import Gauge
from shareq.model.image import ClusterImage
from shareq.model.messages.api_versions import ApiVersionsResponse
from shareq.model.messages.cluster import MetadataResponse
from shareq.model.scram import UserChanges, altered_users

N = TypeVar("N", BackendNode, RemoteNode)


class Nodes:
    """Keeps the network's nodes as the image has them.

    `make(node)` creates one of this process. `peers`: connections to the other processes.
    """

    def __init__(
        self, mirror: MetadataMirror, network: Network, peers: BackendClient, make: Callable[[int], BackendNode]
    ) -> None:
        self.own: dict[int, BackendNode] = {}
        self.far: dict[int, RemoteNode] = {}
        self.watcher: Callable[[int, bool], None] | None = None
        """Called with each new broker of the backend."""
        self._mirror = mirror
        self._network = network
        self._peers = peers
        self._make = make

    def image_changed(self, image: ClusterImage) -> None:
        """Create and remove nodes, and deliver the image to those of this process."""
        slot = self._mirror.slot
        own = {node_id(slot, broker) for broker in self._mirror.backend_brokers}
        far = {node: (one.host, one.port) for node, one in image.brokers.items() if one.alive and node // NODES != slot}
        self._remove(self.own, self.own.keys() - own)
        self._remove(self.far, {node for node, one in self.far.items() if far.get(node) != one.address})
        self._learn(image)
        for node in sorted(own - self.own.keys()):
            self.own[node] = self._make(node)
            self._network.join(self.own[node])
            if self.watcher is not None:
                self.watcher(backend_id(node), True)
        for node in sorted(far.keys() - self.far.keys()):
            self.far[node] = RemoteNode(node, far[node], self._peers, self._network)
            self._network.join(self.far[node], far=True)
        for one in self.own.values():
            one.image_changed(image)

    def _learn(self, image: ClusterImage) -> None:
        brokers = tuple(
            MetadataResponse.Broker(node_id=node, host=one.host, port=one.port) for node, one in image.brokers.items()
        )
        self._peers.learn(MetadataResponse(brokers=brokers, cluster_id="", controller_id=-1))

    def _remove(self, nodes: dict[int, N], gone: set[int]) -> None:
        """Requests to these nodes fail; connections of clients that wait for them break."""
        for node in sorted(gone):
            nodes.pop(node).die()
            self._network.leave(node)

    def renew_own(self) -> None:
        """Forget all that the nodes of this process have led."""
        nodes = list(self.own)
        self._remove(self.own, set(nodes))
        for node in nodes:
            self.own[node] = self._make(node)
            self._network.join(self.own[node])
            self.own[node].image_changed(self._mirror.image)

    def die(self) -> None:
        """End the actors, and the connections to other processes."""
        for own in self.own.values():
            own.die()
        for far in self.far.values():
            far.die()


class Front:
    """The nodes of this process for a server: they have the backend's broker ids, which stay when the slot of the
    process changes."""

    def __init__(
        self,
        mirror: MetadataMirror,
        network: Network,
        *,
        knows_secured_peers: bool,
        gauges: Callable[[], Mapping[Gauge, int]],
    ) -> None:
        self.versions: ApiVersionsResponse | None = None
        """The APIs and features of the backend."""
        self.knows_secured_peers = knows_secured_peers
        self.gauges = gauges
        """Values of Kafka's metrics that follow from no event, as this process has them now."""
        self._mirror = mirror
        self._network = network

    @property
    def brokers(self) -> Mapping[int, bool]:
        """The brokers of the backend: id -> whether it is running."""
        return self._mirror.backend_brokers

    def node_of(self, broker_id: int) -> int:
        """The id of this process's node for a broker."""
        return node_id(self._mirror.slot, broker_id)

    def alter_users(self, changes: UserChanges) -> None:
        """Set or remove credentials of users of this process; those of the backend are others."""
        self._mirror.change(users=altered_users(self._mirror.image.users, changes))

    def call(self, caller: Caller, call: Call, client: ClientContext) -> None:
        """Send a request to the node of this process for a broker."""
        self._network.call(caller, call._replace(node=self.node_of(call.node)), client)

    def disconnect(self, connection_id: int, broker_id: int) -> None:
        """Close a client's connection to the node of this process for a broker."""
        self._network.disconnect(connection_id, self.node_of(broker_id))
