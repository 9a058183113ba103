"""Fold of an observer's events: each handler applies one event to a share-partition's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.model.events import DurableStateRead, MemberLeft, ObservationDisturbed, RecordsHeld
from shareq.trace.analysis.observed_knowledge import Hold, Knowledge, durable_status
from shareq.trace.analysis.runs import STATE_OF_CODE, StatusRun
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal.entry_log import Entry


def lay_out(state: SharePartitionState) -> None:
    """Compute the window from the knowledge, and drop holds that later deliveries or durable states have replaced.

    A no-op for a state that is not observed. Without a durable start offset, the window begins at the first hold.
    """
    knowledge = state.knowledge
    if knowledge is None:
        return
    if not state.loaded:
        state.spso = min([hold.first for hold in knowledge.holds], default=0)
    begun = state.loaded or knowledge.holds
    state.window_end = (
        knowledge.highest_window_end(state.spso, state.log_end, state.max_record_locks) if begun else state.spso
    )
    state.runs = knowledge.runs(state.spso, state.window_end)
    if not knowledge.holds:
        return
    held = [(first, end, s.member_id, s.delivery_count) for first, end, s in state.runs if s.member_id is not None]
    state.knowledge = knowledge._replace(holds=tuple(map(Hold._make, held)))


def _read(state: SharePartitionState, entry: Entry, event: DurableStateRead) -> None:
    """Replace the durable runs: terminal and returned records, and the SPSO.

    A leader moves the SPSO past terminal records at once, but writes it only with its next write. So the SPSO here is
    the first record that is not terminal. An SPSO that has moved back, or a deleted state, voids the earlier state.
    """
    del entry
    spso, terminal = _passed(event)
    reset = state.loaded and spso < state.spso
    if reset or not state.loaded:
        state.past, state.spso = [], event.spso
    holds = state.knowledge.holds if state.knowledge is not None and not reset else ()
    dropped = [run for run in state.runs.drop_below(event.spso) if run[2].state.terminal]
    dropped += [(max(first, state.spso), end, status) for first, end, status in terminal if end > state.spso]
    state.loaded, state.partial, state.spso = spso >= 0, False, max(spso, 0)
    state.add_past(dropped)
    state.state_epoch, state.leader_epoch = event.state_epoch, event.leader_epoch
    state.knowledge = Knowledge(event.runs, holds)
    lay_out(state)


def _passed(event: DurableStateRead) -> tuple[int, list[StatusRun]]:
    """The SPSO, and the terminal runs that it has passed since the write."""
    spso, passed = event.spso, []
    for first, end, state, delivery_count in event.runs:
        if not first <= spso < end or not STATE_OF_CODE[state].terminal:
            break
        passed.append((spso, end, durable_status(state, delivery_count)))
        spso = end
    return spso, passed


def _held(state: SharePartitionState, entry: Entry, event: RecordsHeld) -> None:
    del entry
    state.knowledge = (state.knowledge or Knowledge()).with_hold(event)
    lay_out(state)


def _member_left(state: SharePartitionState, entry: Entry, event: MemberLeft) -> None:
    del entry
    if state.knowledge is not None:
        state.knowledge = state.knowledge.without_member(event.member_id)
        lay_out(state)


def _disturbed(state: SharePartitionState, entry: Entry, event: ObservationDisturbed) -> None:
    del entry
    state.disturbed = event.reason
    state.knowledge = state.knowledge or Knowledge()


OBSERVER_HANDLERS: dict[type, Callable[[SharePartitionState, Entry, Any], None]] = {
    DurableStateRead: _read,
    RecordsHeld: _held,
    MemberLeft: _member_left,
    ObservationDisturbed: _disturbed,
}
