"""Steps of a timeline: the entries with one cause at one instant, so that no step ends in an intermediate state.

Examples are a poll with its acquisitions, the state write of an acknowledgement with the move of the window, and the
departure of a member with the release of its locks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from shareq.model.events import (
    Event,
    LeaderElected,
    RecordsChanged,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)
from shareq.model.states import ABANDONED, SETTLED, RecordEvent
from shareq.trace.journal import Entry

_CONSEQUENCES = frozenset((LeaderElected, StateWritePrepared, StateWriteSettled, WindowMoved))
"""Events that follow from the event before them at the same instant."""

_OUTCOMES = (SETTLED, ABANDONED, RecordEvent.ABORTED)
"""Changes of records that follow from a write, or from the acquisition before them."""

Cause = tuple[str, object]

READ: Cause = ("read", None)
"""A fetch found offsets without records; its acquisitions follow."""
EXPIRY: Cause = ("records", str(RecordEvent.LOCK_TIMEOUT))


class Steps:
    """The steps of one timeline. Positions are counts of entries: a step ends at the count after its last entry."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._count = 0
        self._time_ms = -1
        self._cause: Cause | None = None
        self._settling = False

    def add(self, entry: Entry) -> None:
        """Add the next entry: to the present step, or as the first one of another step."""
        cause = cause_of(entry.event)
        if entry.time_ms != self._time_ms or not self._follows(cause):
            if self._count:
                self._ends.append(self._count)
            self._time_ms, self._cause, self._settling = entry.time_ms, cause, False
        elif cause is not None:
            self._cause = cause
        self._settling = self._settling or type(entry.event) is StateWriteSettled
        self._count += 1

    def _follows(self, cause: Cause | None) -> bool:
        """True if an event with this cause, at the same instant, belongs to the present step."""
        if cause is None or cause == self._cause:
            return True
        if cause[0] == "acquire":  # a fetch acknowledges, reads, and then acquires
            return self._cause in (READ, ("member", cause[1]))
        return self._settling and cause == EXPIRY  # a lock that ran out under the write

    def after(self, count: int) -> int:
        """The end of the step that the entry after `count` entries belongs to; the number of entries at the end."""
        place = bisect_right(self._ends, count)
        return self._ends[place] if place < len(self._ends) else self._count

    def before(self, count: int) -> int:
        """The end of the last step that is complete with fewer than `count` entries; 0 if there is none."""
        place = bisect_left(self._ends, count)
        return self._ends[place - 1] if place else 0


def cause_of(event: Event) -> Cause | None:
    """The cause of an event; events with equal causes at one instant are one step. None: a consequence."""
    if type(event) in _CONSEQUENCES:
        return None
    if isinstance(event, RecordsChanged):
        return _cause_of_change(event)
    member_id = getattr(event, "member_id", None)
    return ("member", member_id) if member_id else (type(event).__name__, getattr(event, "broker_id", None))


def _cause_of_change(event: RecordsChanged) -> Cause | None:
    if event.cause in _OUTCOMES:
        return None
    if event.cause == RecordEvent.MISSING:
        return READ
    if event.member_id is None:
        return None if event.cause == RecordEvent.ACQUIRE else ("records", str(event.cause))
    return "acquire" if event.cause == RecordEvent.ACQUIRE else "member", event.member_id
