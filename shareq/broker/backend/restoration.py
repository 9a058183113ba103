"""What a writer appends again to a compacted topic, in which a replaced one has hidden valid records.

BEHAVIOUR.md, 3.9.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple, Protocol

from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.share_state.records import SNAPSHOT, decode_key, encode_key
from shareq.model.ids import SharePartitionKey
from shareq.model.records import CoordinatorRecord


class Restoration(Protocol):
    """Takes the valid records of a log, from its start on; made for the keys of the records that hide valid ones."""

    def take(self, key: bytes, value: bytes | None) -> None: ...

    def records(self) -> list[CoordinatorRecord]:
        """The records to append, as one batch."""
        ...


class Cleanup(NamedTuple):
    """The rules of a topic that is compacted. `settles(key, stray)`: True if a valid record with `key` ends the effect
    of one with the key `stray` that a replaced writer has appended before."""

    settles: Callable[[bytes, bytes], bool]
    restoration: Callable[[frozenset[bytes]], Restoration]


class NewestRecords:
    """For records that have a meaning of their own: the last valid one of each key, or a tombstone."""

    def __init__(self, strays: frozenset[bytes]) -> None:
        self._found: dict[bytes, bytes | None] = dict.fromkeys(sorted(strays))

    def take(self, key: bytes, value: bytes | None) -> None:
        if key in self._found:
            self._found[key] = value

    def records(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(*found) for found in self._found.items()]


class WholeStates:
    """For the states of share-partitions: checkpoint and deltas have a meaning in their order only. A checkpoint alone
    would take back the deltas after it, and a delta alone those between. So a state is appended whole, from its
    last checkpoint on. Deltas of a replaced writer that are no part of it get tombstones."""

    def __init__(self, strays: frozenset[bytes]) -> None:
        names = {key: _share_partition(key) for key in strays}
        self._keys = {key for key, name in names.items() if name is not None}
        self._states: dict[SharePartitionKey, dict[bytes, bytes | None]] = {
            name: {encode_key(name, SNAPSHOT): None} for name in names.values() if name is not None
        }
        self._others = NewestRecords(frozenset(key for key, name in names.items() if name is None))

    def take(self, key: bytes, value: bytes | None) -> None:
        name = _share_partition(key)
        if name is None:
            self._others.take(key, value)
        elif (state := self._states.get(name)) is not None:
            if key == encode_key(name, SNAPSHOT):
                state.clear()
            state.pop(key, None)
            state[key] = value

    def records(self) -> list[CoordinatorRecord]:
        states = [CoordinatorRecord(*found) for state in self._states.values() for found in state.items()]
        gone = sorted(self._keys - {key for key, _ in states})
        return [*self._others.records(), *(CoordinatorRecord(key, None) for key in gone), *states]


def _settles_state(key: bytes, stray: bytes) -> bool:
    """True for a checkpoint or the deletion of a state: deltas add to those before them, also to a stray one that
    compaction shows when it has removed the fence."""
    name = _share_partition(stray)
    return key == (stray if name is None else encode_key(name, SNAPSHOT))


def _share_partition(key: bytes) -> SharePartitionKey | None:
    """The share-partition of a record; None if it is of another kind, as another program may have written it."""
    try:
        _, name, _ = decode_key(key)
    except UnreadableRecordError:
        return None
    return name


OF_RECORDS = Cleanup(operator.eq, NewestRecords)
OF_STATES = Cleanup(_settles_state, WholeStates)
