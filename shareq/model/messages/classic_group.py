"""Consumer groups of the classic protocol: JoinGroup (11), Heartbeat (12), LeaveGroup (13), SyncGroup (14) and
DescribeGroups (15). `metadata` and `assignment` are opaque bytes for the coordinator.
"""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message
from shareq.model.messages.share_group import AUTHORIZED_OPERATIONS_OMITTED


@message
class JoinGroupRequest(Request):
    """An empty `member_id` requests a new one. `protocols` are the assignors of the member, in order of preference."""

    API_KEY: ClassVar[int] = 11

    @message
    class Protocol:
        name: str
        metadata: bytes

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str
    protocols: tuple[Protocol, ...]
    reason: str | None = None


@message
class JoinGroupResponse(Response):
    """`members` is set only in the leader's response; the leader computes the assignment of all members."""

    @message
    class Member:
        member_id: str
        group_instance_id: str | None = None
        metadata: bytes

    error_code: Errors = Errors.NONE
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[Member, ...] = ()


@message
class SyncGroupRequest(Request):
    """`assignments` come from the leader. Protocol type and name are checked if present."""

    API_KEY: ClassVar[int] = 14

    @message
    class Assignment:
        member_id: str
        assignment: bytes

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[Assignment, ...] = ()


@message
class SyncGroupResponse(Response):
    error_code: Errors = Errors.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@message
class HeartbeatRequest(Request):
    API_KEY: ClassVar[int] = 12

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@message
class HeartbeatResponse(Response):
    error_code: Errors = Errors.NONE


@message
class LeaveGroupRequest(Request):
    """`member_id` before version 3, `members` since."""

    API_KEY: ClassVar[int] = 13

    @message
    class MemberIdentity:
        """With an empty `member_id`, the instance id alone identifies a static member."""

        member_id: str = ""
        group_instance_id: str | None = None
        reason: str | None = None

    group_id: str
    member_id: str = ""
    members: tuple[MemberIdentity, ...] = ()


@message
class LeaveGroupResponse(Response):
    @message
    class MemberResponse:
        member_id: str
        group_instance_id: str | None = None
        error_code: Errors = Errors.NONE

    error_code: Errors = Errors.NONE
    members: tuple[MemberResponse, ...] = ()


@message
class DescribeGroupsRequest(Request):
    API_KEY: ClassVar[int] = 15

    groups: tuple[str, ...]
    include_authorized_operations: bool = False


@message
class DescribeGroupsResponse(Response):
    @message
    class Member:
        """Metadata and assignment are empty unless the group is stable."""

        member_id: str
        group_instance_id: str | None = None
        client_id: str
        client_host: str
        member_metadata: bytes = b""
        member_assignment: bytes = b""

    @message
    class DescribedGroup:
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        group_id: str
        group_state: str = ""
        protocol_type: str = ""
        protocol_data: str = ""
        members: tuple[DescribeGroupsResponse.Member, ...] = ()
        authorized_operations: int = AUTHORIZED_OPERATIONS_OMITTED

    groups: tuple[DescribedGroup, ...] = ()
