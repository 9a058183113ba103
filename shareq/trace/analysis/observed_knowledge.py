"""The states of a share-partition's records, as far as an observer can determine them, as runs.

Kafka does not expose the member that holds a lock. A record above the SPSO is one of these to an observer: terminal
(durable); held by a member that reports its deliveries; returned, and possibly held again; or unknown.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from shareq.model.events import RecordsHeld
from shareq.model.events import Run as DurableRun
from shareq.model.states import RecordState
from shareq.trace.analysis.runs import STATE_OF_CODE, RecordStatus, Runs

UNKNOWN = RecordStatus(RecordState.AVAILABLE, 0, known=False)
_NOT_TERMINAL = (RecordState.AVAILABLE, RecordState.ACQUIRED)


@cache
def durable_status(state: int, delivery_count: int) -> RecordStatus:
    """The status of records with this durable state; cached, since few values recur in every read."""
    return RecordStatus(STATE_OF_CODE[state], delivery_count, known=state != RecordState.AVAILABLE)


class Hold(NamedTuple):
    """Records [first, end) held by a member, with their delivery count."""

    first: int
    end: int
    member_id: str
    delivery_count: int


class Knowledge(NamedTuple):
    """The durable runs, and the holds of members that report their deliveries. Immutable."""

    durable: tuple[DurableRun, ...] = ()
    holds: tuple[Hold, ...] = ()

    def with_hold(self, event: RecordsHeld) -> Knowledge:
        """The knowledge after a further delivery."""
        hold = Hold(event.first, event.end, event.member_id, event.delivery_count)
        return self._replace(holds=(*self.holds, hold))

    def without_member(self, member_id: str) -> Knowledge:
        """The knowledge after the member has left, or has lost its locks."""
        return self._replace(holds=tuple(hold for hold in self.holds if hold.member_id != member_id))

    def highest_window_end(self, spso: int, log_end: int, max_record_locks: int) -> int:
        """Upper bound of the window's end: the limit of record locks, or the end of a known run beyond it."""
        known = [*[run.end for run in self.durable], *[hold.end for hold in self.holds]]
        return max(spso, min(log_end, spso + max_record_locks), *known)

    def runs(self, spso: int, window_end: int) -> Runs:
        """The status of each record of [spso, window_end).

        A record that was returned after its nth delivery is not held by the member of its nth or an earlier delivery.
        """
        runs, position = Runs(), spso
        for first, end, state, delivery_count in self.durable:
            if end > spso:
                first = max(first, spso)
                if position < first:
                    runs.append(position, first, UNKNOWN)
                runs.append(first, end, durable_status(state, delivery_count))
                position = end
        if position < window_end:
            runs.append(position, window_end, UNKNOWN)
        for first, end, member_id, delivery_count in self.holds:
            for begin, stop, status in runs.overlap(first, end):
                if status.state in _NOT_TERMINAL and status.delivery_count < delivery_count:
                    runs.assign(begin, stop, RecordStatus(RecordState.ACQUIRED, delivery_count, member_id))
        return runs
