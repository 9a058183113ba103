"""What a page of browsing shows of a window: states and holders of records, and why one cannot be acquired now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shareq.leader.aborted_transactions import outside
from shareq.leader.in_flight_state import InFlightState
from shareq.leader.window import Window
from shareq.model.messages.share_browse import DONE, UNTIL_EVENT, BrowseShareGroupResponse, KeptBack
from shareq.model.states import RecordState

Run = BrowseShareGroupResponse.Run

_AVAILABLE = RecordState.AVAILABLE


def browsed_runs(
    window: Window, first: int, end: int, aborted: Sequence[tuple[int, int]], expired: Sequence[tuple[int, int]] = ()
) -> tuple[Run, ...]:
    """The runs of [first, end). `aborted`: what a first acquisition would archive; `expired`: what the next one
    will."""
    return tuple(_with_expired(_runs(window, first, end, aborted), expired))


def while_paused(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs of a group that is paused: none of its AVAILABLE records can be acquired."""
    takeable = (_AVAILABLE, KeptBack.NOT)
    return tuple([replace(run, reason=KeptBack.PAUSED) if (run.state, run.reason) == takeable else run for run in runs])


def _with_expired(runs: Iterator[Run], expired: Sequence[tuple[int, int]]) -> Iterator[Run]:
    """The runs, in which AVAILABLE records that do not rest have the reason that they are too old."""
    for run in runs:
        if run.state != _AVAILABLE or run.reason == KeptBack.RESTS:
            yield run
            continue
        first, end = run.first_offset, run.last_offset + 1
        for f, e in expired:
            f, e = max(f, first), min(e, end)
            if f < e:
                if first < f:
                    yield replace(run, first_offset=first, last_offset=f - 1)
                yield replace(run, first_offset=f, last_offset=e - 1, reason=KeptBack.EXPIRED)
                first = e
        if first < end:
            yield replace(run, first_offset=first, last_offset=end - 1)


def _runs(window: Window, first: int, end: int, aborted: Sequence[tuple[int, int]]) -> Iterator[Run]:
    done = min(end, window.spso)
    if first < done:
        yield Run(first_offset=first, last_offset=done - 1, state=DONE, delivery_count=0)
    position = max(first, window.spso)
    if position >= end:
        return
    for f, e, in_flight in window.states.overlap(position, end):
        yield from _new(window, position, f, aborted)
        yield from _in_flight(window, f, e, in_flight)
        position = e
    yield from _new(window, position, end, aborted)


def _new(window: Window, first: int, end: int, aborted: Sequence[tuple[int, int]]) -> Iterator[Run]:
    """The offsets of [first, end) that have no state, and that a fetch would acquire for the first time: those above
    the window, and the holes of the gap window."""
    first = max(first, window.window_end if window.first_gap is None else window.first_gap)
    if first < end:
        for f, e, _ in outside([(first, end, None)], aborted):
            yield Run(first_offset=f, last_offset=e - 1, state=_AVAILABLE, delivery_count=0)


def _in_flight(window: Window, first: int, end: int, in_flight: InFlightState) -> Iterator[Run]:
    """A run of the window. What is AVAILABLE and not in `window.available` is kept back."""
    if in_flight.state is not _AVAILABLE:
        yield _run(first, end, in_flight, KeptBack.STAGED if in_flight.staged else KeptBack.NOT)
        return
    kept_back = KeptBack.RESTS if in_flight.rests else KeptBack.KEY
    position = first
    for f, e, _ in window.available.overlap(first, end):
        if position < f:
            yield _run(position, f, in_flight, kept_back)
        yield _run(f, e, in_flight)
        position = e
    if position < end:
        yield _run(position, end, in_flight, kept_back)


def _run(first: int, end: int, in_flight: InFlightState, reason: KeptBack = KeptBack.NOT) -> Run:
    deadline_ms = in_flight.deadline_ms
    return Run(
        first_offset=first,
        last_offset=end - 1,
        state=in_flight.state,
        delivery_count=in_flight.delivery_count,
        member_id=in_flight.member_id,
        until_ms=UNTIL_EVENT if deadline_ms is None else deadline_ms,
        reason=reason,
    )
