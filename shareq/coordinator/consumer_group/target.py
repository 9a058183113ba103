"""The target assignment of a consumer group, computed by the assignor that most members request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shareq.coordinator.consumer_group.assignors import ASSIGNORS, AssignorInput, Subscriber
from shareq.coordinator.consumer_group.member import ConsumerGroupMember
from shareq.coordinator.consumer_group.records import TargetAssignmentMember, TargetAssignmentMetadata, encode
from shareq.coordinator.consumer_group.state import ConsumerGroup
from shareq.coordinator.group.assignment import EMPTY_ASSIGNMENT, Assignment
from shareq.model.ids import TopicId
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord


def preferred_assignor(members: Mapping[str, ConsumerGroupMember]) -> str:
    """The assignor that most members request; the default if no member requests one."""
    votes = Counter(member.server_assignor for member in members.values() if member.server_assignor)
    return max(ASSIGNORS, key=lambda name: votes[name])


def topic_ids_of(group: ConsumerGroup, member: ConsumerGroupMember, image: ClusterImage) -> frozenset[TopicId]:
    """The existing topics that a member subscribes to."""
    topics = map(image.topics.get, group.names_of(member))
    return frozenset(topic.topic_id for topic in topics if topic is not None)


class TargetAssignment(NamedTuple):
    """The target assignment of each member, by member id."""

    targets: Mapping[str, Assignment]

    @classmethod
    def compute(
        cls,
        group: ConsumerGroup,
        sender: ConsumerGroupMember,
        replaced: ConsumerGroupMember | None,
        image: ClusterImage,
    ) -> TargetAssignment:
        """Compute the targets of the group's members with the sender added or updated, and without the static member
        that the sender replaces."""
        members = {**group.members, sender.member_id: sender}
        former = {sender.member_id: sender.member_id}
        if replaced and replaced.member_id != sender.member_id:
            del members[replaced.member_id]
            former = {sender.member_id: replaced.member_id}
        subscribers = {
            member_id: Subscriber(
                member.instance_id,
                topic_ids_of(group, member, image),
                group.targets.get(former.get(member_id, member_id), EMPTY_ASSIGNMENT),
            )
            for member_id, member in members.items()
        }
        topic_ids = sorted(frozenset[TopicId]().union(*(subscriber.topic_ids for subscriber in subscribers.values())))
        counts = {topic_id: len(image.topics_by_id[topic_id].partitions) for topic_id in topic_ids}
        return cls(ASSIGNORS[preferred_assignor(members)](AssignorInput(subscribers, counts)))

    def records(self, group: ConsumerGroup, epoch: int, now_ms: int) -> Iterator[CoordinatorRecord]:
        """A record for each member with a changed or new target, then the record of the assignment epoch."""
        for member_id, target in self.targets.items():
            if group.targets.get(member_id) != target:
                yield encode(group.group_id, TargetAssignmentMember(target), member_id)
        yield encode(group.group_id, TargetAssignmentMetadata(epoch, now_ms))
