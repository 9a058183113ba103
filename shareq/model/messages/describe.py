"""Descriptions of a cluster for admins: its brokers (60), partitions (75), reassignments (46), log directories (35),
producers (61), quorum (55), and the resources with configurations (74)."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.base import Request, Response, message
from shareq.model.messages.cluster import NOT_ASKED

BROKER_ENDPOINTS = 1


@message
class DescribeClusterRequest(Request):
    API_KEY: ClassVar[int] = 60

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = BROKER_ENDPOINTS
    include_fenced_brokers: bool = False


@message
class DescribeClusterResponse(Response):
    @message
    class Broker:
        broker_id: int
        host: str
        port: int
        rack: str | None = None
        is_fenced: bool = False

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    endpoint_type: int = BROKER_ENDPOINTS
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[Broker, ...] = ()
    cluster_authorized_operations: int = NOT_ASKED


@message
class Cursor:
    """The first partition of the next page."""

    topic_name: str
    partition_index: int


@message
class DescribeTopicPartitionsRequest(Request):
    """An empty `topics` requests all. A response has at most `response_partition_limit` partitions."""

    API_KEY: ClassVar[int] = 75

    @message
    class Topic:
        name: str

    topics: tuple[Topic, ...] = ()
    response_partition_limit: int = 2000
    cursor: Cursor | None = None


@message
class DescribeTopicPartitionsResponse(Response):
    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE
        leader_id: int = -1
        leader_epoch: int = -1
        replica_nodes: tuple[int, ...] = ()
        isr_nodes: tuple[int, ...] = ()
        eligible_leader_replicas: tuple[int, ...] | None = ()
        last_known_elr: tuple[int, ...] | None = ()
        offline_replicas: tuple[int, ...] = ()

    @message
    class Topic:
        name: str | None
        topic_id: TopicId = ZERO_TOPIC_ID
        error_code: Errors = Errors.NONE
        is_internal: bool = False
        partitions: tuple[DescribeTopicPartitionsResponse.Partition, ...] = ()
        topic_authorized_operations: int = NOT_ASKED

    topics: tuple[Topic, ...] = ()
    next_cursor: Cursor | None = None


@message
class ListPartitionReassignmentsRequest(Request):
    """`topics` None requests all."""

    API_KEY: ClassVar[int] = 46

    @message
    class Topic:
        name: str
        partition_indexes: tuple[int, ...]

    timeout_ms: int = 60000
    topics: tuple[Topic, ...] | None = None


@message
class ListPartitionReassignmentsResponse(Response):
    @message
    class Partition:
        partition_index: int
        replicas: tuple[int, ...]
        adding_replicas: tuple[int, ...] = ()
        removing_replicas: tuple[int, ...] = ()

    @message
    class Topic:
        name: str
        partitions: tuple[ListPartitionReassignmentsResponse.Partition, ...]

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    topics: tuple[Topic, ...] = ()


@message
class DescribeLogDirsRequest(Request):
    """`topics` None requests all."""

    API_KEY: ClassVar[int] = 35

    @message
    class Topic:
        topic: str
        partitions: tuple[int, ...]

    topics: tuple[Topic, ...] | None = None


@message
class DescribeLogDirsResponse(Response):
    @message
    class Partition:
        """Sizes in bytes; `offset_lag` is the number of records that the replica lacks."""

        partition_index: int
        partition_size: int
        offset_lag: int = 0
        is_future_key: bool = False

    @message
    class Topic:
        name: str
        partitions: tuple[DescribeLogDirsResponse.Partition, ...]

    @message
    class Result:
        log_dir: str
        error_code: Errors = Errors.NONE
        topics: tuple[DescribeLogDirsResponse.Topic, ...] = ()
        total_bytes: int = -1
        usable_bytes: int = -1

    error_code: Errors = Errors.NONE
    results: tuple[Result, ...] = ()


@message
class DescribeProducersRequest(Request):
    API_KEY: ClassVar[int] = 61

    @message
    class Topic:
        name: str
        partition_indexes: tuple[int, ...]

    topics: tuple[Topic, ...]


@message
class DescribeProducersResponse(Response):
    @message
    class Producer:
        """`current_txn_start_offset` is -1 while no transaction is open."""

        producer_id: int
        producer_epoch: int
        last_sequence: int = -1
        last_timestamp: int = -1
        coordinator_epoch: int = -1
        current_txn_start_offset: int = -1

    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        active_producers: tuple[DescribeProducersResponse.Producer, ...] = ()

    @message
    class Topic:
        name: str
        partitions: tuple[DescribeProducersResponse.Partition, ...]

    topics: tuple[Topic, ...] = ()


@message
class DescribeQuorumRequest(Request):
    API_KEY: ClassVar[int] = 55

    @message
    class Partition:
        partition_index: int

    @message
    class Topic:
        topic_name: str
        partitions: tuple[DescribeQuorumRequest.Partition, ...]

    topics: tuple[Topic, ...]


@message
class DescribeQuorumResponse(Response):
    @message
    class Replica:
        """Timestamps in ms since the epoch, -1 where unknown."""

        replica_id: int
        replica_directory_id: TopicId = ZERO_TOPIC_ID
        log_end_offset: int
        last_fetch_timestamp: int = -1
        last_caught_up_timestamp: int = -1

    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        leader_id: int = -1
        leader_epoch: int = -1
        high_watermark: int = -1
        current_voters: tuple[DescribeQuorumResponse.Replica, ...] = ()
        observers: tuple[DescribeQuorumResponse.Replica, ...] = ()

    @message
    class Topic:
        topic_name: str
        partitions: tuple[DescribeQuorumResponse.Partition, ...]

    @message
    class Listener:
        name: str
        host: str
        port: int

    @message
    class Node:
        node_id: int
        listeners: tuple[DescribeQuorumResponse.Listener, ...]

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    topics: tuple[Topic, ...] = ()
    nodes: tuple[Node, ...] = ()


@message
class ListConfigResourcesRequest(Request):
    """Resource types as in DescribeConfigs; an empty list requests all types. Version 0 supports client metrics
    only."""

    API_KEY: ClassVar[int] = 74

    resource_types: tuple[int, ...] = ()


@message
class ListConfigResourcesResponse(Response):
    @message
    class Resource:
        resource_name: str
        resource_type: int

    error_code: Errors = Errors.NONE
    config_resources: tuple[Resource, ...] = ()
