"""The partition strip: one share-partition, live or at any point of its journal.

The widget is a set of traits over a `Playback`. The browser draws the traits and sends commands. The response to each
is `{"next_ms": ...}`, the time until the next tick, so at most one message is in progress, however busy the kernel is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anywidget
import traitlets

from shareq import observer
from shareq.trace.analysis.time_axis import FOLDED_MS
from shareq_widgets.look import THEMES, look, palette
from shareq_widgets.picture import draw
from shareq_widgets.playback import Playback, View
from shareq_widgets.words import words

HERE: Final = Path(__file__).parent
TICK_LIMIT_MS: Final = 250
"""The most elapsed time of a late tick: after a minute of other work the play continues without a jump."""


class PartitionStrip(anywidget.AnyWidget):
    """A share-partition drawn as a strip of offsets. Create one with `strip(...)`.

    `order`, `speed`, `playing`, `live`, `internals`, `animate` and `theme` may be set and linked; they are checked like
    the methods' arguments.
    """

    _esm = HERE / "static" / "partition_strip.js"  # of the modules in js/: `make bundle`
    _css = HERE / "partition_strip.css"

    snapshot = traitlets.Dict(read_only=True).tag(sync=True)
    total = traitlets.Int(read_only=True).tag(sync=True)
    clock = traitlets.Dict(read_only=True, help="rate: journal ms per real ms; until_ms: where to wait").tag(sync=True)
    message = traitlets.Unicode(read_only=True, help="why nothing moved, or empty")
    error = traitlets.Unicode(read_only=True, help="error of the browser's last command, or empty")
    words = traitlets.Dict(read_only=True).tag(sync=True)
    palette = traitlets.Dict(read_only=True).tag(sync=True)
    look = traitlets.Dict(read_only=True).tag(sync=True)
    order = traitlets.Int().tag(sync=True)
    playing = traitlets.Bool().tag(sync=True)
    speed = traitlets.Float(1.0).tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)
    internals = traitlets.Bool(False, help="step by single events, not by causes").tag(sync=True)
    axis = traitlets.Dict(read_only=True, help="start_ms, end_ms, folds: [[from_ms, to_ms], ...], folded_ms").tag(
        sync=True
    )
    running_on = traitlets.Bool(read_only=True, help="True while `run_on` drives the cluster").tag(sync=True)
    drivable = traitlets.Bool(read_only=True, help="True if `run_on` can drive the source").tag(sync=True)
    animate = traitlets.Bool(True, help="play what just happened on a virtual clock").tag(sync=True)
    theme = traitlets.Enum(("auto", *THEMES), "auto").tag(sync=True)

    def __init__(
        self,
        playback: Playback,
        *,
        theme: str = "auto",
        clock_ms: Callable[[], float] | None = None,
        end: Callable[[], None] | None = None,
    ) -> None:
        """`clock_ms` is the real time that paces the play; tests pass their own. `close` calls `end`."""
        super().__init__()
        self._end = end
        self._playback = playback
        self._clock_ms = clock_ms or _monotonic_ms
        self._ticked_ms = self._clock_ms()
        self._mirroring = False
        self.set_trait("palette", palette())
        self.set_trait("look", look())
        self.theme = theme
        self._mirror()
        self.on_msg(self._on_message)

    def step(self) -> None:
        """Go one step forward: over all changes with one cause, or over one event with `internals`."""
        self._do(self._playback.step)

    def back(self) -> None:
        """Go one step back."""
        self._do(self._playback.back)

    def first(self) -> None:
        """Go to the beginning of the journal."""
        self._do(self._playback.seek, 0)

    def last(self) -> None:
        """Go to the end, and follow it."""
        self._do(self._playback.follow, True)

    def seek(self, order: int) -> None:
        """Go to the state after `order` events; ValueError outside 0..total."""
        self._do(self._playback.seek, order)

    def seek_time(self, time_ms: int) -> None:
        """Go to `time_ms` (since the epoch, as in the journal), also between two events. ValueError outside the time
        axis."""
        self._do(self._playback.seek_time, time_ms)

    def play(self) -> None:
        """Play to the end of the recording. The browser sets the pace: nothing moves while no front end shows the
        strip."""
        self._do(self._playback.play)

    def run_on(self) -> None:
        """Run a virtual cluster from the end on, until `pause()` or until it has no pending event. The browser sets the
        pace, as in `play`."""
        self._do(self._playback.run_on)

    def pause(self) -> None:
        """Stop playing."""
        self._do(self._playback.pause)

    def tick(self) -> None:
        """Show the steps that are due by now. The front end calls this while playing or live."""
        now_ms = self._clock_ms()
        elapsed_ms = min(now_ms - self._ticked_ms, TICK_LIMIT_MS)
        self._ticked_ms = now_ms
        self._do(self._playback.tick, elapsed_ms)

    def close(self) -> None:
        """Remove the strip from the page, and close an observer that was created for it. Idempotent."""
        if self._end is not None:
            self._end()
        super().close()

    def to_svg(self, theme: str = "light", width: int = 1084) -> str:
        """The shown snapshot as a self-contained SVG picture, for places where no widget runs."""
        return draw(self.snapshot, theme=theme, width=width)

    def __repr__(self) -> str:
        return str(self.snapshot["text"])

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The live view, with a picture and a text for readers without widgets (GitHub, nbval, a screen reader)."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, "text/plain": repr(self), "image/svg+xml": self.to_svg()}, metadata

    @traitlets.observe("order", "playing", "speed", "live", "internals", "animate")
    def _on_trait(self, change: dict[str, Any]) -> None:
        """Run the command of a trait that was set or linked; restore the trait if the command is refused."""
        if self._mirroring or not hasattr(self, "_playback"):
            return
        playback, value = self._playback, change["new"]
        commands: dict[str, Callable[[], None]] = {
            "order": lambda: playback.seek(value),
            "playing": playback.play if value else playback.pause,
            "speed": lambda: playback.set_speed(value),
            "live": lambda: playback.follow(value),
            "internals": lambda: playback.set_internals(value),
            "animate": lambda: playback.set_animate(value),
        }
        self._do(commands[change["name"]])

    def _on_message(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        """Run a command of the browser: {"do": name, "value": ...}. A failed one has a response, too, or ticks end."""
        try:
            self._command(content.get("do"), content.get("value"))
        except Exception as error:
            self._playback.pause()
            self._mirror(error=f"{type(error).__name__}: {error}")
            raise
        finally:
            self.send({"next_ms": self._playback.next_tick_ms()})

    def _command(self, name: Any, value: Any) -> None:
        playback = self._playback
        plain = {"step", "back", "first", "last", "play", "run_on", "pause", "tick"}
        valued = {
            "seek": playback.seek,
            "seek_event": playback.seek_event,
            "seek_time": playback.seek_time,
            "speed": playback.set_speed,
            "live": playback.follow,
            "internals": playback.set_internals,
            "animate": playback.set_animate,
        }
        if name in plain:
            getattr(self, name)()
        elif name in valued:
            self._do(valued[name], value)
        else:
            raise ValueError(f"unknown command {name!r}: must be one of {', '.join(sorted(plain | valued.keys()))}")

    def _do(self, command: Callable[..., None], *arguments: Any) -> None:
        """Run a command and update the traits, even if it is refused."""
        was_playing = self._playback.playing
        try:
            command(*arguments)
        finally:
            if self._playback.playing and not was_playing:
                self._ticked_ms = self._clock_ms()
            self._mirror()

    def _words(self, error: str) -> dict[str, Any]:
        playback = self._playback
        total = playback.view.total()
        return words(playback.snapshot, total, playback.message, error, internals=playback.internals)

    def _mirror(self, error: str = "") -> None:
        """Copy the playback's state to the traits, in one message."""
        playback, total = self._playback, self._playback.view.total()
        self._mirroring = True
        try:
            with self.hold_sync():
                self.set_trait("snapshot", playback.snapshot)
                self.set_trait("total", total)
                self.set_trait("words", self._words(error))
                self.set_trait("clock", {"rate": playback.rate, "until_ms": playback.until_ms})
                self.set_trait("message", playback.message)
                self.set_trait("error", error)
                self.order, self.playing = playback.order, playback.playing
                self.speed, self.live, self.internals = playback.speed, playback.live, playback.internals
                self.animate = playback.animate
                self.set_trait("axis", {**playback.view.axis()._asdict(), "folded_ms": FOLDED_MS})
                self.set_trait("running_on", playback.running_on)
                self.set_trait("drivable", playback.drivable)
        finally:
            self._mirroring = False


