"""Cumulative counts of one share-partition: deliveries, acceptances, expired locks, and how long locks were held.

The difference of the tallies at two moments is what happened between them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Self

from shareq.model.events import RecordsChanged, SharePartitionDropped, SharePartitionLoaded
from shareq.model.states import PREPARED, SETTLED, RecordEvent, RecordState
from shareq.trace.journal import Entry


def is_delivery(event: RecordsChanged) -> bool:
    """True if a member acquired the records; a batch may bring further records into the window, available."""
    return event.cause == RecordEvent.ACQUIRE and event.state == RecordState.ACQUIRED


def is_acceptance(event: RecordsChanged) -> bool:
    """True if the acceptance of the records is durable."""
    return event.cause == SETTLED and event.state == RecordState.ACKNOWLEDGED


def is_timeout(event: RecordsChanged) -> bool:
    """True if the lock on the records ran out."""
    return event.cause == RecordEvent.LOCK_TIMEOUT


class Acquisitions:
    """The time of the last acquisition of records, as ordered ranges."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, int]] = []

    def copy(self) -> Acquisitions:
        other = Acquisitions()
        other._ranges = self._ranges[:]
        return other

    def add(self, first: int, end: int, time_ms: int) -> None:
        """Set the time of [first, end)."""
        self.take(first, end)
        self._ranges.insert(bisect_right(self._ranges, (first,)), (first, end, time_ms))

    def take(self, first: int, end: int) -> list[tuple[int, int, int]]:
        """Remove and return the ranges within [first, end), cut at its edges."""
        left = max(bisect_right(self._ranges, (first,)) - 1, 0)
        right = bisect_right(self._ranges, (end,))
        kept, taken = [], []
        for begin, stop, time_ms in self._ranges[left:right]:
            if begin < min(stop, first):
                kept.append((begin, min(stop, first), time_ms))
            if max(begin, first) < min(stop, end):
                taken.append((max(begin, first), min(stop, end), time_ms))
            if max(begin, end) < stop:
                kept.append((max(begin, end), stop, time_ms))
        self._ranges[left:right] = kept
        return taken

    def clear(self) -> None:
        self._ranges = []


@dataclass(slots=True)
class Tally:
    """Counts of records, of the leader's events; those of a superseded leader do not count.

    `delivered`: acquisitions, `redelivered`: those with a delivery count above 1. `waited_ms`: the sum of the times
    from the last acquisition of a record to its durable acceptance, `waits`: the number of those records. `completed`:
    records that became ACKNOWLEDGED or ARCHIVED, `attempts`: the sum of their delivery counts. An acceptance that only
    the next leader finds in the durable state is not counted: no event has its time.
    """

    delivered: int = 0
    redelivered: int = 0
    accepted: int = 0
    timeouts: int = 0
    waited_ms: int = 0
    waits: int = 0
    completed: int = 0
    attempts: int = 0
    loaded_by: int | None = None
    acquisitions: Acquisitions = field(default_factory=Acquisitions)

    def copy(self) -> Self:
        """An independent copy."""
        return replace(self, acquisitions=self.acquisitions.copy())

    def apply(self, entry: Entry) -> None:
        """Apply the next entry about the share-partition."""
        event = entry.event
        if isinstance(event, SharePartitionLoaded):
            self.loaded_by = entry.broker_id
            self.acquisitions.clear()
        elif isinstance(event, SharePartitionDropped):
            if entry.broker_id == self.loaded_by:
                self.loaded_by = -1
        elif isinstance(event, RecordsChanged) and self.loaded_by in (None, entry.broker_id):
            self._change(event, entry.time_ms)

    def _change(self, event: RecordsChanged, time_ms: int) -> None:
        count = event.end - event.first
        if is_delivery(event):
            self.delivered += count
            self.redelivered += count if event.delivery_count > 1 else 0
            self.acquisitions.add(event.first, event.end, time_ms)
        elif is_timeout(event):
            self.timeouts += count
        if is_acceptance(event):
            self.accepted += count
            for first, end, since_ms in self.acquisitions.take(event.first, event.end):
                self.waited_ms += (time_ms - since_ms) * (end - first)
                self.waits += end - first
        if event.cause != PREPARED and event.state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED):
            self.completed += count
            self.attempts += count * event.delivery_count
            self.acquisitions.take(event.first, event.end)
