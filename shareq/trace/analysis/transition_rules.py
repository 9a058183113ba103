"""Rules of the strict fold: the status changes that a leader can record.

Source: the transition table in `shareq.model.states`, with the three steps of a state write (prepared, then settled or
abandoned) in place of the transitions that need a write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from shareq.model.events import RecordsChanged
from shareq.model.states import (
    ABANDONED,
    EXPERIMENTAL_TRANSITIONS,
    PREPARED,
    RESTED,
    RETURNING,
    SETTLED,
    STAGED,
    TRANSITIONS,
    TXN_COMMIT,
    RecordEvent,
    RecordState,
)
from shareq.trace.analysis.runs import STATE_OF_CODE, RecordStatus, StatusRun

_new = tuple.__new__  # a NamedTuple's constructor calls this, at twice the cost


def status_after(event: RecordsChanged) -> RecordStatus:
    """The status of the records after the change."""
    _, _, _, _, _, _, state, delivery_count, member_id, deadline_ms, write_id, to_state, why = event
    if write_id is None:
        return _new(
            RecordStatus, (STATE_OF_CODE[state], delivery_count, member_id, deadline_ms, None, None, None, True)
        )
    target = None if to_state is None else STATE_OF_CODE[to_state]
    return _new(
        RecordStatus, (STATE_OF_CODE[state], delivery_count, member_id, deadline_ms, write_id, target, why, True)
    )


def why_illegal(event: RecordsChanged, new: RecordStatus, old: list[StatusRun]) -> str | None:
    """The reason why the change is illegal; None if it is legal. `old`: the runs within the event's range."""
    covered = sum([end - first for first, end, _ in old])
    if event.cause in (RecordEvent.ACQUIRE, RecordEvent.EXPIRED):
        if covered < event.end - event.first and not _may_begin_as(new, event.cause):
            return f"new records cannot begin as {new.state.name} with delivery count {new.delivery_count}"
    elif covered < event.end - event.first:
        return f"[{event.first}, {event.end}) is not completely in flight"
    rule = _RULES.get(event.cause)
    if rule is None:
        return f"unknown cause {event.cause!r}"
    for first, end, status in old:
        if not rule(status, new):
            return f"[{first}, {end}) cannot go from {_name(status)} to {_name(new)} by {event.cause}"
    return None


def _name(status: RecordStatus) -> str:
    write = "" if status.write_id is None else f", write {status.write_id} in progress"
    holder = "" if status.member_id is None else f" by {status.member_id}"
    return f"{status.state.name}{holder} (count {status.delivery_count}{write})"


def _may_begin_as(new: RecordStatus, cause: str) -> bool:
    """True for a status of records new to the window: acquired, or, with a record limit, available in the same batch;
    or too old."""
    if cause == RecordEvent.EXPIRED:
        return _expired(RecordStatus(RecordState.AVAILABLE, 0), new)
    return (new.state, new.delivery_count) in ((RecordState.ACQUIRED, 1), (RecordState.AVAILABLE, 0))


def _is_held(status: RecordStatus) -> bool:
    """True for an acquired record without a state write."""
    return status.state is RecordState.ACQUIRED and status.write_id is None


def _acquired(old: RecordStatus, new: RecordStatus) -> bool:
    again = old.state is RecordState.AVAILABLE and not old.rests and new.state is RecordState.ACQUIRED
    return again and new.delivery_count == old.delivery_count + 1


def _prepared(old: RecordStatus, new: RecordStatus) -> bool:
    same = (old.state, *old[1:4]) == (new.state, *new[1:4])
    return _is_held(old) and same and new.write_id is not None and _leads_to(new.why, new.to_state)


def _settled(old: RecordStatus, new: RecordStatus) -> bool:
    if old.to_state is RecordState.AVAILABLE and old.why == RecordEvent.RELEASE:
        new = new._replace(deadline_ms=None)  # the record may rest
    return old.to_state is not None and new == RecordStatus(old.to_state, old.delivery_count)


def _rested(old: RecordStatus, new: RecordStatus) -> bool:
    return old.rests and new == old._replace(deadline_ms=None)


def _abandoned(old: RecordStatus, new: RecordStatus) -> bool:
    return old.write_id is not None and new == RecordStatus(*old[:4])


