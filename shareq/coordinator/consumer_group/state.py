"""The committed state of consumer groups. Only the replay of records changes it.

Soft state is not recorded: deadlines (kept by the context), the time of the next metadata refresh, and a flag for new
topics that an expression may match. Source: KIP-848, "Group metadata"; Kafka's ConsumerGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

from shareq.coordinator.consumer_group import records
from shareq.coordinator.consumer_group.member import LEAVE_EPOCH, NOTHING, ConsumerGroupMember
from shareq.coordinator.consumer_group.records import RecordType, RegularExpression, decode, tombstone
from shareq.coordinator.group.assignment import Assignment
from shareq.coordinator.group.group import Committer, Group, GroupType, claim, find
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.records import CoordinatorRecord


class ConsumerGroupState(StrEnum):
    """As described to admins. A group never enters DEAD."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerGroup:
    """One group: members, their target assignments, epochs, and the topics of its regular expressions.

    `owners`: member id by topic and partition. A partition has one owner at most.
    """

    TYPE: ClassVar[GroupType] = GroupType.CONSUMER
    protocol_type: ClassVar[str] = "consumer"
    is_simple: ClassVar[bool] = False

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "expressions",
        "group_epoch",
        "group_id",
        "has_partition_metadata",
        "members",
        "metadata_hash",
        "owners",
        "refresh_at_ms",
        "regex_counts",
        "static_members",
        "targets",
        "topic_counts",
        "topics_are_new",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.targets: dict[str, Assignment] = {}
        self.owners: dict[TopicId, dict[int, str]] = {}
        self.topic_counts: Counter[str] = Counter()
        """The number of members that subscribe to each topic by name; no zeros. `regex_counts`: the same by regex."""
        self.regex_counts: Counter[str] = Counter()
        self.expressions: dict[str, RegularExpression] = {}
        self.has_partition_metadata = False
        # Soft state: heartbeats from refresh_at_ms on compute the metadata hash.
        self.refresh_at_ms = 0
        self.topics_are_new = True

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        reconciled = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return ConsumerGroupState.STABLE if reconciled else ConsumerGroupState.RECONCILING

    # ---- checks of other requests ------------------------------------------------------------------------------------

    def refuse_commit(self, committer: Committer) -> Errors:
        """The error of the committer. An older epoch passes here; `refuse_partitions` checks its partitions."""
        if committer.epoch < 0 and (not self.members or (committer.transactional and not committer.member_id)):
            return Errors.NONE
        member = self.members.get(committer.member_id)
        if member is None:
            return Errors.UNKNOWN_MEMBER_ID
        return Errors.STALE_MEMBER_EPOCH if committer.epoch > member.member_epoch else Errors.NONE

    def needs_epochs(self, member_id: str) -> bool:
        return member_id in self.members

    def refuse_partitions(self, committer: Committer, partitions: Iterable[tuple[TopicId, int]]) -> Errors:
        """STALE_MEMBER_EPOCH if a member commits with an older epoch and one of the partitions was not assigned to it
        in that epoch or before (KIP-1251). One such partition refuses the whole commit."""
        member = self.members.get(committer.member_id)
        if member is None or committer.epoch == member.member_epoch:
            return Errors.NONE
        since = (member.assignment_epoch(*partition) for partition in partitions)
        known = all(epoch is not None and epoch <= committer.epoch for epoch in since)
        return Errors.NONE if known else Errors.STALE_MEMBER_EPOCH

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> Errors:
        if member_id is None and member_epoch < 0:
            return Errors.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return Errors.UNKNOWN_MEMBER_ID
        return Errors.NONE if member_epoch == member.member_epoch else Errors.STALE_MEMBER_EPOCH

    def refuse_offset_delete(self) -> Errors:
        return Errors.NONE

    def refuse_delete(self) -> Errors:
        return Errors.NON_EMPTY_GROUP if self.members else Errors.NONE

    def subscribes(self, topic: str) -> bool:
        return topic in self.topic_counts or any(topic in resolved.topics for resolved in self.expressions.values())

    def expiry_base_ms(self, committed_at_ms: int) -> int | None:
        return committed_at_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        """The tombstones of an empty group; those of members and expressions were written before."""
        kinds = RecordType.TARGET_ASSIGNMENT_METADATA, RecordType.PARTITION_METADATA, RecordType.METADATA
        return [tombstone(kind, self.group_id) for kind in kinds]

    # ---- questions ---------------------------------------------------------------------------------------------------

    def subscribed_names(
        self, without: ConsumerGroupMember | None = None, added: ConsumerGroupMember | None = None
    ) -> frozenset[str]:
        """The topics that members subscribe to, by name or by expression, as if `without` had left and `added` joined.

        An expression that is not resolved yet matches nothing.
        """
        names, regexes = self.topic_counts.copy(), self.regex_counts.copy()
        _count(names, regexes, without, -1)
        _count(names, regexes, added, 1)
        resolved = (topic for regex in +regexes for topic in self.resolved(regex))
        return frozenset(+names).union(resolved)

    def resolved(self, regex: str | None) -> Iterable[str]:
        """The topics of an expression; () if it is not resolved."""
        known = self.expressions.get(regex) if regex else None
        return known.topics if known else ()

    def names_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """The topics that a member subscribes to."""
        return member.subscribed_topic_names.union(self.resolved(member.subscribed_topic_regex))

    def static_member(self, instance_id: str) -> ConsumerGroupMember | None:
        return self.members.get(self.static_members.get(instance_id, ""))

    def is_owned(self, topic_id: TopicId, partition: int) -> bool:
        return partition in self.owners.get(topic_id, ())

    # ---- replay ------------------------------------------------------------------------------------------------------

    def replay_member_metadata(self, member_id: str, value: records.MemberMetadata | None) -> None:
        before = self.members.get(member_id)
        if value is None:
            if before and (before.member_epoch != LEAVE_EPOCH or member_id in self.targets):
                raise UnreadableRecordError(
                    f"{self.group_id}: tombstone of member {member_id} before those of its assignments"
                )
            self._put(before, None)
            return
        fields = {**value._asdict(), "subscribed_topic_names": frozenset(value.subscribed_topic_names)}
        self._put(before, (before or ConsumerGroupMember(member_id))._replace(**fields))

    def replay_current_assignment(self, member_id: str, value: records.CurrentMemberAssignment | None) -> None:
        before = self.members.get(member_id)
        if value is None:
            if before:
                left = before._replace(member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH)
                self._put(before, left._replace(assigned=NOTHING, revoking=NOTHING))
            return
        self._put(before, (before or ConsumerGroupMember(member_id))._replace(**value._asdict()))

    def _put(self, before: ConsumerGroupMember | None, after: ConsumerGroupMember | None) -> None:
        """Replace, add (`before` None) or delete (`after` None) a member, and update owners and counts."""
        if before:
            for topic_id, partition in before.owned():
                owners = self.owners.get(topic_id, {})
                if owners.get(partition) == before.member_id:
                    del owners[partition]
            _count(self.topic_counts, self.regex_counts, before, -1)
            del self.members[before.member_id]
        if after:
            self.members[after.member_id] = after
            for topic_id, partition in after.owned():
                self.owners.setdefault(topic_id, {})[partition] = after.member_id
            _count(self.topic_counts, self.regex_counts, after, 1)
        self._put_static(before, after)

    def _put_static(self, before: ConsumerGroupMember | None, after: ConsumerGroupMember | None) -> None:
        """Update the owner of an instance id. A member that already lost its instance id to another does not remove
        it."""
        old_id, new_id = before and before.instance_id, after and after.instance_id
        if old_id == new_id:
            return
        if before and old_id is not None and self.static_members.get(old_id) == before.member_id:
            del self.static_members[old_id]
        if after and new_id is not None:
            self.static_members[new_id] = after.member_id

    def replay_metadata(self, name: str, value: records.Metadata | None) -> None:
        del name
        if value is not None:
            self.group_epoch, self.metadata_hash = value
        elif self.members or self.targets or self.assignment_epoch != -1:
            raise UnreadableRecordError(f"{self.group_id}: tombstone of the group before those of members and targets")

    def replay_partition_metadata(self, name: str, value: records.PartitionMetadata | None) -> None:
        del name
        self.has_partition_metadata = value is not None

    def replay_target_metadata(self, name: str, value: records.TargetAssignmentMetadata | None) -> None:
        del name
        if value is None and self.targets:
            raise UnreadableRecordError(f"{self.group_id}: tombstone of the target epoch before those of targets")
        self.assignment_epoch, self.assignment_timestamp_ms = value or (-1, 0)

    def replay_target_member(self, member_id: str, value: records.TargetAssignmentMember | None) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = value.assignment

    def replay_expression(self, regex: str, value: RegularExpression | None) -> None:
        if value is None:
            self.expressions.pop(regex, None)
        else:
            self.expressions[regex] = value


