"""Steps of a timeline: the entries with one cause at one instant, so that no step ends in an intermediate state.

Examples are a poll with its acquisitions, the state write of an acknowledgement with the move of the window, and the
departure of a member with the release of its locks.
"""

from __future__ import annotations

from shareq.model.events import (
    Event,
    LeaderElected,
    RecordsChanged,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)
from shareq.model.states import ABANDONED, SETTLED, TXN_COMMIT, RecordEvent
from shareq.trace.journal import Entry

_CONSEQUENCES = frozenset((LeaderElected, StateWritePrepared, StateWriteSettled, WindowMoved))
"""Events that follow from the event before them at the same instant."""

_OUTCOMES = (SETTLED, ABANDONED, TXN_COMMIT, RecordEvent.ABORTED)
"""Changes of records that follow from a write, or from the acquisition before them."""

Cause = tuple[str, object]

READ: Cause = ("read", None)
"""A fetch found offsets without records; its acquisitions follow."""
EXPIRY: Cause = ("records", str(RecordEvent.LOCK_TIMEOUT))


class Steps:
    """The steps of a timeline that may still grow. Positions are counts of entries: a step ends at the count after its
    last entry.

    Where a step begins depends on the entries of the step before it at most. So a step is found from the entries around
    it, when it is asked for: opening a long journal costs nothing here.
    """

    def __init__(self, entries: list[Entry]) -> None:
        """`entries`: a list that only grows."""
        self._entries = entries

    def after(self, count: int) -> int:
        """The end of the step that the entry after `count` entries belongs to; the number of entries at the end."""
        entries = self._entries
        if count >= len(entries):
            return len(entries)
        begin = self._start(count)
        time_ms, present, settling = entries[begin].time_ms, None, False
        for place in range(begin, len(entries)):
            entry = entries[place]
            cause = cause_of(entry.event)
            follows = _follows(cause, present) or (settling and cause == EXPIRY)
            if place > count and (entry.time_ms != time_ms or not follows):
                return place
            present = present if cause is None else cause
            settling = settling or type(entry.event) is StateWriteSettled
        return len(entries)

    def before(self, count: int) -> int:
        """The end of the last step that is complete with fewer than `count` entries; 0 if there is none."""
        return self._start(count - 1) if count > 0 else 0

    def _start(self, place: int) -> int:
        """The place of the first entry of the step that the entry at `place` belongs to."""
        entries = self._entries
        time_ms, begin, cause = entries[place].time_ms, place, None
        while place >= 0 and entries[place].time_ms == time_ms:
            earlier = cause_of(entries[place].event)
            if earlier is not None:
                if not _follows(cause, earlier):
                    break
                cause, begin = earlier, place
            place -= 1
        else:  # the instant begins here
            if cause is None or begin == place + 1:
                return place + 1
        return self._start_of_expiry(begin) if cause == EXPIRY else begin

    def _start_of_expiry(self, place: int) -> int:
        """The start for expired locks at `place`, which follow another cause: they belong to its step if a write has
        settled in it, because these locks ran out under the write."""
        start = self._start(place - 1)
        settled = any(type(entry.event) is StateWriteSettled for entry in self._entries[start:place])
        return start if settled else place


def _follows(cause: Cause | None, present: Cause | None) -> bool:
    """True if an event with this cause belongs to the present step, whose last cause is `present`."""
    if cause is None or cause == present:
        return True
    return cause[0] == "acquire" and present in (READ, ("member", cause[1]))  # a fetch acknowledges, reads, acquires


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
    if event.cause in (RecordEvent.MISSING, RecordEvent.EXPIRED):
        return READ
    if event.member_id is None:
        return None if event.cause == RecordEvent.ACQUIRE else ("records", str(event.cause))
    return "acquire" if event.cause == RecordEvent.ACQUIRE else "member", event.member_id
