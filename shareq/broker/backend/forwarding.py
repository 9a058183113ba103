"""Requests that the backend answers: what changes on the way there, and on the way back. BEHAVIOUR.md, sections 5, 6.

The backend knows brokers, clients know nodes: a process's node for a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from shareq.broker.backend.passed_requests import to_brokers
from shareq.broker.backend.processes import Fleet, backend_id, node_id
from shareq.broker.backend.state_topic import answered, asked
from shareq.broker.backend.topics import HERE
from shareq.model.ids import GROUP_METADATA_TOPIC, ZERO_TOPIC_ID, partition_for
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataResponse,
)
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.describe import (
    DescribeClusterResponse,
    DescribeTopicPartitionsResponse,
    ListPartitionReassignmentsResponse,
)
from shareq.model.messages.fetch import FetchResponse
from shareq.model.messages.passed import PassedRequest
from shareq.model.messages.share_fetch import LeaderIdAndEpoch, NodeEndpoint
from shareq.model.messages.topics import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceType,
)

T = TypeVar("T", ProduceRequest.Topic, ProduceResponse.Topic)


class View(NamedTuple):
    """The cluster as clients of a process see it. `slot`: the process that they are sent to for what any process can
    pass on."""

    image: ClusterImage
    fleet: Fleet
    slot: int

    @property
    def plain(self) -> bool:
        """True if nodes have the ids of brokers: a single process."""
        return self.fleet.workers == (0,)

    def owner(self, topic: str | None, partition: int) -> int:
        """The slot of the process for a partition, by the topic's name in the backend."""
        return self.fleet.owner(HERE.get(topic or "", topic or ""), partition)

    def nodes(self, brokers: Iterable[int], slot: int) -> tuple[int, ...]:
        """The nodes of a process for these brokers; -1 stays."""
        return tuple(broker if broker < 0 else node_id(slot, broker) for broker in brokers)

    def node(self, broker: int, slot: int) -> int:
        (found,) = self.nodes((broker,), slot)
        return found


# ---- requests --------------------------------------------------------------------------------------------------------


def to_backend(request: Request, image: ClusterImage) -> Request:
    """Name topics of a Produce both ways: the backend may use an older version, which has names instead of ids. One
    with acks=0 is sent with acks=1: the connection to the backend expects an answer; the client gets none. Nodes become
    brokers."""
    if isinstance(request, ProduceRequest):
        return replace(request, acks=request.acks or 1, topics=_named(request.topics, image))
    if isinstance(request, CreateTopicsRequest | CreatePartitionsRequest):
        return replace(request, topics=tuple(_placed(topic) for topic in request.topics))  # type: ignore[arg-type]
    if isinstance(request, DescribeConfigsRequest | AlterConfigsRequest | IncrementalAlterConfigsRequest):
        return asked(replace(request, resources=tuple(_resource(one) for one in request.resources)))  # type: ignore[arg-type]
    return to_brokers(request) if isinstance(request, PassedRequest) else asked(request)


def _named(topics: Sequence[T], image: ClusterImage) -> tuple[T, ...]:
    return tuple(_named_topic(topic, image) for topic in topics)


def _named_topic(topic: T, image: ClusterImage) -> T:
    by_name = topic.topic_id == ZERO_TOPIC_ID
    found = image.topics.get(topic.name) if by_name else image.topics_by_id.get(topic.topic_id)
    return topic if found is None else replace(topic, topic_id=found.topic_id, name=found.name)


def _placed(topic: Any) -> Any:
    """A new topic, or new partitions, on the brokers of the nodes that are assigned."""
    placed = tuple(
        replace(one, broker_ids=tuple(backend_id(node) for node in one.broker_ids)) for one in topic.assignments or ()
    )
    return replace(topic, assignments=placed) if placed else topic


def _resource(resource: Any) -> Any:
    """The configurations of a node are those of its broker."""
    is_broker = resource.resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
    if not is_broker or not resource.resource_name.isdecimal():
        return resource
    return replace(resource, resource_name=str(backend_id(int(resource.resource_name))))


# ---- responses -------------------------------------------------------------------------------------------------------


def to_client(request: Request, response: Response, view: View) -> Response:
    """Replace the backend's brokers by the nodes of the processes. `request` is that of the client."""
    rewrite = _REWRITES.get(type(response))
    return answered(request, response if rewrite is None else rewrite(request, response, view))


def _brokers(brokers: Sequence[Any], id_field: str, view: View) -> tuple[Any, ...]:
    """The nodes of all processes for these brokers, which the image has."""
    by_id = {getattr(broker, id_field): broker for broker in brokers}
    return tuple(
        replace(by_id[backend_id(node)], **{id_field: node}, host=one.host, port=one.port)
        for node, one in view.image.brokers.items()
        if one.alive and backend_id(node) in by_id
    )


def _metadata(request: Request, response: MetadataResponse, view: View) -> MetadataResponse:
    del request
    return replace(
        response,
        brokers=_brokers(response.brokers, "node_id", view),
        controller_id=view.node(response.controller_id, view.slot),
        topics=_moved(response.topics, ("leader_id", "replica_nodes", "isr_nodes", "offline_replicas"), view),
    )


def _cluster(request: Request, response: DescribeClusterResponse, view: View) -> DescribeClusterResponse:
    del request
    brokers = _brokers(response.brokers, "broker_id", view)
    return replace(response, brokers=brokers, controller_id=view.node(response.controller_id, view.slot))


