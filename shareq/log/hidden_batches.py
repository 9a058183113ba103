"""Share state in the log of a topic-partition: control batches that readers of the log never see, and their side index.

They are kept apart from the other batches, so that no reader has to pass over them; their offsets are gaps for it. The
index has, by group, the last checkpoint and the deltas since, with their contents: it outlives a cut of the log. A copy
of the log that has lost its index makes it anew from the end of the log.
Source: KIP-932, the first design ("Control records"). Rules: BEHAVIOUR.md of the persister, "Control records".
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from shareq.log.batches import CONTROL, HEADER, HEADER_BYTES, LENGTH_PREFIX_BYTES, MAGIC, stamp_crc
from shareq.log.records import decode
from shareq.model.records import NO_PRODUCER_ID, CoordinatorRecord, RecordBatch

CHECKPOINT, DELTA = 5, 6
"""The types of control records: KIP-932's. In Kafka's metadata log, and only there, they mean something else."""

DELETED = -2
"""The end offset of a checkpoint that deletes its group."""

_KEY = struct.Struct(">hh")
_HEAD = struct.Struct(">hh")
_AFTER_GROUP = struct.Struct(">Hqq")
_EARLIEST = struct.Struct(">q")

HiddenRecord = tuple[int, bytes, bytes]
"""Offset, key, value."""


def control_key(kind: int) -> bytes:
    """The key of a control record: version 0, and its type."""
    return _KEY.pack(0, kind)


def hidden_batch(record: CoordinatorRecord) -> bytes:
    """A batch with one control record: not transactional, no producer, no timestamp, base offset 0."""
    key, value = record
    assert value is not None, "a control record has a value"
    body = b"\0\0\0" + _varint(len(key)) + key + _varint(len(value)) + value + b"\0"
    data = bytearray(HEADER_BYTES) + _varint(len(body)) + body
    size = len(data) - LENGTH_PREFIX_BYTES
    HEADER.pack_into(data, 0, 0, size, -1, MAGIC, 0, CONTROL, 0, -1, -1, NO_PRODUCER_ID, -1, -1, 1)
    return stamp_crc(data)


def _varint(size: int) -> bytes:
    """A length as a zigzag varint."""
    encoded, rest = bytearray(), 2 * size
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _group_of(value: bytes) -> tuple[str, bool]:
    """The group of a value, and whether it would delete the group if it is a checkpoint's."""
    _, size = _HEAD.unpack_from(value)
    at = _HEAD.size + size
    deletes = len(value) >= at + _AFTER_GROUP.size and _AFTER_GROUP.unpack_from(value, at)[2] == DELETED
    return value[_HEAD.size : at].decode(), deletes


def _earliest_of(value: bytes, offset: int) -> int:
    """The least offset of a last checkpoint of any group, as of the checkpoint with this value at this offset. Version
    0 does not have it: 0."""
    if _HEAD.unpack_from(value)[0] == 0:
        return 0
    (others,) = _EARLIEST.unpack_from(value, len(value) - _EARLIEST.size)
    return int(others) if others >= 0 else offset


@dataclass(slots=True)
class IndexEntry:
    """The records of a group that recovery needs: its last checkpoint, and the deltas since. Orphans are deltas without
    a checkpoint, which a cut has removed before the index was lost."""

    deleted: bool = False
    records: list[HiddenRecord] = field(default_factory=list)

    @property
    def first_offset(self) -> int:
        """The group's share checkpoint offset (SCO), or the offset of its first orphan."""
        return self.records[0][0]


class Hidden(NamedTuple):
    batch: RecordBatch
    group: str


class HiddenBatches:
    """The batches of share state in one log, ascending, and the index."""

    def __init__(self) -> None:
        self._batches: list[Hidden] = []
        self._index: dict[str, IndexEntry] = {}

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def batches(self) -> list[RecordBatch]:
        """All batches that are in the log."""
        return [hidden.batch for hidden in self._batches]

    def newest_first(self) -> Iterator[RecordBatch]:
        """All batches that are in the log, from its end."""
        return (hidden.batch for hidden in reversed(self._batches))

    def appended(self, batch: RecordBatch, record: CoordinatorRecord) -> None:
        """Take in a batch that was appended with this record."""
        self._batches.append(Hidden(batch, self.index(batch.base_offset, record)))

    def index(self, offset: int, record: CoordinatorRecord) -> str:
        """Put a record into the index; its group."""
        key, value = record
        assert value is not None
        group, deletes = _group_of(value)
        if key == control_key(CHECKPOINT):
            self._index[group] = IndexEntry(deletes)
        self._index.setdefault(group, IndexEntry()).records.append((offset, key, value))
        return group

    def rebuild_index(self, newest_first: Iterable[RecordBatch]) -> int:
        """Make the index anew from the batches of the log, down to the earliest of the groups' last checkpoints, which
        the last checkpoint names; the number of headers read."""
        until: int | None = None
        headers = 0
        found: list[tuple[int, CoordinatorRecord]] = []
        for batch in newest_first:
            if until is not None and batch.base_offset < until:
                break
            headers += 1
            if batch.is_control and not batch.is_transactional:
                (record,) = decode(batch)
                assert record.key is not None
                assert record.value is not None
                if until is None and record.key == control_key(CHECKPOINT):
                    until = _earliest_of(record.value, batch.base_offset)
                found.append((batch.base_offset, CoordinatorRecord(record.key, record.value)))
        self._index.clear()
        for offset, each in reversed(found):
            self.index(offset, each)
        return headers

    def recovery(self) -> list[HiddenRecord]:
        """The records that a recovery reads, in the order of their offsets: whether or not they are in the log."""
        return sorted(record for entry in self._index.values() for record in entry.records)

    def runs(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """The hidden offsets in [first, end), as maximal ranges."""
        at = bisect_left(self._batches, first, key=_offset)
        begin = last = -2
        for hidden in self._batches[at:]:
            offset = hidden.batch.base_offset
            if offset >= end:
                break
            if offset != last + 1:
                if begin >= 0:
                    yield begin, last + 1
                begin = offset
            last = offset
        if begin >= 0:
            yield begin, last + 1

    def cut(self, log_start: int) -> int:
        """Drop the batches below the log start; their size in bytes. The index keeps what it has."""
        count = bisect_left(self._batches, log_start, key=_offset)
        size = sum(hidden.batch.size for hidden in self._batches[:count])
        del self._batches[:count]
        return size

    def clean(self, until: int) -> tuple[int, int]:
        """Drop the batches below `until` that their group's checkpoint replaces, and markers of deleted groups without
        older batches; the number and the bytes of them."""
        older: set[str] = set()
        kept: list[Hidden] = []
        count = bisect_left(self._batches, until, key=_offset)
        for hidden in self._batches[:count]:
            entry, offset = self._index.get(hidden.group), hidden.batch.base_offset
            if entry is None or offset < entry.first_offset:
                older.add(hidden.group)
            elif entry.deleted and hidden.group not in older:
                del self._index[hidden.group]
            else:
                kept.append(hidden)
        dropped = self.total(count) - sum(hidden.batch.size for hidden in kept)
        number = count - len(kept)
        self._batches[:count] = kept
        return number, dropped

    def total(self, count: int) -> int:
        """The size in bytes of the first `count` batches."""
        return sum(hidden.batch.size for hidden in self._batches[:count])


def _offset(hidden: Hidden) -> int:
    return hidden.batch.base_offset
