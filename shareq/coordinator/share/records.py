"""The records of `__share_group_state`, byte for byte as Kafka writes them.

A key is its type (int16) and the fields of the key message in non-flexible form; a value is its version (int16) and a
flexible message. Big-endian. Source: Kafka's ShareSnapshotKey/Value.json and ShareUpdateKey/Value.json, KIP-932.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from shareq.coordinator.shard import UnreadableRecordError
from shareq.model.ids import SharePartitionKey, topic_id_from_bytes, topic_id_to_bytes
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import CoordinatorRecord

SNAPSHOT, UPDATE = 0, 1
"""The types of keys."""


class StateSnapshot(NamedTuple):
    """All that is known of a key. Times in ms since the epoch; `delivery_complete_count` -1: not counted."""

    key: SharePartitionKey
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_timestamp: int
    write_timestamp: int
    state_batches: tuple[StateBatch, ...] = ()
    delivery_complete_count: int = -1


class StateUpdate(NamedTuple):
    """What changed since the snapshot with this epoch. `start_offset` -1: not updated."""

    key: SharePartitionKey
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    state_batches: tuple[StateBatch, ...] = ()
    delivery_complete_count: int = -1


class StateTombstone(NamedTuple):
    """The key is no more."""

    key: SharePartitionKey


StateRecord = StateSnapshot | StateUpdate | StateTombstone

_TYPE = struct.Struct(">h")
_KEY_HEAD = struct.Struct(">hh")
_KEY_TAIL = struct.Struct(">16si")
_SNAPSHOT = struct.Struct(">hiiiqqq")
_UPDATE = struct.Struct(">hiiq")
_BATCH = struct.Struct(">qqbhx")  # the last byte is an empty tag section
_COUNT_TAG = struct.Struct(">BBBi")
_INT32 = struct.Struct(">i")
_VERSION = 0
_NO_TAGS = b"\x00"
_MAX_UVARINT_BYTES = 5


# ---- writing ---------------------------------------------------------------------------------------------------------


def encode_key(key: SharePartitionKey, key_type: int) -> bytes:
    """The record key; `key_type` SNAPSHOT (tombstones, too) or UPDATE."""
    group = key.group_id.encode()
    return _KEY_HEAD.pack(key_type, len(group)) + group + _KEY_TAIL.pack(topic_id_to_bytes(key.topic_id), key.partition)


def encode_snapshot(record: StateSnapshot) -> bytes:
    """The record value of a snapshot."""
    _, snapshot_epoch, state_epoch, leader_epoch, start_offset, created, written, batches, count = record
    head = _SNAPSHOT.pack(_VERSION, snapshot_epoch, state_epoch, leader_epoch, start_offset, created, written)
    return head + _encode_tail(batches, count)


def encode_update(record: StateUpdate) -> bytes:
    """The record value of an update."""
    _, snapshot_epoch, leader_epoch, start_offset, batches, count = record
    return _UPDATE.pack(_VERSION, snapshot_epoch, leader_epoch, start_offset) + _encode_tail(batches, count)


def encode_state_record(record: StateRecord) -> CoordinatorRecord:
    """Key and value of any record of the state topic."""
    if isinstance(record, StateUpdate):
        return CoordinatorRecord(encode_key(record.key, UPDATE), encode_update(record))
    value = encode_snapshot(record) if isinstance(record, StateSnapshot) else None
    return CoordinatorRecord(encode_key(record.key, SNAPSHOT), value)


def _encode_tail(batches: Sequence[StateBatch], delivery_complete_count: int) -> bytes:
    """State batches, then the tag section: the count is tag 0 and left out when it is -1, its default."""
    pack = _BATCH.pack
    body = b"".join([pack(*batch) for batch in batches])
    tags = _NO_TAGS if delivery_complete_count == -1 else _COUNT_TAG.pack(1, 0, 4, delivery_complete_count)
    return _uvarint(len(batches) + 1) + body + tags


def _uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# ---- reading ---------------------------------------------------------------------------------------------------------


def decode_state_record(key: bytes, value: bytes | None) -> StateRecord | None:
    """The typed record, or None where the key is of a type that we do not know, which is to be skipped.

    Tags that we do not know and bytes behind the message are tolerated, as Kafka does. Raises UnreadableRecordError for
    another version of a value, for bytes that end early or make no sense, and for an update that is null.
    """
    try:
        return _decode(key, value)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise UnreadableRecordError(f"key {key.hex()}: {error}") from error


def _decode(key: bytes, value: bytes | None) -> StateRecord | None:
    (key_type,) = _TYPE.unpack_from(key)
    if key_type not in (SNAPSHOT, UPDATE):
        return None
    name = _decode_key(key)
    if value is None:
        if key_type == UPDATE:
            raise UnreadableRecordError(f"{name}: an update cannot be null")
        return StateTombstone(name)
    (version,) = _TYPE.unpack_from(value)
    if version != _VERSION:
        raise UnreadableRecordError(f"{name}: unknown version {version} of a value of type {key_type}")
    if key_type == UPDATE:
        _, snapshot_epoch, leader_epoch, start_offset = _UPDATE.unpack_from(value)
        return StateUpdate(name, snapshot_epoch, leader_epoch, start_offset, *_decode_tail(value, _UPDATE.size))
    _, *epochs_and_times = _SNAPSHOT.unpack_from(value)
    batches, delivery_complete_count = _decode_tail(value, _SNAPSHOT.size)
    return StateSnapshot._make((name, *epochs_and_times, batches, delivery_complete_count))


def _decode_key(key: bytes) -> SharePartitionKey:
    _, length = _KEY_HEAD.unpack_from(key)
    end = _KEY_HEAD.size + length
    if length < 0:
        raise UnreadableRecordError("the group id of a key cannot be null")
    topic_id, partition = _KEY_TAIL.unpack_from(key, end)
    return SharePartitionKey(key[_KEY_HEAD.size : end].decode(), topic_id_from_bytes(topic_id), partition)


def _decode_tail(value: bytes, position: int) -> tuple[tuple[StateBatch, ...], int]:
    """State batches and the delivery complete count. Batches without tags, as Kafka writes them, are read at once."""
    count, position = _read_uvarint(value, position)
    if count == 0:
        raise UnreadableRecordError("state batches cannot be null")
    end = position + (count - 1) * _BATCH.size
    if end < len(value) and not any(value[position + _BATCH.size - 1 : end : _BATCH.size]):
        batches = list(map(StateBatch._make, _BATCH.iter_unpack(value[position:end])))
        position = end
    else:
        batches = []
        for _ in range(count - 1):
            batches.append(StateBatch._make(_BATCH.unpack_from(value, position)))
            _, position = _read_tags(value, position + _BATCH.size - 1)
    tags, _ = _read_tags(value, position)
    delivery_complete_count = _INT32.unpack(tags[0])[0] if 0 in tags else -1
    return tuple(batches), delivery_complete_count


def _read_tags(value: bytes, position: int) -> tuple[dict[int, bytes], int]:
    """The tag section at `position`, and the position behind it."""
    count, position = _read_uvarint(value, position)
    tags: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = _read_uvarint(value, position)
        size, position = _read_uvarint(value, position)
        if position + size > len(value):
            raise UnreadableRecordError(f"tag {tag} is cut off")
        tags[tag] = value[position : position + size]
        position += size
    return tags, position


def _read_uvarint(value: bytes, position: int) -> tuple[int, int]:
    """An unsigned varint, and the position behind it."""
    result = 0
    for index in range(_MAX_UVARINT_BYTES):
        byte = value[position + index]
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return result, position + index + 1
    raise UnreadableRecordError("an unsigned varint has at most 5 bytes")
