"""What there is: groups listed and described, from committed state. Source: KIP-932, "Kafka protocol changes"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from shareq.coordinator.groups.context import Context
from shareq.coordinator.groups.shard import GroupShard
from shareq.coordinator.shard import ShardState
from shareq.coordinator.share_group.assignor import Assignment
from shareq.coordinator.share_group.refusal import group_not_found
from shareq.coordinator.share_group.state import Member, ShareGroup
from shareq.coordinator.share_group.target import assignor_name
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.classic_group import DescribeGroupsRequest
from shareq.model.messages.cluster import ListGroupsRequest, ListGroupsResponse
from shareq.model.messages.consumer_group import ConsumerGroupDescribeRequest
from shareq.model.messages.share_group import (
    AUTHORIZED_OPERATIONS_OMITTED,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from shareq.model.workflow import Workflow

D = TypeVar("D")

Described = ShareGroupDescribeResponse.DescribedGroup

ALL_GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: without authorization, everybody may."""


def describe_each(
    context: Context,
    group_ids: Sequence[str],
    describe: Callable[[GroupShard, str], D],
    failed: Callable[[str, Errors], D],
    *,
    nameless: bool = False,
) -> Workflow[list[D]]:
    """Each group for itself; one whose shard is not here is described by that error. Classic groups may be nameless."""

    def one(group_id: str) -> Workflow[D]:
        if not (group_id or nameless):
            return failed(group_id, Errors.INVALID_GROUP_ID)
        shard = yield context.turn(group_id, partial(failed, group_id))
        return describe(shard, group_id)

    described: list[D] = yield [one(group_id) for group_id in group_ids]
    return described


def operations_of(request: ShareGroupDescribeRequest | ConsumerGroupDescribeRequest | DescribeGroupsRequest) -> int:
    return ALL_GROUP_OPERATIONS if request.include_authorized_operations else AUTHORIZED_OPERATIONS_OMITTED


def describe_groups(context: Context, request: ShareGroupDescribeRequest) -> Workflow[ShareGroupDescribeResponse]:
    """ShareGroupDescribe: each group for itself, an error included."""
    operations = operations_of(request)

    def describe(shard: GroupShard, group_id: str) -> Described:
        group = shard.find(ShareGroup, group_id)
        if group is None:
            error, message = group_not_found(shard, group_id)
            return Described(error_code=error, error_message=message, group_id=group_id)
        return _described(group, context.image, operations)

    if context.image.share_version == 0:
        groups = [_failed(group_id, Errors.UNSUPPORTED_VERSION) for group_id in request.group_ids]
    else:
        groups = yield from describe_each(context, request.group_ids, describe, _failed)
    return ShareGroupDescribeResponse(groups=tuple(groups))


def _failed(group_id: str, error: Errors) -> Described:
    return Described(error_code=error, group_id=group_id)


def _described(group: ShareGroup, image: ClusterImage, operations: int) -> Described:
    return Described(
        group_id=group.group_id,
        group_state=str(group.state),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor_name(image),
        members=tuple(_described_member(member, image) for member in group.members.values()),
        authorized_operations=operations,
    )


def _described_member(member: Member, image: ClusterImage) -> ShareGroupDescribeResponse.Member:
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
        assignment=_described_assignment(member.assigned, image),
    )


def _described_assignment(assigned: Assignment, image: ClusterImage) -> ShareGroupDescribeResponse.Assignment:
    """What the member holds now, without topics that exist no more."""
    return ShareGroupDescribeResponse.Assignment(
        topic_partitions=tuple(
            ShareGroupDescribeResponse.TopicPartitions(
                topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=partitions
            )
            for topic_id, partitions in assigned.items()
            if topic_id in image.topics_by_id
        )
    )


def list_groups(context: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    """ListGroups: the groups that this broker coordinates. Filters ignore case; unknown values match nothing."""
    runtime = context.runtime
    if any(runtime.state(partition) is ShardState.LOADING for partition in range(context.partition_count())):
        return ListGroupsResponse(error_code=Errors.COORDINATOR_LOAD_IN_PROGRESS)
    states = {text.strip().lower() for text in request.states_filter}
    types = {text.strip().lower() for text in request.types_filter}
    listed = [
        ListGroupsResponse.Group(
            group_id=group_id,
            protocol_type=group.protocol_type,
            group_state=str(group.state),
            group_type=str(group.TYPE),
        )
        for _, shard in runtime.active()
        for group_id, group in shard.groups.items()
        if (not states or group.state.lower() in states) and (not types or group.TYPE in types)
    ]
    return ListGroupsResponse(groups=tuple(listed))
