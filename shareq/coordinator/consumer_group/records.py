"""The records of consumer groups in `__consumer_offsets`, byte for byte as Kafka writes them.

Keys and values have the form of all group records (see `record_codec`). The key of a resolved regular expression
contains the expression. Source: Kafka's ConsumerGroup*Key.json and ConsumerGroup*Value.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from shareq.coordinator.consumer_group.member import ConsumerGroupMember, Held, MemberState
from shareq.coordinator.runtime.codec import Reader, Writer
from shareq.coordinator.runtime.record_codec import DecodedRecord, RecordCodec
from shareq.model.ids import TopicId


class RecordType(IntEnum):
    """The record types of consumer groups. Kafka before 4.1 wrote PARTITION_METADATA; here only its tombstone is."""

    METADATA = 3
    PARTITION_METADATA = 4
    MEMBER_METADATA = 5
    TARGET_ASSIGNMENT_METADATA = 6
    TARGET_ASSIGNMENT_MEMBER = 7
    CURRENT_MEMBER_ASSIGNMENT = 8
    REGULAR_EXPRESSION = 16


_WITHOUT_NAME = frozenset(
    {RecordType.METADATA, RecordType.PARTITION_METADATA, RecordType.TARGET_ASSIGNMENT_METADATA},
)


class Metadata(NamedTuple):
    """`metadata_hash` is 0, and not written, if no subscribed topic exists."""

    epoch: int
    metadata_hash: int = 0


class PartitionMetadata(NamedTuple):
    """The topics as an older coordinator recorded them; the content is not needed."""


class MemberMetadata(NamedTuple):
    """Topic names are sorted, `rebalance_timeout_ms` is in ms."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None

    @classmethod
    def of(cls, member: ConsumerGroupMember) -> MemberMetadata:
        return cls(
            member.instance_id,
            member.rack_id,
            member.client_id,
            member.client_host,
            tuple(sorted(member.subscribed_topic_names)),
            member.subscribed_topic_regex,
            member.rebalance_timeout_ms,
            member.server_assignor,
        )


class TargetAssignmentMetadata(NamedTuple):
    """`assignment_timestamp`: when the assignment was computed (ms); 0 for never."""

    assignment_epoch: int
    assignment_timestamp: int = 0


class TargetAssignmentMember(NamedTuple):
    assignment: Mapping[TopicId, tuple[int, ...]]


class CurrentMemberAssignment(NamedTuple):
    member_epoch: int
    previous_member_epoch: int
    state: MemberState
    assigned: Held
    revoking: Held

    @classmethod
    def of(cls, member: ConsumerGroupMember) -> CurrentMemberAssignment:
        epochs = member.member_epoch, member.previous_member_epoch
        return cls(*epochs, member.state, member.assigned, member.revoking)


class RegularExpression(NamedTuple):
    """The topics that an expression matched, sorted; the version of the metadata image and the time (ms) of that."""

    topics: tuple[str, ...]
    version: int
    timestamp: int


Value = (
    Metadata
    | PartitionMetadata
    | MemberMetadata
    | TargetAssignmentMetadata
    | TargetAssignmentMember
    | CurrentMemberAssignment
    | RegularExpression
)


# ---- writing ---------------------------------------------------------------------------------------------------------


def _write_metadata(out: Writer, value: Metadata) -> None:
    tagged = value.metadata_hash
    out.int32(value.epoch).tags([(0, Writer().int64(tagged).finish())] if tagged else [])


_NO_CLASSIC_MEMBER = [(0, b"\0")]
"""Tag 0: the metadata of a member of the classic protocol. Kafka writes null for members of this protocol."""


def _write_member_metadata(out: Writer, value: MemberMetadata) -> None:
    out.compact_string(value.instance_id).compact_string(value.rack_id)
    out.compact_string(value.client_id).compact_string(value.client_host)
    out.array(value.subscribed_topic_names, Writer.compact_string).compact_string(value.subscribed_topic_regex)
    out.int32(value.rebalance_timeout_ms).compact_string(value.server_assignor).tags(_NO_CLASSIC_MEMBER)


def _write_target_metadata(out: Writer, value: TargetAssignmentMetadata) -> None:
    tagged = value.assignment_timestamp
    out.int32(value.assignment_epoch).tags([(0, Writer().int64(tagged).finish())] if tagged else [])


def _write_target_member(out: Writer, value: TargetAssignmentMember) -> None:
    out.array(tuple(value.assignment.items()), _write_topic).tags()


def _write_topic(out: Writer, topic: tuple[TopicId, tuple[int, ...]]) -> None:
    out.uuid(topic[0]).int32s(topic[1]).tags()


def _write_current(out: Writer, value: CurrentMemberAssignment) -> None:
    out.int32(value.member_epoch).int32(value.previous_member_epoch).int8(value.state)
    out.array(tuple(value.assigned.items()), _write_held).array(tuple(value.revoking.items()), _write_held).tags()


