"""The groups of one partition of `__consumer_offsets`, as a fold of its log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from shareq.coordinator.group import group
from shareq.coordinator.group.group import G, Group
from shareq.coordinator.group.owned import Owned
from shareq.coordinator.runtime.codec import Reader
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.records import NO_PRODUCER_ID


class StoredRecord(NamedTuple):
    """A record of the log. `producer_id`: of the open transaction that it belongs to, or NO_PRODUCER_ID."""

    offset: int
    key: bytes
    value: bytes | None
    producer_id: int


Replay = Callable[[dict[str, Group], bytes, bytes | None, int], None]
"""Replays one record of a group: (groups, key, value, now_ms)."""


class Replays(NamedTuple):
    """How the records of a shard are replayed; the rooms of groups and offsets know it.

    `groups`: by type of record. `offset_types`: the types of committed offsets, which alone belong to transactions;
    `offset` replays one, and `marker` the end of a producer's transaction: (shard, producer id, committed).
    """

    groups: Mapping[int, Replay]
    offset_types: frozenset[int]
    offset: Callable[[GroupShard, StoredRecord], None]
    marker: Callable[[GroupShard, int, bool], None]


class GroupShard(Owned):
    """Groups of all types by id, and the offsets committed for them, which `offsets` owns."""

    def __init__(self, replays: Replays) -> None:
        super().__init__()
        self.groups: dict[str, Group] = {}
        self._replays = replays

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Replay one committed record; unknown types (written by another version) are skipped.

        Raises UnreadableRecordError if a record is invalid, or an id would have two types.
        """
        kind = Reader(key).int16()
        if kind in self._replays.offset_types:
            self._replays.offset(self, StoredRecord(offset, key, value, NO_PRODUCER_ID))
            return
        replay = self._replays.groups.get(kind)
        if replay is not None:
            replay(self.groups, key, value, now_ms)

    def replay_transactional(self, offset: int, key: bytes, value: bytes | None, producer_id: int, now_ms: int) -> None:
        """Replay an offset that a producer has committed in its open transaction."""
        del now_ms
        if Reader(key).int16() not in self._replays.offset_types:
            raise UnreadableRecordError(f"offset {offset}: only offsets belong to transactions")
        self._replays.offset(self, StoredRecord(offset, key, value, producer_id))

    def replay_marker(self, producer_id: int, committed: bool, now_ms: int) -> None:
        """Commit or discard the offsets of a producer's transaction."""
        del now_ms
        self._replays.marker(self, producer_id, committed)

    def find(self, kind: type[G], group_id: str) -> G | None:
        """The group, if it exists and is of this type; else None."""
        return group.find(self.groups, kind, group_id)
