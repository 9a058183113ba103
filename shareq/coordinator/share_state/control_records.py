"""The values of the control records of share state, in the log of the topic-partition that they are about.

A key is version 0 and the type (int16 each): 5 checkpoint, 6 delta. Values are big-endian and not flexible, and begin
with their version (int16). Source: KIP-932, first design, ShareCheckpointValue and ShareDeltaValue. Version 1 of a
checkpoint is version 0 with the state epoch and the earliest checkpoint of the other groups.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from shareq.coordinator.runtime.codec import Reader, Writer
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.share_state.records import StateRecord, StateSnapshot, StateTombstone, StateUpdate
from shareq.log.hidden_batches import CHECKPOINT, DELETED, DELTA, control_key
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import CoordinatorRecord

CHECKPOINT_VERSION, DELTA_VERSION = 1, 0
NO_OFFSET = -1

_CHECKPOINT = struct.Struct(">Hqq")
_EPOCH = struct.Struct(">H")
_BATCH = struct.Struct(">qqbh")
_TAIL = struct.Struct(">iq")


def encode_control_record(record: StateRecord, earliest_checkpoint: int = NO_OFFSET) -> CoordinatorRecord:
    """The key and value. `earliest_checkpoint`: the least offset of the other groups' last checkpoints, NO_OFFSET if
    there is no other group."""
    group = record.key.group_id
    if isinstance(record, StateUpdate):
        value = Writer().int16(DELTA_VERSION).string(group).raw(_EPOCH.pack(record.snapshot_epoch))
        return CoordinatorRecord(control_key(DELTA), value.raw(_batches(record.state_batches)).finish())
    value = Writer().int16(CHECKPOINT_VERSION).string(group)
    if isinstance(record, StateTombstone):
        value.raw(_CHECKPOINT.pack(0, NO_OFFSET, DELETED)).raw(_batches(())).raw(_TAIL.pack(0, earliest_checkpoint))
        return CoordinatorRecord(control_key(CHECKPOINT), value.finish())
    end = record.state_batches[-1].last_offset + 1 if record.state_batches else record.start_offset
    value.raw(_CHECKPOINT.pack(record.snapshot_epoch, record.start_offset, end))
    value.raw(_batches(record.state_batches)).raw(_TAIL.pack(record.state_epoch, earliest_checkpoint))
    return CoordinatorRecord(control_key(CHECKPOINT), value.finish())


def _batches(batches: Sequence[StateBatch]) -> bytes:
    return Writer().int32(len(batches)).finish() + b"".join([_BATCH.pack(*batch) for batch in batches])


def decode_control_record(key: bytes, value: bytes | None, topic_id: TopicId, partition: int) -> StateRecord | None:
    """The typed record of a log; None if the key has another type. A delta has no start offset: NO_OFFSET.

    Raises UnreadableRecordError for an unknown version of the value and invalid bytes.
    """
    if key not in (control_key(CHECKPOINT), control_key(DELTA)):
        return None
    reader = Reader(value or b"")
    version = reader.int16()
    name = SharePartitionKey(reader.string(), topic_id, partition)
    if key == control_key(DELTA):
        _require(version == DELTA_VERSION, name, version)
        (epoch,) = _EPOCH.unpack(reader.take(_EPOCH.size))
        return StateUpdate(name, epoch, NO_OFFSET, NO_OFFSET, reader.plain_array(_batch))
    _require(version in (0, CHECKPOINT_VERSION), name, version)
    epoch, start_offset, end_offset = _CHECKPOINT.unpack(reader.take(_CHECKPOINT.size))
    batches = reader.plain_array(_batch)
    state_epoch = reader.int32() if version == CHECKPOINT_VERSION else 0
    if end_offset == DELETED:
        return StateTombstone(name)
    return StateSnapshot(name, epoch, state_epoch, NO_OFFSET, start_offset, 0, 0, batches)


def _require(known: bool, name: SharePartitionKey, version: int) -> None:
    if not known:
        raise UnreadableRecordError(f"{name}: version {version} of a control record is unknown")


def _batch(reader: Reader) -> StateBatch:
    return StateBatch._make(_BATCH.unpack(reader.take(_BATCH.size)))
