"""The rules of control records: the states of all groups of one topic-partition, in its own log.

BEHAVIOUR.md, "Control records". A delta has state batches only: the fold moves the start offset past the records that
are done. What no delta can express is a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from shareq.coordinator.share_state.compacted import DELTAS_PER_CHECKPOINT, FRAMING_BYTES
from shareq.coordinator.share_state.control_records import NO_OFFSET, decode_control_record, encode_control_record
from shareq.coordinator.share_state.records import StateRecord, StateSnapshot, StateTombstone, StateUpdate
from shareq.coordinator.share_state.state import KeyState, StateChange, StateShard
from shareq.model.ids import SharePartitionKey, TopicIdPartition
from shareq.model.image import ClusterImage
from shareq.model.log_looks import LogSeen
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import CoordinatorRecord
from shareq.model.state_batches import combine
from shareq.model.state_designs import CHECKPOINT_EPOCHS
from shareq.model.states import TERMINAL

Folded = tuple[int, tuple[StateBatch, ...]]
"""A start offset and the batches from it on."""


def folded(start_offset: int, *batches: Sequence[StateBatch]) -> Folded:
    """The batches combined, and the start offset behind those at the start that are done; not if it is not decided."""
    combined = combine(batches[0], batches[1] if len(batches) > 1 else (), start_offset)
    passed = 0
    if start_offset != NO_OFFSET:
        for batch in combined:
            if batch.first_offset != start_offset or batch.delivery_state not in TERMINAL:
                break
            start_offset, passed = batch.last_offset + 1, passed + 1
    return start_offset, combined[passed:]


class ControlShard(StateShard):
    """The share state of one topic-partition. `seen()`: its log, as it was when the present request began."""

    whole, change = "checkpoint", "delta"
    stages = False

    def __init__(
        self, image: Callable[[], ClusterImage], at: TopicIdPartition, leader_epoch: int, seen: Callable[[], LogSeen]
    ) -> None:
        super().__init__(image)
        self.at = at
        self.leader_epoch = leader_epoch
        self.seen = seen
        self._checkpoints: dict[SharePartitionKey, int] = {}
        self._delta_bytes: dict[SharePartitionKey, int] = {}

    # ---- records of changes ------------------------------------------------------------------------------------------

    def next_epoch(self, key: SharePartitionKey) -> int:
        return super().next_epoch(key) % CHECKPOINT_EPOCHS

    def leader_records(self, key: SharePartitionKey, leader_epoch: int, now_ms: int) -> list[StateRecord]:
        """None: batches have the leader epoch, and the broker that leads is the only one that writes."""
        del key, leader_epoch, now_ms
        return []

    def write_records(self, key: SharePartitionKey, change: StateChange, now_ms: int) -> list[StateRecord]:
        """A delta, or a checkpoint; nothing if the state stays as it is."""
        state = self.states[key]
        wanted = folded(max(state.start_offset, change.start_offset), state.state_batches, change.state_batches)
        if wanted == (state.start_offset, state.state_batches):
            return []
        checkpoint = self._checkpoint(key, wanted, now_ms)
        added = combine((), change.state_batches, state.start_offset)
        delta = StateUpdate(key, state.snapshot_epoch, self.leader_epoch, wanted[0], added)
        size, whole = self._size(delta), self._size(checkpoint)
        fits_a_delta = folded(state.start_offset, state.state_batches, change.state_batches) == wanted
        if (
            not fits_a_delta
            or not wanted[1]
            or whole <= size
            or state.update_count >= self.updates_per_snapshot
            or self._delta_bytes[key] + size > DELTAS_PER_CHECKPOINT * whole
        ):
            return [checkpoint]
        return [delta]

    def _checkpoint(self, key: SharePartitionKey, state: Folded, now_ms: int) -> StateSnapshot:
        change = StateChange(self.leader_epoch, state[0], NO_OFFSET, ())
        return self.snapshot(key, change, now_ms)._replace(state_batches=state[1])

    def checkpoints_anew(self, now_ms: int) -> list[StateRecord]:
        """A checkpoint for each group whose last one is no longer in the log; one with orphans begins at its start."""
        log_start = self.seen().log_start
        return [
            self._checkpoint(key, folded(max(state.start_offset, log_start), state.state_batches), now_ms)
            if key not in self._checkpoints
            else self._checkpoint(key, (state.start_offset, state.state_batches), now_ms)
            for key, state in self.states.items()
            if self._checkpoints.get(key, NO_OFFSET) < log_start
        ]

    def encode(self, record: StateRecord) -> CoordinatorRecord:
        others = (offset for key, offset in self._checkpoints.items() if key != record.key)
        return encode_control_record(record, min(others, default=NO_OFFSET))

    def _size(self, record: StateRecord) -> int:
        key, value = encode_control_record(record)
        return FRAMING_BYTES + len(key) + len(value or b"")

    # ---- what a leader reads -----------------------------------------------------------------------------------------

    def read_state(self, state: KeyState) -> Folded:
        """The start offset is behind the hidden offsets there, which no record can have."""
        start = state.start_offset
        for first, end in self.seen().hidden:
            if first <= start < end:
                start = min(end, self.seen().visible_end)
        return start, combine((), state.state_batches, start)

    def complete_count(self, state: KeyState) -> int:
        """The offsets from the start on that are done, or hidden: the lag counts neither."""
        start, end = state.start_offset, self.seen().visible_end
        if start == NO_OFFSET:
            return NO_OFFSET
        done = [(b.first_offset, b.last_offset + 1) for b in state.state_batches if b.delivery_state in TERMINAL]
        hidden = [(max(first, start), min(last, end)) for first, last in self.seen().hidden]
        return _covered([*done, *hidden])

    # ---- the fold ----------------------------------------------------------------------------------------------------

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        del now_ms
        record = decode_control_record(key, value, *self.at)
        if isinstance(record, StateUpdate):
            state = self.states.get(record.key) or self._adopt(record)
            if state.snapshot_epoch == record.snapshot_epoch:
                state.start_offset, state.state_batches = folded(
                    state.start_offset, state.state_batches, record.state_batches
                )
                state.update_count += 1
                self._delta_bytes[record.key] += FRAMING_BYTES + len(key) + len(value or b"")
        elif isinstance(record, StateSnapshot):
            self._replay_snapshot(record)
            state = self.states[record.key]
            state.leader_epoch = state.leader_epoch_fence = self.leader_epoch
            state.update_count = 0
            self._checkpoints[record.key], self._delta_bytes[record.key] = offset, 0
        elif isinstance(record, StateTombstone):
            self.states.pop(record.key, None)
            self._checkpoints.pop(record.key, None)

    def _adopt(self, orphan: StateUpdate) -> KeyState:
        """An empty state for a delta whose checkpoint is lost. A cut loses nothing about the offsets above it."""
        state = KeyState(
            orphan.snapshot_epoch, leader_epoch=self.leader_epoch, start_offset=0, leader_epoch_fence=self.leader_epoch
        )
        self.states[orphan.key], self._delta_bytes[orphan.key] = state, 0
        return state


def _covered(ranges: Iterable[tuple[int, int]]) -> int:
    """The number of offsets in any of the ranges."""
    count, reached = 0, -1
    for first, end in sorted(ranges):
        first = max(first, reached)
        if end > first:
            count += end - first
            reached = end
    return count
