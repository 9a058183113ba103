"""Consumer groups of the new protocol (KIP-848): ConsumerGroupHeartbeat (68) and ConsumerGroupDescribe (69)."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message
from shareq.model.messages.share_group import AUTHORIZED_OPERATIONS_OMITTED, DescribedAssignment, MemberAssignment


@message
class ConsumerGroupHeartbeatRequest(Request):
    """None and -1 mean unchanged since the last heartbeat. Epoch 0 joins, -1 leaves, -2 leaves temporarily.

    `topic_partitions` are the partitions that the member owns, that is, has not revoked yet. Before version 1 an empty
    `member_id` requests one; since then the member generates its own.
    """

    API_KEY: ClassVar[int] = 68

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[MemberAssignment.TopicPartitions, ...] | None = None


@message
class ConsumerGroupHeartbeatResponse(Response):
    """`assignment`: the partitions that the member may use from now on; None if unchanged."""

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: MemberAssignment | None = None


@message
class ConsumerGroupDescribeRequest(Request):
    API_KEY: ClassVar[int] = 69

    group_ids: tuple[str, ...]
    include_authorized_operations: bool = False


@message
class ConsumerGroupDescribeResponse(Response):
    @message
    class Member:
        """`member_type`: 0 a member of the classic protocol, 1 of the new one."""

        member_id: str
        instance_id: str | None = None
        rack_id: str | None = None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: tuple[str, ...]
        subscribed_topic_regex: str | None = None
        assignment: DescribedAssignment
        target_assignment: DescribedAssignment
        member_type: int = -1

    @message
    class DescribedGroup:
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        group_id: str
        group_state: str = ""
        group_epoch: int = 0
        assignment_epoch: int = 0
        assignor_name: str = ""
        members: tuple[ConsumerGroupDescribeResponse.Member, ...] = ()
        authorized_operations: int = AUTHORIZED_OPERATIONS_OMITTED

    groups: tuple[DescribedGroup, ...] = ()
