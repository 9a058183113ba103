"""DescribeGroups: classic groups as they are; all others look as if they were dead."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.classic.state import ClassicGroup, ClassicGroupState, Member
from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.describe import describing, operations_of
from shareq.coordinator.group.gather import gather
from shareq.coordinator.group.shard import GroupShard
from shareq.model.actor import ClientContext, Effect
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import DescribeGroupsRequest, DescribeGroupsResponse

NOT_FOUND_VERSION = 6

Described = DescribeGroupsResponse.DescribedGroup


def describe_classic_groups(
    context: Context,
    request: DescribeGroupsRequest,
    client: ClientContext,
    then: Then[DescribeGroupsResponse],
    now_ms: int,
) -> list[Effect]:
    """DescribeGroups: each group for itself, an error included."""
    operations = operations_of(request)

    def respond(groups: list[Described], now_ms: int) -> Iterable[Effect]:
        return then(DescribeGroupsResponse(groups=tuple(groups)), now_ms)

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

    return gather(describing(context, request.groups, describe, _failed, nameless=True), respond, now_ms)


def _failed(group_id: str, error: Errors) -> Described:
    return Described(error_code=error, group_id=group_id)


def _described(group: ClassicGroup, operations: int) -> Described:
    """What was agreed upon is told of a stable group only; it is about to change otherwise."""
    stable = group.state is ClassicGroupState.STABLE
    return Described(
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(_described_member(m, group.protocol_name if stable else None) for m in group.members.values()),
        authorized_operations=operations,
    )


def _described_member(member: Member, protocol_name: str | None) -> DescribeGroupsResponse.Member:
    return DescribeGroupsResponse.Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol_name is None else member.metadata(protocol_name),
        member_assignment=b"" if protocol_name is None else member.assignment,
    )
