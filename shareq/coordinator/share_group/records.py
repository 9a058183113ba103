"""The records of share groups in `__consumer_offsets`, byte for byte as Kafka writes them.

A key is the record type (int16) and the names of group and member; a value is a version (int16, 0) and a flexible
struct. Source: Kafka's ShareGroup*Key.json and ShareGroup*Value.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from shareq.coordinator.runtime.codec import Reader, Writer
from shareq.coordinator.runtime.record_codec import DecodedRecord, RecordCodec
from shareq.model.ids import TopicId


class RecordType(IntEnum):
    """The key types of share groups."""

    MEMBER_METADATA = 10
    METADATA = 11
    TARGET_ASSIGNMENT_METADATA = 12
    TARGET_ASSIGNMENT_MEMBER = 13
    CURRENT_MEMBER_ASSIGNMENT = 14
    STATE_PARTITION_METADATA = 15


_WITH_MEMBER = frozenset(
    {RecordType.MEMBER_METADATA, RecordType.TARGET_ASSIGNMENT_MEMBER, RecordType.CURRENT_MEMBER_ASSIGNMENT}
)


class TopicPartitions(NamedTuple):
    topic_id: TopicId
    partitions: tuple[int, ...]


class NamedTopicPartitions(NamedTuple):
    topic_id: TopicId
    topic_name: str
    partitions: tuple[int, ...]


class NamedTopic(NamedTuple):
    topic_id: TopicId
    topic_name: str


class MemberMetadata(NamedTuple):
    """Topic names sorted."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]


class Metadata(NamedTuple):
    epoch: int
    metadata_hash: int


class TargetAssignmentMetadata(NamedTuple):
    """`assignment_timestamp` in ms: when it was computed, 0 for never."""

    assignment_epoch: int
    assignment_timestamp: int = 0


class TargetAssignmentMember(NamedTuple):
    topic_partitions: tuple[TopicPartitions, ...]


class CurrentMemberAssignment(NamedTuple):
    """`state` is always 0, STABLE: members of share groups do not revoke."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[TopicPartitions, ...]


class StatePartitionMetadata(NamedTuple):
    """The initialization state of the group's share-partitions (see `partitions`)."""

    initializing_topics: tuple[NamedTopicPartitions, ...] = ()
    initialized_topics: tuple[NamedTopicPartitions, ...] = ()
    deleting_topics: tuple[NamedTopic, ...] = ()


Value = (
    MemberMetadata
    | Metadata
    | TargetAssignmentMetadata
    | TargetAssignmentMember
    | CurrentMemberAssignment
    | StatePartitionMetadata
)


# ---- writing ---------------------------------------------------------------------------------------------------------


def _write_topic_partitions(out: Writer, topic: TopicPartitions) -> None:
    out.uuid(topic.topic_id).int32s(topic.partitions).tags()


def _write_named_topic_partitions(out: Writer, topic: NamedTopicPartitions) -> None:
    out.uuid(topic.topic_id).compact_string(topic.topic_name).int32s(topic.partitions).tags()


def _write_named_topic(out: Writer, topic: NamedTopic) -> None:
    out.uuid(topic.topic_id).compact_string(topic.topic_name).tags()


def _write_member_metadata(out: Writer, value: MemberMetadata) -> None:
    out.compact_string(value.rack_id).compact_string(value.client_id).compact_string(value.client_host)
    out.array(value.subscribed_topic_names, Writer.compact_string).tags()


def _write_metadata(out: Writer, value: Metadata) -> None:
    out.int32(value.epoch).int64(value.metadata_hash).tags()


def _write_target_metadata(out: Writer, value: TargetAssignmentMetadata) -> None:
    timestamp = value.assignment_timestamp
    out.int32(value.assignment_epoch).tags([(0, Writer().int64(timestamp).finish())] if timestamp else [])


def _write_target_member(out: Writer, value: TargetAssignmentMember) -> None:
    out.array(value.topic_partitions, _write_topic_partitions).tags()


