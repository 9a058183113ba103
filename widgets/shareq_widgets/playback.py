"""The position of a view in its journal, and its moves: step, play, seek, follow.

Pure logic over a `View` and its source; the widget copies it to traits. It has no timer of its own: a front end sends
ticks, so a busy kernel only pauses the play, and no thread uses the cluster.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

Snapshot = dict[str, Any]

SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
EVENT_MIN_MS: Final = 150
"""The minimum duration of an event at speed 1: a burst at one instant stays readable."""
EVENT_MAX_MS: Final = 1500
"""The maximum duration of an event at speed 1: a gap of 30 s is shortened."""
TICK_MIN_MS: Final = 20
TICK_MAX_MS: Final = 100
IDLE_TICK_MS: Final = 500
"""The interval of checks whether other cells of the notebook have advanced a virtual cluster."""
STEPS_AT_ONCE: Final = 2000
"""The maximum number of steps of a virtual cluster in search of the partition's next event."""
EVENTS_PER_TICK: Final = 50


class View(Protocol):
    """The part of `shareq.trace.View` that a playback uses."""

    def total(self) -> int:
        """The number of events of this share-partition so far."""

    def snapshot(self, order: int | None = None) -> Snapshot:
        """The state after `order` events; None means the live end."""

    def at_time(self, time_ms: int) -> int:
        """The order of the last event at or before `time_ms`."""