def _staged(old: RecordStatus, new: RecordStatus) -> bool:
    """True if the acknowledgement of a held record waits for a transaction, or, after a load, of one without holder."""
    held = _is_held(old) or old == RecordStatus(RecordState.AVAILABLE, old.delivery_count)
    return held and new.staged and old[1:4] == new[1:4] and new.why in (RecordEvent.ACCEPT, RecordEvent.REJECT)


def _txn_committed(old: RecordStatus, new: RecordStatus) -> bool:
    return old.staged and _leads_to(old.why, new.state) and new == RecordStatus(new.state, old.delivery_count)


def _txn_aborted(old: RecordStatus, new: RecordStatus) -> bool:
    return (
        old.staged
        and _leads_to(RecordEvent.TXN_ABORT, new.state)
        and new == RecordStatus(new.state, old.delivery_count)
    )


def _renewed(old: RecordStatus, new: RecordStatus) -> bool:
    return (
        _is_held(old) and _is_held(new) and (old.delivery_count, old.member_id) == (new.delivery_count, new.member_id)
    )


def _without_write(event: RecordEvent) -> Callable[[RecordStatus, RecordStatus], bool]:
    """The rule of an event that changes acquired records at once, without a write."""

    def rule(old: RecordStatus, new: RecordStatus) -> bool:
        return _is_held(old) and _leads_to(event, new.state) and new == RecordStatus(new.state, old.delivery_count)

    return rule


def _leads_to(event: str | None, target: RecordState | None) -> bool:
    """True if the event changes an ACQUIRED record to `target`."""
    return target in _TARGETS.get(event, ())


_TARGETS: dict[str | None, set[RecordState | None]] = {
    event: {target, RecordState.ARCHIVED, RecordState.ARCHIVING} if event in RETURNING else {target}
    for (state, event), target in (TRANSITIONS | EXPERIMENTAL_TRANSITIONS).items()
    if state is RecordState.ACQUIRED
}
"""Event -> target states of ACQUIRED records. A returned record is archived at its delivery limit; with a dead-letter
queue it is ARCHIVING before, and so is a rejected one."""
_TARGETS[RecordEvent.REJECT].add(RecordState.ARCHIVING)


def _vanished(old: RecordStatus, new: RecordStatus) -> bool:
    """True if the log has lost a record that was available or about to be."""
    waiting = RecordState.AVAILABLE in (old.state, old.to_state)
    return waiting and new == RecordStatus(RecordState.ARCHIVED, old.delivery_count)


def _expired(old: RecordStatus, new: RecordStatus) -> bool:
    """True if the time to live of a record that no member had is over."""
    waiting = old == RecordStatus(RecordState.AVAILABLE, old.delivery_count)
    done = new.state in (RecordState.ARCHIVED, RecordState.ARCHIVING)
    return waiting and done and new == RecordStatus(new.state, old.delivery_count)


def _dead_lettered(old: RecordStatus, new: RecordStatus) -> bool:
    return old == RecordStatus(RecordState.ARCHIVING, old.delivery_count) and new == RecordStatus(
        RecordState.ARCHIVED, old.delivery_count
    )


_RULES: Final[dict[str, Callable[[RecordStatus, RecordStatus], bool]]] = {
    RecordEvent.ACQUIRE: _acquired,
    RecordEvent.RENEW: _renewed,
    RecordEvent.LOCK_TIMEOUT: _without_write(RecordEvent.LOCK_TIMEOUT),
    RecordEvent.ABORTED: _without_write(RecordEvent.ABORTED),
    RecordEvent.LOG_START: _vanished,
    RecordEvent.MISSING: _vanished,
    RecordEvent.EXPIRED: _expired,
    RecordEvent.DEAD_LETTERED: _dead_lettered,
    PREPARED: _prepared,
    SETTLED: _settled,
    RESTED: _rested,
    STAGED: _staged,
    TXN_COMMIT: _txn_committed,
    RecordEvent.TXN_ABORT: _txn_aborted,
    ABANDONED: _abandoned,
}
"""The rules by cause. An acknowledgement, or the end of a session, is a prepared write that settles; a staged one (an
experiment) waits for the end of its transaction instead."""