def _described(
    request: Request, response: DescribeTopicPartitionsResponse, view: View
) -> DescribeTopicPartitionsResponse:
    del request
    replicas = ("replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas")
    return replace(response, topics=_moved(response.topics, ("leader_id", *replicas), view))


def _reassigned(
    request: Request, response: ListPartitionReassignmentsResponse, view: View
) -> ListPartitionReassignmentsResponse:
    del request
    replicas = ("replicas", "adding_replicas", "removing_replicas")
    return replace(response, topics=_moved(response.topics, replicas, view))


def _moved(topics: Sequence[Any], fields: Sequence[str], view: View) -> tuple[Any, ...]:
    """The same topics with nodes in these fields of their partitions: those of the process for the partition."""
    if view.plain:
        return tuple(topics)

    def partition(name: str | None, one: Any) -> Any:
        slot = view.owner(name, one.partition_index)
        brokers = {field: getattr(one, field) for field in fields}
        nodes = {
            field: view.node(found, slot) if isinstance(found, int) else view.nodes(found, slot)
            for field, found in brokers.items()
            if found is not None
        }
        return replace(one, **nodes)

    return tuple(
        replace(topic, partitions=tuple(partition(topic.name, one) for one in topic.partitions)) for topic in topics
    )


def _configs(request: Any, response: Any, view: View) -> Any:
    """Results about brokers have the names that the client has used."""
    del view
    field = "results" if isinstance(response, DescribeConfigsResponse) else "responses"
    names = {(one.resource_type, _resource(one).resource_name): one.resource_name for one in request.resources}
    found = (
        replace(one, resource_name=names.get((one.resource_type, one.resource_name), one.resource_name))
        for one in getattr(response, field)
    )
    return replace(response, **{field: tuple(found)})


def _coordinators(request: Request, response: FindCoordinatorResponse, view: View) -> FindCoordinatorResponse:
    """The coordinator of a group is in the process that leads the shard of a share group of this id: a group of another
    type has its coordinator at the backend, which every process reaches."""
    assert isinstance(request, FindCoordinatorRequest)
    topic = view.image.topics.get(GROUP_METADATA_TOPIC)

    def moved(key: str, one: FindCoordinatorResponse.Coordinator) -> FindCoordinatorResponse.Coordinator:
        slot = view.slot
        if request.key_type == CoordinatorType.GROUP and topic is not None:
            slot = view.fleet.owner(GROUP_METADATA_TOPIC, partition_for(key, len(topic.partitions)))
        node = view.image.brokers.get(view.node(one.node_id, slot))
        return one if node is None else replace(one, node_id=node.broker_id, host=node.host, port=node.port)

    keys = request.coordinator_keys
    found = (moved(key, one) for key, one in zip(keys, response.coordinators, strict=False))
    return replace(response, coordinators=tuple(found))


def _produced(request: Request, response: ProduceResponse, view: View) -> ProduceResponse:
    del request
    named = _named(response.responses, view.image)
    topics, endpoints = _with_hints(named, [topic.name for topic in named], "index", view)
    return replace(response, responses=topics, node_endpoints=endpoints)


def _fetched(request: Request, response: FetchResponse, view: View) -> FetchResponse:
    del request
    known = view.image.topics_by_id
    names = [
        known[topic.topic_id].name if topic.topic_id in known else topic.topic or None for topic in response.responses
    ]
    topics, endpoints = _with_hints(response.responses, names, "partition_index", view)
    return replace(response, responses=topics, node_endpoints=endpoints)


def _with_hints(
    topics: Sequence[Any], names: Sequence[str | None], index: str, view: View
) -> tuple[tuple[Any, ...], tuple[NodeEndpoint, ...]]:
    """The topics of a response, in which errors name the present leader (KIP-951), and the endpoints of these."""
    endpoints: dict[int, NodeEndpoint] = {}

    def hint(name: str | None, partition: Any) -> Any:
        leader: LeaderIdAndEpoch = partition.current_leader
        if not partition.error_code or leader.leader_id < 0:
            return partition
        node = view.image.brokers.get(view.node(leader.leader_id, view.owner(name, getattr(partition, index))))
        if node is None:
            return replace(partition, current_leader=replace(leader, leader_id=-1))
        endpoints[node.broker_id] = NodeEndpoint(node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack)
        return replace(partition, current_leader=replace(leader, leader_id=node.broker_id))

    moved = tuple(
        topic
        if not any(one.error_code for one in topic.partitions)
        else replace(topic, partitions=tuple(hint(name, one) for one in topic.partitions))
        for name, topic in zip(names, topics, strict=True)
    )
    return moved, tuple(endpoints.values())


_REWRITES: Mapping[type[Response], Callable[[Request, Any, View], Response]] = {
    MetadataResponse: _metadata,
    DescribeClusterResponse: _cluster,
    DescribeTopicPartitionsResponse: _described,
    ListPartitionReassignmentsResponse: _reassigned,
    FindCoordinatorResponse: _coordinators,
    ProduceResponse: _produced,
    FetchResponse: _fetched,
    DescribeConfigsResponse: _configs,
    AlterConfigsResponse: _configs,
    IncrementalAlterConfigsResponse: _configs,
}
