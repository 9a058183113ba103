"""The committed state of share groups. It changes only by replay of records.

Soft state is not in the records: session deadlines (see `deadlines`), and the checks that a heartbeat may skip because
the last one found no change. Source: KIP-932, "Share group state"; Kafka's ShareGroup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from shareq.coordinator.group.assignment import EMPTY_ASSIGNMENT, Assignment
from shareq.coordinator.group.group import Committer, Group, GroupType, WithoutMemberEpochs, claim, find
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.share_group import records
from shareq.coordinator.share_group.partitions import SharePartitions
from shareq.coordinator.share_group.records import RecordType, TopicPartitions, decode, tombstone
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord
from shareq.model.states import GroupState

NEVER_MS = (1 << 63) - 1
LEAVE_EPOCH = -1
NO_TOPICS: frozenset[str] = frozenset()


class ShareGroupMember(NamedTuple):
    """A member: its subscription, epochs and assignment. `previous_member_epoch` accepts a retry after a lost
    response."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = NO_TOPICS
    member_epoch: int = 0
    previous_member_epoch: int = -1
    assigned: Assignment = EMPTY_ASSIGNMENT


def to_topic_partitions(assignment: Assignment) -> tuple[TopicPartitions, ...]:
    """An assignment in the form of records and messages."""
    return tuple(TopicPartitions(topic, partitions) for topic, partitions in assignment.items())


def _to_assignment(topics: tuple[TopicPartitions, ...]) -> Assignment:
    return {topic.topic_id: tuple(sorted(topic.partitions)) for topic in topics}


class ShareGroup(WithoutMemberEpochs):
    """One group: members, their targets, three epochs, and the initialization state of its share-partitions.

    `share_partitions` is None until the first record of it; `recorded_at_ms` is the time of the last one, from which
    the age of an initialization counts.
    """

    TYPE: ClassVar[GroupType] = GroupType.SHARE
    protocol_type: ClassVar[str] = "share"
    is_simple: ClassVar[bool] = False

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "members",
        "metadata_hash",
        "pending",
        "recorded_at_ms",
        "refresh_at_ms",
        "share_partitions",
        "subscriptions",
        "targets",
        "uninitialized_at_ms",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ShareGroupMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.subscriptions: dict[str, int] = {}
        """The number of subscribed members by topic name."""
        self.share_partitions: SharePartitions | None = None
        self.recorded_at_ms = 0
        # Soft state: the time at which a heartbeat must check again.
        self.pending: bool | None = None
        self.refresh_at_ms = 0
        self.uninitialized_at_ms = 0

    @property
    def state(self) -> GroupState:
        return GroupState.STABLE if self.members else GroupState.EMPTY

    # ---- for other protocols: a share group has no committed offsets -------------------------------------------------

    def refuse_commit(self, committer: Committer) -> Errors:
        del committer
        return Errors.GROUP_ID_NOT_FOUND

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> Errors:
        del member_id, member_epoch
        return Errors.GROUP_ID_NOT_FOUND

    def refuse_offset_delete(self) -> Errors:
        return Errors.GROUP_ID_NOT_FOUND

    def refuse_delete(self) -> Errors:
        return Errors.NON_EMPTY_GROUP if self.members else Errors.NONE

    def subscribes(self, topic: str) -> bool:
        return topic in self.subscriptions

    def expiry_base_ms(self, committed_at_ms: int) -> int | None:
        del committed_at_ms
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        kinds = RecordType.TARGET_ASSIGNMENT_METADATA, RecordType.STATE_PARTITION_METADATA, RecordType.METADATA
        return [tombstone(kind, self.group_id) for kind in kinds]

    # ---- queries -----------------------------------------------------------------------------------------------------

    def look_again(self) -> None:
        """Reset the soft state after a change of topics or configurations."""
        self.pending = None
        self.refresh_at_ms = 0
        self.uninitialized_at_ms = 0

    def subscribed_after(self, before: frozenset[str], after: frozenset[str]) -> frozenset[str]:
        """The group's subscribed names after one member's subscription changes from `before` to `after`."""
        gone = {name for name in before - after if self.subscriptions[name] == 1}
        return frozenset((self.subscriptions.keys() - gone) | after)

    def assignment_pending(self, image: ClusterImage) -> bool:
        """True if the initialized partitions of subscribed topics differ from the partitions in the targets."""
        if self.pending is None:
            self.pending = self._assignment_pending(image)
        return self.pending

    def _assignment_pending(self, image: ClusterImage) -> bool:
        if not (self.members and self.subscriptions and self.share_partitions):
            return False
        wanted = {
            topic.topic_id: self.share_partitions.initialized[topic.topic_id]
            for topic in map(image.topics.get, self.subscriptions)
            if topic and topic.topic_id in self.share_partitions.initialized
        }
        targeted: dict[str, set[int]] = {topic_id: set() for topic_id in wanted}
        for target in self.targets.values():
            for topic_id, partitions in target.items():
                if topic_id in targeted:
                    targeted[topic_id].update(partitions)
        return wanted != targeted

    # ---- replay ------------------------------------------------------------------------------------------------------

    def replay_member_metadata(self, member_id: str, value: records.MemberMetadata | None) -> None:
        member = self.members.get(member_id)
        before = member.subscribed_topic_names if member else NO_TOPICS
        if value is None:
            if member and (member.member_epoch != LEAVE_EPOCH or member_id in self.targets):
                raise UnreadableRecordError(
                    f"{self.group_id}: metadata of member {member_id} deleted before its assignment"
                )
            self.members.pop(member_id, None)
            self._subscribe(before, NO_TOPICS)
            return
        names = frozenset(value.subscribed_topic_names)
        self._subscribe(before, names)
        self.members[member_id] = (member or ShareGroupMember(member_id))._replace(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=names,
        )

    def _subscribe(self, before: frozenset[str], after: frozenset[str]) -> None:
        if before == after:
            return
        for name in before - after:
            self.subscriptions[name] -= 1
            if not self.subscriptions[name]:
                del self.subscriptions[name]
        for name in after - before:
            self.subscriptions[name] = self.subscriptions.get(name, 0) + 1
        self.pending = None
        self.uninitialized_at_ms = 0

    def replay_metadata(self, value: records.Metadata) -> None:
        self.group_epoch, self.metadata_hash = value

    def replay_target_metadata(self, value: records.TargetAssignmentMetadata | None) -> None:
        if value is None:
            if self.targets:
                raise UnreadableRecordError(
                    f"{self.group_id}: target assignment epoch deleted before the targets of members"
                )
            self.assignment_epoch = -1
        else:
            self.assignment_epoch, self.assignment_timestamp_ms = value

    def replay_target_member(self, member_id: str, value: records.TargetAssignmentMember | None) -> None:
        self.pending = None
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = _to_assignment(value.topic_partitions)

    def replay_current_assignment(self, member_id: str, value: records.CurrentMemberAssignment | None) -> None:
        member = self.members.get(member_id)
        if value is not None:
            epoch, previous, assigned = value.member_epoch, value.previous_member_epoch, value.assigned_partitions
            self.members[member_id] = (member or ShareGroupMember(member_id))._replace(
                member_epoch=epoch, previous_member_epoch=previous, assigned=_to_assignment(assigned)
            )
        elif member:
            self.members[member_id] = member._replace(
                member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, assigned=EMPTY_ASSIGNMENT
            )

    def replay_share_partitions(self, value: records.StatePartitionMetadata | None, now_ms: int) -> None:
        """Replay the record. Its age starts now, as in Kafka: ages are not recorded."""
        self.pending = None
        self.uninitialized_at_ms = 0
        self.recorded_at_ms = now_ms
        self.share_partitions = None if value is None else SharePartitions.from_value(value)

    def check_deletable(self) -> None:
        if self.members or self.targets or self.assignment_epoch != -1:
            raise UnreadableRecordError(
                f"{self.group_id}: group epoch deleted while the group still has members or targets"
            )


