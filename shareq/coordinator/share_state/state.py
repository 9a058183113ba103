"""The state of all keys in one partition of the state topic, replayed from its log.

Source: Kafka's ShareCoordinatorShard and ShareCoordinatorOffsetsManager.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from shareq.coordinator.share_state.records import StateSnapshot, StateUpdate, decode_state_record
from shareq.model.ids import SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.messages.share_state import StateBatch
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

    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self.image = image
        self.states: dict[SharePartitionKey, KeyState] = {}
        self.pruning = PruningOffsets()

    @property
    def updates_per_snapshot(self) -> int:
        """The maximum of updates after a snapshot; 0: every write is a snapshot."""
        limit: int = self.image().broker_config["share.coordinator.snapshot.update.records.per.snapshot"]
        return limit

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Replay one record. A key of unknown type is skipped."""
        del now_ms
        record = decode_state_record(key, value)
        if isinstance(record, StateUpdate):
            self._replay_update(record)
        elif isinstance(record, StateSnapshot):
            self._replay_snapshot(record)
            self.pruning.snapshot(record.key, offset)
        elif record is not None:
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
        """Apply an update to the state, or create the state. As in Kafka, the snapshot epoch is not compared."""
        state = self.states.get(record.key)
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
