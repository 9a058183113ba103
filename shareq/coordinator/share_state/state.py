"""The state of all keys in one partition of the state topic: the fold of its log, and the records of the next changes.

`compacted.py` has the other rules of a compacted topic. Source: Kafka's ShareCoordinatorShard and
ShareCoordinatorOffsetsManager.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.share_state.records import (
    NO_INDEX,
    Stage,
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
    decode_state_record,
    encode_state_record,
)
from shareq.coordinator.share_state.staged import EndedTransaction, StagedUpdates
from shareq.model.ids import SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.messages.share_state import Producer, StateBatch
from shareq.model.records import CoordinatorRecord
from shareq.model.state_batches import combine
from shareq.model.states import TERMINAL


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

    Offsets are added in ascending order, so the first entry of the ordered dict is the oldest. `committed`: for each
    key the first record of the transactions that were committed since its latest snapshot, which does not contain them.
    """

    def __init__(self) -> None:
        self._latest: OrderedDict[SharePartitionKey, int] = OrderedDict()
        self.committed: dict[SharePartitionKey, int] = {}
        self.redundant_before = 0
        """Records below this offset are redundant; 0 for none. Only snapshots and tombstones change it."""

    def snapshot(self, key: SharePartitionKey, offset: int) -> None:
        """A snapshot of `key` was replayed at `offset`."""
        self._latest[key] = offset
        self._latest.move_to_end(key)
        self.committed.pop(key, None)
        self.redundant_before = max(0, next(iter(self._latest.values())))

    def tombstone(self, key: SharePartitionKey, offset: int) -> None:
        """A tombstone of `key` was replayed at `offset`; the key no longer counts from the next snapshot on."""
        self.snapshot(key, offset)
        del self._latest[key]


def _on_no_end(ended: EndedTransaction) -> None:
    """What a reader of the log does at the end of a transaction."""


class StateShard:
    """One partition of the state topic. `image()` returns the present metadata image. `on_end` is called after the
    replay of a marker, for each share-partition in which the transaction had staged something."""

    whole, change = "snapshot", "update"
    """The kinds of its records in the journal: of a whole state, and of a change."""
    stages = True
    """Writes may belong to a producer's transaction."""

    def encode(self, record: StateRecord) -> CoordinatorRecord:
        """The key and value of a record."""
        return encode_state_record(record)

    def __init__(
        self, image: Callable[[], ClusterImage], on_end: Callable[[EndedTransaction], object] = _on_no_end
    ) -> None:
        self.image = image
        self.states: dict[SharePartitionKey, KeyState] = {}
        self.pruning = PruningOffsets()
        self.staged = StagedUpdates()
        self._on_end = on_end

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

    def staged_update(self, key: SharePartitionKey, batches: tuple[StateBatch, ...], producer: Producer) -> StateUpdate:
        """The record of a write in the producer's transaction: it has neither a start offset nor a count."""
        state = self.states[key]
        stage = Stage(state.state_epoch, producer.epoch)
        return StateUpdate(key, state.snapshot_epoch, -1, -1, combine((), batches, -1), stage=stage)

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

    @property
    def redundant_before(self) -> int:
        """The offset below which the log can be pruned. Records of open transactions are needed until their end, those
        of committed ones until the next snapshot of their key."""
        needed = (*self.pruning.committed.values(), *self.staged.first_records())
        return min((self.pruning.redundant_before, *needed))

    # ---- the fold ----------------------------------------------------------------------------------------------------

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Replay one record. A key of unknown type is skipped."""
        del now_ms
        record = decode_state_record(key, value)
        if isinstance(record, StateUpdate):
            if record.stage is None:
                self._replay_update(record)
        elif isinstance(record, StateSnapshot):
            self._replay_snapshot(record)
            self.pruning.snapshot(record.key, offset)
            if self.staged:
                self.staged.drop(record.key, record.state_epoch)
        elif record is not None and record.delta_index == NO_INDEX:
            self.states.pop(record.key, None)
            self.staged.drop(record.key)
            self.pruning.tombstone(record.key, offset)

    def replay_transactional(self, offset: int, key: bytes, value: bytes | None, producer_id: int, now_ms: int) -> None:
        """Keep a staged update until the marker of its transaction."""
        del now_ms
        record = decode_state_record(key, value)
        if not isinstance(record, StateUpdate) or record.stage is None:
            raise UnreadableRecordError(f"record {offset} of producer {producer_id} is not a staged update")
        self.staged.add(offset, record.key, Producer(producer_id, record.stage.producer_epoch), record)

    def replay_marker(self, producer_id: int, committed: bool, now_ms: int) -> None:
        """End the producer's transaction: its staged updates take effect, or are dropped."""
        del now_ms
        ended = self.staged.end(producer_id, committed)
        for one in ended if committed else ():
            self._commit(one)
        for one in ended:
            self._on_end(one)

    def _commit(self, ended: EndedTransaction) -> None:
        """Combine what was staged, and count what has become final by it. Without the state, or after an
        initialization, it has no effect."""
        state = self.states.get(ended.key)
        if state is None or state.state_epoch != ended.state_epoch:
            return
        former = state.state_batches
        state.state_batches = combine(former, ended.batches, state.start_offset)
        if state.delivery_complete_count >= 0:
            state.delivery_complete_count += _final_offsets(state.state_batches) - _final_offsets(former)
        state.update_count += ended.updates
        first = self.pruning.committed.get(ended.key, ended.first_record)
        self.pruning.committed[ended.key] = min(first, ended.first_record)

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


def _final_offsets(batches: tuple[StateBatch, ...]) -> int:
    """The number of offsets that are acknowledged or archived."""
    return sum(batch.last_offset - batch.first_offset + 1 for batch in batches if batch.delivery_state in TERMINAL)
