"""The states of a share-partition's records, as far as an observer can determine them, as runs.

Kafka does not expose the member that holds a lock. A record above the SPSO is one of these to an observer: terminal
(durable, or by a confirmed acknowledgement); held by a member whose deliveries the observer sees; returned, and
possibly held again; or unknown. If the observer sees the deliveries of all members, a record that no member holds is
available.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple, TypeVar

from shareq.model.events import HoldEnded, RecordsHeld
from shareq.model.events import Run as DurableRun
from shareq.model.states import RecordState
from shareq.trace.analysis.runs import STATE_OF_CODE, RecordStatus, Runs

UNKNOWN = RecordStatus(RecordState.AVAILABLE, 0, known=False)
_NOT_TERMINAL = (RecordState.AVAILABLE, RecordState.ACQUIRED)


@cache
def durable_status(state: int, delivery_count: int, complete: bool = False) -> RecordStatus:
    """The status of records with this durable state; cached, since few values recur in every read. `complete`: an
    available record is held by no member.
    """
    return RecordStatus(STATE_OF_CODE[state], delivery_count, known=complete or state != RecordState.AVAILABLE)


class Hold(NamedTuple):
    """Records [first, end) held by a member, with their delivery count and the end of the lock, if it is known."""

    first: int
    end: int
    member_id: str
    delivery_count: int
    deadline_ms: int | None = None


class Knowledge(NamedTuple):
    """The durable runs, the holds of members whose deliveries are seen, and the runs whose holds have ended. Immutable.

    `durable_spso`: the SPSO of the last durable state. `complete`: the deliveries of all members are seen.
    """

    durable: tuple[DurableRun, ...] = ()
    holds: tuple[Hold, ...] = ()
    ended: tuple[DurableRun, ...] = ()
    durable_spso: int = -1
    complete: bool = False

    def with_hold(self, event: RecordsHeld) -> Knowledge:
        """The knowledge after a further delivery, or a renewed lock. A delivery with a deadline is the newest one; the
        reports of others arrive in any order.
        """
        hold = Hold(event.first, event.end, event.member_id, event.delivery_count, event.deadline_ms)
        if hold.deadline_ms is None:
            return self._replace(holds=(*self.holds, hold))
        ended = tuple(_outside(self.ended, event.first, event.end))
        return self._replace(holds=(*_outside(self.holds, event.first, event.end), hold), ended=ended)

    def with_end(self, event: HoldEnded) -> Knowledge:
        """The knowledge after the end of a hold. Records of a later delivery keep it."""
        holds, later = [], Runs()
        for hold in self.holds:
            first, end = max(hold.first, event.first), min(hold.end, event.end)
            if first >= end or hold.delivery_count > event.delivery_count:
                holds.append(hold)
                if first < end:
                    later.assign(first, end, UNKNOWN)
            else:
                holds += _outside((hold,), event.first, event.end)
        ended, position = list(_outside(self.ended, event.first, event.end)), event.first
        for first, end, _ in (*later, (event.end, event.end, UNKNOWN)):
            if position < first:
                ended.append(DurableRun(position, first, event.state, event.delivery_count))
            position = end
        return self._replace(holds=tuple(holds), ended=tuple(sorted(ended)))

    def without_member(self, member_id: str) -> Knowledge:
        """The knowledge after the member has left. Locks with a deadline stay: their ends are events of their own."""
        kept = tuple(hold for hold in self.holds if hold.member_id != member_id or hold.deadline_ms is not None)
        return self._replace(holds=kept)

    def with_new_leader(self) -> Knowledge:
        """The knowledge after a change of leaders: locks, and returns that may not be durable, are void."""
        terminal = tuple(run for run in self.ended if STATE_OF_CODE[run.state].terminal)
        return self._replace(holds=(), ended=terminal)

    def highest_window_end(self, spso: int, log_end: int, max_record_locks: int) -> int:
        """Upper bound of the window's end: the limit of record locks, or the end of a known run beyond it. If all
        deliveries are seen, the end of the last known run.
        """
        known = [*[run.end for run in self.durable], *[hold.end for hold in self.holds], *[r.end for r in self.ended]]
        limit = spso if self.complete else min(log_end, spso + max_record_locks)
        return max(spso, limit, *known)

    def runs(self, spso: int, window_end: int) -> Runs:
        """The status of each record of [spso, window_end).

        A record that was returned after its nth delivery is not held by the member of its nth or an earlier delivery.
        """
        runs = self._unheld(spso, window_end)
        for first, end, member_id, delivery_count, deadline_ms in self.holds:
            for begin, stop, status in runs.overlap(first, end):
                if status.state in _NOT_TERMINAL and status.delivery_count < delivery_count:
                    held = RecordStatus(RecordState.ACQUIRED, delivery_count, member_id, deadline_ms)
                    runs.assign(begin, stop, held)
        return runs

    def _unheld(self, spso: int, window_end: int) -> Runs:
        """The status of each record of [spso, window_end), without the holds."""
        runs, position, other = Runs(), spso, UNKNOWN._replace(known=self.complete)
        for first, end, state, delivery_count in self.durable:
            if end > spso:
                first = max(first, spso)
                if position < first:
                    runs.append(position, first, other)
                runs.append(first, end, durable_status(state, delivery_count, self.complete))
                position = end
        if position < window_end:
            runs.append(position, window_end, other)
        for first, end, state, delivery_count in self.ended:
            new = durable_status(state, delivery_count, self.complete)
            for begin, stop, status in runs.overlap(first, end):
                if not status.state.terminal and (new.state.terminal or status.delivery_count <= delivery_count):
                    runs.assign(begin, stop, new)
        return runs


T = TypeVar("T", Hold, DurableRun)


def _outside(runs: Iterable[T], first: int, end: int) -> Iterator[T]:
    """The parts of the runs outside [first, end)."""
    for run in runs:
        if run.end <= first or run.first >= end:
            yield run
            continue
        if run.first < first:
            yield run._replace(end=first)
        if run.end > end:
            yield run._replace(first=end)
