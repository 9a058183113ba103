"""The durable state of several groups, with the times at which it changed: by the clocks of the brokers."""

from __future__ import annotations

from collections.abc import Container

from shareq.coordinator.share_state.records import StateRecord
from shareq.coordinator.share_state.state import KeyState
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import TERMINAL
from shareq.observer.health.reading import Durable
from shareq.observer.state_log import StateLog


class ProgressLog(StateLog):
    """Keeps one `Durable` for each share-partition; it changes with the records of the state topic alone."""

    def __init__(self, groups: Container[str]) -> None:
        super().__init__(groups)
        self._durable: dict[int, dict[SharePartitionKey, Durable]] = {}

    def discard(self, partition: int) -> None:
        super().discard(partition)
        self._durable.pop(partition, None)

    def folded(self, partition: int, record: StateRecord, written_ms: int) -> None:
        kept = self._durable.setdefault(partition, {})
        state = self.shards[partition].states.get(record.key)
        if state is None:
            kept.pop(record.key, None)
        else:
            kept[record.key] = _durable(state, kept.get(record.key), written_ms)

    def durable_of(self, key: SharePartitionKey) -> Durable | None:
        """The durable state of a share-partition; None if there is none."""
        return self._durable.get(self.partition_of(key), {}).get(key)


def _durable(state: KeyState, former: Durable | None, written_ms: int) -> Durable:
    """The state after a record that was written at `written_ms`; a record that repeats the state changes no time."""
    start, batches = _pass_finished(state)
    finished = sum(b.last_offset - b.first_offset + 1 for b in batches if b.delivery_state in TERMINAL)
    if state.delivery_complete_count >= 0 and start >= 0:
        finished = max(0, state.delivery_complete_count - (start - state.start_offset))
    if former is None or former.start_offset != start:
        return Durable(start, finished, batches, written_ms, written_ms, written_ms if batches else None)
    changed = (finished, batches) != (former.finished, former.batches)
    waiting_ms = former.waiting_ms
    if waiting_ms is None and batches:
        waiting_ms = written_ms
    return Durable(start, finished, batches, former.moved_ms, written_ms if changed else former.changed_ms, waiting_ms)


def _pass_finished(state: KeyState) -> tuple[int, tuple[StateBatch, ...]]:
    """The SPSO behind the finished records at the stored one, and the batches from there on: a leader stores the SPSO
    as it was before the acknowledgement that moves it."""
    start = state.start_offset
    batches = state.state_batches
    passed = 0
    if start >= 0:
        for batch in batches:
            if batch.first_offset > start or batch.delivery_state not in TERMINAL:
                break
            start = max(start, batch.last_offset + 1)
            passed += 1
    return start, batches[passed:]
