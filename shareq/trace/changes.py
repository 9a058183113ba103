"""Which changes of records a leader can tell: the rules of the strict fold.

Source: the transition table in `shareq.model.states`, and what a prepared write adds to it (design: prepared, settled).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from shareq.model.events import RecordsChanged
from shareq.model.states import RETURNING, TRANSITIONS, RecordEvent, RecordState
from shareq.trace.runs import Cell, Run

PREPARED: Final = "prepared"
SETTLED: Final = "settled"
ABANDONED: Final = "abandoned"
"""Causes of a change beside the record events."""


def cell_of(event: RecordsChanged) -> Cell:
    """What the records are in after the change."""
    _, _, _, _, _, _, state, delivery_count, member_id, deadline_ms, write_id, to_state, why = event
    if write_id is None:
        return Cell(_STATES[state], delivery_count, member_id, deadline_ms)
    target = None if to_state is None else _STATES[to_state]
    return Cell(_STATES[state], delivery_count, member_id, deadline_ms, write_id, target, why)


_STATES = {int(state): state for state in RecordState}


def why_illegal(event: RecordsChanged, new: Cell, old: list[Run]) -> str | None:
    """Why records that were in `old` (the runs within the event's range) cannot become `new`; None if they can."""
    covered = sum([end - first for first, end, _ in old])
    if event.cause == RecordEvent.ACQUIRE:
        if covered < event.end - event.first and not _brought_in(new):
            return f"new records cannot begin as {new.state.name} with delivery count {new.delivery_count}"
    elif covered < event.end - event.first:
        return f"[{event.first}, {event.end}) is not all in flight"
    rule = _RULES.get(event.cause)
    if rule is None:
        return f"nothing is called {event.cause!r}"
    for first, end, cell in old:
        if not rule(cell, new):
            return f"[{first}, {end}) cannot go from {_name(cell)} to {_name(new)} by {event.cause}"
    return None


def _name(cell: Cell) -> str:
    write = "" if cell.write_id is None else f", write {cell.write_id} under way"
    holder = "" if cell.member_id is None else f" by {cell.member_id}"
    return f"{cell.state.name}{holder} (count {cell.delivery_count}{write})"


def _brought_in(new: Cell) -> bool:
    """Records come into the window acquired, or (record limit) with the batch of one that is."""
    return (new.state, new.delivery_count) in ((RecordState.ACQUIRED, 1), (RecordState.AVAILABLE, 0))


def _held(cell: Cell) -> bool:
    """Acquired, with nothing under way."""
    return cell.state is RecordState.ACQUIRED and cell.write_id is None


def _acquired(old: Cell, new: Cell) -> bool:
    again = old.state is RecordState.AVAILABLE and new.state is RecordState.ACQUIRED
    return again and new.delivery_count == old.delivery_count + 1


def _prepared(old: Cell, new: Cell) -> bool:
    same = (old.state, *old[1:4]) == (new.state, *new[1:4])
    return _held(old) and same and new.write_id is not None and _leads(new.why, new.to_state)


def _settled(old: Cell, new: Cell) -> bool:
    return old.to_state is not None and new == Cell(old.to_state, old.delivery_count)


def _abandoned(old: Cell, new: Cell) -> bool:
    return old.write_id is not None and new == Cell(*old[:4])


def _renewed(old: Cell, new: Cell) -> bool:
    return _held(old) and _held(new) and (old.delivery_count, old.member_id) == (new.delivery_count, new.member_id)


def _passed_on(event: RecordEvent) -> Callable[[Cell, Cell], bool]:
    """Held records that go where the event takes them, without a write."""

    def rule(old: Cell, new: Cell) -> bool:
        return _held(old) and _leads(event, new.state) and new == Cell(new.state, old.delivery_count)

    return rule


def _leads(event: str | None, target: RecordState | None) -> bool:
    """Whether the event takes an ACQUIRED record there."""
    return target in _TARGETS.get(event, ())


_TARGETS: dict[str | None, set[RecordState | None]] = {
    event: {target, RecordState.ARCHIVED} if event in RETURNING else {target}
    for (state, event), target in TRANSITIONS.items()
    if state is RecordState.ACQUIRED
}
"""Where events take ACQUIRED records; those that come back may be archived, at their limit."""


def _vanished(old: Cell, new: Cell) -> bool:
    """Available, or about to be: the log does not have it any more."""
    waiting = RecordState.AVAILABLE in (old.state, old.to_state)
    return waiting and new == Cell(RecordState.ARCHIVED, old.delivery_count)


_RULES: Final[dict[str, Callable[[Cell, Cell], bool]]] = {
    RecordEvent.ACQUIRE: _acquired,
    RecordEvent.RENEW: _renewed,
    RecordEvent.LOCK_TIMEOUT: _passed_on(RecordEvent.LOCK_TIMEOUT),
    RecordEvent.ABORTED: _passed_on(RecordEvent.ABORTED),
    RecordEvent.LOG_START: _vanished,
    RecordEvent.MISSING: _vanished,
    PREPARED: _prepared,
    SETTLED: _settled,
    ABANDONED: _abandoned,
}
"""The causes that a leader tells. What a member or a session says becomes a prepared write, and then settles."""
