"""Folds of the journal: the members of a group, and the brokers and partitions of the cluster, after any entry."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self, TypeVar

from shareq.model.events import (
    BrokerStarted,
    BrokerStopped,
    ConfigChanged,
    GroupDeleted,
    GroupEpochBumped,
    LeaderElected,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    PartitionsAdded,
    RecordsAppended,
    SharePartitionsInitialized,
    TargetAssignmentComputed,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.ids import INTERNAL_TOPICS, partition_for
from shareq.model.states import GroupState
from shareq.trace.journal import Entry, Journal, journal_of

Assignment = tuple[tuple[str, tuple[int, ...]], ...]
"""(topic, partitions) pairs."""


@dataclass(slots=True)
class MemberView:
    """A member of a group; `target` is its target assignment, `assignment` the one that it has received."""

    member_id: str
    client_id: str
    subscribed_topic_names: tuple[str, ...]
    member_epoch: int = 0
    assignment: Assignment = ()
    target: Assignment = ()


@dataclass(slots=True)
class GroupFold:
    """A group after an entry; `protocol`: its type, by its last new member."""

    group_id: str
    protocol: str = "share"
    group_epoch: int = 0
    assignment_epoch: int = 0
    members: dict[str, MemberView] = field(default_factory=dict)
    initialized: dict[str, tuple[int, ...]] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> GroupState:
        """STABLE with members, else EMPTY."""
        return GroupState.STABLE if self.members else GroupState.EMPTY

    def copy(self) -> Self:
        """An independent copy."""
        members = {member_id: replace(member) for member_id, member in self.members.items()}
        return replace(self, members=members, initialized=dict(self.initialized), configs=dict(self.configs))

    def apply(self, entry: Entry) -> None:
        """Apply the next entry about this group."""
        event = entry.event
        if isinstance(event, MemberJoined):
            self.protocol = event.protocol
            self.members[event.member_id] = MemberView(event.member_id, event.client_id, event.subscribed_topic_names)
        elif isinstance(event, MemberLeft):
            self.members.pop(event.member_id, None)
        elif isinstance(event, MemberReconciled) and event.member_id in self.members:
            member = self.members[event.member_id]
            member.member_epoch, member.assignment = event.member_epoch, event.assignment
        else:
            self._apply_to_group(event)

    def _apply_to_group(self, event: object) -> None:
        if isinstance(event, GroupEpochBumped):
            self.group_epoch = event.group_epoch
        elif isinstance(event, TargetAssignmentComputed):
            self.assignment_epoch = event.assignment_epoch
            for member_id, target in event.assignment:
                if member_id in self.members:
                    self.members[member_id].target = target
        elif isinstance(event, SharePartitionsInitialized):
            known = self.initialized.get(event.topic, ())
            self.initialized[event.topic] = tuple(sorted({*known, *event.partitions}))
        elif isinstance(event, ConfigChanged):
            _configure(self.configs, event)
        elif isinstance(event, GroupDeleted):
            self.group_epoch = self.assignment_epoch = 0
            self.initialized = {}


@dataclass(slots=True)
class PartitionView:
    """The log and the leader of a partition; `leader` -1 if no replica is alive."""

    leader: int = -1
    leader_epoch: int = -1
    log_start: int = 0
    log_end: int = 0


class BrokerChange(NamedTuple):
    """The last start or stop of a broker."""

    time_ms: int
    killed: bool


@dataclass(slots=True)
class ClusterFold:
    """Brokers and topics after an entry; `brokers`: id -> True if it is running."""

    brokers: dict[int, bool] = field(default_factory=dict)
    broker_changes: dict[int, BrokerChange] = field(default_factory=dict)
    topics: dict[str, list[PartitionView]] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)

    def copy(self) -> Self:
        """An independent copy."""
        topics = {name: [replace(partition) for partition in partitions] for name, partitions in self.topics.items()}
        return replace(
            self,
            brokers=dict(self.brokers),
            broker_changes=dict(self.broker_changes),
            topics=topics,
            topic_ids=dict(self.topic_ids),
        )

    def apply(self, entry: Entry) -> None:
        """Apply the next entry."""
        event = entry.event
        if isinstance(event, (RecordsAppended, LeaderElected, LogStartMoved)):  # nearly all
            self._apply_to_partition(event)
        elif isinstance(event, (BrokerStarted, BrokerStopped)):
            self.brokers[event.broker_id] = isinstance(event, BrokerStarted)
            killed = isinstance(event, BrokerStopped) and event.killed
            self.broker_changes[event.broker_id] = BrokerChange(entry.time_ms, killed)
        elif isinstance(event, TopicCreated):
            self.topics[event.topic] = [PartitionView() for _ in range(event.partition_count)]
            self.topic_ids[event.topic] = event.topic_id
        elif isinstance(event, TopicDeleted):
            self.topics.pop(event.topic, None)
            self.topic_ids.pop(event.topic, None)
        elif isinstance(event, PartitionsAdded):
            partitions = self.topics.setdefault(event.topic, [])
            partitions += [PartitionView() for _ in range(event.partition_count - len(partitions))]

    def _apply_to_partition(self, event: LeaderElected | RecordsAppended | LogStartMoved) -> None:
        partitions = self.topics.setdefault(event.topic, [])
        if event.partition >= len(partitions):
            partitions += [PartitionView() for _ in range(event.partition + 1 - len(partitions))]
        partition = partitions[event.partition]
        if isinstance(event, LeaderElected):
            partition.leader, partition.leader_epoch = event.leader, event.leader_epoch
        elif isinstance(event, RecordsAppended):
            partition.log_end = event.end
        else:
            partition.log_start = event.log_start_offset

    def coordinating_partition(self, topic: str, key: str) -> int | None:
        """The partition of a coordinator's topic that holds `key`; None if the topic is not known."""
        partitions = self.topics.get(topic)
        return partition_for(key, len(partitions)) if partitions else None

    def coordinator(self, topic: str, key: str) -> int | None:
        """The leader of the partition of `key` in a coordinator's topic: -1 without a leader, None if not known."""
        partition = self.coordinating_partition(topic, key)
        return None if partition is None else self.topics[topic][partition].leader

    def own_topics(self) -> dict[str, list[PartitionView]]:
        """The topics without Kafka's internal ones."""
        return {name: partitions for name, partitions in self.topics.items() if name not in INTERNAL_TOPICS}


