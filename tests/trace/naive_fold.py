"""The fold of a share-partition offset by offset: what the leader's state, the fold and the views are compared with.

It checks that each move of the window changes it, and that each settled write was prepared.
"""

from __future__ import annotations

from typing import Any

from shareq.model.events import (
    Event,
    RecordsChanged,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)

Records = dict[int, tuple[Any, ...]]


class NaiveFold:
    """SPSO and end of the window, records by offset, and writes that are not answered."""

    def __init__(self) -> None:
        self.window = (0, 0)
        self.records: Records = {}
        self.writes: set[int] = set()

    def take(self, event: Event) -> None:
        match event:
            case SharePartitionLoaded(spso=spso, window_end=window_end, runs=runs):
                self.window, self.writes, self.records = (spso, window_end), set(), {}
                for first, end, state, count in runs:
                    self.records |= dict.fromkeys(range(first, end), (state, count, None, None, None, None))
            case RecordsChanged(first=first, end=end):
                self.records |= dict.fromkeys(range(first, end), event[6:12])
            case WindowMoved(spso=spso, window_end=window_end):
                assert self.window != (spso, window_end)
                self.window = (spso, window_end)
                self.records = {offset: record for offset, record in self.records.items() if offset >= spso}
            case StateWritePrepared(write_id=write_id):
                self.writes.add(write_id)
            case StateWriteSettled(write_id=write_id):
                self.writes.remove(write_id)
