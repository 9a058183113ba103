"""Share group membership and administration: heartbeat (76), describe (77), offsets (90-92)."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response, message

AUTHORIZED_OPERATIONS_OMITTED = -(1 << 31)


@message
class MemberAssignment:
    """The partitions of a member of a share group or consumer group, for the member."""

    @message
    class TopicPartitions:
        topic_id: TopicId
        partitions: tuple[int, ...]

    topic_partitions: tuple[TopicPartitions, ...] = ()


@message
class DescribedAssignment:
    """The partitions of a member, for others."""

    @message
    class TopicPartitions:
        topic_id: TopicId
        topic_name: str
        partitions: tuple[int, ...]

    topic_partitions: tuple[TopicPartitions, ...] = ()


@message
class ShareGroupHeartbeatRequest(Request):
    """None means unchanged since the last heartbeat. Epoch 0 joins, -1 leaves."""

    API_KEY: ClassVar[int] = 76

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None


@message
class ShareGroupHeartbeatResponse(Response):
    error_code: Errors = Errors.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: MemberAssignment | None = None


@message
class ShareGroupDescribeRequest(Request):
    API_KEY: ClassVar[int] = 77

    group_ids: tuple[str, ...]
    include_authorized_operations: bool = False


@message
class ShareGroupDescribeResponse(Response):
    @message
    class Member:
        member_id: str
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: tuple[str, ...]
        assignment: DescribedAssignment

    @message
    class DescribedGroup:
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        group_id: str
        group_state: str = ""
        group_epoch: int = 0
        assignment_epoch: int = 0
        assignor_name: str = ""
        members: tuple[ShareGroupDescribeResponse.Member, ...] = ()
        authorized_operations: int = AUTHORIZED_OPERATIONS_OMITTED

    groups: tuple[DescribedGroup, ...] = ()


@message
class DescribeShareGroupOffsetsRequest(Request):
    API_KEY: ClassVar[int] = 90

    @message
    class Topic:
        topic_name: str
        partitions: tuple[int, ...]

    @message
    class Group:
        """`topics` None requests all topics of the group."""

        group_id: str
        topics: tuple[DescribeShareGroupOffsetsRequest.Topic, ...] | None = None

    groups: tuple[Group, ...]


@message
class DescribeShareGroupOffsetsResponse(Response):
    @message
    class Partition:
        partition_index: int
        start_offset: int = -1
        leader_epoch: int = 0
        lag: int = -1
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    @message
    class Topic:
        topic_name: str
        topic_id: TopicId
        partitions: tuple[DescribeShareGroupOffsetsResponse.Partition, ...]

    @message
    class Group:
        group_id: str
        topics: tuple[DescribeShareGroupOffsetsResponse.Topic, ...] = ()
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    groups: tuple[Group, ...] = ()


@message
class AlterShareGroupOffsetsRequest(Request):
    API_KEY: ClassVar[int] = 91

    @message
    class Partition:
        partition_index: int
        start_offset: int

    @message
    class Topic:
        topic_name: str
        partitions: tuple[AlterShareGroupOffsetsRequest.Partition, ...]

    group_id: str
    topics: tuple[Topic, ...]


@message
class AlterShareGroupOffsetsResponse(Response):
    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    @message
    class Topic:
        topic_name: str
        topic_id: TopicId
        partitions: tuple[AlterShareGroupOffsetsResponse.Partition, ...]

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    responses: tuple[Topic, ...] = ()


@message
class DeleteShareGroupOffsetsRequest(Request):
    API_KEY: ClassVar[int] = 92

    @message
    class Topic:
        topic_name: str

    group_id: str
    topics: tuple[Topic, ...]


@message
class DeleteShareGroupOffsetsResponse(Response):
    @message
    class Topic:
        topic_name: str
        topic_id: TopicId
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    responses: tuple[Topic, ...] = ()
