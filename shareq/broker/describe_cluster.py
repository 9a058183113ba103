"""Responses that describe the cluster: reassignments, log directories, quorum, config resources."""

from __future__ import annotations

from shareq.broker.data_plane import DataPlane
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.describe import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from shareq.model.messages.topics import ResourceType

LOG_DIR = "/memory"
"""The name of the one log directory; logs are in memory."""

QUORUM_TOPIC = "__cluster_metadata"
_RESOURCE_TYPES = tuple(ResourceType)


def list_partition_reassignments(_: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """Always empty: replicas do not move."""
    return ListPartitionReassignmentsResponse()


def describe_log_dirs(request: DescribeLogDirsRequest, data: DataPlane) -> DescribeLogDirsResponse:
    """The replicas of this broker and their sizes, in one log directory."""
    topics = []
    wanted = None if request.topics is None else {requested.topic: requested.partitions for requested in request.topics}
    for topic in data.image.topics.values():
        partitions = []
        for index, partition in enumerate(topic.partitions):
            requested = wanted is None or index in wanted.get(topic.name, ())
            if requested and data.broker_id in partition.replicas:
                log = data.storage.log(topic.name, index)
                size = log.size_in_bytes if log else 0
                partitions.append(DescribeLogDirsResponse.Partition(partition_index=index, partition_size=size))
        if partitions:
            topics.append(DescribeLogDirsResponse.Topic(name=topic.name, partitions=tuple(partitions)))
    return DescribeLogDirsResponse(results=(DescribeLogDirsResponse.Result(log_dir=LOG_DIR, topics=tuple(topics)),))


def describe_quorum(request: DescribeQuorumRequest, image: ClusterImage) -> DescribeQuorumResponse:
    """A quorum of one voter, the controller; its log end offset is the version of the image."""
    voter = DescribeQuorumResponse.Replica(replica_id=image.controller_id, log_end_offset=image.version)

    def described(topic: str, index: int) -> DescribeQuorumResponse.Partition:
        if (topic, index) != (QUORUM_TOPIC, 0):
            return DescribeQuorumResponse.Partition(partition_index=index, error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION)
        return DescribeQuorumResponse.Partition(
            partition_index=index,
            leader_id=image.controller_id,
            leader_epoch=1,
            high_watermark=image.version,
            current_voters=(voter,),
            observers=tuple(
                DescribeQuorumResponse.Replica(replica_id=b.broker_id, log_end_offset=image.version)
                for b in image.brokers.values()
                if b.alive and b.broker_id != image.controller_id
            ),
        )

    home = image.brokers[image.controller_id]
    listener = DescribeQuorumResponse.Listener(name="CONTROLLER", host=home.host, port=home.port)
    return DescribeQuorumResponse(
        topics=tuple(
            DescribeQuorumResponse.Topic(
                topic_name=topic.topic_name,
                partitions=tuple(described(topic.topic_name, part.partition_index) for part in topic.partitions),
            )
            for topic in request.topics
        ),
        nodes=(DescribeQuorumResponse.Node(node_id=home.broker_id, listeners=(listener,)),),
    )


def list_config_resources(request: ListConfigResourcesRequest, image: ClusterImage) -> ListConfigResourcesResponse:
    """Topics, brokers, and the groups with configurations."""
    wanted = request.resource_types or _RESOURCE_TYPES
    if any(kind not in _RESOURCE_TYPES for kind in wanted):
        return ListConfigResourcesResponse(error_code=Errors.UNSUPPORTED_VERSION)
    brokers = tuple(str(broker_id) for broker_id in image.brokers)
    names: dict[int, tuple[str, ...]] = {
        ResourceType.TOPIC: tuple(image.topics),
        ResourceType.BROKER: brokers,
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.CLIENT_METRICS: (),
        ResourceType.GROUP: tuple(image.group_configs),
    }
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ListConfigResourcesResponse.Resource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(wanted)
            for name in names[kind]
        )
    )