def _write_current(out: Writer, value: CurrentMemberAssignment) -> None:
    out.int32(value.member_epoch).int32(value.previous_member_epoch).int8(value.state)
    out.array(value.assigned_partitions, _write_topic_partitions).tags()


def _write_state_partitions(out: Writer, value: StatePartitionMetadata) -> None:
    out.array(value.initializing_topics, _write_named_topic_partitions)
    out.array(value.initialized_topics, _write_named_topic_partitions)
    out.array(value.deleting_topics, _write_named_topic).tags()


_WRITE: Mapping[type, tuple[RecordType, Callable[..., None]]] = {
    MemberMetadata: (RecordType.MEMBER_METADATA, _write_member_metadata),
    Metadata: (RecordType.METADATA, _write_metadata),
    TargetAssignmentMetadata: (RecordType.TARGET_ASSIGNMENT_METADATA, _write_target_metadata),
    TargetAssignmentMember: (RecordType.TARGET_ASSIGNMENT_MEMBER, _write_target_member),
    CurrentMemberAssignment: (RecordType.CURRENT_MEMBER_ASSIGNMENT, _write_current),
    StatePartitionMetadata: (RecordType.STATE_PARTITION_METADATA, _write_state_partitions),
}

# ---- reading ---------------------------------------------------------------------------------------------------------


def _read_topic_partitions(given: Reader) -> TopicPartitions:
    topic = TopicPartitions(given.uuid(), given.int32s())
    given.tags()
    return topic


def _read_named_topic_partitions(given: Reader) -> NamedTopicPartitions:
    topic = NamedTopicPartitions(given.uuid(), given.compact_string(), given.int32s())
    given.tags()
    return topic


def _read_named_topic(given: Reader) -> NamedTopic:
    topic = NamedTopic(given.uuid(), given.compact_string())
    given.tags()
    return topic


def _read_member_metadata(given: Reader) -> MemberMetadata:
    rack_id = given.nullable_compact_string()
    client_id, client_host = given.compact_string(), given.compact_string()
    return MemberMetadata(rack_id, client_id, client_host, given.array(Reader.compact_string))


def _read_metadata(given: Reader) -> Metadata:
    return Metadata(given.int32(), given.int64())


def _read_target_metadata(given: Reader) -> TargetAssignmentMetadata:
    epoch, tags = given.int32(), given.tags()
    return TargetAssignmentMetadata(epoch, Reader(tags[0]).int64() if 0 in tags else 0)


def _read_target_member(given: Reader) -> TargetAssignmentMember:
    return TargetAssignmentMember(given.array(_read_topic_partitions))


def _read_current(given: Reader) -> CurrentMemberAssignment:
    epochs = given.int32(), given.int32()
    return CurrentMemberAssignment(*epochs, given.int8(), given.array(_read_topic_partitions))


def _read_state_partitions(given: Reader) -> StatePartitionMetadata:
    coming = given.array(_read_named_topic_partitions), given.array(_read_named_topic_partitions)
    return StatePartitionMetadata(*coming, given.array(_read_named_topic))


_READ: Mapping[RecordType, Callable[[Reader], Value]] = {
    RecordType.MEMBER_METADATA: _read_member_metadata,
    RecordType.METADATA: _read_metadata,
    RecordType.TARGET_ASSIGNMENT_METADATA: _read_target_metadata,
    RecordType.TARGET_ASSIGNMENT_MEMBER: _read_target_member,
    RecordType.CURRENT_MEMBER_ASSIGNMENT: _read_current,
    RecordType.STATE_PARTITION_METADATA: _read_state_partitions,
}

# ---- records ---------------------------------------------------------------------------------------------------------

GroupRecord = DecodedRecord[RecordType, Value]
_RECORDS: RecordCodec[RecordType, Value] = RecordCodec(RecordType, _WITH_MEMBER, _WRITE, _READ)
encode, tombstone, decode = _RECORDS.encode, _RECORDS.tombstone, _RECORDS.decode
