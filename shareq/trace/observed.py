"""What an observer of a real Kafka knows of a share-partition, laid out as runs.

Kafka keeps no record of who holds a lock. So of every record above the SPSO one of these is known: that it is done with
(durable), that a member holds it whom we can hear, that it was returned once and may be held again, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from shareq.model.events import DurableStateRead, MemberLeft, ObservationDisturbed, RecordsHeld
from shareq.model.events import Run as DurableRun
from shareq.model.states import RecordState
from shareq.trace.runs import Cell, Run, Runs

if TYPE_CHECKING:
    from shareq.trace.fold import SharePartitionState

UNKNOWN = Cell(RecordState.AVAILABLE, 0, known=False)
_STATES = {int(state): state for state in RecordState}
_OPEN = (RecordState.AVAILABLE, RecordState.ACQUIRED)


@cache
def _durable(state: int, delivery_count: int) -> Cell:
    """What a durable state says of records; there are few of them, and each is said often."""
    return Cell(_STATES[state], delivery_count, known=state != RecordState.AVAILABLE)


class Hold(NamedTuple):
    """Records that a member has been delivered, for the `delivery_count`th time."""

    first: int
    end: int
    member_id: str
    delivery_count: int


class Knowledge(NamedTuple):
    """What is durable, and who is known to hold what. Never changed: what is new makes another one."""

    durable: tuple[DurableRun, ...] = ()
    holds: tuple[Hold, ...] = ()

    def held(self, event: RecordsHeld) -> Knowledge:
        """One more delivery has been heard of."""
        hold = Hold(event.first, event.end, event.member_id, event.delivery_count)
        return self._replace(holds=(*self.holds, hold))

    def without(self, member_id: str) -> Knowledge:
        """The member is gone, or its locks are."""
        return self._replace(holds=tuple(hold for hold in self.holds if hold.member_id != member_id))

    def reach(self, spso: int, log_end: int, max_record_locks: int) -> int:
        """The SPEO at most: as far as the locks go, and wherever something is known beyond that."""
        known = [*[run.end for run in self.durable], *[hold.end for hold in self.holds]]
        return max(spso, min(log_end, spso + max_record_locks), *known)

    def runs(self, spso: int, speo: int) -> Runs:
        """What is known of each record of [spso, speo).

        A record that was returned after its nth delivery is not held by whoever had it for the nth time or before.
        """
        runs, position = Runs(), spso
        for first, end, state, delivery_count in self.durable:
            if end > spso:
                first = max(first, spso)
                if position < first:
                    runs.append(position, first, UNKNOWN)
                runs.append(first, end, _durable(state, delivery_count))
                position = end
        if position < speo:
            runs.append(position, speo, UNKNOWN)
        for first, end, member_id, delivery_count in self.holds:
            for begin, stop, cell in runs.overlap(first, end):
                if cell.state in _OPEN and cell.delivery_count < delivery_count:
                    runs.assign(begin, stop, Cell(RecordState.ACQUIRED, delivery_count, member_id))
        return runs


def lay_out(state: SharePartitionState) -> None:
    """Runs and SPEO follow from what is known; where a leader tells, nothing does. Holds that have been overtaken are
    forgotten.

    While no start is durable, nothing is shown but what somebody is known to hold, and what lies above that.
    """
    knowledge = state.knowledge
    if knowledge is None:
        return
    if not state.loaded:
        state.spso = min([hold.first for hold in knowledge.holds], default=0)
    begun = state.loaded or knowledge.holds
    state.speo = knowledge.reach(state.spso, state.log_end, state.max_record_locks) if begun else state.spso
    state.runs = knowledge.runs(state.spso, state.speo)
    if not knowledge.holds:
        return
    held = [(first, end, c.member_id, c.delivery_count) for first, end, c in state.runs if c.member_id is not None]
    state.knowledge = knowledge._replace(holds=tuple(map(Hold._make, held)))


# ---- what an observer tells ------------------------------------------------------------------------------------------


def _read(state: SharePartitionState, event: DurableStateRead) -> None:
    """The truth about what is done with, returned, and below the SPSO; it replaces all that was durable before.

    Leaders move the SPSO past what is done with at once, but write it with their next write only: so it is where the
    first record is that is not done with. An SPSO that went back, or a state that is no more, has nothing to do with
    the one before.
    """
    spso, done = _passed(event)
    reset = state.loaded and spso < state.spso
    if reset or not state.loaded:
        state.past, state.spso = [], event.spso
    holds = state.knowledge.holds if state.knowledge is not None and not reset else ()
    gone = [run for run in state.runs.drop_below(event.spso) if run[2].state.terminal]
    gone += [(max(first, state.spso), end, cell) for first, end, cell in done if end > state.spso]
    state.loaded, state.partial, state.spso = spso >= 0, False, max(spso, 0)
    state.bury(gone)
    state.state_epoch, state.leader_epoch = event.state_epoch, event.leader_epoch
    state.knowledge = Knowledge(event.runs, holds)
    lay_out(state)


def _passed(event: DurableStateRead) -> tuple[int, list[Run]]:
    """The SPSO, and the runs that it has passed since it was written."""
    spso, passed = event.spso, []
    for first, end, state, delivery_count in event.runs:
        if not first <= spso < end or not _STATES[state].terminal:
            break
        passed.append((spso, end, _durable(state, delivery_count)))
        spso = end
    return spso, passed


def _held(state: SharePartitionState, event: RecordsHeld) -> None:
    state.knowledge = (state.knowledge or Knowledge()).held(event)
    lay_out(state)


def _left(state: SharePartitionState, event: MemberLeft) -> None:
    if state.knowledge is not None:
        state.knowledge = state.knowledge.without(event.member_id)
        lay_out(state)


def _disturbed(state: SharePartitionState, event: ObservationDisturbed) -> None:
    state.disturbed = event.reason
    state.knowledge = state.knowledge or Knowledge()


OBSERVER_TELLS: dict[type, Callable[[SharePartitionState, Any], None]] = {
    DurableStateRead: _read,
    RecordsHeld: _held,
    MemberLeft: _left,
    ObservationDisturbed: _disturbed,
}
