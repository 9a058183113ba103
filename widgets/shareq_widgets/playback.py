"""The position of a view in its journal, and its moves: step, play, seek, run on, follow.

A position is a time and the events up to it; lock deadlines approach between two events, too. A step covers all changes
with one cause, or one event if `internals` is true.

Pure logic over a `View` and its source; the widget copies it to traits. It has no timer of its own: a front end sends
ticks, so a busy kernel only pauses the play. See `one_thread` for a kernel that takes them in another thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from shareq.model.numbers import plain
from shareq.trace.views.snapshot import Snapshot
from shareq_widgets.catch_up import Scene, catch_up
from shareq_widgets.commands import COMMANDS
from shareq_widgets.driving import drive
from shareq_widgets.ending import end_message
from shareq_widgets.position import Position, View

SPEEDS: Final = COMMANDS["speed"].choices
EVENT_MIN_MS: Final = 150
"""The minimum duration of a step at speed 1: a burst at one instant stays readable."""
EVENT_MAX_MS: Final = 1500
"""The maximum duration of a step at speed 1: a gap of 30 s is shortened."""
TICK_MIN_MS, TICK_MAX_MS = 20, 100
IDLE_TICK_MS: Final = 500
"""The interval of checks whether other cells of the notebook have advanced a virtual cluster."""
STEPS_PER_TICK: Final = 50


class Playback:
    """A position in a view, and its moves. `rate` is the speed of the displayed time: journal ms per real ms."""

    def __init__(
        self,
        view: View,
        source: Any = None,
        *,
        time_scale: float = 0.0,
        animate: bool = True,
        awaits: Callable[[int], bool] = lambda _now_ms: False,
    ) -> None:
        """`run_on` drives a source with `step()` (a virtual cluster); `time_scale` is 0 for virtual clocks.

        `animate`: at the live end, play in a few seconds the events that other cells caused on a virtual clock.
        `awaits`: whether more than heartbeats is still to come at a time; `run_on` ends without it, see `quiet`.
        """
        self.view = view
        self.source = source
        self._awaits = awaits
        self._time_scale = time_scale
        self.animate = animate
        self.playing = False
        self.running_on = False
        self.internals = False
        self.speed = 1.0
        self.live = True
        self.message = ""
        self.rate = 0.0
        self.until_ms: int | None = None
        self._next: Snapshot | None = None
        self._lasts_ms = 0.0
        self._wait_ms = 0.0
        self._scenes: deque[Scene] = deque()
        self.snapshot: Snapshot
        self._until, self._at_end = 0, False
        """The moment of the journal that belongs to the snapshot; True if the snapshot was the live end when shown."""
        self._show_end()

    @property
    def order(self) -> int:
        """The number of events in the displayed snapshot."""
        return int(self.snapshot["order"])

    @property
    def time_ms(self) -> int:
        """The displayed time, ms since the epoch."""
        return int(self.snapshot["now_ms"])

    @property
    def moving(self) -> bool:
        """True while the playback advances by itself: it plays, or shows what just happened."""
        return self.playing or self._next is not None

    @property
    def behind(self) -> bool:
        """True if the end has moved on since it was shown."""
        shown, end = (self.order, self._until), (self.view.total(), self.view.moment())
        return not self._at_end or shown != end or self._now_ms() > self.time_ms

    @property
    def position(self) -> Position:
        """Where the playback stands. A virtual cluster may be ahead of it: the next scenes show its new events."""
        end = self.live and self._at_end and not self.moving
        until = self.view.moment() if end and self.time_scale else self._until
        now_ms = max(self.time_ms, self._now_ms()) if end and self.time_scale else self.time_ms
        return Position(until, now_ms, self.live, end, self.rate, self.until_ms)

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

    def first(self) -> None:
        """Go to the beginning."""
        self.seek(0)

    def last(self) -> None:
        """Go to the end, and follow it."""
        self.set_live(True)

    def seek(self, order: Any) -> None:
        """Show the state after `order` events and stop there; ValueError outside 0..total."""
        total = self.view.total()
        if isinstance(order := plain(order), bool) or not isinstance(order, int) or not 0 <= order <= total:
            raise ValueError(f"order must be a whole number from 0 to {total}, not {order!r}")
        self.pause()
        self.live = order == total
        if self.live:
            self._show_end()
        else:
            self._show(self.view.snapshot(order))

    def go_to(self, position: Position) -> None:
        """Show the position of a linked view, and stop there."""
        self.playing = self.running_on = False
        self._next = None
        self._scenes.clear()
        self.live = position.live
        if position.end:
            self._show_end()
            return
        snapshot = self.view.snapshot(self.view.at_moment(position.until))
        self._show({**snapshot, "now_ms": max(snapshot["now_ms"], position.now_ms)})
        self._until = position.until
        self.rate, self.until_ms = position.rate, position.until_ms

    def seek_event(self, order: Any) -> None:
        """Show the step that the event at `order` belongs to; with internals, the event itself."""
        self.seek(order)
        if not self.internals and order:
            self.seek(self.view.next_step(order - 1))

    def seek_time(self, time_ms: Any) -> None:
        """Show the state at `time_ms` (since the epoch), also between two events, and stop there.

        ValueError outside the time axis.
        """
        axis = self.view.axis()
        if type(time_ms := plain(time_ms)) is not int or not axis.start_ms <= time_ms <= axis.end_ms:
            raise ValueError(f"time_ms must be a whole number from {axis.start_ms} to {axis.end_ms}, not {time_ms!r}")
        self.pause()
        self.live = time_ms == axis.end_ms
        if self.live:
            self._show_end()
        else:
            self._show({**self.view.snapshot(self.view.at_time(time_ms)), "now_ms": time_ms})

    def step(self) -> None:
        """Go one step forward; at the end, set a message instead."""
        self.pause()
        following = self._following()
        if following is not None:
            self._show(following)
            self.live = self._at_end = self.order == self.view.total()
            if self.live:
                self._until = self.view.moment()
        else:
            self._show_end()
            self.live = True
            self.message = end_message(self)

    def back(self) -> None:
        """Go one step back: between two events, to the time of the earlier one; at the beginning, set a message."""
        event = self.snapshot["event"]
        if event is not None and self.time_ms > event["time_ms"]:
            self.pause()
            self.live = False
            self._show(self.view.snapshot(self.order))
        elif self.order > 0:
            self.seek(self.order - 1 if self.internals else self.view.previous_step(self.order))
        else:
            self.pause()
            self.message = "This is the beginning of the journal."

    def play(self) -> None:
        """Play at `speed` to the end of the recording; at its end, play it again from the beginning.

        At the live end of a cluster on a wall clock, follow it.
        """
        if self.order == self.view.total() and self.time_scale == 0:
            self.seek(0)
        self._start()

    def run_on(self) -> None:
        """Go to the end and run a virtual cluster, displayed at `speed`, until a pause or until nothing is pending.

        Without a virtual cluster, set a message instead.
        """
        self.pause()
        self._show_end()
        self.live = True
        if self.drivable:
            self.running_on = True
            self._start()
        else:
            self.message = end_message(self)

    def _start(self) -> None:
        self.message = ""
        self.playing = True
        self._wait_ms = 0.0
        self._plan()

    def pause(self) -> None:
        """Stop playing. A cluster on a wall clock continues; `live` is True if its end is followed."""
        if self._next is not None and not self.playing:  # new events are being played: stay at this one
            self.live = False
        elif self.running_on:  # the cluster is a step ahead, and stays where it is
            self._show_end()
        self.playing = self.running_on = False
        self._next = None
        self._scenes.clear()
        self._set_rate()

    def set_internals(self, internals: Any) -> None:
        """Step and play by single events (True), or by causes (False)."""
        self.internals = _truth("internals", internals)
        if self._next is not None:
            self._wait_ms = 0.0
            self._plan()

    def set_animate(self, animate: Any) -> None:
        """Play new events on a virtual clock (True), or show the end at once (False)."""
        self.animate = _truth("animate", animate)
        if not self.animate and self._scenes:
            self.set_live(True)

    def set_live(self, live: bool) -> None:
        """Follow the end (True), or stay at the displayed event while the journal grows (False)."""
        self.live = live
        self._next = None
        self._scenes.clear()
        self.playing = self.playing and live and (self.time_scale > 0 or self.running_on)
        self.running_on = self.running_on and self.playing
        if live:
            self._show_end()
        if self.playing:
            self._start()
        self._set_rate()

    def set_speed(self, speed: Any) -> None:
        """Set the speed of play; ValueError outside 0.25 .. 10."""
        number = isinstance(speed := plain(speed), (int, float)) and not isinstance(speed, bool)
        if not number or not SPEEDS[0] <= speed <= SPEEDS[-1]:
            raise ValueError(f"speed must be from {SPEEDS[0]:g} to {SPEEDS[-1]:g}, not {speed!r}")
        if self.playing:
            self._wait_ms *= self.speed / speed
            self._lasts_ms *= self.speed / speed
        self.speed = float(speed)
        self._set_rate()

    def tick(self, elapsed_ms: float) -> None:
        """Show the steps that are due after `elapsed_ms` of real time."""
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
        """Show the steps that are due, at most STEPS_PER_TICK, so that a tick stays short."""
        self._wait_ms -= elapsed_ms
        for _ in range(STEPS_PER_TICK):
            if self._next is None or self._wait_ms > 0:
                return
            self._show(self._next)
            self._plan()
            if not self.playing:  # a late tick must not skip a scene
                break
        self._wait_ms = 0.0 if self._next is None else max(self._wait_ms, self._lasts_ms)

    def _plan(self) -> None:
        """Fetch the next step and schedule it; without one, follow a running cluster or stop."""
        if not self.playing:
            self._catch_up()
            return
        self._next = self._following()
        self.live = self.running_on or self._next is None or self._next["order"] == self.view.total()
        if self._next is not None:
            self._lasts_ms = self._duration_ms(self._next)
            self._wait_ms += self._lasts_ms
        else:
            self._show_end()
            self.playing = self.time_scale > 0
            self.message = "" if self.playing else end_message(self)
            self.running_on = False
        self._set_rate()

    def _duration_ms(self, following: Snapshot) -> float:
        """The duration of the displayed snapshot: journal time within readable bounds, divided by the speed."""
        gap_ms = following["now_ms"] - self.snapshot["now_ms"]
        return float(min(max(gap_ms, EVENT_MIN_MS), EVENT_MAX_MS)) / self.speed

    def _set_rate(self) -> None:
        """Set the speed of the displayed time until the next step, and the time at which it waits for that step."""
        if self._next is not None:
            gap_ms = max(self._next["now_ms"] - self.snapshot["now_ms"], 0)
            self.rate, self.until_ms = gap_ms / self._lasts_ms, self._next["now_ms"]
        else:
            self.rate, self.until_ms = (self.time_scale if self.live else 0.0), None

    def _following(self) -> Snapshot | None:
        """The snapshot after the next step; while running on, drives the cluster if there is none yet."""
        order = self.order
        if order >= self.view.total() and self.running_on and self.drivable:
            drive(self.source, self.view, order, self.time_ms, self._awaits)
        if order >= self.view.total():
            return None
        return self.view.snapshot(order + 1 if self.internals else self.view.next_step(order))

    def _refresh(self) -> None:
        """Show the end again if it or a virtual clock has moved; the browser interpolates a running clock."""
        moved = self.view.total() != self.order
        if not moved and (self.time_scale > 0 or self._now_ms() <= self.time_ms):
            if not self._at_end or (self.time_scale == 0 and self._until != self.view.moment()):
                self._show_end()  # with what is no event of this view, such as a message
            return
        if self.animate and self.time_scale == 0 and not self.closed:
            self._scenes = deque(catch_up(self.view, self.snapshot, self._end()))
            self._wait_ms = 0.0
            self._catch_up()
        else:
            self._show_end()

    def _catch_up(self) -> None:
        """Schedule the next scene of the new events; after the last one, stay at the end."""
        self._next = None
        if self._scenes:
            self._next, self._lasts_ms = self._scenes.popleft()
            self._wait_ms += self._lasts_ms
        self._set_rate()

    def _end(self) -> Snapshot:
        """The live end, at the source's own time: locks run down between events, too."""
        snapshot = self.view.snapshot()
        return {**snapshot, "now_ms": max(snapshot["now_ms"], self._now_ms())}

    def _show_end(self) -> None:
        self._show(self._end())
        self._until, self._at_end = self.view.moment(), True
        self._set_rate()

    def _now_ms(self) -> int:
        return int(getattr(self.source, "now_ms", 0))

    def _show(self, snapshot: Snapshot) -> None:
        """Show a snapshot, with the entries of the journal up to its time, or, at the time of its event, up to that."""
        event = snapshot["event"]
        between = snapshot["now_ms"] > (event["time_ms"] if event else snapshot["origin_ms"])
        self._until = self.view.moment_at(snapshot["now_ms"]) if between else self.view.moment(snapshot["order"])
        self.snapshot, self._at_end, self.message = snapshot, False, ""


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value := plain(value), bool):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return value
