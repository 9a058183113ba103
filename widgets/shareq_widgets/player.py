"""Base of all views: a position in a journal, the commands that move it, and the traits that a browser draws.

The browser sends commands, see `commands`. The response to each is `{"next_ms": ...}`, the time until the next tick, so
at most one message is in progress, however busy the kernel is. Views of one journal show one moment and selection, see
`moment`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

import traitlets

from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq.trace.views.snapshot import Snapshot
from shareq_widgets import keeping, stored
from shareq_widgets.commands import COMMANDS, OF_TRAITS
from shareq_widgets.ending import message_of
from shareq_widgets.live import LiveWidget
from shareq_widgets.look import THEMES, look
from shareq_widgets.moment import Moment, moment_of
from shareq_widgets.playback import Playback
from shareq_widgets.position import Position, Span, View, axis_of
from shareq_widgets.svg import IN_PAGE

STATIC: Final = Path(__file__).parent / "static"
"""The bundles of the modules in js/, made by `make bundle`."""

TICK_LIMIT_MS: Final = 250
"""The most elapsed time of a late tick: after a minute of other work the play continues without a jump."""


@used_by_one_thread
class Player(LiveWidget):
    """A view of a journal with the controls of a player.

    `order`, `speed`, `playing`, `live`, `internals`, `animate`, `selection` and `theme` may be set and linked; they are
    checked like the methods' arguments.
    """

    bundle: ClassVar[Path]
    """The JavaScript of this kind of view."""
    most_frames: ClassVar[int] = 12_001
    """The most moments of a recording in a saved page: all events of a journal of 12,000, and its beginning."""
    width: Any
    """The width of a static picture, px."""
    still_width: ClassVar[int]
    """The width of a picture in a storyboard, px."""
    large: ClassVar[tuple[str, ...]] = ("snapshot",)
    _css = Path(__file__).parent / "shareq_widgets.css"

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
    axis = traitlets.Dict(read_only=True, help="the times of the timeline, see axis_of").tag(sync=True)
    running_on = traitlets.Bool(read_only=True, help="True while `run_on` drives the cluster").tag(sync=True)
    drivable = traitlets.Bool(read_only=True, help="True if `run_on` can drive the source").tag(sync=True)
    animate = traitlets.Bool(True, help="play what just happened on a virtual clock").tag(sync=True)
    selection = traitlets.Unicode("", help="the selected subject, such as member:ID, or empty").tag(sync=True)
    controls = traitlets.Bool(True, help="show the buttons and the timeline").tag(sync=True)
    keeps = traitlets.List([*keeping.FORMS, keeping.STATE], help="what can be saved and copied").tag(sync=True)
    theme = traitlets.Enum(("auto", *THEMES), "auto").tag(sync=True)

    def __init__(
        self,
        playback: Playback,
        *,
        theme: str = "auto",
        linked: bool = True,
        controls: bool = True,
        joins: bool = False,
        clock_ms: Callable[[], float] | None = None,
        end: Callable[[], None] | None = None,
    ) -> None:
        """`linked`: show the moment of the other views of the journal. `joins`: the present one; else a new view brings
        the others to the end. `clock_ms` paces the play; tests pass their own. `close` calls `end`."""
        stored.expect_page()
        super().__init__()
        self._end = end
        self._playback = playback
        self._clock_ms = clock_ms or _monotonic_ms
        self._ticked_ms = self._clock_ms()
        self._kept: keeping.Keepable = keeping.KeptView(self)
        self._moment = moment_of(playback.view.journal) if linked else Moment()
        self.set_trait("palette", THEMES)
        self.set_trait("look", {**look(), "fills": IN_PAGE})
        self.theme, self.controls = theme, controls
        self.selection = self._moment.selection
        joined = self._moment.position if joins else None
        if joined is not None:
            playback.go_to(joined)
        self._publish(None if joined is not None else playback.position)
        self._moment.join(self)
        self.on_msg(self._on_message)

    # ---- moves -------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Go one step forward: over all changes with one cause, or over one event with `internals`."""
        self._do("step")

    def back(self) -> None:
        """Go one step back."""
        self._do("back")

    def first(self) -> None:
        """Go to the beginning of the journal."""
        self._do("first")

    def last(self) -> None:
        """Go to the end, and follow it."""
        self._do("last")

    def seek(self, order: int) -> None:
        """Go to the state after `order` events; ValueError outside 0..total."""
        self._do("seek", order)

    def seek_time(self, time_ms: int) -> None:
        """Go to `time_ms` (since the epoch, as in the journal), also between two events. ValueError outside the time
        axis."""
        self._do("seek_time", time_ms)

    def play(self) -> None:
        """Play to the end of the recording at the browser's pace: nothing moves while no front end shows the view."""
        self._do("play")

    def run_on(self) -> None:
        """Run a virtual cluster from the end on, until `pause()` or until it has no pending event. The browser sets the
        pace, as in `play`."""
        self._do("run_on")

    def pause(self) -> None:
        """Stop playing."""
        self._do("pause")

    def tick(self, drawn: int | None = None) -> None:
        """Show the steps that are due by now. The front end calls this while playing or live, see `drawn`."""
        now_ms = self._clock_ms()
        elapsed_ms, self._ticked_ms = min(now_ms - self._ticked_ms, TICK_LIMIT_MS), now_ms
        self.set_trait("drawn", self.drawn if drawn is None else drawn)
        if self.hidden and not self._playback.moving:
            return
        if self._moment.may_move(self, now_ms):
            self._do("tick", elapsed_ms, always=False)

    def select(self, subject: str, record: str | None = None) -> None:
        """Mark a subject in all linked views, such as "member:ID" or "record:orders-0:104"; "" marks none.

        `record`: see `Moment.select`. ValueError for a text that names no subject.
        """
        self._moment.select(subject, record)

    @property
    def record(self) -> str:
        """The record that was selected last, see `Moment`; "" if there is none."""
        return self._moment.record

    def zoom(self, from_ms: int | None = None, to_ms: int | None = None) -> None:
        """Show these times, since the epoch, on the time axes of all linked views; without them all times.

        The raster shows all times, and marks these. The zoom ends when the views move out of it, and moves with a live
        end. ValueError for other arguments.
        """
        self._moment.zoom(None if from_ms is None and to_ms is None else (from_ms, to_ms))  # type: ignore[arg-type]

    @property
    def span(self) -> Span | None:
        """The times of a zoom; None: all of them."""
        return self._moment.span

    def keep(self, kept: keeping.Keepable) -> None:
        """Let the buttons below *save* save a whole room, and not the view alone."""
        self._kept = kept
        self.keeps = [*keeping.FORMS, keeping.STATE]

    def close(self) -> None:
        """Remove the view from the page, and close an observer that was created for it. Idempotent."""
        if hasattr(self, "_moment"):  # else its arguments were refused
            self._moment.leave(self)
            if self._end is not None:
                self._end()
        super().close()

    # ---- linked views ------------------------------------------------------------------------------------------------

    @property
    def cost_ms(self) -> float:
        """The duration of the last drawing in the kernel."""
        return 0.0

    def show_moment(self, position: Position) -> None:
        """Show the position of a linked view."""
        self._playback.go_to(position)
        self._mirror()

    def show_selection(self, subject: str) -> None:
        """Mark the subject that was selected in a linked view."""
        self.selection = subject

    def show_span(self) -> None:
        """Show the span of time of the linked views."""
        self._mirror()

    def _publish(self, position: Position | None) -> None:
        """Update the traits, and show a position in the linked views."""
        if position is not None:
            self._moment.number(position)
        self._mirror()
        if position is not None:
            self._moment.show(position, self, self._clock_ms(), moving=self._playback.moving)

    # ---- traits and messages -----------------------------------------------------------------------------------------

    @traitlets.observe(*OF_TRAITS)
    def _on_trait(self, change: dict[str, Any]) -> None:
        """Carry out the command of a trait that was set or linked; restore the trait if the command is refused."""
        name, value = OF_TRAITS[change["name"]], change["new"]
        if self._mirroring:
            return
        if name == "select":
            self._select(value, change["old"])
        elif name == "play":
            self._do("play" if value else "pause")
        else:
            self._do(name, value)

    def _select(self, subject: str, before: str) -> None:
        if subject == self._moment.selection:
            return
        try:
            self._moment.select(subject)
        except ValueError:
            self.selection = before
            raise

    def _on_message(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        """Run a command of the browser: {"do": name, "value": ...}. A failed one has a response, too, or ticks end."""
        with self._moment.answering():
            try:
                self._command(content.get("do"), content.get("value"))
            except Exception as error:
                self._playback.pause()
                self._mirror(error=f"{type(error).__name__}: {error}")
                raise
            finally:
                self.send({"next_ms": self._playback.next_tick_ms()})

    def _command(self, name: Any, value: Any) -> None:
        """Carry out a command of the table. ValueError for another one, and for one that only a page knows."""
        own = self._own_commands()
        if name in own:
            own[name](value)
        elif name in COMMANDS and COMMANDS[name].moves:
            self._do(name, *([value] if COMMANDS[name].value else []))
        else:
            known = sorted({*own, *(name for name, command in COMMANDS.items() if command.moves)})
            raise ValueError(f"unknown command {name!r}: must be one of {', '.join(known)}")

    def _own_commands(self) -> dict[str, Callable[[Any], None]]:
        """Those that the view carries out, and not its playback."""
        return {
            "tick": self.tick,
            "select": self.select,
            "zoom": lambda span: self.zoom(*(span or ())),
            "visible": self.take_report,
            "keep": lambda wish: self.send(*keeping.answer(self._kept, wish)),
        }

    def _do(self, name: str, *value: Any, always: bool = True) -> None:
        """Let the playback carry out a command by its method: `set_NAME` for that of a trait with its name, else NAME.
        Also if it is refused: update the traits; and, `always` or after a move, the linked views."""
        playback = self._playback
        method = getattr(playback, f"set_{name}" if COMMANDS[name].trait == name else name)
        was_playing, before = playback.playing, playback.snapshot
        try:
            method(*value)
        finally:
            if playback.playing and not was_playing:
                self._ticked_ms = self._clock_ms()
            moved = always or playback.moving or playback.snapshot is not before
            self._publish(playback.position if moved else None)

    def _mirror(self, error: str = "") -> None:
        """Copy the playback's state to the traits, in one message."""
        playback, total = self._playback, self._playback.view.total()
        self._mirroring = True
        try:
            with self.hold_sync():
                self.set_trait("snapshot", playback.snapshot)
                self._draw()
                self.set_trait("total", total)
                self.set_trait(
                    "words",
                    self._words(playback.snapshot, total, message_of(playback), error, internals=playback.internals),
                )
                self.set_trait("moment", self._moment.mark)
                self.set_trait("clock", {"rate": playback.rate, "until_ms": playback.until_ms})
                self.set_trait("message", playback.message)
                self.set_trait("error", error)
                self.order, self.playing = playback.order, playback.playing
                self.speed, self.live, self.internals = playback.speed, playback.live, playback.internals
                self.animate = playback.animate
                self.set_trait("axis", axis_of(playback.view, self._moment.span, playback.source))
                self.set_trait("running_on", playback.running_on)
                self.set_trait("drivable", playback.drivable)
        finally:
            self._mirroring = False

    def _draw(self) -> None:
        """Set the traits that only this kind of view has."""

    def _words(
        self, snapshot: Snapshot, total: int, message: str = "", error: str = "", *, internals: bool = False
    ) -> dict[str, Any]:
        """The texts around the picture: title, where, chips and sentence."""
        raise NotImplementedError

    # ---- for readers without a kernel --------------------------------------------------------------------------------

    @property
    def view(self) -> View:
        """The events that the player moves through."""
        return self._playback.view

    def to_svg(self, theme: str = "light", width: int | None = None) -> str:
        """The shown moment as a self-contained SVG picture. `width` in px; None is the width of the view."""
        raise NotImplementedError

    def shown_at(self, snapshot: Snapshot, until: int, since: int, width: int | None = None) -> dict[str, Any]:
        """All that depends on the moment, in the form of the browser, for a snapshot of `view`.

        `until`: its moment of the journal; `since`: the moment that is shown before it; `width`: as in `to_svg`.
        `inner`: the sentence of the single event, or None if it is the same.
        """
        words = self.words_at(snapshot)
        inner = self._words(snapshot, self.view.total(), internals=True)["sentence"]
        shown = {"snapshot": snapshot, "words": words, "inner": None if inner == words["sentence"] else inner}
        return shown | self._drawn_at(snapshot, until, since, width)

    def _drawn_at(self, _snapshot: Snapshot, _until: int, _since: int, _width: int | None) -> dict[str, Any]:
        """The part of `shown_at` that only this kind of view has."""
        return {}

    def words_at(self, snapshot: Snapshot) -> dict[str, Any]:
        """The texts around the picture of a snapshot of `view`."""
        return self._words(snapshot, self.view.total())

    def still(self, snapshot: Snapshot, _until: int, _since: int, theme: str, width: int) -> tuple[str, float]:
        """The picture alone of a snapshot of `view`, as SVG with its height, px; arguments as in `shown_at`."""
        raise NotImplementedError

    def picture(self, *, whole: bool = False) -> str:
        """What a notebook stores: of a view that follows the end, or of the `whole` journal, a storyboard, if there are
        enough moments; else the shown one."""
        from shareq_widgets.storyboard import storyboard

        self.catch_up()
        board = storyboard(self) if whole or self._playback.live else None
        return board or self.to_svg()

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The live view, with pictures and a text for readers without widgets (GitHub, nbval, a screen reader)."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, **stored.bundle(self)}, metadata

    def save(self, path: str | Path, *, theme: str | None = None, width: int | None = None) -> Path:
        """Write the view to a file; the suffix of `path` is its form.

        ".svg" and ".png" are pictures of the shown moment; ".html" is a page that plays the recording without a kernel
        and without a network. `theme`: "light" or "dark"; None is the view's own, where "auto" is the reader's in a
        page and light in a picture. `width` in px. ValueError for another suffix or theme; OSError if the file cannot
        be written: then a file that was there stays as it was.
        """
        from shareq_widgets.export import save

        self.catch_up()
        return save(self, Path(path), theme=theme, width=width)


def _monotonic_ms() -> float:
    return time.monotonic() * 1000
