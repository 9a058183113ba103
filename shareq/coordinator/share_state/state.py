"""The state of all keys in one partition of the state topic: the fold of its log, and the records of the next changes.

`compacted.py` has the other rules of a compacted topic. Source: Kafka's ShareCoordinatorShard and
ShareCoordinatorOffsetsManager.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from shareq.coordinator.share_state.records import (
    NO_INDEX,
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
    decode_state_record,
    encode_state_record,
)
from shareq.model.ids import SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import CoordinatorRecord
from shareq.model.state_batches import combine


@dataclass(slots=True)
class KeyState:
    """The state of one share-partition.

    The fences are the highest epochs ever seen: an initialization resets `leader_epoch` to 0, but not its fence.
    `update_count`: the number of updates since the last snapshot that was due.
    """

    snapshot_epoch: int
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = -1
    delivery_complete_count: int = -1
    state_batches: tuple[StateBatch, ...] = ()
    create_timestamp: int = 0
    write_timestamp: int = 0
    leader_epoch_fence: int = -1
    state_epoch_fence: int = -1
    update_count: int = 0


class StateChange(NamedTuple):
    """The content of the record of a write."""

    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


class PruningOffsets:
    """The offset below which the log can be pruned: the oldest of the keys' latest snapshots.

    Offsets are added in ascending order, so the first entry of the ordered dict is the oldest.
    """

    def __init__(self) -> None:
        self._latest: OrderedDict[SharePartitionKey, int] = OrderedDict()
        self.redundant_before = 0
        """Records below this offset are redundant; 0 for none. Only snapshots and tombstones change it."""

    def snapshot(self, key: SharePartitionKey, offset: int) -> None:
        """A snapshot of `key` was replayed at `offset`."""
        self._latest[key] = offset
        self._latest.move_to_end(key)
        self.redundant_before = max(0, next(iter(self._latest.values())))

    def tombstone(self, key: SharePartitionKey, offset: int) -> None:
        """A tombstone of `key` was replayed at `offset`; the key no longer counts from the next snapshot on."""
        self.snapshot(key, offset)
        del self._latest[key]


class StateShard:
    """One partition of the state topic. `image()` returns the present metadata image."""

    whole, change = "snapshot", "update"
    """The kinds of its records in the journal: of a whole state, and of a change."""

    def encode(self, record: StateRecord) -> CoordinatorRecord:
        """The key and value of a record."""
        return encode_state_record(record)

    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self.image = image
        self.states: dict[SharePartitionKey, KeyState] = {}
        self.pruning = PruningOffsets()

    @property
    def updates_per_snapshot(self) -> int:
        """The maximum of updates after a snapshot; 0: every write is a snapshot."""
        limit: int = self.image().broker_config["share.coordinator.snapshot.update.records.per.snapshot"]
        return limit

    # ---- records of changes ------------------------------------------------------------------------------------------

    def next_epoch(self, key: SharePartitionKey) -> int:
        """The snapshot epoch of the key's next snapshot."""
        state = self.states.get(key)
        return state.snapshot_epoch + 1 if state else 0

    def leader_records(self, key: SharePartitionKey, leader_epoch: int, now_ms: int) -> list[StateRecord]:
        """The record that fences earlier leaders; none if this leader has read the state before."""
        state = self.states[key]
        if state.leader_epoch_fence == leader_epoch:
            return []
        change = StateChange(leader_epoch, state.start_offset, state.delivery_complete_count, ())
        return [self.next_record(key, change, now_ms)]

    def write_records(self, key: SharePartitionKey, change: StateChange, now_ms: int) -> list[StateRecord]:
        """The records of a write."""
        return [self.next_record(key, change, now_ms)]

    def next_record(self, key: SharePartitionKey, change: StateChange, now_ms: int) -> StateRecord:
        """An update, or a snapshot if the maximum of updates has followed the last snapshot."""
        if self.states[key].update_count < self.updates_per_snapshot:
            return self.update(key, change)
        return self.snapshot(key, change, now_ms)

    def update(self, key: SharePartitionKey, change: StateChange, delta_index: int = NO_INDEX) -> StateUpdate:
        """The change alone."""
        leader_epoch, start_offset, count, batches = change
        added = combine((), batches, start_offset)
        epoch = self.states[key].snapshot_epoch
        return StateUpdate(key, epoch, leader_epoch, start_offset, added, count, delta_index)

    def snapshot(self, key: SharePartitionKey, change: StateChange, now_ms: int) -> StateSnapshot:
        """The whole state after the change."""
        state = self.states[key]
        return StateSnapshot(
            key=key,
            snapshot_epoch=self.next_epoch(key),
            state_epoch=state.state_epoch,
            leader_epoch=change.leader_epoch,
            start_offset=change.start_offset,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
            state_batches=combine(state.state_batches, change.state_batches, change.start_offset),
            delivery_complete_count=change.delivery_complete_count,
        )

    def deletion(self, key: SharePartitionKey) -> list[StateRecord]:
        """The records that delete the key; none if it has no state."""
        return [StateTombstone(key)] if key in self.states else []

    # ---- what is read ------------------------------------------------------------------------------------------------

    def read_state(self, state: KeyState) -> tuple[int, tuple[StateBatch, ...]]:
        """The start offset and the batches with which a leader begins."""
        return state.start_offset, state.state_batches

    def complete_count(self, state: KeyState) -> int:
        """The number of offsets from the start on that the lag does not count."""
        return state.delivery_complete_count

    # ---- the fold ----------------------------------------------------------------------------------------------------

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Replay one record. A key of unknown type is skipped."""
        del now_ms
        record = decode_state_record(key, value)
        if isinstance(record, StateUpdate):
            self._replay_update(record)
        elif isinstance(record, StateSnapshot):
            self._replay_snapshot(record)
            self.pruning.snapshot(record.key, offset)
        elif record is not None and record.delta_index == NO_INDEX:
            self.states.pop(record.key, None)
            self.pruning.tombstone(record.key, offset)

    def _replay_snapshot(self, record: StateSnapshot) -> None:
        """Replace the state; the fences keep their maxima. Only a snapshot that was due resets the count of updates:
        one of an initialization or of a cold key does not."""
        former = self.states.get(record.key)
        due = former is None or former.update_count >= self.updates_per_snapshot
        self.states[record.key] = KeyState(
            snapshot_epoch=record.snapshot_epoch,
            state_epoch=record.state_epoch,
            leader_epoch=record.leader_epoch,
            start_offset=record.start_offset,
            delivery_complete_count=record.delivery_complete_count,
            state_batches=record.state_batches,
            create_timestamp=record.create_timestamp,
            write_timestamp=record.write_timestamp,
            leader_epoch_fence=max(former.leader_epoch_fence if former else -1, record.leader_epoch),
            state_epoch_fence=max(former.state_epoch_fence if former else -1, record.state_epoch),
            update_count=0 if due or former is None else former.update_count,
        )

    def _replay_update(self, record: StateUpdate) -> None:
        """Apply an update to the state, or create the state. As in Kafka, the snapshot epoch is not compared, except
        that of a delta: compaction can leave deltas whose checkpoint it has removed."""
        state = self.states.get(record.key)
        if record.delta_index != NO_INDEX and (state is None or state.snapshot_epoch != record.snapshot_epoch):
            return
        if state is None:
            state = self.states[record.key] = KeyState(snapshot_epoch=record.snapshot_epoch)
        if record.start_offset != -1:
            state.start_offset = record.start_offset
        if record.leader_epoch != -1:
            state.leader_epoch = record.leader_epoch
        state.leader_epoch_fence = max(state.leader_epoch_fence, record.leader_epoch)
        state.delivery_complete_count = record.delivery_complete_count
        state.state_batches = combine(state.state_batches, record.state_batches, state.start_offset)
        state.update_count += 1
