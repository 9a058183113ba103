"""The vocabulary: record states, protocol messages, events, errors, configurations. Imports no other package of
shareq."""

from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition, TopicPartition
from shareq.model.states import AcknowledgeType, AcquireMode, IsolationLevel, RecordEvent, RecordState

__all__ = [
    "AcknowledgeType",
    "AcquireMode",
    "Errors",
    "IsolationLevel",
    "RecordEvent",
    "RecordState",
    "TopicId",
    "TopicIdPartition",
    "TopicPartition",
]