def _count(names: Counter[str], regexes: Counter[str], member: ConsumerGroupMember | None, by: int) -> None:
    """Add `by` for each subscription of the member; zeros are removed."""
    if member is None:
        return
    for name in member.subscribed_topic_names:
        names[name] += by
        if not names[name]:
            del names[name]
    if regex := member.subscribed_topic_regex:
        regexes[regex] += by
        if not regexes[regex]:
            del regexes[regex]


def replay(groups: dict[str, Group], key: bytes, value_bytes: bytes | None, now_ms: int) -> None:
    """Replay one record. A record that is no tombstone creates its group if absent."""
    del now_ms
    record_type, group_id, name, value = decode(key, value_bytes)
    group = find(groups, ConsumerGroup, group_id)
    if group is None:
        if value is None:
            return
        group = claim(groups, ConsumerGroup(group_id))
    _REPLAY[record_type](group, name, value)
    if record_type is RecordType.METADATA and value is None:
        del groups[group_id]


_REPLAY: Mapping[RecordType, Callable[[ConsumerGroup, str, Any], None]] = {
    RecordType.METADATA: ConsumerGroup.replay_metadata,
    RecordType.PARTITION_METADATA: ConsumerGroup.replay_partition_metadata,
    RecordType.MEMBER_METADATA: ConsumerGroup.replay_member_metadata,
    RecordType.TARGET_ASSIGNMENT_METADATA: ConsumerGroup.replay_target_metadata,
    RecordType.TARGET_ASSIGNMENT_MEMBER: ConsumerGroup.replay_target_member,
    RecordType.CURRENT_MEMBER_ASSIGNMENT: ConsumerGroup.replay_current_assignment,
    RecordType.REGULAR_EXPRESSION: ConsumerGroup.replay_expression,
}
