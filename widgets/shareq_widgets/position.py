"""What a playback moves: a view of a journal, and where it stands in it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from shareq.trace.analysis.time_axis import FOLDED_MS, TimeAxis
from shareq.trace.journal import Journal
from shareq.trace.views.snapshot import Snapshot

Span = tuple[int, int]
"""The first and the last time, ms since the epoch."""


class Position(NamedTuple):
    """Where a view stands, for the views that are linked to it.

    `until`: the moment of the journal, see `GroupHistory`. `now_ms`: the displayed time, which advances by `rate` ms
    per real ms up to `until_ms`. `end`: True at rest at the live end.
    """

    until: int
    now_ms: int
    live: bool
    end: bool
    rate: float
    until_ms: int | None


class View(Protocol):
    """The part of `shareq.trace.views.event_view.EventView` that a playback uses."""

    journal: Journal

    def total(self) -> int:
        """The number of events of this share-partition so far."""

    def snapshot(self, order: int | None = None) -> Snapshot:
        """The state after `order` events; None means the live end."""

    def cause(self, order: int) -> str:
        """Why the event at an order from 1 happened, as in its snapshot."""

    def at_time(self, time_ms: int) -> int:
        """The order of the last event at or before `time_ms`."""

    def at_moment(self, until: int) -> int:
        """The number of events below a moment of the journal."""

    def moment(self, order: int | None = None) -> int:
        """The moment of the journal after the event at `order`; None is its end."""

    def moment_at(self, time_ms: int) -> int:
        """The moment of the journal after all events up to `time_ms`."""

    def axis(self) -> TimeAxis:
        """The time axis, ms since the epoch."""

    def next_step(self, order: int) -> int:
        """The order at which the step after `order` ends; the last one at the end."""

    def previous_step(self, order: int) -> int:
        """The order at which the step before `order` ends; 0 at the beginning."""


def axis_of(view: View, span: Span | None = None, source: Any = None) -> dict[str, Any]:
    """The axis of a timeline, ms since the epoch: from `start_ms` to `end_ms`, those of the span or of the journal;
    `first_ms` and `last_ms` are those of the journal. `present` is the name of its end, see `present_of`."""
    whole = view.axis()
    shown = whole if span is None else whole.between(*span)
    return {
        **shown._asdict(),
        "folded_ms": FOLDED_MS,
        "origin_ms": view.journal.origin_ms,
        "first_ms": whole.start_ms,
        "last_ms": whole.end_ms,
        "present": present_of(source),
    }


def present_of(source: Any) -> str:
    """The end of the time axis in words; "" if the source's clock runs on, so that the distance to it does, too."""
    if not hasattr(source, "now_ms") or getattr(source, "closed", False):
        return "the end"
    return "" if time_scale_of(source) else "now"


def time_scale_of(source: Any) -> float:
    """Speed of the source's own clock: 0 for a journal or a virtual clock, 1 for wall, n for scaled."""
    clock = getattr(source, "clock", "virtual")
    named = {"virtual": 0.0, "wall": 1.0}
    return named[clock] if isinstance(clock, str) else float(getattr(clock, "scale", clock))
