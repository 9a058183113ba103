"""What this process asks another one that leads a partition, or itself. BEHAVIOUR.md, sections 4 to 6."""

from __future__ import annotations

from collections.abc import Callable

from shareq.broker.backend.group_configs import SHARD
from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.processes import NODES
from shareq.broker.backend.services import PROCESS
from shareq.broker.network import Network
from shareq.model.actor import Answer, Call
from shareq.model.ids import GROUP_METADATA_TOPIC, TopicPartition, partition_for
from shareq.model.messages.base import Request

ASK_TIMEOUT_MS = 5_000

NO_NODE = -2
"""A node that does not exist: a request to it fails."""

Done = Callable[[Answer], object]


class Owners:
    """Sends requests to the processes that lead partitions; `done` gets the answer."""

    def __init__(self, mirror: MetadataMirror, network: Network) -> None:
        self._mirror = mirror
        self._network = network

    def ask_writer(self, request: Request, done: Done) -> None:
        """Ask the process that stores the configurations of groups."""
        self._ask(SHARD, request, done)

    def ask_leader(self, group_id: str, request: Request, done: Done) -> None:
        """Ask the process that leads the shard of a share group."""
        topic = self._mirror.image.topics.get(GROUP_METADATA_TOPIC)
        index = partition_for(group_id, len(topic.partitions)) if topic is not None else -1
        self._ask(TopicPartition(GROUP_METADATA_TOPIC, index), request, done)

    def _ask(self, shard: TopicPartition, request: Request, done: Done) -> None:
        fleet = self._mirror.fleet
        slot = fleet.owner(*shard) if fleet is not None and shard.partition >= 0 else -1
        nodes = (node for node, one in self._mirror.image.brokers.items() if one.alive and node // NODES == slot)
        self._network.call(_Asking(done), Call(0, next(nodes, NO_NODE), request, ASK_TIMEOUT_MS), PROCESS)


class _Asking:
    """The sender of a request of this process, for one answer."""

    name = PROCESS.client_id

    def __init__(self, done: Done) -> None:
        self._done = done

    def deliver(self, message: Answer) -> None:
        self._done(message)
