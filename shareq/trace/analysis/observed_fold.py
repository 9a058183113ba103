"""Fold of an observer's events: each handler applies one event to a share-partition's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shareq.model.events import (
    DurableStateRead,
    HoldEnded,
    MemberLeft,
    MembersBypass,
    ObservationDisturbed,
    RecordsHeld,
)
from shareq.model.events import Run as DurableRun
from shareq.trace.analysis.observed_knowledge import Hold, Knowledge, durable_status
from shareq.trace.analysis.runs import STATE_OF_CODE, Runs, StatusRun
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal.entry_log import Entry


def lay_out(state: SharePartitionState) -> None:
    """Compute the window from the knowledge, and drop holds that later deliveries or durable states have replaced.

    A no-op for a state that is not observed. Without a durable start offset, the window begins at the first known
    delivery. The durable SPSO passes records that are terminal by confirmed acknowledgements, as on the leader.
    """
    knowledge = state.knowledge
    if knowledge is None:
        return
    if not state.loaded:
        firsts = [hold.first for hold in knowledge.holds] + [run.first for run in knowledge.ended]
        state.spso = min(firsts, default=0)
    begun = state.loaded or knowledge.holds or knowledge.ended
    state.window_end = (
        knowledge.highest_window_end(state.spso, state.log_end, state.max_record_locks) if begun else state.spso
    )
    state.runs = knowledge.runs(state.spso, state.window_end)
    if not knowledge.holds and not knowledge.ended:
        return
    _pass_ended(state, knowledge)
    held = [(first, end, *s[2:0:-1], s.deadline_ms) for first, end, s in state.runs if s.member_id is not None]
    ended = _needed(knowledge, state)
    state.knowledge = knowledge._replace(holds=tuple(map(Hold._make, held)), ended=ended)


def _pass_ended(state: SharePartitionState, knowledge: Knowledge) -> None:
    """Move the SPSO past records that are terminal; only ended holds leave such records at the SPSO."""
    spso = state.spso
    for first, end, status in state.runs if knowledge.ended and state.loaded else ():
        if first != spso or not status.state.terminal:
            break
        spso = end
    if spso > state.spso:
        dropped, state.spso = state.runs.drop_below(spso), spso
        state.add_past(dropped)


def _needed(knowledge: Knowledge, state: SharePartitionState) -> tuple[DurableRun, ...]:
    """The ended runs that are still the newest knowledge of their records, and not durable yet."""
    if not state.loaded:  # the window begins at the first known delivery
        return knowledge.ended
    durable, found = set(knowledge.durable), []
    for first, end, code, delivery_count in knowledge.ended:
        for begin, stop, status in state.runs.overlap(max(first, state.spso), end) if end > state.spso else ():
            run = DurableRun(begin, stop, code, delivery_count)
            if (int(status.state), status.delivery_count) == (code, delivery_count) and run not in durable:
                found.append(run)
    return tuple(found)


def _read(state: SharePartitionState, entry: Entry, event: DurableStateRead) -> None:
    """Replace the durable runs: terminal and returned records, and the SPSO.

    A leader moves the SPSO past terminal records at once, but writes it only with its next write. So the SPSO here is
    the first record that is not terminal. An SPSO that has moved back, or a deleted state, voids the earlier state.
    """
    del entry
    spso, terminal = _passed(event)
    known = state.knowledge or Knowledge()
    reset = state.loaded and spso < known.durable_spso
    begin = state.spso if state.loaded and not reset else 0
    if reset or not state.loaded:
        state.past, state.spso = [], event.spso
    if reset:
        known = Knowledge(complete=known.complete)
    dropped = [run for run in state.runs.drop_below(event.spso) if run[2].state.terminal]
    dropped += [(max(first, state.spso), end, status) for first, end, status in terminal if end > state.spso]
    state.loaded, state.partial, state.spso = spso >= 0, False, max(spso, state.spso, 0)
    state.add_past(_named(event.passed, begin, dropped) if event.passed else dropped)
    state.state_epoch, state.leader_epoch = event.state_epoch, event.leader_epoch
    state.knowledge = known._replace(durable=event.runs, durable_spso=spso)
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


def _named(passed: Iterable[DurableRun], begin: int, dropped: Iterable[StatusRun]) -> list[StatusRun]:
    """The terminal runs from `begin` on that the SPSO has passed: those named between two reads, and known ones."""
    found = Runs()
    for first, end, state, delivery_count in passed:
        if begin < end:
            found.assign(max(first, begin), end, durable_status(state, delivery_count))
    for run in dropped:
        found.assign(*run)
    return list(found)


def _held(state: SharePartitionState, entry: Entry, event: RecordsHeld) -> None:
    del entry
    state.knowledge = (state.knowledge or Knowledge()).with_hold(event)
    lay_out(state)


def _ended(state: SharePartitionState, entry: Entry, event: HoldEnded) -> None:
    del entry
    state.knowledge = (state.knowledge or Knowledge()).with_end(event)
    lay_out(state)


def _bypassed(state: SharePartitionState, entry: Entry, event: MembersBypass) -> None:
    del entry
    state.knowledge = (state.knowledge or Knowledge())._replace(complete=not event.member_ids)
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
    HoldEnded: _ended,
    MembersBypass: _bypassed,
    MemberLeft: _member_left,
    ObservationDisturbed: _disturbed,
}
