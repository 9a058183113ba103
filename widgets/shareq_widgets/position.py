"""What a playback moves: a view of a journal, and where it stands in it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from shareq.trace.analysis.time_axis import TimeAxis
from shareq.trace.journal import Journal

Snapshot = dict[str, Any]


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
