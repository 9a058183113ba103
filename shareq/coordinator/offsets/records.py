"""The record of a committed offset in `__consumer_offsets`, byte for byte as Kafka writes it.

The key is the record type (int16 1; 0 in old logs), group id, topic name and partition. Values are written in version 4
of Kafka's OffsetCommitValue.json, those with an expiry time in version 1, and read in versions 0 to 4.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.coordinator.runtime.codec import Reader, Writer
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.records import CoordinatorRecord

OFFSET_COMMIT = 1
OFFSET_COMMIT_TYPES = (0, OFFSET_COMMIT)
WRITTEN_VERSION = 4
EXPIRING_VERSION = 1
"""The only version with an expiry time. It has neither leader epoch nor topic id, and neither have its commits."""

TOPIC_ID_TAG = 0
NO_EXPIRY = -1


class OffsetKey(NamedTuple):
    """The key of a committed offset."""

    group_id: str
    topic: str
    partition: int


class OffsetCommit(NamedTuple):
    """`offset`: the next record to read. Timestamps in ms; `expire_timestamp` is set by old clients only, else
    NO_EXPIRY."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    topic_id: TopicId = ZERO_TOPIC_ID
    expire_timestamp: int = NO_EXPIRY


def encode(key: OffsetKey, value: OffsetCommit) -> CoordinatorRecord:
    """The record that commits the offset."""
    if value.expire_timestamp != NO_EXPIRY:
        return CoordinatorRecord(_key(key), _expiring(value))
    out = Writer().int16(WRITTEN_VERSION).int64(value.offset).int32(value.leader_epoch)
    out.compact_string(value.metadata).int64(value.commit_timestamp)
    known = value.topic_id != ZERO_TOPIC_ID
    out.tags([(TOPIC_ID_TAG, Writer().uuid(value.topic_id).finish())] if known else [])
    return CoordinatorRecord(_key(key), out.finish())


def _expiring(value: OffsetCommit) -> bytes:
    out = Writer().int16(EXPIRING_VERSION).int64(value.offset).string(value.metadata)
    return out.int64(value.commit_timestamp).int64(value.expire_timestamp).finish()


def tombstone(key: OffsetKey) -> CoordinatorRecord:
    """The record that deletes the offset."""
    return CoordinatorRecord(_key(key), None)


def _key(key: OffsetKey) -> bytes:
    return Writer().int16(OFFSET_COMMIT).string(key.group_id).string(key.topic).int32(key.partition).finish()


def decode(key: bytes, value: bytes | None) -> tuple[OffsetKey, OffsetCommit | None]:
    """Key and value, None for a tombstone. Raises UnreadableRecordError if the bytes are invalid."""
    given = Reader(key)
    given.int16()
    offset_key = OffsetKey(given.string(), given.string(), given.int32())
    if value is None:
        return offset_key, None
    body = Reader(value)
    version = body.int16()
    if not 0 <= version <= WRITTEN_VERSION:
        raise UnreadableRecordError(f"OffsetCommit version {version} is unknown; allowed are 0 to {WRITTEN_VERSION}")
    offset = body.int64()
    leader_epoch = body.int32() if version >= 3 else -1
    metadata = body.compact_string() if version >= 4 else body.string()
    timestamp = body.int64()
    expires = body.int64() if version == EXPIRING_VERSION else NO_EXPIRY
    tags = body.tags() if version >= 4 else {}
    topic_id = Reader(tags[TOPIC_ID_TAG]).uuid() if TOPIC_ID_TAG in tags else ZERO_TOPIC_ID
    return offset_key, OffsetCommit(offset, leader_epoch, metadata, timestamp, topic_id, expires)