def strip(
    source: Any,
    *,
    group: str,
    topic: str,
    partition: int = 0,
    view: View | None = None,
    theme: str = "auto",
    speed: float = 1.0,
    animate: bool = True,
) -> PartitionStrip:
    """Show one share-partition of a cluster or of a journal.

    `source` is a `Cluster`, served or not, an `Observer` or a `Journal`; or the bootstrap servers of a Kafka cluster,
    which is observed until the strip is closed. `view` replaces the view of the source. `theme` is "auto" (the
    notebook's), "light" or "dark"; `speed` is 0.25 to 10. `animate`: play the events that another cell caused on a
    virtual clock in one to three seconds; a browser set to reduced motion turns it off. ValueError for other arguments.
    """
    _check(group=group, topic=topic, partition=partition, theme=theme, animate=animate)
    end = None
    if view is None:
        view = made = observer.view(source, group, topic, partition)
        source, end = made.source, made.close
    playback = Playback(view, source, time_scale=_time_scale(source), animate=animate)
    playback.set_speed(speed)
    return PartitionStrip(playback, theme=theme, end=end)


def _check(**given: Any) -> None:
    """Raise ValueError for invalid arguments before anything is created."""
    for name in ("group", "topic"):
        if not isinstance(given[name], str) or not given[name]:
            raise ValueError(f"{name} must be a non-empty name, not {given[name]!r}")
    partition, theme = given["partition"], given["theme"]
    if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
        raise ValueError(f"partition must be a whole number from 0, not {partition!r}")
    if theme not in ("auto", *THEMES):
        raise ValueError(f"theme must be one of auto, {', '.join(THEMES)}, not {theme!r}")
    if not isinstance(given["animate"], bool):
        raise ValueError(f"animate must be True or False, not {given['animate']!r}")


def _time_scale(source: Any) -> float:
    """Speed of the source's own clock: 0 for a journal or a virtual clock, 1 for wall, n for scaled."""
    clock = getattr(source, "clock", "virtual")
    named = {"virtual": 0.0, "wall": 1.0}
    return named[clock] if isinstance(clock, str) else float(getattr(clock, "scale", clock))


def _monotonic_ms() -> float:
    return time.monotonic() * 1000
