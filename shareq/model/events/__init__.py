"""The events of the journal. Every state that an analysis shows is a fold of these events.

Offsets are half-open ranges [first, end); times in ms. The journal adds the time, the sequence number and the broker.
"""

from __future__ import annotations

from shareq.model.events.authorization import AclChanged, AuthorizationDenied
from shareq.model.events.clients import (
    AcknowledgementsSent,
    RecordsDelivered,
    RequestSent,
    ResponseSent,
)
from shareq.model.events.cluster import (
    AuthenticationFailed,
    BrokerStarted,
    BrokerStopped,
    ConfigChanged,
    FaultInjected,
    LeaderElected,
    LogKept,
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
    DeadLettersGivenUp,
    DeadLettersRefused,
    DeadLettersSent,
    DeadLettersWaiting,
    DeadLettersWritten,
    ExpiredRecordsSkipped,
    KeyRange,
    KeysLearned,
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
    | AclChanged
    | AuthorizationDenied
    | FaultInjected
    | AuthenticationFailed
    | RecordsAppended
    | LogKept
    | LogStartMoved
    | SharePartitionLoaded
    | SharePartitionDropped
    | RecordsChanged
    | WindowMoved
    | KeysLearned
    | ExpiredRecordsSkipped
    | StateWritePrepared
    | StateWriteSettled
    | AcknowledgementRefused
    | DeadLettersSent
    | DeadLettersRefused
    | DeadLettersWritten
    | DeadLettersWaiting
    | DeadLettersGivenUp
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
    "AclChanged",
    "AuthenticationFailed",
    "AuthorizationDenied",
    "BrokerStarted",
    "BrokerStopped",
    "ConfigChanged",
    "CoordinatorLoaded",
    "DeadLettersGivenUp",
    "DeadLettersRefused",
    "DeadLettersSent",
    "DeadLettersWaiting",
    "DeadLettersWritten",
    "DeliveriesUnseen",
    "DurableStateRead",
    "Event",
    "ExpiredRecordsSkipped",
    "FaultInjected",
    "GroupDeleted",
    "GroupEpochBumped",
    "HeartbeatReceived",
    "HoldEnded",
    "KeyRange",
    "KeysLearned",
    "LeaderElected",
    "LogKept",
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
