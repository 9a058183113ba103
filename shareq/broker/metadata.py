"""Metadata, DescribeCluster, DescribeTopicPartitions and FindCoordinator, answered from the cluster's image.
Metadata and FindCoordinator may create missing topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from shareq.broker.controller import Controller
from shareq.broker.placement import MAX_NEW_PARTITIONS
from shareq.coordinator.share_state import find_share_coordinator
from shareq.model.actor import IN_PROCESS, ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    ZERO_TOPIC_ID,
    is_topic_name,
)
from shareq.model.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.cluster import (
    NOT_ASKED,
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.describe import (
    BROKER_ENDPOINTS,
    Cursor,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign, design_of

TOPIC_OPERATIONS = 3576
CLUSTER_OPERATIONS = 8096
"""Bits of all operations on a topic and on a cluster: without an authorizer, all are allowed."""

CONTROLLER_ENDPOINTS = 2
MAX_PARTITIONS_DESCRIBED = 2000
SHARE_KEYS_FROM = 6
"""The first version of FindCoordinator with share coordinators."""


def _alive(image: ClusterImage) -> list[BrokerImage]:
    return [broker for broker in image.brokers.values() if broker.alive]


def _controller_id(image: ClusterImage) -> int:
    """A live broker: clients send controller requests to it, and every broker forwards them."""
    alive = [broker.broker_id for broker in _alive(image)]
    return image.controller_id if image.controller_id in alive else min(alive, default=-1)


def _offline(partition: PartitionImage, image: ClusterImage) -> tuple[int, ...]:
    return tuple(b for b in partition.replicas if not image.brokers[b].alive)


def _leaderless(partition: PartitionImage) -> Errors:
    return Errors.LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else Errors.NONE


def _absent(name: str) -> Errors:
    """The error of a name without a topic."""
    return Errors.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else Errors.INVALID_TOPIC_EXCEPTION


# ---- Metadata --------------------------------------------------------------------------------------------------------


BY_ID = 12
"""The first version of Metadata with requests by topic id."""

DEAD_REPLICAS = 1
"""The first version with replicas on dead brokers. Before, they are left out, and an error tells of them."""


def metadata(request: MetadataRequest, controller: Controller, client: ClientContext = IN_PROCESS) -> MetadataResponse:
    """Live brokers, and topics by name or id; None means all topics.

    A missing topic that is requested by name may be created; this response still has UNKNOWN_TOPIC_OR_PARTITION.
    Versions before 12 have fields for ids, but setting them is an error.
    """
    image, api_version = controller.image, client.api_version
    if api_version < BY_ID and any(t.name is None or t.topic_id != ZERO_TOPIC_ID for t in request.topics or ()):
        topics = [_refused(requested) for requested in request.topics or ()]
    else:
        operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
        topics = list(_topics(request, image, operations))
    if api_version < DEAD_REPLICAS:
        topics = [_with_live_replicas(topic, image) for topic in topics]
    response = MetadataResponse(
        brokers=tuple(
            MetadataResponse.Broker(node_id=b.broker_id, host=b.host, port=b.port, rack=b.rack) for b in _alive(image)
        ),
        cluster_id=image.cluster_id,
        controller_id=_controller_id(image),
        topics=tuple(topics),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
    if request.allow_auto_topic_creation and image.broker_config["auto.create.topics.enable"]:
        _create_missing(response.topics, controller, client)
    return response


def _refused(requested: MetadataRequest.Topic) -> MetadataResponse.Topic:
    return MetadataResponse.Topic(
        name=requested.name or "", topic_id=requested.topic_id, error_code=Errors.INVALID_REQUEST
    )


def _topics(request: MetadataRequest, image: ClusterImage, operations: int) -> Iterator[MetadataResponse.Topic]:
    if request.topics is None:
        for topic in image.topics.values():
            yield _topic(topic, image, operations)
        return
    ids = dict.fromkeys(requested.topic_id for requested in request.topics if requested.topic_id != ZERO_TOPIC_ID)
    if ids:  # a single id makes the whole request one by ids
        for topic_id in ids:
            found = image.topics_by_id.get(topic_id)
            missing = MetadataResponse.Topic(name=None, topic_id=topic_id, error_code=Errors.UNKNOWN_TOPIC_ID)
            yield _topic(found, image, operations) if found else missing
        return
    for name in dict.fromkeys(requested.name or "" for requested in request.topics):
        found = image.topics.get(name)
        missing = MetadataResponse.Topic(name=name, topic_id=ZERO_TOPIC_ID, error_code=_absent(name))
        yield _topic(found, image, operations) if found else missing


def _topic(
    topic: TopicImage,
    image: ClusterImage,
    operations: int,
    *,
    response: Any = MetadataResponse,
    start: int = 0,
    end: int | None = None,
) -> Any:
    """The topic with its partitions from `start` to `end`, in one of the two responses that describe topics."""
    return response.Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(
            response.Partition(
                partition_index=index,
                leader_id=p.leader,
                leader_epoch=p.leader_epoch,
                replica_nodes=p.replicas,
                isr_nodes=p.isr,
                offline_replicas=_offline(p, image),
                error_code=_leaderless(p),
            )
            for index, p in enumerate(topic.partitions[start:end], start)
        ),
        topic_authorized_operations=operations,
    )


def _with_live_replicas(topic: MetadataResponse.Topic, image: ClusterImage) -> MetadataResponse.Topic:
    def shown(partition: MetadataResponse.Partition) -> MetadataResponse.Partition:
        replicas, isr = (
            tuple(broker for broker in brokers if image.brokers[broker].alive)
            for brokers in (partition.replica_nodes, partition.isr_nodes)
        )
        lacks = len(replicas) < len(partition.replica_nodes) or len(isr) < len(partition.isr_nodes)
        error = partition.error_code or (Errors.REPLICA_NOT_AVAILABLE if lacks else Errors.NONE)
        return replace(partition, replica_nodes=replicas, isr_nodes=isr, error_code=error)

    return replace(topic, partitions=tuple(shown(partition) for partition in topic.partitions))


def _create_missing(topics: Iterable[MetadataResponse.Topic], controller: Controller, client: ClientContext) -> None:
    """Create missing topics; one that cannot be created, or is above the client's quota, stays
    UNKNOWN_TOPIC_OR_PARTITION. As many partitions as in a CreateTopics are too many: then no topic is created."""
    missing = [t.name for t in topics if t.name is not None and t.error_code is Errors.UNKNOWN_TOPIC_OR_PARTITION]
    of_clients = [name for name in missing if name not in INTERNAL_TOPICS]
    if len(of_clients) * controller.image.broker_config["num.partitions"] > MAX_NEW_PARTITIONS:
        return
    mutations = controller.mutation_quotas.mutations(client, controller.image, strict=True)
    for name in missing:
        if name in INTERNAL_TOPICS:
            controller.create_internal_topic(name)
        else:
            _, topic = controller.create_topic(name, validate_only=mutations.exhausted)
            if topic is not None:
                mutations.record(len(topic.partitions))


# ---- descriptions for admins -----------------------------------------------------------------------------------------


def describe_cluster(request: DescribeClusterRequest, image: ClusterImage) -> DescribeClusterResponse:
    if request.endpoint_type != BROKER_ENDPOINTS:
        wrong = request.endpoint_type == CONTROLLER_ENDPOINTS
        error = Errors.MISMATCHED_ENDPOINT_TYPE if wrong else Errors.UNSUPPORTED_ENDPOINT_TYPE
        why = f"endpoint type {request.endpoint_type}: this is a broker, which is {BROKER_ENDPOINTS}"
        return DescribeClusterResponse(error_code=error, error_message=why)
    requested = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=_controller_id(image),
        brokers=tuple(
            DescribeClusterResponse.Broker(
                broker_id=b.broker_id, host=b.host, port=b.port, rack=b.rack, is_fenced=not b.alive
            )
            for b in image.brokers.values()
            if b.alive or request.include_fenced_brokers
        ),
        cluster_authorized_operations=CLUSTER_OPERATIONS if requested else NOT_ASKED,
    )


def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, image: ClusterImage
) -> DescribeTopicPartitionsResponse:
    """Topics sorted by name, in pages; a page that ends at the limit has a cursor to the next one."""
    first = request.cursor or Cursor(topic_name="", partition_index=0)
    requested = {topic.name for topic in request.topics} or set(image.topics)
    left = max(1, min(request.response_partition_limit, MAX_PARTITIONS_DESCRIBED))
    topics: list[DescribeTopicPartitionsResponse.Topic] = []
    for name in sorted(name for name in requested if name >= first.topic_name):
        start = max(0, first.partition_index) if name == first.topic_name else 0
        topic = image.topics.get(name)
        if topic is None:
            missing = DescribeTopicPartitionsResponse.Topic(
                name=name, error_code=_absent(name), topic_authorized_operations=TOPIC_OPERATIONS
            )
            topics.append(missing)
            continue
        if not left:
            return DescribeTopicPartitionsResponse(
                topics=tuple(topics), next_cursor=Cursor(topic_name=name, partition_index=0)
            )
        end = min(len(topic.partitions), start + left)
        topics.append(
            _topic(topic, image, TOPIC_OPERATIONS, response=DescribeTopicPartitionsResponse, start=start, end=end)
        )
        left -= end - start
        if end < len(topic.partitions):
            cursor = Cursor(topic_name=name, partition_index=end)
            return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)
    return DescribeTopicPartitionsResponse(topics=tuple(topics))


# ---- FindCoordinator -------------------------------------------------------------------------------------------------

_STATE_TOPICS: dict[int, str] = {
    CoordinatorType.GROUP: GROUP_METADATA_TOPIC,
    CoordinatorType.TRANSACTION: TRANSACTION_STATE_TOPIC,
    CoordinatorType.SHARE: SHARE_STATE_TOPIC,
}
"""The topic of each coordinator type: the leader of a key's partition coordinates the key."""