def replay(groups: dict[str, Group], key: bytes, value_bytes: bytes | None, now_ms: int) -> None:
    """Replay one record. Any record but a tombstone creates an absent group."""
    record_type, group_id, member_id, value = decode(key, value_bytes)
    group = find(groups, ShareGroup, group_id)
    if group is None:
        if value is None:
            return
        group = claim(groups, ShareGroup(group_id))
    match record_type, value:
        case RecordType.MEMBER_METADATA, records.MemberMetadata() | None:
            group.replay_member_metadata(member_id, value)
        case RecordType.METADATA, records.Metadata():
            group.replay_metadata(value)
        case RecordType.METADATA, None:
            group.check_deletable()
            del groups[group_id]
        case RecordType.TARGET_ASSIGNMENT_METADATA, records.TargetAssignmentMetadata() | None:
            group.replay_target_metadata(value)
        case RecordType.TARGET_ASSIGNMENT_MEMBER, records.TargetAssignmentMember() | None:
            group.replay_target_member(member_id, value)
        case RecordType.CURRENT_MEMBER_ASSIGNMENT, records.CurrentMemberAssignment() | None:
            group.replay_current_assignment(member_id, value)
        case RecordType.STATE_PARTITION_METADATA, records.StatePartitionMetadata() | None:
            group.replay_share_partitions(value, now_ms)


def existing(assignment: Assignment, names: frozenset[str], image: ClusterImage) -> Assignment:
    """The part of a target that a member receives: its subscribed topics that exist."""
    topics: Mapping[str, object] = {
        topic.topic_id: topic for topic in map(image.topics.get, names) if topic is not None
    }
    return {topic_id: partitions for topic_id, partitions in assignment.items() if topic_id in topics}
