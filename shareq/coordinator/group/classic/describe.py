"""DescribeGroups: classic groups as they are; all others look as if they were dead."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.classic.state import ClassicGroup, ClassicGroupState, Member
from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.describe import ALL_GROUP_OPERATIONS
from shareq.coordinator.group.gather import Task, gather
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.shard import Outcome
from shareq.model.actor import ClientContext, Effect
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import DescribeGroupsRequest, DescribeGroupsResponse
from shareq.model.messages.share_group import AUTHORIZED_OPERATIONS_OMITTED

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
    operations = ALL_GROUP_OPERATIONS if request.include_authorized_operations else AUTHORIZED_OPERATIONS_OMITTED

    def respond(groups: list[Described], now_ms: int) -> Iterable[Effect]:
        return then(DescribeGroupsResponse(groups=tuple(groups)), now_ms)

    tasks = [_describe(context, group_id, operations, client.api_version) for group_id in request.groups]
    return gather(tasks, respond, now_ms)


def _describe(context: Context, group_id: str, operations: int, version: int) -> Task[Described]:
    def failure(error: Errors) -> Described:
        return Described(error_code=error, group_id=group_id)

    def compute(shard: GroupShard, now_ms: int) -> Outcome[Described]:
        del now_ms
        group = shard.find(ClassicGroup, group_id)
        if group is not None:
            return Outcome(_described(group, operations))
        if version < NOT_FOUND_VERSION:
            return Outcome(
                Described(group_id=group_id, group_state=ClassicGroupState.DEAD, authorized_operations=operations)
            )
        why = "is not a classic group" if group_id in shard.groups else "not found"
        return Outcome(
            Described(
                error_code=Errors.GROUP_ID_NOT_FOUND,
                error_message=f"Group {group_id} {why}.",
                group_id=group_id,
                group_state=ClassicGroupState.DEAD,
            )
        )

    def task(then: Then[Described], now_ms: int) -> Iterable[Effect]:
        return context.schedule(group_id, compute, failure, then, now_ms)

    return task


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
