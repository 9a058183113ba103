"""Counts of one share-partition between positions of its timeline, and its gauges at them.

One pass over the entries between the first and the last position makes them all. It begins at an outline before the
first position, as a state does that is far from all checkpoints, and it keeps two values for each offset in the window:
whether its delivery is complete, and when it was acquired. It trusts the journal: `fold.py` checks it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

from shareq.model.events import (
    BrokerStopped,
    RecordsChanged,
    SharePartitionDropped,
    SharePartitionLoaded,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.states import PREPARED, SETTLED, TERMINAL, TXN_COMMIT, RecordEvent, RecordState
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal import Entry

KEPT: Final = 4_096
"""Number of positions and spans whose values are kept: those of an earlier span do not change."""


def is_delivery(event: RecordsChanged) -> bool:
    """True if a member acquired the records; a batch may bring further records into the window, available."""
    return event.cause == RecordEvent.ACQUIRE and event.state == RecordState.ACQUIRED


def is_acceptance(event: RecordsChanged) -> bool:
    """True if the acceptance of the records is durable."""
    return event.cause in (SETTLED, TXN_COMMIT) and event.state == RecordState.ACKNOWLEDGED


def is_timeout(event: RecordsChanged) -> bool:
    """True if the lock on the records ran out."""
    return event.cause == RecordEvent.LOCK_TIMEOUT


class Tally(NamedTuple):
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


class Gauges(NamedTuple):
    """The share-partition at one position; None: not known. `limit`: of the records in flight, `full`: reached."""

    lag: int | None
    in_flight: int | None
    limit: int
    full: bool
    observed: bool


class Tallies:
    """The tallies and gauges of one share-partition. Not thread-safe."""

    def __init__(self, timeline: PartitionTimeline) -> None:
        self._timeline = timeline
        self._gauges: dict[int, Gauges] = {}
        self._tallies: dict[tuple[int, int], Tally] = {}

    def at(self, counts: Sequence[int]) -> tuple[list[Gauges], list[Tally]]:
        """The gauges after these numbers of entries, which ascend, and the tallies between each and the next one."""
        spans = list(pairwise(counts))
        missing = [span for span in spans if span not in self._tallies and span[0] < span[1]]
        missing += [(count, count) for count in counts if count not in self._gauges]
        if missing:
            if len(self._gauges) + len(self._tallies) > KEPT:
                self._gauges, self._tallies = {}, {}
                missing = [(counts[0], counts[-1])]
            first, last = min(missing)[0], max(end for _, end in missing)
            self._read([count for count in dict.fromkeys(counts) if first <= count <= last])
        return [self._gauges[count] for count in counts], [self._tallies.get(span, Tally()) for span in spans]

    def _read(self, counts: Sequence[int]) -> None:
        """Pass over the entries from the first position to the last."""
        timeline = self._timeline
        begin, state = timeline.origin(counts[0])
        found = _Pass(state, is_first=begin == 0)
        found.read(timeline.entries[begin : counts[0]])
        self._gauges[counts[0]] = self._at(counts[0], found)
        for before, after in pairwise(counts):
            self._tallies[before, after] = found.read(timeline.entries[before:after])
            self._gauges[after] = self._at(after, found)

    def _at(self, count: int, found: _Pass) -> Gauges:
        outline = self._timeline.outline(count)
        state = outline.state
        if state.observed:
            exact = self._timeline.state(count)
            in_flight = None if exact.uncertain else exact.in_flight
            full = in_flight is not None and exact.loaded and in_flight >= exact.max_record_locks
            return Gauges(exact.lag, in_flight, state.max_record_locks, full=full, observed=exact.uncertain)
        complete = found.complete(state.spso, max(state.window_end, outline.reach))
        lag = None if state.log_end < 0 else max(state.log_end - state.spso - complete, 0)
        full = state.loaded and state.in_flight >= state.max_record_locks
        return Gauges(lag, state.in_flight, state.max_record_locks, full=full, observed=False)


_ACQUIRED, _ACKNOWLEDGED = int(RecordState.ACQUIRED), int(RecordState.ACKNOWLEDGED)
_ACQUIRE, _TIMEOUT = str(RecordEvent.ACQUIRE), str(RecordEvent.LOCK_TIMEOUT)
_TERMINAL = frozenset(map(int, TERMINAL))
_NEVER = -1
_OPEN, _DONE, _DOING = 0, 1, 2
"""Of an offset: not complete; in a terminal state; in one when its state write succeeds."""
_WITHOUT_WRITES = bytes(_OPEN if value == _DOING else value for value in range(256))
_MARGIN = 16_384
"""Room below the first known offset of a journal without its beginning."""


class _Pass:
    """Offsets from `_base` on: their completion, and the times of their last acquisitions."""

    def __init__(self, state: SharePartitionState, *, is_first: bool) -> None:
        """`state`: an outline, whose records are not in flight any more when they are asked for."""
        self._loaded_by: int | None = state.loaded_by
        if not state.loaded and (is_first or state.partial):
            self._loaded_by = None  # the load is not in the journal, or comes first
        self._spso = self._base = state.spso
        self._located = not (is_first or state.partial)
        self._marks = bytearray()
        self._times = array("q")

    def complete(self, first: int, end: int) -> int:
        """The number of offsets in [first, end) whose delivery is complete."""
        begin, stop = max(first - self._base, 0), max(end - self._base, 0)
        return self._marks.count(_DONE, begin, stop) + self._marks.count(_DOING, begin, stop)

    def read(self, entries: Sequence[Entry]) -> Tally:
        """Apply the next entries; the counts of what they record."""
        delivered = redelivered = accepted = timeouts = waited_ms = waits = completed = attempts = 0
        for entry in entries:
            event = entry[3]
            if type(event) is not RecordsChanged:
                handler = self.HANDLERS.get(type(event))
                if handler is not None:
                    handler(self, entry, event)
                continue
            if self._loaded_by is not None and entry[2] != self._loaded_by:
                continue
            _, _, _, cause, first, end, state, count, _, _, write_id, to_state, _ = event
            length = end - first
            begin = self._place(first, end)
            stop = begin + length
            self._marks[begin:stop] = bytes((_mark(state, to_state if write_id is not None else None),)) * length
            if cause == _ACQUIRE:
                if state == _ACQUIRED:
                    delivered += length
                    redelivered += length if count > 1 else 0
                    self._times[begin:stop] = array("q", (entry[1],)) * length
            elif cause == _TIMEOUT:
                timeouts += length
            if state in _TERMINAL and cause != PREPARED:
                if cause in (SETTLED, TXN_COMMIT) and state == _ACKNOWLEDGED:
                    since = self._times[begin:stop]
                    known = length - since.count(_NEVER)
                    accepted += length
                    waited_ms += known * entry[1] - (sum(since) + length - known)
                    waits += known
                completed += length
                attempts += length * count
                self._times[begin:stop] = array("q", (_NEVER,)) * length
        return Tally(delivered, redelivered, accepted, timeouts, waited_ms, waits, completed, attempts)

    def _place(self, first: int, end: int) -> int:
        """The place of an offset, with room up to `end`."""
        if not self._located:
            self._located, self._base = True, max(first - _MARGIN, 0)
        if first < self._base:
            self._extend_down(first)
        if end - self._base > len(self._marks):
            self._make_room(end)
        return first - self._base

    def _make_room(self, end: int) -> None:
        """Forget the offsets below the SPSO, and add as many as there are in the window."""
        passed = max(self._spso - self._base, 0)
        del self._marks[:passed], self._times[:passed]
        self._base += passed
        missing = max(2 * (end - self._base), _MARGIN) - len(self._marks)
        self._marks += bytes(missing)
        self._times += array("q", (_NEVER,)) * missing

    def _extend_down(self, first: int) -> None:
        missing = self._base - first
        self._marks[:0] = bytes(missing)
        self._times[:0] = array("q", (_NEVER,)) * missing
        self._base = first

    def _clear(self, spso: int) -> None:
        self._spso = self._base = spso
        self._located = True
        self._marks, self._times = bytearray(), array("q")

    # ---- other events ------------------------------------------------------------------------------------------------

    def _moved(self, entry: Entry, event: WindowMoved) -> None:
        if self._loaded_by in (None, entry.broker_id):
            self._spso = event.spso

    def _loaded(self, entry: Entry, event: SharePartitionLoaded) -> None:
        self._loaded_by = entry.broker_id
        self._clear(event.spso)
        for first, end, state, _ in event.runs:
            begin = self._place(first, end)
            self._marks[begin : begin + end - first] = bytes((_mark(state, None),)) * (end - first)

    def _unloaded(self, entry: Entry, event: SharePartitionDropped | BrokerStopped) -> None:
        broker_id = event.broker_id if isinstance(event, BrokerStopped) else entry.broker_id
        if broker_id == self._loaded_by:
            self._loaded_by = -1
            self._marks = self._marks.translate(_WITHOUT_WRITES)

    def _topic_changed(self, entry: Entry, event: TopicCreated | TopicDeleted) -> None:
        del entry, event
        self._loaded_by = -1
        self._clear(0)

    HANDLERS: ClassVar[dict[type, Callable[[_Pass, Entry, Any], None]]] = {
        WindowMoved: _moved,
        SharePartitionLoaded: _loaded,
        SharePartitionDropped: _unloaded,
        BrokerStopped: _unloaded,
        TopicCreated: _topic_changed,
        TopicDeleted: _topic_changed,
    }


def _mark(state: int, to_state: int | None) -> int:
    if to_state is None:
        return _DONE if state in _TERMINAL else _OPEN
    return _DOING if to_state in _TERMINAL else _OPEN
