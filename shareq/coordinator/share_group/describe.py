"""Share groups described, from committed state. Source: KIP-932, "Kafka protocol changes"."""

from __future__ import annotations

from shareq.coordinator.group.assignment import Assignment
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.describe import describe_each, operations_of
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.share_group.experiments.assignors import assignor_name
from shareq.coordinator.share_group.refusal import group_not_found
from shareq.coordinator.share_group.state import ShareGroup, ShareGroupMember
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.share_group import (
    DescribedAssignment,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from shareq.model.workflow import Workflow

Described = ShareGroupDescribeResponse.DescribedGroup


def describe_groups(context: Context, request: ShareGroupDescribeRequest) -> Workflow[ShareGroupDescribeResponse]:
    """ShareGroupDescribe: each group separately, with its own error."""
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
        assignor_name=assignor_name(group.group_id, image),
        members=tuple(_described_member(member, image) for member in group.members.values()),
        authorized_operations=operations,
    )


def _described_member(member: ShareGroupMember, image: ClusterImage) -> ShareGroupDescribeResponse.Member:
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
        assignment=_described_assignment(member.assigned, image),
    )


def _described_assignment(assigned: Assignment, image: ClusterImage) -> DescribedAssignment:
    """The member's current assignment, without deleted topics."""
    return DescribedAssignment(
        topic_partitions=tuple(
            DescribedAssignment.TopicPartitions(
                topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=partitions
            )
            for topic_id, partitions in assigned.items()
            if topic_id in image.topics_by_id
        )
    )
