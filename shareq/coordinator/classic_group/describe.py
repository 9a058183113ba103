"""DescribeGroups: classic groups; an absent group and a group of another type are shown as Dead."""

from __future__ import annotations

from shareq.coordinator.classic_group.state import ClassicGroup, ClassicGroupMember, ClassicGroupState
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.describe import describe_each, operations_of
from shareq.coordinator.group.shard import GroupShard
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import DescribeGroupsRequest, DescribeGroupsResponse
from shareq.model.workflow import Workflow

NOT_FOUND_VERSION = 6

Described = DescribeGroupsResponse.DescribedGroup


def describe_classic_groups(
    context: Context, request: DescribeGroupsRequest, client: ClientContext
) -> Workflow[DescribeGroupsResponse]:
    """DescribeGroups: each group has its own result and error."""
    operations = operations_of(request)

    def describe(shard: GroupShard, group_id: str) -> Described:
        group = shard.find(ClassicGroup, group_id)
        if group is not None:
            return _described(group, operations)
        if client.api_version < NOT_FOUND_VERSION:
            return Described(group_id=group_id, group_state=ClassicGroupState.DEAD, authorized_operations=operations)
        why = "is not a classic group" if group_id in shard.groups else "not found"
        return Described(
            error_code=Errors.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {why}.",
            group_id=group_id,
            group_state=ClassicGroupState.DEAD,
        )

    groups = yield from describe_each(context, request.groups, describe, _failed, nameless=True)
    return DescribeGroupsResponse(groups=tuple(groups))


def _failed(group_id: str, error: Errors) -> Described:
    return Described(error_code=error, group_id=group_id)


def _described(group: ClassicGroup, operations: int) -> Described:
    """Protocol, member metadata and assignments are shown in Stable only; in other states they are about to change."""
    stable = group.state is ClassicGroupState.STABLE
    return Described(
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(_described_member(m, group.protocol_name if stable else None) for m in group.members.values()),
        authorized_operations=operations,
    )


def _described_member(member: ClassicGroupMember, protocol_name: str | None) -> DescribeGroupsResponse.Member:
    return DescribeGroupsResponse.Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol_name is None else member.metadata(protocol_name),
        member_assignment=b"" if protocol_name is None else member.assignment,
    )
