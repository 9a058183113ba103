"""The record of a classic group in `__consumer_offsets`, byte for byte as Kafka writes it: one for the whole group.

The key is the record type (int16 2) and the group id. Values are written in version 3 of Kafka's
GroupMetadataValue.json and read in versions 0 to 4.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.coordinator.runtime.codec import Reader, Writer
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.records import CoordinatorRecord

GROUP_METADATA = 2
WRITTEN_VERSION = 3
NEWEST_VERSION = 4


class MemberMetadata(NamedTuple):
    """A member with its subscription under the chosen protocol and its assignment.

    `rebalance_timeout_ms` -1 (version 0 has none) stands for the session timeout.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A group that is Empty or Stable; other states are not recorded. `current_state_timestamp` in ms, -1 if
    unknown."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: tuple[MemberMetadata, ...]


def encode(group_id: str, value: GroupMetadata) -> CoordinatorRecord:
    """The record that stores the group."""
    out = Writer().int16(WRITTEN_VERSION).string(value.protocol_type).int32(value.generation)
    out.nullable_string(value.protocol).nullable_string(value.leader).int64(value.current_state_timestamp)
    out.int32(len(value.members))
    for member in value.members:
        out.string(member.member_id).nullable_string(member.group_instance_id)
        out.string(member.client_id).string(member.client_host)
        out.int32(member.rebalance_timeout_ms).int32(member.session_timeout_ms)
        out.sized(member.subscription).sized(member.assignment)
    return CoordinatorRecord(_key(group_id), out.finish())


def tombstone(group_id: str) -> CoordinatorRecord:
    """The record that deletes the group."""
    return CoordinatorRecord(_key(group_id), None)


def _key(group_id: str) -> bytes:
    return Writer().int16(GROUP_METADATA).string(group_id).finish()


def decode(key: bytes, value: bytes | None) -> tuple[str, GroupMetadata | None]:
    """Group id and value, None for a tombstone. Raises UnreadableRecordError if the bytes are invalid."""
    given = Reader(key)
    given.int16()
    group_id = given.string()
    if value is None:
        return group_id, None
    body = Reader(value)
    version = body.int16()
    if not 0 <= version <= NEWEST_VERSION:
        raise UnreadableRecordError(f"GroupMetadata version {version} is unknown; allowed are 0 to {NEWEST_VERSION}")
    return group_id, _read_flexible(body) if version == NEWEST_VERSION else _read_plain(body, version)


def _read_plain(given: Reader, version: int) -> GroupMetadata:
    protocol_type, generation = given.string(), given.int32()
    protocol, leader = given.nullable_string(), given.nullable_string()
    timestamp = given.int64() if version >= 2 else -1
    members = tuple(_read_plain_member(given, version) for _ in range(given.int32()))
    return GroupMetadata(protocol_type, generation, protocol, leader, timestamp, members)


def _read_plain_member(given: Reader, version: int) -> MemberMetadata:
    member_id = given.string()
    instance_id = given.nullable_string() if version >= 3 else None
    client = given.string(), given.string()
    times = (given.int32() if version >= 1 else -1), given.int32()
    return MemberMetadata(member_id, instance_id, *client, *times, given.sized(), given.sized())


def _read_flexible(given: Reader) -> GroupMetadata:
    protocol_type, generation = given.compact_string(), given.int32()
    protocol, leader = given.nullable_compact_string(), given.nullable_compact_string()
    timestamp, members = given.int64(), given.array(_read_flexible_member)
    given.tags()
    return GroupMetadata(protocol_type, generation, protocol, leader, timestamp, members)


def _read_flexible_member(given: Reader) -> MemberMetadata:
    names = given.compact_string(), given.nullable_compact_string(), given.compact_string(), given.compact_string()
    member = MemberMetadata(*names, given.int32(), given.int32(), given.compact_sized(), given.compact_sized())
    given.tags()
    return member
