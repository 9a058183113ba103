"""Discovery: Metadata (3), FindCoordinator (10); groups of all types: ListGroups (16), DeleteGroups (42)."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.base import Request, Response, message

NOT_ASKED = -(1 << 31)
"""Value of authorized operations that were not requested; in other values bit `1 << code` means an operation."""


@message
class MetadataRequest(Request):
    """`topics` None requests all topics, () none (brokers only).

    If one topic id is not zero, all topics are looked up by id. Authorized operations of the cluster: up to version 10.
    """

    API_KEY: ClassVar[int] = 3

    @message
    class Topic:
        """By name, or by id where `name` is None."""

        name: str | None = None
        topic_id: TopicId = ZERO_TOPIC_ID

    topics: tuple[Topic, ...] | None = None
    allow_auto_topic_creation: bool = False
    include_topic_authorized_operations: bool = False
    include_cluster_authorized_operations: bool = False


@message
class MetadataResponse(Response):
    @message
    class Broker:
        node_id: int
        host: str
        port: int
        rack: str | None = None

    @message
    class Partition:
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: tuple[int, ...] = ()
        isr_nodes: tuple[int, ...] = ()
        offline_replicas: tuple[int, ...] = ()
        error_code: Errors = Errors.NONE

    @message
    class Topic:
        name: str | None
        topic_id: TopicId
        is_internal: bool = False
        partitions: tuple[MetadataResponse.Partition, ...] = ()
        topic_authorized_operations: int = NOT_ASKED
        error_code: Errors = Errors.NONE

    brokers: tuple[Broker, ...]
    cluster_id: str
    controller_id: int
    topics: tuple[Topic, ...] = ()
    cluster_authorized_operations: int = NOT_ASKED
    error_code: Errors = Errors.NONE


class CoordinatorType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@message
class FindCoordinatorRequest(Request):
    API_KEY: ClassVar[int] = 10

    key_type: int = CoordinatorType.GROUP
    coordinator_keys: tuple[str, ...]


@message
class FindCoordinatorResponse(Response):
    @message
    class Coordinator:
        key: str
        node_id: int = -1
        host: str = ""
        port: int = -1
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    coordinators: tuple[Coordinator, ...] = ()


@message
class ListGroupsRequest(Request):
    """An empty filter matches every group."""

    API_KEY: ClassVar[int] = 16

    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


@message
class ListGroupsResponse(Response):
    @message
    class Group:
        group_id: str
        protocol_type: str
        group_state: str
        group_type: str

    error_code: Errors = Errors.NONE
    groups: tuple[Group, ...] = ()


@message
class DeleteGroupsRequest(Request):
    API_KEY: ClassVar[int] = 42

    groups_names: tuple[str, ...]


@message
class DeleteGroupsResponse(Response):
    @message
    class Result:
        """Version 3 adds the message, which is None for share groups."""

        group_id: str
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    results: tuple[Result, ...] = ()
