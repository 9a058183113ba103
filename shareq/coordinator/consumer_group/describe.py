"""ConsumerGroupDescribe, answered from committed state. Source: KIP-848, "ConsumerGroupDescribe API"."""

from __future__ import annotations

from shareq.coordinator.consumer_group.member import ConsumerGroupMember
from shareq.coordinator.consumer_group.refusal import refuse_group
from shareq.coordinator.consumer_group.state import ConsumerGroup
from shareq.coordinator.consumer_group.target import preferred_assignor
from shareq.coordinator.group.assignment import EMPTY_ASSIGNMENT, Assignment
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.describe import describe_each, operations_of
from shareq.coordinator.group.shard import GroupShard
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from shareq.model.messages.share_group import DescribedAssignment
from shareq.model.workflow import Workflow

Response = ConsumerGroupDescribeResponse
Described = ConsumerGroupDescribeResponse.DescribedGroup

CONSUMER_MEMBER = 1


def describe_consumer_groups(context: Context, request: ConsumerGroupDescribeRequest) -> Workflow[Response]:
    """ConsumerGroupDescribe: each group has its own result and error."""
    operations = operations_of(request)

    def describe(shard: GroupShard, group_id: str) -> Described:
        group = shard.find(ConsumerGroup, group_id)
        if group is not None:
            return _described(group, context.image, operations)
        refusal = refuse_group(shard, group_id, joining=False)
        assert refusal is not None, "only a consumer group is not refused"
        return Described(error_code=refusal.error, error_message=refusal.message, group_id=group_id)

    groups = yield from describe_each(context, request.group_ids, describe, _failed)
    return Response(groups=tuple(groups))


def _failed(group_id: str, error: Errors) -> Described:
    return Described(error_code=error, group_id=group_id)


def _described(group: ConsumerGroup, image: ClusterImage, operations: int) -> Described:
    members = (
        _member(member, group.targets.get(member.member_id, EMPTY_ASSIGNMENT), image)
        for member in group.members.values()
    )
    return Described(
        group_id=group.group_id,
        group_state=str(group.state),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members),
        members=tuple(members),
        authorized_operations=operations,
    )


def _member(member: ConsumerGroupMember, target: Assignment, image: ClusterImage) -> Response.Member:
    """One member. Partitions that it has not revoked yet count as assigned."""
    owned: dict[TopicId, list[int]] = {}
    for topic_id, partition in member.owned():
        owned.setdefault(topic_id, []).append(partition)
    return Response.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment({topic_id: tuple(sorted(indexes)) for topic_id, indexes in owned.items()}, image),
        target_assignment=_assignment(target, image),
        member_type=CONSUMER_MEMBER,
    )


def _assignment(assignment: Assignment, image: ClusterImage) -> DescribedAssignment:
    """The assignment with topic names; deleted topics are left out."""
    topics = ((image.topics_by_id.get(topic_id), indexes) for topic_id, indexes in assignment.items())
    listed = (
        DescribedAssignment.TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=indexes)
        for topic, indexes in topics
        if topic
    )
    return DescribedAssignment(topic_partitions=tuple(listed))