def _configure(configs: dict[str, str], event: ConfigChanged) -> None:
    if event.value is None:
        configs.pop(event.key, None)
    else:
        configs[event.key] = event.value


G = TypeVar("G", bound=GroupFold)
C = TypeVar("C", bound=ClusterFold)


def fold_group(found: G, source: Any, until: int | None = None) -> G:
    """Apply the journal's entries about the group below order `until` (None: all)."""
    for entry in _until(journal_of(source).select(*OF_GROUP, group=found.group_id), until):
        found.apply(entry)
    return found


def fold_cluster(found: C, source: Any, until: int | None = None) -> C:
    """Apply the journal's entries about brokers and topics below order `until` (None: all)."""
    for entry in _until(journal_of(source).select(*OF_CLUSTER), until):
        found.apply(entry)
    return found


def groups_of(journal: Journal) -> list[str]:
    """All groups in the journal, in order of first appearance."""
    return list(dict.fromkeys(subject.group for subject in journal.subjects() if subject.group is not None))


def _until(entries: list[Entry], until: int | None) -> list[Entry]:
    return entries if until is None else [entry for entry in entries if entry.order < until]


OF_GROUP = (
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    GroupEpochBumped,
    TargetAssignmentComputed,
    SharePartitionsInitialized,
    ConfigChanged,
    GroupDeleted,
)
OF_CLUSTER = (
    BrokerStarted,
    BrokerStopped,
    TopicCreated,
    TopicDeleted,
    PartitionsAdded,
    LeaderElected,
    RecordsAppended,
    LogStartMoved,
)