class Playback:
    """A position in a view, and its moves. `rate` is the speed of the displayed time: journal ms per real ms."""

    def __init__(self, view: View, source: Any = None, *, time_scale: float = 0.0) -> None:
        """A source with `step()` (a virtual cluster) is driven at its end; `time_scale` is 0 for virtual clocks."""
        self.view = view
        self.source = source
        self._time_scale = time_scale
        self.playing = False
        self.speed = 1.0
        self.live = True
        self.message = ""
        self.rate = 0.0
        self.until_ms: int | None = None
        self._next: Snapshot | None = None
        self._wait_ms = 0.0
        self.snapshot: Snapshot = {}
        self._show_end()

    @property
    def order(self) -> int:
        """The number of events in the displayed snapshot."""
        return int(self.snapshot["order"])

    @property
    def closed(self) -> bool:
        """True if the source is a closed cluster; its journal can still be played."""
        return bool(getattr(self.source, "closed", False))

    @property
    def time_scale(self) -> float:
        """The speed of time at the live end: 0 for a journal, a virtual clock, or a closed cluster."""
        return 0.0 if self.closed else self._time_scale

    @property
    def drivable(self) -> bool:
        """True if the source can be stepped at its end, that is, for an open virtual cluster."""
        return self._time_scale == 0 and not self.closed and hasattr(self.source, "step")

    def seek(self, order: Any) -> None:
        """Show the state after `order` events and stop there; ValueError outside 0..total."""
        total = self.view.total()
        if isinstance(order, bool) or not isinstance(order, int) or not 0 <= order <= total:
            raise ValueError(f"order must be a whole number from 0 to {total}, not {order!r}")
        self.pause()
        self.live = order == total
        if self.live:
            self._show_end()
        else:
            self._show(self.view.snapshot(order))

    def step(self) -> None:
        """Go one event forward; at the live end of a virtual cluster, run it until this partition has a new event."""
        self.pause()
        following = self._following()
        if following is not None:
            self._show(following)
            self.live = self.order == self.view.total()
        else:
            self._show_end()
            self.live = True
            self.message = self._end_message()

    def back(self) -> None:
        """Go one event back; at the beginning, set a message instead."""
        if self.order > 0:
            self.seek(self.order - 1)
        else:
            self.pause()
            self.message = "This is the beginning of the journal."

    def play(self) -> None:
        """Play at `speed`; a journal at its end starts again from the beginning."""
        if self.order == self.view.total() and not self.drivable and self.time_scale == 0:
            self.seek(0)
        self.message = ""
        self.playing = True
        self._wait_ms = 0.0
        self._plan()

    def pause(self) -> None:
        """Stop playing. A cluster on a wall clock continues; `live` is True if its end is followed."""
        self.playing = False
        self._next = None
        self._set_rate()

    def follow(self, live: bool) -> None:
        """Follow the end (True), or stay at the displayed event while the journal grows (False)."""
        self.live = live
        self._next = None
        self.playing = self.playing and live
        if live:
            self._show_end()
        if self.playing:
            self.play()
        self._set_rate()

    def set_speed(self, speed: Any) -> None:
        """Set the speed of play; ValueError outside 0.25 .. 10."""
        if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not SPEEDS[0] <= speed <= SPEEDS[-1]:
            raise ValueError(f"speed must be from {SPEEDS[0]:g} to {SPEEDS[-1]:g}, not {speed!r}")
        self._wait_ms *= self.speed / speed
        self.speed = float(speed)
        self._set_rate()

    def tick(self, elapsed_ms: float) -> None:
        """Show the events that are due after `elapsed_ms` of real time."""
        if self._next is not None:
            self._advance(elapsed_ms)
        elif self.playing:
            self._plan()
        elif self.live:
            self._refresh()

    def next_tick_ms(self) -> int | None:
        """The time until the next tick; None if nothing changes before the next command."""
        if self._next is not None:
            return round(min(max(self._wait_ms, TICK_MIN_MS), TICK_MAX_MS))
        if (self.live or self.playing) and not self.closed and (self.time_scale or hasattr(self.source, "step")):
            return TICK_MAX_MS if self.time_scale else IDLE_TICK_MS
        return None

    def _advance(self, elapsed_ms: float) -> None:
        """Show the events that are due, at most EVENTS_PER_TICK, so that a tick stays short."""
        self._wait_ms -= elapsed_ms
        for _ in range(EVENTS_PER_TICK):
            if self._next is None or self._wait_ms > 0:
                return
            self._show(self._next)
            self._plan()
        self._wait_ms = 0.0 if self._next is None else max(self._wait_ms, self._duration_ms(self._next))

    def _plan(self) -> None:
        """Fetch the next event and schedule it; without one, follow a running cluster or stop."""
        self._next = self._following()
        self.live = self._next is None or self._next["order"] == self.view.total()
        if self._next is not None:
            self._wait_ms += self._duration_ms(self._next)
        else:
            self._show_end()
            self.playing = self.time_scale > 0
            self.message = "" if self.playing else self._end_message()
        self._set_rate()

    def _duration_ms(self, following: Snapshot) -> float:
        """The duration of the displayed snapshot: journal time within readable bounds, divided by the speed."""
        gap_ms = following["now_ms"] - self.snapshot["now_ms"]
        return float(min(max(gap_ms, EVENT_MIN_MS), EVENT_MAX_MS)) / self.speed

    def _set_rate(self) -> None:
        """Set the speed of the displayed time until the next event, and the time at which it waits for that event."""
        if self._next is not None:
            gap_ms = max(self._next["now_ms"] - self.snapshot["now_ms"], 0)
            self.rate, self.until_ms = gap_ms / self._duration_ms(self._next), self._next["now_ms"]
        else:
            self.rate, self.until_ms = (self.time_scale if self.live else 0.0), None

    def _following(self) -> Snapshot | None:
        """The snapshot after the next event; drives a virtual cluster if there is none yet."""
        order = self.order
        if order >= self.view.total() and self.drivable:
            self._drive(order)
        return self.view.snapshot(order + 1) if order < self.view.total() else None

    def _drive(self, total: int) -> None:
        """Step the cluster until the view has more than `total` events, within bounds."""
        for _ in range(STEPS_AT_ONCE):
            if not self.source.step() or self.view.total() > total:
                return

    def _end_message(self) -> str:
        """The reason why there is no next event."""
        if self.time_scale > 0:
            return "Nothing new yet: the cluster is running, the strip follows it."
        if self.drivable:
            return "Nothing more happens to this partition until a client produces, polls or acknowledges."
        return "This is the end of the journal."

    def _refresh(self) -> None:
        """Show the end again if it or a virtual clock has moved; the browser interpolates a running clock."""
        moved = self.view.total() != self.order
        if moved or (self.time_scale == 0 and self._now_ms() > self.snapshot["now_ms"]):
            self._show_end()

    def _show_end(self) -> None:
        """Show the live end, at the source's own time: locks run down between events, too."""
        snapshot = self.view.snapshot()
        self._show({**snapshot, "now_ms": max(snapshot["now_ms"], self._now_ms())})
        self._set_rate()

    def _now_ms(self) -> int:
        return int(getattr(self.source, "now_ms", 0))

    def _show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.message = ""
