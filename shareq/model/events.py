"""Everything that can happen, as events for the journal. A state is a fold of these; nothing else tells the story.

Offsets are half-open ranges [first, end); times in ms. The journal adds when, in which order, and on which broker.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.messages.share_state import StateBatch


class Run(NamedTuple):
    """A run of in-flight records as a snapshot lists them: [first, end) in one state."""

    first: int
    end: int
    state: int
    delivery_count: int


# ---- the cluster -----------------------------------------------------------------------------------------------------


class BrokerStarted(NamedTuple):
    broker_id: int


class BrokerStopped(NamedTuple):
    """`killed`: without a goodbye."""

    broker_id: int
    killed: bool


class TopicCreated(NamedTuple):
    topic: str
    topic_id: str
    partition_count: int


class TopicDeleted(NamedTuple):
    topic: str
    topic_id: str


class PartitionsAdded(NamedTuple):
    topic: str
    topic_id: str
    partition_count: int


class LeaderElected(NamedTuple):
    """`leader` -1: no replica is alive."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int


class ConfigChanged(NamedTuple):
    """`value` None: back to the default. `resource` such as "group:payments", "topic:orders" or "broker"."""

    resource: str
    key: str
    value: str | None


class FaultInjected(NamedTuple):
    """Somebody broke something on purpose."""

    text: str


# ---- the log ---------------------------------------------------------------------------------------------------------


class RecordsAppended(NamedTuple):
    topic: str
    partition: int
    first: int
    end: int


class LogStartMoved(NamedTuple):
    topic: str
    partition: int
    log_start_offset: int


# ---- the share-partition ---------------------------------------------------------------------------------------------


class SharePartitionLoaded(NamedTuple):
    """A leader has the share-partition in memory. `runs` is all that is in flight, the gaps left out."""

    group_id: str
    topic: str
    partition: int
    spso: int
    speo: int
    runs: tuple[Run, ...]
    state_epoch: int
    leader_epoch: int
    delivery_count_limit: int
    max_record_locks: int
    lock_duration_ms: int


class SharePartitionDropped(NamedTuple):
    """The leader forgot the share-partition; a later one loads it again from durable state."""

    group_id: str
    topic: str
    partition: int
    reason: str


class RecordsChanged(NamedTuple):
    """The records [first, end) are now in `state`. One such event for every change of a run.

    `cause` is a RecordEvent, or "prepared" (a write is under way that would make it `to_state`; the state stays),
    "settled" (the write came through), "abandoned" (it did not). `member_id`, `deadline_ms` where ACQUIRED; `write_id`,
    `to_state` while a write is under way.
    """

    group_id: str
    topic: str
    partition: int
    cause: str
    first: int
    end: int
    state: int
    delivery_count: int
    member_id: str | None = None
    deadline_ms: int | None = None
    write_id: int | None = None
    to_state: int | None = None
    why: str | None = None
    """While a write is under way, and when it has settled: the RecordEvent behind it."""


class WindowMoved(NamedTuple):
    """The window is now [spso, speo): what lies below is done with."""

    group_id: str
    topic: str
    partition: int
    spso: int
    speo: int


class StateWritePrepared(NamedTuple):
    """A state write has gone to the persister."""

    group_id: str
    topic: str
    partition: int
    write_id: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


class StateWriteSettled(NamedTuple):
    """`error` 0: the write is durable."""

    group_id: str
    topic: str
    partition: int
    write_id: int
    error: int


class AcknowledgementRefused(NamedTuple):
    """Nothing changed: the whole acknowledgement of the partition was refused."""

    group_id: str
    topic: str
    partition: int
    member_id: str
    error: int


# ---- share sessions --------------------------------------------------------------------------------------------------


class ShareSessionOpened(NamedTuple):
    group_id: str
    member_id: str


class ShareSessionClosed(NamedTuple):
    """`reason` such as "closed", "connection lost", "replaced"."""

    group_id: str
    member_id: str
    reason: str


# ---- the group -------------------------------------------------------------------------------------------------------


class MemberJoined(NamedTuple):
    group_id: str
    member_id: str
    client_id: str
    subscribed_topic_names: tuple[str, ...]


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
    group_id: str
    group_epoch: int
    reason: str


class TargetAssignmentComputed(NamedTuple):
    """(member, ((topic, partitions), ...)) each."""

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


# ---- the share coordinator -------------------------------------------------------------------------------------------


class CoordinatorLoaded(NamedTuple):
    """`topic` is the coordinator's own topic; the shard has replayed its log."""

    topic: str
    partition: int
    record_count: int


class StateRecordWritten(NamedTuple):
    """`kind` is "snapshot", "update" or "tombstone"; `key` is group:topicId:partition."""

    key: str
    kind: str
    snapshot_epoch: int
    start_offset: int
    state_batches: tuple[StateBatch, ...]


class StateLogPruned(NamedTuple):
    partition: int
    offset: int


# ---- the clients -----------------------------------------------------------------------------------------------------


class RecordsDelivered(NamedTuple):
    """A poll returned these records to the application."""

    group_id: str
    member_id: str
    client_id: str
    topic: str
    partition: int
    first: int
    end: int
    record_count: int


class AcknowledgementsSent(NamedTuple):
    """`counts` by acknowledge type, GAP to RENEW; offsets were taken together per partition."""

    group_id: str
    member_id: str
    topic: str
    partition: int
    counts: tuple[int, int, int, int, int]
    error: int


class RequestSent(NamedTuple):
    """A message flies: `api` is its class name. Recorded only where the cluster traces messages."""

    source: str
    target: str
    api: str


class ResponseSent(NamedTuple):
    source: str
    target: str
    api: str
    error: int


Event = (
    BrokerStarted
    | BrokerStopped
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | LeaderElected
    | ConfigChanged
    | FaultInjected
    | RecordsAppended
    | LogStartMoved
    | SharePartitionLoaded
    | SharePartitionDropped
    | RecordsChanged
    | WindowMoved
    | StateWritePrepared
    | StateWriteSettled
    | AcknowledgementRefused
    | ShareSessionOpened
    | ShareSessionClosed
    | MemberJoined
    | MemberLeft
    | MemberReconciled
    | GroupEpochBumped
    | TargetAssignmentComputed
    | HeartbeatReceived
    | SharePartitionsInitialized
    | GroupDeleted
    | CoordinatorLoaded
    | StateRecordWritten
    | StateLogPruned
    | RecordsDelivered
    | AcknowledgementsSent
    | RequestSent
    | ResponseSent
)
"""All event types; `typing.get_args(Event)` lists them for readers and writers of journals."""