def _write_held(out: Writer, topic: tuple[TopicId, Mapping[int, int]]) -> None:
    """The assignment epochs are a tagged array of the same length as the partitions."""
    epochs = Writer().int32s(tuple(topic[1].values())).finish()
    out.uuid(topic[0]).int32s(tuple(topic[1])).tags([(0, epochs)])


def _write_regular_expression(out: Writer, value: RegularExpression) -> None:
    out.array(value.topics, Writer.compact_string).int64(value.version).int64(value.timestamp).tags()


_WRITE: Mapping[type, tuple[RecordType, Callable[..., None]]] = {
    Metadata: (RecordType.METADATA, _write_metadata),
    MemberMetadata: (RecordType.MEMBER_METADATA, _write_member_metadata),
    TargetAssignmentMetadata: (RecordType.TARGET_ASSIGNMENT_METADATA, _write_target_metadata),
    TargetAssignmentMember: (RecordType.TARGET_ASSIGNMENT_MEMBER, _write_target_member),
    CurrentMemberAssignment: (RecordType.CURRENT_MEMBER_ASSIGNMENT, _write_current),
    RegularExpression: (RecordType.REGULAR_EXPRESSION, _write_regular_expression),
}

# ---- reading ---------------------------------------------------------------------------------------------------------


def _read_metadata(given: Reader) -> Metadata:
    epoch, tags = given.int32(), given.tags()
    return Metadata(epoch, Reader(tags[0]).int64() if 0 in tags else 0)


def _read_partition_metadata(given: Reader) -> PartitionMetadata:
    del given
    return PartitionMetadata()


def _read_member_metadata(given: Reader) -> MemberMetadata:
    ids = given.nullable_compact_string(), given.nullable_compact_string()
    client = given.compact_string(), given.compact_string()
    subscription = given.array(Reader.compact_string), given.nullable_compact_string()
    return MemberMetadata(*ids, *client, *subscription, given.int32(), given.nullable_compact_string())


def _read_target_metadata(given: Reader) -> TargetAssignmentMetadata:
    epoch, tags = given.int32(), given.tags()
    return TargetAssignmentMetadata(epoch, Reader(tags[0]).int64() if 0 in tags else 0)


def _read_target_member(given: Reader) -> TargetAssignmentMember:
    return TargetAssignmentMember(dict(given.array(_read_topic)))


def _read_topic(given: Reader) -> tuple[TopicId, tuple[int, ...]]:
    topic = given.uuid(), tuple(sorted(given.int32s()))
    given.tags()
    return topic


def _read_current(given: Reader) -> CurrentMemberAssignment:
    epochs = given.int32(), given.int32()
    state = _STATES.get(given.int8(), MemberState.UNKNOWN)
    assigned, revoking = given.array(_read_held), given.array(_read_held)
    return CurrentMemberAssignment(*epochs, state, _held(assigned, epochs[0]), _held(revoking, epochs[0]))


_STATES = {int(state): state for state in MemberState}


_NULL = b"\0"


def _read_held(given: Reader) -> tuple[TopicId, tuple[int, ...], tuple[int, ...]]:
    topic_id, partitions, tags = given.uuid(), given.int32s(), given.tags()
    return topic_id, partitions, Reader(tags[0]).int32s() if tags.get(0, _NULL) != _NULL else ()


def _held(topics: Iterable[tuple[TopicId, tuple[int, ...], tuple[int, ...]]], epoch: int) -> Held:
    """Partitions with their assignment epochs. Kafka before 4.3 wrote none: then the member epoch, at least 0."""
    held = {}
    for topic_id, partitions, given in topics:
        epochs = given if len(given) == len(partitions) else (max(epoch, 0),) * len(partitions)
        held[topic_id] = dict(sorted(zip(partitions, epochs, strict=True)))
    return held


def _read_regular_expression(given: Reader) -> RegularExpression:
    return RegularExpression(given.array(Reader.compact_string), given.int64(), given.int64())


_READ: Mapping[RecordType, Callable[[Reader], Value]] = {
    RecordType.METADATA: _read_metadata,
    RecordType.PARTITION_METADATA: _read_partition_metadata,
    RecordType.MEMBER_METADATA: _read_member_metadata,
    RecordType.TARGET_ASSIGNMENT_METADATA: _read_target_metadata,
    RecordType.TARGET_ASSIGNMENT_MEMBER: _read_target_member,
    RecordType.CURRENT_MEMBER_ASSIGNMENT: _read_current,
    RecordType.REGULAR_EXPRESSION: _read_regular_expression,
}

# ---- both ------------------------------------------------------------------------------------------------------------

Record = DecodedRecord[RecordType, Value]
_RECORDS: RecordCodec[RecordType, Value] = RecordCodec(RecordType, frozenset(RecordType) - _WITHOUT_NAME, _WRITE, _READ)
encode, tombstone, decode = _RECORDS.encode, _RECORDS.tombstone, _RECORDS.decode
