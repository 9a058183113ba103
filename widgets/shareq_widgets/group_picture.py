"""A live picture of a share group, drawn by one of the modules in `pictures`, at the moment of all linked views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import traitlets

from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq.trace.views.group_timeline import GroupTimeline
from shareq.trace.views.snapshot import Snapshot
from shareq_widgets.drawing import Drawing
from shareq_widgets.instant import Instant
from shareq_widgets.playback import Playback
from shareq_widgets.player import STATIC, Player
from shareq_widgets.position import Position, Span
from shareq_widgets.selection import share_partition_of
from shareq_widgets.svg import to_svg
from shareq_widgets.words import sentence

WIDTH = 760
"""The width of a picture that no front end has laid out, px."""

LIVE_SHARE: Final = 30
"""The view of a running cluster waits this many times the duration of a drawing before the next: six views take at most
a fifth of a core."""
AGED_MS: Final = 1_000
"""The view of a running cluster in which nothing happens is drawn again after this time: what has just ended goes."""
SLOW_SHARE: Final = 20
LIVE_MS: Final = 800
"""A view with slow drawings waits no longer than this, if it is at least SLOW_SHARE times the duration of a drawing."""


class Frame(NamedTuple):
    """What a picture is drawn for. `since`: the moment that was shown before, or `until` of the instant after a jump;
    `selection`: the selected subject, or ""; `record`: the record that was selected last, or ""; `span`: the times of
    its time axis, None is its own choice; `without`: the parts that are left out; `live`: it follows the end,
    on a screen; `buttons`: it has buttons for its parts."""

    instant: Instant
    width: float
    since: int
    selection: str
    record: str = ""
    span: Span | None = None
    without: frozenset[str] = frozenset()
    live: bool = False
    buttons: bool = False

    def place(self, topic: str, partition: int) -> tuple[str, int]:
        """Topic and partition of what is selected, or of the last selected record; else these."""
        return share_partition_of(self.selection) or share_partition_of(self.record) or (topic, partition)


Draw = Callable[[Frame], Drawing]
Asked = tuple[Position, int, str, str, Span | None, tuple[str, ...]]
"""What a drawing depends on: the position, the width, the selection, the last record, the span and the parts that are
left out."""


@used_by_one_thread
class GroupPicture(Player):
    """A picture of a group with the controls of a player. The functions of `shareq_widgets` create one.

    `width` is set by the front end, px.
    """

    bundle = STATIC / "group_picture.js"
    most_frames = 3_000
    still_width = 536
    large: ClassVar = (*Player.large, "drawing")
    _esm = bundle

    drawing = traitlets.Dict(read_only=True, help="the elements to draw").tag(sync=True)
    width = traitlets.Int(WIDTH, help="px").tag(sync=True)
    without = traitlets.Tuple(help="the parts of the picture that are left out; `parts` are all that can be")

    def __init__(
        self,
        timeline: GroupTimeline,
        playback: Playback,
        draw: Draw,
        *,
        title: str,
        parts: Sequence[str] = (),
        **more: Any,
    ) -> None:
        self.parts = tuple(parts)
        self._timeline = timeline
        self._draw_frame = draw
        self._drawn: Drawing | None = None
        self._shown_until = 0
        self._asked: Asked | None = None
        self._drawn_ms = self._cost_ms = 0.0
        self._named = title
        super().__init__(playback, **more)

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        if self.hidden:
            return
        position = self._playback.position
        running = position.end and self._playback.time_scale
        now_ms = position.now_ms // AGED_MS if running else position.now_ms
        moment = self._moment
        marks = moment.selection, moment.record
        asked = position._replace(now_ms=now_ms), self.width, *marks, moment.span, self.without
        if asked == self._asked or self._is_too_early(asked):
            return
        begun_ms = self._clock_ms()
        since = min(self._shown_until, position.until)
        drawing = self._drawing(position.until, position.now_ms, since, span=moment.span, buttons=True)
        self._shown_until = position.until
        self._drawn = drawing
        self.set_trait("drawing", described(drawing, position.now_ms, self._timeline.journal.origin_ms))
        self._asked, self._drawn_ms = asked, self._clock_ms()
        self._cost_ms = self._drawn_ms - begun_ms

    @property
    def cost_ms(self) -> float:
        return self._cost_ms

    def _is_too_early(self, asked: Asked) -> bool:
        """True if only the end of a running cluster has moved, and the next drawing would cost more than its share of
        the time. A later tick draws it: there are ticks as long as the cluster runs.
        """
        if self._asked is None or not self._playback.time_scale or asked[1:] != self._asked[1:]:
            return False
        if not asked[0].end or not self._asked[0].end:
            return False
        wait_ms = min(LIVE_SHARE * self._cost_ms, max(LIVE_MS, SLOW_SHARE * self._cost_ms))
        return self._clock_ms() - self._drawn_ms < wait_ms

    @property
    def instant(self) -> Instant:
        """The shown moment."""
        position = self._playback.position
        return self._instant(position.until, position.now_ms)

    def redraw(self) -> None:
        """Draw the shown moment again, after a change of something else that the drawing depends on."""
        self._asked = None
        self._mirror()

    def _instant(self, until: int, now_ms: int) -> Instant:
        return Instant(self._timeline.history, self._timeline.names, until, now_ms)

    def _drawing(
        self,
        until: int,
        now_ms: int,
        since: int,
        width: int | None = None,
        *,
        span: Span | None = None,
        buttons: bool = False,
    ) -> Drawing:
        instant, moment, live = self._instant(until, now_ms), self._moment, buttons and self._playback.live
        marks, without = (moment.selection, moment.record), frozenset(self.without)
        return self._draw_frame(Frame(instant, width or self.width, since, *marks, span, without, live, buttons))

    def _words(
        self, snapshot: Snapshot, total: int, message: str = "", error: str = "", *, internals: bool = False
    ) -> dict[str, Any]:
        parts = sentence(snapshot, total, message, error, internals=internals)
        return {"title": self._named, "where": f"group {self._timeline.group}", "chips": [], "sentence": list(parts)}

    def _own_commands(self) -> dict[str, Callable[[Any], None]]:
        return super()._own_commands() | {"width": self._take_width, "part": self._toggle}

    def _take_width(self, width: int) -> None:
        with self.hold_sync():
            self.width = width

    def _toggle(self, part: str) -> None:
        """Show a part of the picture, or leave it out."""
        self.without = tuple(one for one in self.parts if (one in self.without) != (one == part))

    def show_selection(self, subject: str) -> None:
        super().show_selection(subject)
        self._mirror()

    @traitlets.validate("without")
    def _are_parts(self, proposal: Any) -> tuple[str, ...]:
        unknown = [part for part in proposal["value"] if part not in self.parts]
        if unknown:
            known = f"one of {', '.join(self.parts)}" if self.parts else "none: this picture has no parts"
            raise traitlets.TraitError(f"without must have parts of the picture, not {unknown[0]!r}: {known}")
        return tuple(part for part in self.parts if part in proposal["value"])

    @traitlets.observe("width", "without")
    def _on_change(self, _change: dict[str, Any]) -> None:
        if hasattr(self, "_moment"):
            self._mirror()

    # ---- for readers without widgets ---------------------------------------------------------------------------------

    def to_svg(self, theme: str = "light", width: int | None = None) -> str:
        """The shown moment as a self-contained SVG picture. `width` in px; None is the width of the front end."""
        self.catch_up()
        position = self._playback.position
        drawing = self._drawing(position.until, position.now_ms, position.until, width, span=self._moment.span)
        return to_svg(drawing, theme=theme, now_ms=position.now_ms)

    def _drawn_at(self, snapshot: Snapshot, until: int, since: int, width: int | None) -> dict[str, Any]:
        now_ms = snapshot["now_ms"]
        return {"drawing": described(self._drawing(until, now_ms, since, width), now_ms, self.view.journal.origin_ms)}

    def still(self, snapshot: Snapshot, until: int, since: int, theme: str, width: int) -> tuple[str, float]:
        drawing = self._drawing(until, snapshot["now_ms"], since, width)
        return to_svg(drawing, theme=theme, now_ms=snapshot["now_ms"]), drawing.height

    def __repr__(self) -> str:
        self.catch_up()
        position, asked = self._playback.position, self._asked
        if asked is None or asked[0].until != position.until:  # hidden, or drawn later
            return f"{self._named}\n{self._drawing(position.until, position.now_ms, position.until).text}"
        return f"{self._named}\n{self.drawing['text']}"


def described(drawing: Drawing, now_ms: int, origin_ms: int) -> dict[str, Any]:
    """A drawing in the form of the browser: its elements by key, and the order of the keys."""
    elements = {element["key"]: element for element in drawing.elements}
    return {
        "width": drawing.width,
        "height": drawing.height,
        "text": drawing.text,
        "now_ms": now_ms,
        "origin_ms": origin_ms,
        "brush": drawing.brush,
        "elements": elements,
        "keys": list(elements),
    }
