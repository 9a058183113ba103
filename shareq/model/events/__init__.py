"""The events of the journal. Every state that an analysis shows is a fold of these events.

Offsets are half-open ranges [first, end); times in ms. The journal adds the time, the sequence number and the broker.
"""

from __future__ import annotations

from shareq.model.events.clients import (
    AcknowledgementsSent,
    RecordsDelivered,
    RequestSent,
    ResponseSent,
)
from shareq.model.events.cluster import (
    BrokerStarted,
    BrokerStopped,
    ConfigChanged,
    FaultInjected,
    LeaderElected,
    LogStartMoved,
    PartitionsAdded,
    RecordsAppended,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.events.groups import (
    CoordinatorLoaded,
    GroupDeleted,
    GroupEpochBumped,
    HeartbeatReceived,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    SharePartitionsInitialized,
    StateLogPruned,
    StateRecordWritten,
    TargetAssignmentComputed,
    TransactionChanged,
)
from shareq.model.events.observed import (
    DeliveriesUnseen,
    DurableStateRead,
    HoldEnded,
    MembersBypass,
    ObservationDisturbed,
    RecordsHeld,
)
from shareq.model.events.share_partition import (
    AcknowledgementRefused,
    RecordsChanged,
    Run,
    SharePartitionDropped,
    SharePartitionLoaded,
    ShareSessionClosed,
    ShareSessionOpened,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)

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
    | TransactionChanged
    | RecordsDelivered
    | AcknowledgementsSent
    | RequestSent
    | ResponseSent
    | DurableStateRead
    | RecordsHeld
    | HoldEnded
    | DeliveriesUnseen
    | MembersBypass
    | ObservationDisturbed
)
"""The union of all event types; `typing.get_args(Event)` lists them for readers and writers of journals."""

__all__ = [
    "AcknowledgementRefused",
    "AcknowledgementsSent",
    "BrokerStarted",
    "BrokerStopped",
    "ConfigChanged",
    "CoordinatorLoaded",
    "DeliveriesUnseen",
    "DurableStateRead",
    "Event",
    "FaultInjected",
    "GroupDeleted",
    "GroupEpochBumped",
    "HeartbeatReceived",
    "HoldEnded",
    "LeaderElected",
    "LogStartMoved",
    "MemberJoined",
    "MemberLeft",
    "MemberReconciled",
    "MembersBypass",
    "ObservationDisturbed",
    "PartitionsAdded",
    "RecordsAppended",
    "RecordsChanged",
    "RecordsDelivered",
    "RecordsHeld",
    "RequestSent",
    "ResponseSent",
    "Run",
    "SharePartitionDropped",
    "SharePartitionLoaded",
    "SharePartitionsInitialized",
    "ShareSessionClosed",
    "ShareSessionOpened",
    "StateLogPruned",
    "StateRecordWritten",
    "StateWritePrepared",
    "StateWriteSettled",
    "TargetAssignmentComputed",
    "TopicCreated",
    "TopicDeleted",
    "TransactionChanged",
    "WindowMoved",
]