def find_coordinators(
    request: FindCoordinatorRequest, client: ClientContext, controller: Controller
) -> FindCoordinatorResponse:
    """The coordinator of each key. The first request creates the coordinators' topic and returns
    COORDINATOR_NOT_AVAILABLE. Control records of share state need no coordinator.
    """
    image = controller.image
    shares = request.key_type == CoordinatorType.SHARE
    topic = _STATE_TOPICS.get(request.key_type)
    if topic is None or (shares and client.api_version < SHARE_KEYS_FROM):
        why = f"coordinator type {request.key_type} is not supported in version {client.api_version}"
        refused = tuple(_not_found(key, Errors.INVALID_REQUEST, why) for key in request.coordinator_keys)
        return FindCoordinatorResponse(coordinators=refused)
    if shares:
        found = tuple(find_share_coordinator(key, image) for key in request.coordinator_keys)
    else:
        found = tuple(_coordinator(key, topic, image) for key in request.coordinator_keys)
    keeps_state = shares and design_of(image.broker_config[PERSISTER_CLASS]) is StateDesign.CONTROL_RECORDS
    if topic not in image.topics and not keeps_state:
        controller.create_internal_topic(topic)
    return FindCoordinatorResponse(coordinators=found)


def _coordinator(key: str, topic: str, image: ClusterImage) -> FindCoordinatorResponse.Coordinator:
    broker = image.coordinator(topic, key)
    if broker is None:
        return _not_found(key, Errors.COORDINATOR_NOT_AVAILABLE, None)
    return FindCoordinatorResponse.Coordinator(key=key, node_id=broker.broker_id, host=broker.host, port=broker.port)


def _not_found(key: str, error: Errors, why: str | None) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(key=key, error_code=error, error_message=why)
