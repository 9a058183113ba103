"""The rules of a state topic that is compacted: checkpoints and deltas with indices. BEHAVIOUR.md, "Compacted topic".

Compaction removes a record only for a later one with the same key. All deltas after the last checkpoint have different
indices, so that none of them is removed; what is left from before the checkpoint is replaced by it.
Source: KIP-932, rejected alternatives ("Managing durable share-partition state using a compacted topic").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shareq.coordinator.share_state.records import (
    NO_INDEX,
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
    decode_state_record,
    encode_state_record,
)
from shareq.coordinator.share_state.state import StateChange, StateShard
from shareq.model.ids import SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.state_designs import CHECKPOINT_EPOCHS

FIRST_SPAN = 16
MAX_SPAN = 1 << 16
"""The delta indices of a key are below its span, which begins at FIRST_SPAN and doubles up to MAX_SPAN."""

FRAMING_BYTES = 75
"""What a record takes beside its key and value in a batch of its own."""

DELTAS_PER_CHECKPOINT = 4
"""The deltas after a checkpoint take at most so many times its bytes. So checkpoints add about a quarter to what is
written, and a load reads at most five times the bytes of a state."""


@dataclass(slots=True)
class DeltaIndices:
    """The delta indices of one key, all below `span`: the `last` written one, those `used` since the checkpoint, and
    those `alive`, whose record in the log may have a value. `delta_bytes`: the size of the deltas since the checkpoint.
    """

    span: int
    last: int = -1
    used: set[int] = field(default_factory=set)
    alive: set[int] = field(default_factory=set)
    delta_bytes: int = 0

    def next(self) -> int | None:
        """The index of the next delta, which none has since the checkpoint; None if all are in use."""
        index = self.last + 1 if self.last + 1 < self.span else 0
        if index not in self.used:
            return index
        return self.span if self.span < MAX_SPAN else None

    def written(self, index: int, size: int) -> None:
        """A delta is in the log."""
        while index >= self.span:
            self.span *= 2
        self.last = index
        self.used.add(index)
        self.alive.add(index)
        self.delta_bytes += size

    def begin(self) -> None:
        """A checkpoint or a tombstone is in the log: it replaces the deltas before it."""
        self.used.clear()
        self.delta_bytes = 0


class CompactedShard(StateShard):
    """One partition of a compacted state topic."""

    whole = "checkpoint"
    stages = False
    first_span = FIRST_SPAN

    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        super().__init__(image)
        self.indices: dict[SharePartitionKey, DeltaIndices] = {}

    # ---- records of changes ------------------------------------------------------------------------------------------

    def next_epoch(self, key: SharePartitionKey) -> int:
        return super().next_epoch(key) % CHECKPOINT_EPOCHS

    def next_record(self, key: SharePartitionKey, change: StateChange, now_ms: int) -> StateRecord:
        """A delta; a checkpoint if that is not larger, if the maximum of deltas or of their bytes has followed the last
        one, or if no index is free."""
        checkpoint = self.snapshot(key, change, now_ms)
        indices = self.indices[key]
        index = indices.next()
        if index is None or len(indices.used) >= self.updates_per_snapshot:
            return checkpoint
        delta = self.update(key, change, index)
        size, whole = _size(delta), _size(checkpoint)
        if whole <= size or indices.delta_bytes + size > DELTAS_PER_CHECKPOINT * whole:
            return checkpoint
        return delta

    def deletion(self, key: SharePartitionKey) -> list[StateRecord]:
        """Tombstones of the checkpoint and of all deltas, which would otherwise stay in the log for ever."""
        indices = self.indices.get(key)
        deltas = [StateTombstone(key, index) for index in sorted(indices.alive)] if indices else []
        return [*super().deletion(key), *deltas]

    # ---- the fold ----------------------------------------------------------------------------------------------------

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        del offset, now_ms
        record = decode_state_record(key, value)
        if record is None:
            return
        indices = self.indices.get(record.key)
        if indices is None:
            indices = self.indices[record.key] = DeltaIndices(self.first_span)
        if isinstance(record, StateUpdate):
            self._replay_update(record)
            indices.written(record.delta_index, FRAMING_BYTES + len(key) + len(value or b""))
        elif isinstance(record, StateSnapshot):
            self._replay_snapshot(record)
            indices.begin()
        elif record.delta_index != NO_INDEX:
            indices.alive.discard(record.delta_index)
        else:
            self.states.pop(record.key, None)
            indices.begin()
        if not indices.alive and record.key not in self.states:
            del self.indices[record.key]


def _size(record: StateRecord) -> int:
    """The bytes that a record takes in the log."""
    key, value = encode_state_record(record)
    return FRAMING_BYTES + len(key) + len(value or b"")
