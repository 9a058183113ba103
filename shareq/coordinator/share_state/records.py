"""The records of `__share_group_state`, byte for byte as Kafka writes them.

A key is its type (int16) and the fields of the key message in non-flexible form; a value is its version (int16) and a
flexible message. Big-endian. Source: Kafka's ShareSnapshotKey/Value.json and ShareUpdateKey/Value.json, KIP-932.

A staged update (an experiment) is one within a producer's transaction; a tagged field of shareq marks it, which Kafka
ignores as it does any unknown tag.

On a compacted topic a snapshot is a checkpoint, and an update is a delta: its key ends with an index (uint16), so that
compaction keeps several deltas of a share-partition. The values are the same.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from shareq.coordinator.runtime.codec import Reader, Writer
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.ids import SharePartitionKey, topic_id_from_bytes, topic_id_to_bytes
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import CoordinatorRecord

SNAPSHOT, UPDATE = 0, 1
"""The key types."""

NO_INDEX = -1
"""The index of a record that is not about a delta."""


class StateSnapshot(NamedTuple):
    """The whole state of a key. Times in ms since the epoch; `delivery_complete_count` -1: not counted."""

    key: SharePartitionKey
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_timestamp: int
    write_timestamp: int
    state_batches: tuple[StateBatch, ...] = ()
    delivery_complete_count: int = -1


class Stage(NamedTuple):
    """Of a staged update: the state epoch, without which it has no effect, and the epoch of the producer."""

    state_epoch: int
    producer_epoch: int


class StateUpdate(NamedTuple):
    """A change of the state after the snapshot with this epoch. `start_offset` -1: unchanged. `delta_index`: that of a
    delta on a compacted topic, else NO_INDEX. With a `stage` it takes effect with the marker of a commit."""

    key: SharePartitionKey
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    state_batches: tuple[StateBatch, ...] = ()
    delivery_complete_count: int = -1
    delta_index: int = NO_INDEX
    stage: Stage | None = None


class StateTombstone(NamedTuple):
    """The deletion of a key; with a `delta_index` the deletion of one delta, which does not change the state."""

    key: SharePartitionKey
    delta_index: int = NO_INDEX


StateRecord = StateSnapshot | StateUpdate | StateTombstone

_KEY_HEAD = struct.Struct(">hh")
_KEY_TAIL = struct.Struct(">16si")
_INDEX = struct.Struct(">H")
_SNAPSHOT = struct.Struct(">iiiqqq")
_UPDATE = struct.Struct(">iiq")
_BATCH = struct.Struct(">qqbhx")  # the last byte is an empty tag section
_BATCH_FIELDS = struct.Struct(">qqbh")
_VERSION = 0
_VERSION_BYTES = struct.pack(">h", _VERSION)
_COUNT_TAG = 0
_STAGE_TAG = 10_000
"""Kafka's own tags count from 0."""
_STAGE = struct.Struct(">ih")
_COUNTED = struct.Struct(">bbbi")
"""A tag section with the delivery complete count only: number of tags, tag, size, count."""

_COUNTED_HEAD = _COUNTED.pack(1, _COUNT_TAG, 4, 0)[:3]
_ONE_BYTE = 0x7F
"""The largest length that a varint encodes in one byte."""

_KNOWN_KEYS = 1 << 14
"""The size of the caches of encoded and decoded keys: every record of a share-partition has the same key."""


# ---- writing ---------------------------------------------------------------------------------------------------------


@lru_cache(_KNOWN_KEYS)
def encode_key(key: SharePartitionKey, key_type: int) -> bytes:
    """The record key. `key_type`: SNAPSHOT (also for tombstones) or UPDATE."""
    group = key.group_id.encode()
    return _KEY_HEAD.pack(key_type, len(group)) + group + _KEY_TAIL.pack(topic_id_to_bytes(key.topic_id), key.partition)


def encode_snapshot(record: StateSnapshot) -> bytes:
    """The record value of a snapshot."""
    _, snapshot_epoch, state_epoch, leader_epoch, start_offset, created, written, batches, count = record
    head = _SNAPSHOT.pack(snapshot_epoch, state_epoch, leader_epoch, start_offset, created, written)
    return _encode_value(head, batches, count)


def encode_update(record: StateUpdate) -> bytes:
    """The record value of an update."""
    _, snapshot_epoch, leader_epoch, start_offset, batches, count, _, stage = record
    head = _UPDATE.pack(snapshot_epoch, leader_epoch, start_offset)
    if stage is None:
        return _encode_value(head, batches, count)
    tags = [(_STAGE_TAG, _STAGE.pack(*stage))]
    if count != -1:
        tags.append((_COUNT_TAG, Writer().int32(count).finish()))
    return _encode_value(head, batches, -1).removesuffix(b"\0") + Writer().tags(tags).finish()


