"""The state topic's log, with the finished records that a start offset has passed between two polls.

A leader that is quick moves the start offset many times between two polls: the state at a poll no longer has the runs
that the records of the topic have named meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from typing import Final

from shareq.coordinator.share_state.records import StateRecord
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import TERMINAL
from shareq.observer.state_log import StateLog

MOST_RUNS: Final = 1000
"""Runs of a share-partition that are kept for one poll, the last ones: the first poll reads all that the topic has."""

_State = tuple[int, tuple[StateBatch, ...]]
"""The start offset, and the batches."""


class PassedLog(StateLog):
    """A state log that keeps the terminal runs below the start offset until they are taken."""

    def __init__(self, groups: Container[str]) -> None:
        super().__init__(groups)
        self._before: dict[SharePartitionKey, _State] = {}
        self._passed: dict[SharePartitionKey, deque[StateBatch]] = {}

    def discard(self, partition: int) -> None:
        super().discard(partition)
        for key in [key for key in self._before if self.partition_of(key) == partition]:
            del self._before[key]
            self._passed.pop(key, None)

    def folded(self, partition: int, record: StateRecord, written_ms: int) -> None:
        del written_ms
        state = self.shards[partition].states.get(record.key)
        if state is None:
            self._before.pop(record.key, None)
            return
        before = self._before.get(record.key)
        self._before[record.key] = state.start_offset, state.state_batches
        if before is not None and before[0] < state.start_offset:
            kept = self._passed.setdefault(record.key, deque(maxlen=MOST_RUNS))
            for run in before[1]:
                if run.first_offset < state.start_offset and run.delivery_state in TERMINAL:
                    kept.append(run._replace(last_offset=min(run.last_offset, state.start_offset - 1)))

    def take_passed(self, key: SharePartitionKey) -> tuple[StateBatch, ...]:
        """The terminal runs that the start offset has passed since the last call, in the order of the log."""
        return tuple(self._passed.pop(key, ()))
