"""The target assignment of a group: computed by the configured assignor, recorded for members whose target differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from shareq.coordinator.group.assignment import Assignment
from shareq.coordinator.share_group.assignor import AssignableTopic, AssignorInput, Weights
from shareq.coordinator.share_group.experiments.assignors import assignor_of
from shareq.coordinator.share_group.partitions import SharePartitions
from shareq.coordinator.share_group.records import TargetAssignmentMember, TargetAssignmentMetadata, encode
from shareq.coordinator.share_group.state import ShareGroup, ShareGroupMember, to_topic_partitions
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord


def assignor_input(
    group: ShareGroup,
    subscribed: Iterable[str],
    image: ClusterImage,
    weights: Weights,
    sender: ShareGroupMember | None = None,
) -> AssignorInput:
    """The committed group, with the sender's new metadata if there is a sender; `subscribed`: the names of the topics
    of all members."""
    members = {member_id: member.subscribed_topic_names for member_id, member in group.members.items()}
    if sender is not None:
        members[sender.member_id] = sender.subscribed_topic_names
    initialized = (group.share_partitions or SharePartitions()).initialized
    topics = {
        topic.name: AssignableTopic(topic.topic_id, tuple(sorted(initialized.get(topic.topic_id, ()))))
        for topic in map(image.topics.get, sorted(subscribed))
        if topic
    }
    return AssignorInput(members, group.targets, topics, weights)


class TargetAssignment(NamedTuple):
    """The target of every member."""

    targets: Mapping[str, Assignment]

    @classmethod
    def compute(
        cls,
        group: ShareGroup,
        sender: ShareGroupMember,
        subscribed: Iterable[str],
        image: ClusterImage,
        weights: Weights,
    ) -> TargetAssignment:
        """Compute the targets for the committed group, with the sender's new metadata."""
        given = assignor_input(group, subscribed, image, weights, sender)
        return cls(assignor_of(group.group_id, image).assign(given))

    def records(self, group: ShareGroup, epoch: int, now_ms: int) -> Iterator[CoordinatorRecord]:
        """A record for each member whose target has changed or is new; then the epoch."""
        for member_id, target in self.targets.items():
            if group.targets.get(member_id) != target:
                value = TargetAssignmentMember(to_topic_partitions(target))
                yield encode(group.group_id, value, member_id)
        yield encode(group.group_id, TargetAssignmentMetadata(epoch, now_ms))
