"""The window of a share-partition: its in-flight records, its start (SPSO) and its end (SPEO).

Three run maps over the same offsets. `states` has the state of every record. `available` repeats the AVAILABLE runs, so
that the next one is found at once, however many others precede it. `batches` has the bounds of offsets that entered the
window together (Kafka's cached batches): acquiring again, and throttling, work on these.

Offsets are half-open: `window_end` is the first offset above the window. The KIP's SPEO is the offset before it; an
empty window has none.
Source: KIP-932, "In-flight records"; Kafka's SharePartition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shareq.leader.event_recorder import EventRecorder
from shareq.leader.in_flight_state import InFlightChange, InFlightState, settled, without_holder
from shareq.leader.run_map import FLOOR, RunMap
from shareq.model.configs import GroupConfig
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import ABANDONED, PREPARED, SETTLED, TERMINAL, RecordEvent, RecordState, next_state

_STORED = frozenset(RecordState) - {RecordState.ACQUIRED}
"""The states that are stored."""


_ARCHIVING = RecordState.ARCHIVING


class Bounds(NamedTuple):
    """A cached batch: offsets that entered the window together."""

    first: int
    end: int


class Window:
    """`floor` is the lowest offset that may still be held: the SPSO, or below it after the log start has moved.

    `delivery_complete_count`: the offsets in the window that are terminal, or will be when their write has settled.
    After a load the log may hold records that were never stored: `first_gap` is the first hole that may hold one. It is
    fetched like an AVAILABLE record, and the SPSO does not pass it. None if there is no such hole, or if the window has
    grown since: then all holes are natural.
    """

    __slots__ = (
        "available",
        "batches",
        "day_ahead_ms",
        "delivery_complete_count",
        "first_gap",
        "floor",
        "recorder",
        "spso",
        "states",
        "window_end",
    )

    def __init__(self, recorder: EventRecorder | None) -> None:
        self.states: RunMap[InFlightState] = RunMap()
        self.available: RunMap[InFlightState] = RunMap()
        self.batches: RunMap[Bounds] = RunMap()
        self.spso = self.window_end = self.floor = 0
        self.delivery_complete_count = 0
        self.first_gap: int | None = None
        self.recorder = recorder
        self.day_ahead_ms = 0
        """Time of day minus time of the actor, for what compares timestamps of records."""

    # ---- loading -----------------------------------------------------------------------------------------------------

    def load(self, start_offset: int, state_batches: Iterable[StateBatch], delivery_count_limit: int) -> bool:
        """Begin at `start_offset` with the stored batches. False, without a change, if they are invalid.

        The reason why a record is ARCHIVING is not stored: the delivery count decides, as in Kafka.
        """
        stored = sorted(state_batches)
        position, first_gap = start_offset, None
        for first, last, state, delivery_count in stored:
            if first < position or last < first or state not in _STORED or delivery_count < 0:
                return False
            if first > position and first_gap is None:
                first_gap = position
            position = last + 1
        self.spso = self.floor = start_offset
        self.window_end = position
        self.first_gap = first_gap
        for first, last, state, delivery_count in stored:
            event = RecordEvent.LOCK_TIMEOUT if delivery_count >= delivery_count_limit else RecordEvent.REJECT
            in_flight = without_holder(RecordState(state), delivery_count, event)
            self.add(first, last + 1)
            self._set(first, last + 1, None, in_flight)
        self.advance()
        return True

    # ---- queries -----------------------------------------------------------------------------------------------------

    @property
    def next_fetch_offset(self) -> int:
        """The first offset that can be acquired: AVAILABLE, a hole to fetch, or the first one above the window."""
        run = self.available.next_run()
        offset = self.window_end if run is None else run[0]
        return offset if self.first_gap is None else min(offset, self.first_gap)

    @property
    def can_advance(self) -> bool:
        """True if the SPSO would move with a write that settles now."""
        return self._first_unfinished() > self.spso

    # ---- changes -----------------------------------------------------------------------------------------------------

    def add(self, first: int, end: int) -> None:
        """[first, end) entered the window together."""
        self.batches.assign(first, end, Bounds(first, end))

    def put(
        self,
        first: int,
        end: int,
        old: InFlightState | None,
        new: InFlightState,
        *,
        cause: str,
        why: RecordEvent | None = None,
    ) -> None:
        """Change [first, end), all of which had the state `old`, to the state `new`."""
        self._set(first, end, old, new)
        if self.recorder is not None and end > self.spso:
            self.recorder.changed(cause, max(first, self.spso), end, new, why)

    def _set(self, first: int, end: int, old: InFlightState | None, new: InFlightState) -> None:
        self.states.assign(first, end, new)
        if new.state is RecordState.AVAILABLE:
            self._index_available(first, end, new)
        elif old is not None and old.state is RecordState.AVAILABLE:
            self.available.assign(first, end, None)
        grown = (new.to_state in TERMINAL) - (old is not None and old.to_state in TERMINAL)
        if grown and end > self.spso:
            self.delivery_complete_count += grown * (end - max(first, self.spso))

    def _index_available(self, first: int, end: int, new: InFlightState) -> None:
        """The records of [first, end) are AVAILABLE now. `leader/experiments` keeps some of them back."""
        self.available.assign(first, end, new)

    def tag(self, changes: list[InFlightChange]) -> None:
        """Mark held records with a write under way. None of the ranges lies across the SPSO."""
        if self.recorder is not None:
            for first, end, old, new in changes:
                self.put(first, end, old, new, cause=PREPARED)
            return
        for first, end, _, new in self.states.swap(changes):
            self.states.assign(first, end, new)
        spso = self.spso
        done = [end - first for first, end, _, new in changes if first >= spso and new.to_state in TERMINAL]
        self.delivery_complete_count += sum(done)

    def commit(self, changes: list[InFlightChange]) -> None:
        """The write of these changes has succeeded: records that still carry its id reach their target state."""
        finals: list[InFlightChange] = []
        to_state, count, final, back = None, -1, None, False
        for first, end, _, tagged in changes:
            if final is None or tagged[1] is not to_state or tagged[2] != count or to_state is _ARCHIVING:
                to_state, count = tagged[1], tagged[2]
                final = without_holder(to_state, count, tagged[6])
                back = back or to_state is RecordState.AVAILABLE
            finals.append((first, end, tagged, final))
        one_by_one = back or self.recorder is not None  # otherwise neither an index nor an event needs single changes
        for first, end, tagged, final in finals if one_by_one else self.states.swap(finals):
            for f, e, in_flight in self.states.overlap(first, end):
                if in_flight.write_id == tagged.write_id:
                    self.put(f, e, in_flight, final, cause=SETTLED, why=in_flight.event)

    def abandon(self, first: int, end: int, in_flight: InFlightState) -> InFlightState:
        """The write has failed: hold the records as before. Returns the state that [first, end) has now."""
        held = in_flight.abandoned()
        self.put(first, end, in_flight, held, cause=ABANDONED, why=in_flight.event)
        return held

    def release(self, first: int, end: int, in_flight: InFlightState, event: RecordEvent, config: GroupConfig) -> None:
        """End the lock on [first, end)."""
        for f, e in self.split(first, end):
            state = self.state_after_release(f, in_flight, event, config)
            self.put(f, e, in_flight, without_holder(state, in_flight.delivery_count, event), cause=event)

    def state_after_release(
        self, first: int, in_flight: InFlightState, event: RecordEvent, config: GroupConfig
    ) -> RecordState:
        """The state of held records from `first` on after a release; below the SPSO they are archived."""
        if first < self.spso:
            return RecordState.ARCHIVED
        state = next_state(
            in_flight.state,
            event,
            delivery_count=in_flight.delivery_count,
            delivery_count_limit=config.delivery_count_limit,
            dead_letter_queue=config.dead_letter_queue,
        )
        assert state is not None
        return state

    def split(self, first: int, end: int) -> list[tuple[int, int]]:
        """[first, end), cut in two at the SPSO if it lies inside."""
        spso = self.spso
        return [(first, spso), (spso, end)] if first < spso < end else [(first, end)]

    def start_at(self, first: int) -> None:
        """Move the SPSO up to `first`, where the first batch begins: the offsets below do not exist."""
        self.spso = max(self.spso, first)

    def grow(self, end: int) -> None:
        """Move the end of the window to `end`. All its holes are natural from here on."""
        if end > self.window_end:
            self.window_end = end
            self.first_gap = None

    def advance(self) -> bool:
        """Move the SPSO past terminal records, unless a lower record is still held. Returns True if it moved."""
        target = self._first_unfinished()
        moved = target > self.spso
        if moved:
            done = target == self.window_end
            self.delivery_complete_count -= self.delivery_complete_count if done else self._terminal(self.spso, target)
            self.spso = target
        if target >= self.spso and target > self.floor:
            self._forget_below(target)
        return moved

    def _forget_below(self, offset: int) -> None:
        self.floor = offset
        if offset == self.window_end:
            self.states.clear()
            self.batches.clear()
        else:
            batch = self.batches.get(offset)
            self.states.assign(FLOOR, offset, None)
            self.batches.assign(FLOOR, offset if batch is None else batch.first, None)

    def _first_unfinished(self) -> int:
        """The first offset that is not terminal, or the first hole to fetch; the end of the window if there is none."""
        limit = self.window_end if self.first_gap is None else self.first_gap
        for first, _, in_flight in self.states.runs():
            if in_flight.state not in TERMINAL:
                return min(first, limit)
        return limit

    def _terminal(self, first: int, end: int) -> int:
        """The number of offsets that are terminal, or will be when their write has settled."""
        return sum([e - f for f, e, in_flight in self.states.overlap(first, end) if in_flight.to_state in TERMINAL])

    def raise_log_start(self, offset: int) -> None:
        """The log now begins at `offset`, above the SPSO: archive AVAILABLE records below, keep acquired ones."""
        for first, end, in_flight in self.states.overlap(self.spso, offset):
            if in_flight.to_state is RecordState.AVAILABLE:
                self.archive(first, end, in_flight, RecordEvent.LOG_START)
        self.delivery_complete_count -= self._terminal(self.spso, offset)
        self.spso = offset
        self.grow(offset)
        self.skip_gaps(offset)

    def archive(self, first: int, end: int, in_flight: InFlightState, event: RecordEvent) -> None:
        """Archive [first, end), all of which has this state."""
        self.put(first, end, in_flight, settled(RecordState.ARCHIVED, in_flight.delivery_count), cause=event)

    def archive_missing(self, first: int, end: int) -> list[tuple[int, int]]:
        """The log, read from `first`, has no record below `end`: archive AVAILABLE records there, pass its holes.

        Returns the archived ranges; nothing is written yet.
        """
        archived = []
        for f, e, in_flight in self.states.overlap(first, end):
            if in_flight.to_state is RecordState.AVAILABLE:
                self.archive(f, e, in_flight, RecordEvent.MISSING)
                archived.append((f, e))
        if self.first_gap is not None and first <= self.first_gap:
            self.skip_gaps(end)
        return archived

    def skip_gaps(self, offset: int) -> None:
        """Move `first_gap` to the first hole at or above `offset`.

        Kafka would move back when lower records are acquired again; a record that the log does not have never appears.
        """
        if self.first_gap is None:
            return
        position = max(self.first_gap, offset)
        while (batch := self.batches.get(position)) is not None:
            position = batch.end
        self.first_gap = position if position < self.window_end else None
