"""Events of groups, and of the coordinators that keep their state."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.messages.share_state import StateBatch


class MemberJoined(NamedTuple):
    """`protocol`: the type of the group, as in Kafka's metrics: "share", "consumer" or "classic"."""

    group_id: str
    member_id: str
    client_id: str
    subscribed_topic_names: tuple[str, ...]
    protocol: str = "share"


class MemberLeft(NamedTuple):
    """`reason` such as "left", "session expired"."""

    group_id: str
    member_id: str
    reason: str


class MemberReconciled(NamedTuple):
    """The member now holds `assignment`: (topic, partitions) each."""

    group_id: str
    member_id: str
    member_epoch: int
    assignment: tuple[tuple[str, tuple[int, ...]], ...]


class GroupEpochBumped(NamedTuple):
    """A group has a new epoch. For classic groups, here and in `MemberReconciled`, the epoch is the generation."""

    group_id: str
    group_epoch: int
    reason: str


class TargetAssignmentComputed(NamedTuple):
    """`assignment`: (member, ((topic, partitions), ...)) each."""

    group_id: str
    assignment_epoch: int
    assignment: tuple[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], ...]


class HeartbeatReceived(NamedTuple):
    group_id: str
    member_id: str
    member_epoch: int
    error: int


class SharePartitionsInitialized(NamedTuple):
    group_id: str
    topic: str
    partitions: tuple[int, ...]


class GroupDeleted(NamedTuple):
    group_id: str


class CoordinatorLoaded(NamedTuple):
    """`topic` is the coordinator's own topic; the shard has replayed its log."""

    topic: str
    partition: int
    record_count: int


class StateRecordWritten(NamedTuple):
    """`kind` is "snapshot", "update" or "tombstone", on a compacted topic "checkpoint", "delta" or "tombstone"; `key`
    is group:topicId:partition, `delta_index` that of a delta, else -1."""

    key: str
    kind: str
    snapshot_epoch: int
    start_offset: int
    state_batches: tuple[StateBatch, ...]
    delta_index: int = -1


class StateLogPruned(NamedTuple):
    partition: int
    offset: int


class TransactionChanged(NamedTuple):
    """A transactional id is now in `phase`, with Kafka's name ("Ongoing", "PrepareCommit", ...); "Dead" after its
    removal. `partition_count`: the number of partitions in the open transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    phase: str
    partition_count: int
