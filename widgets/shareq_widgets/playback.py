"""Where in the journal a view stands, and how it moves: step, play, scrub, follow.

Pure logic over a `View` and its source; the widget mirrors it into traits. Nothing here runs by itself: a front end
sends ticks, so a busy kernel merely pauses the play, and no thread ever touches a cluster.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

Snapshot = dict[str, Any]

SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
EVENT_MIN_MS: Final = 150
"""At speed 1 an event is shown for at least this long: a burst at one instant stays readable."""
EVENT_MAX_MS: Final = 1500
"""At speed 1 an event is shown for at most this long: a silence of 30 s is not sat through."""
TICK_MIN_MS: Final = 20
TICK_MAX_MS: Final = 100
IDLE_TICK_MS: Final = 500
"""Pace of looking whether other cells of the notebook moved a virtual cluster on."""
STEPS_AT_ONCE: Final = 2000
"""How far a virtual cluster is driven in one go in search of the partition's next event."""
EVENTS_PER_TICK: Final = 50


class View(Protocol):
    """One share-partition as the journal tells it; `shareq.trace.View` is the real one."""

    def total(self) -> int:
        """Events recorded so far for this share-partition."""

    def snapshot(self, order: int | None = None) -> Snapshot:
        """The state after `order` events; None is the live end."""

    def at_time(self, time_ms: int) -> int:
        """The order of the last event at or before `time_ms`."""


class Playback:
    """A play head on a view. `rate` is how fast the shown time runs: journal ms for each real ms, 0 when still."""

    def __init__(self, view: View, source: Any = None, *, time_scale: float = 0.0) -> None:
        """`source` needs `step()` to be driven at its end (a virtual cluster); `time_scale` is 0 for virtual clocks."""
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
        """Events folded into the shown snapshot."""
        return int(self.snapshot["order"])

    @property
    def closed(self) -> bool:
        """Whether the source was a cluster and is no more: its journal stays, as any kept journal does."""
        return bool(getattr(self.source, "closed", False))

    @property
    def time_scale(self) -> float:
        """How fast time runs by itself at the live end: 0 for a journal, a virtual clock, or a closed cluster."""
        return 0.0 if self.closed else self._time_scale

    @property
    def drivable(self) -> bool:
        """Whether more can be made to happen at the end: only a virtual cluster waits for us."""
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
        """One event on; at the live end of a virtual cluster, run it until this partition has a new event."""
        self.pause()
        following = self._following()
        if following is not None:
            self._show(following)
            self.live = self.order == self.view.total()
        else:
            self._show_end()
            self.live = True
            self.message = self._nothing()

    def back(self) -> None:
        """One event back; at the beginning, say so."""
        if self.order > 0:
            self.seek(self.order - 1)
        else:
            self.pause()
            self.message = "This is the beginning of the journal."

    def play(self) -> None:
        """Let time run at `speed`; a journal that is at its end starts again from the beginning."""
        if self.order == self.view.total() and not self.drivable and self.time_scale == 0:
            self.seek(0)
        self.message = ""
        self.playing = True
        self._wait_ms = 0.0
        self._plan()

    def pause(self) -> None:
        """Stand still. A cluster on a wall clock goes on by itself; `live` says whether its end is followed."""
        self.playing = False
        self._next = None
        self._set_rate()

    def follow(self, live: bool) -> None:
        """Follow the end (True), or stay where we are however the journal grows (False)."""
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
        """Real time has passed: show what has come due."""
        if self._next is not None:
            self._advance(elapsed_ms)
        elif self.playing:
            self._plan()
        elif self.live:
            self._refresh()

    def next_tick_ms(self) -> int | None:
        """When the next tick is wanted; None when nothing moves until somebody asks for it."""
        if self._next is not None:
            return round(min(max(self._wait_ms, TICK_MIN_MS), TICK_MAX_MS))
        if (self.live or self.playing) and not self.closed and (self.time_scale or hasattr(self.source, "step")):
            return TICK_MAX_MS if self.time_scale else IDLE_TICK_MS
        return None

    def _advance(self, elapsed_ms: float) -> None:
        """Show the events that have come due; only what fits a tick, so that a tick stays short."""
        self._wait_ms -= elapsed_ms
        for _ in range(EVENTS_PER_TICK):
            if self._next is None or self._wait_ms > 0:
                return
            self._show(self._next)
            self._plan()
        self._wait_ms = 0.0 if self._next is None else max(self._wait_ms, self._lasts_ms(self._next))

    def _plan(self) -> None:
        """Fetch the next event and say when it is due; without one, follow a running cluster or stop."""
        self._next = self._following()
        self.live = self._next is None or self._next["order"] == self.view.total()
        if self._next is not None:
            self._wait_ms += self._lasts_ms(self._next)
        else:
            self._show_end()
            self.playing = self.time_scale > 0
            self.message = "" if self.playing else self._nothing()
        self._set_rate()

    def _lasts_ms(self, following: Snapshot) -> float:
        """How long the shown snapshot stays: journal time within readable bounds, at this speed."""
        gap_ms = following["now_ms"] - self.snapshot["now_ms"]
        return float(min(max(gap_ms, EVENT_MIN_MS), EVENT_MAX_MS)) / self.speed

    def _set_rate(self) -> None:
        """How fast the shown time runs until the next event, and where it must stop to wait for it."""
        if self._next is not None:
            gap_ms = max(self._next["now_ms"] - self.snapshot["now_ms"], 0)
            self.rate, self.until_ms = gap_ms / self._lasts_ms(self._next), self._next["now_ms"]
        else:
            self.rate, self.until_ms = (self.time_scale if self.live else 0.0), None

    def _following(self) -> Snapshot | None:
        """The snapshot one event on, driving a virtual cluster if it takes that."""
        order = self.order
        if order >= self.view.total() and self.drivable:
            self._drive(order)
        return self.view.snapshot(order + 1) if order < self.view.total() else None

    def _drive(self, total: int) -> None:
        """Step the cluster until the view has more than `total` events, within bounds."""
        for _ in range(STEPS_AT_ONCE):
            if not self.source.step() or self.view.total() > total:
                return

    def _nothing(self) -> str:
        """Why there is no next event."""
        if self.time_scale > 0:
            return "Nothing new yet: the cluster is running, the strip follows it."
        if self.drivable:
            return "Nothing more happens to this partition unless somebody produces, polls or acknowledges."
        return "This is the end of the journal."

    def _refresh(self) -> None:
        """Show the end again if it moved, or if a virtual clock did; a running clock is interpolated by the browser."""
        moved = self.view.total() != self.order
        if moved or (self.time_scale == 0 and self._now_ms() > self.snapshot["now_ms"]):
            self._show_end()

    def _show_end(self) -> None:
        """Show the live end, at the source's own time: locks go on running down between events."""
        snapshot = self.view.snapshot()
        self._show({**snapshot, "now_ms": max(snapshot["now_ms"], self._now_ms())})
        self._set_rate()

    def _now_ms(self) -> int:
        return int(getattr(self.source, "now_ms", 0))

    def _show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.message = ""