def encode_state_record(record: StateRecord) -> CoordinatorRecord:
    """The key and value of a record of the state topic."""
    if isinstance(record, StateSnapshot):
        return CoordinatorRecord(encode_key(record.key, SNAPSHOT), encode_snapshot(record))
    value = encode_update(record) if isinstance(record, StateUpdate) else None
    if record.delta_index != NO_INDEX:
        return CoordinatorRecord(encode_key(record.key, UPDATE) + _INDEX.pack(record.delta_index), value)
    return CoordinatorRecord(encode_key(record.key, SNAPSHOT if value is None else UPDATE), value)


def _encode_value(head: bytes, batches: Sequence[StateBatch], delivery_complete_count: int) -> bytes:
    """Version, head, state batches and the tag section, which omits the count if it is -1, its default."""
    pack = _BATCH.pack
    count = len(batches) + 1
    length = bytes((count,)) if count <= _ONE_BYTE else Writer().uvarint(count).finish()
    tags = b"\0" if delivery_complete_count == -1 else _COUNTED.pack(1, _COUNT_TAG, 4, delivery_complete_count)
    return b"".join((_VERSION_BYTES, head, length, *[pack(*batch) for batch in batches], tags))


# ---- reading ---------------------------------------------------------------------------------------------------------


def decode_state_record(key: bytes, value: bytes | None) -> StateRecord | None:
    """The typed record; None if the key type is unknown, to be skipped.

    Unknown tags and bytes after the message are ignored, as in Kafka. Raises UnreadableRecordError for an unknown
    version of the value, invalid bytes, and an update without value, unless it is a delta.
    """
    key_type, name, index = decode_key(key)
    if name is None:
        return None
    if value is None:
        if key_type == UPDATE and index == NO_INDEX:
            raise UnreadableRecordError(f"{name}: the value of an update is null")
        return StateTombstone(name, index)
    reader = Reader(value)
    version = reader.int16()
    if version != _VERSION:
        raise UnreadableRecordError(
            f"{name}: version {version} of record type {key_type} is unknown; allowed is {_VERSION}"
        )
    if key_type == UPDATE:
        snapshot_epoch, leader_epoch, start_offset = _UPDATE.unpack(reader.take(_UPDATE.size))
        batches, count, stage = _decode_tail(reader)
        return StateUpdate(name, snapshot_epoch, leader_epoch, start_offset, batches, count, index, stage)
    epochs_and_times = _SNAPSHOT.unpack(reader.take(_SNAPSHOT.size))
    batches, delivery_complete_count, _ = _decode_tail(reader)
    return StateSnapshot._make((name, *epochs_and_times, batches, delivery_complete_count))


@lru_cache(_KNOWN_KEYS)
def decode_key(key: bytes) -> tuple[int, SharePartitionKey | None, int]:
    """The key type, the share-partition and the index of a delta; no share-partition if the type is unknown."""
    reader = Reader(key)
    key_type = reader.int16()
    if key_type not in (SNAPSHOT, UPDATE):
        return key_type, None, NO_INDEX
    group_id = reader.string()
    topic_id, partition = _KEY_TAIL.unpack(reader.take(_KEY_TAIL.size))
    index = reader.peek(_INDEX.size) if key_type == UPDATE else b""
    name = SharePartitionKey(group_id, topic_id_from_bytes(topic_id), partition)
    return key_type, name, _INDEX.unpack(index)[0] if len(index) == _INDEX.size else NO_INDEX


def _decode_tail(reader: Reader) -> tuple[tuple[StateBatch, ...], int, Stage | None]:
    """State batches, the delivery complete count, and the stage of a staged update. Fast path: batches without tags,
    and the count as the only tag, as shareq and Kafka write them."""
    count = reader.uvarint() - 1
    if count < 0:
        raise UnreadableRecordError("the array of state batches is null")
    size = count * _BATCH.size
    if not any(reader.peek(size)[_BATCH_FIELDS.size :: _BATCH.size]):
        batches = tuple(map(StateBatch._make, _BATCH.iter_unpack(reader.take(size))))
    else:
        batches = tuple(_decode_batch(reader) for _ in range(count))
    tags = reader.peek(_COUNTED.size)
    if len(tags) == _COUNTED.size and tags.startswith(_COUNTED_HEAD):
        return batches, _COUNTED.unpack(tags)[3], None
    fields = reader.tags()
    count_field, stage_field = fields.get(_COUNT_TAG), fields.get(_STAGE_TAG)
    stage = None if stage_field is None else Stage._make(_STAGE.unpack(Reader(stage_field).take(_STAGE.size)))
    return batches, -1 if count_field is None else Reader(count_field).int32(), stage


def _decode_batch(reader: Reader) -> StateBatch:
    batch = StateBatch._make(_BATCH_FIELDS.unpack(reader.take(_BATCH_FIELDS.size)))
    reader.tags()
    return batch
