"""Offset by time of one share-partition: the state of each record, the SPSO and SPEO, deaths and expired locks.

A drag over the plot selects times: `Drawing.brush` has the area and the times at its edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from shareq.trace.journal.event_text import count_text, range_text
from shareq.trace.views.palette import STATES, UNKNOWNS
from shareq_widgets import selection
from shareq_widgets.drawing import Drawing
from shareq_widgets.look import SHAPES
from shareq_widgets.pictures.raster_content import RasterContent, Rectangle, Steps
from shareq_widgets.pictures.time_plot import DRAG, TimeRange, clock, draw_axis, draw_moment
from shareq_widgets.text_fit import SMALL, text_width

TOP, AXIS = 44, 20
TALL = 320
"""The height of the plot beside tall neighbours, px."""
LINE = 13
"""The height of a line of text, px."""


def draw(content: RasterContent, width: float, *, tall: bool = False, span: tuple[int, int] | None = None) -> Drawing:
    """The plot: one path for each state, the lines of SPSO and SPEO, the moment, and what happened. `span`: the times
    that other views show; they are marked."""
    drawing = Drawing(width, text="\n".join(_words(content)))
    bottom = TOP + (TALL if tall else 150 if width < 600 else 180)
    drawing.height = bottom + AXIS + 4
    high = content.offsets[1]
    left = 14 + text_width(f"{high:,}", SMALL)
    time = TimeRange(content.from_ms, content.to_ms, left, width - 14)
    scale = _Scale(content.offsets, TOP, bottom)
    drawing.brush = time.brush(TOP, bottom)
    with drawing.about(selection.partition(content.topic, content.partition)):
        drawing.rect("plot", left, TOP, time.right - left, bottom - TOP, title=DRAG, fill="card", stroke="line")
        draw_axis(drawing, "time", time, content.origin_ms, bottom + 15)
        if not content.known:
            drawing.label("nothing known", left + 10, TOP + 24, _unknown(content), style="small soft")
            draw_moment(drawing, time, content.now_ms, TOP - 4, bottom + 3)
            return drawing
        _draw_offsets(drawing, scale, left, time.right)
        _draw_states(drawing, content, time, scale)
        _draw_window(drawing, content, time, scale)
        _draw_notices(drawing, content, time, (TOP, bottom))
        _draw_expired(drawing, content, time, scale)
        _draw_span(drawing, time, span, (TOP, bottom))
        draw_moment(drawing, time, content.now_ms, TOP - 4, bottom + 3)
        _draw_bounds(drawing, content, time, scale)
    _draw_legend(drawing, content)
    return drawing


def _draw_span(drawing: Drawing, time: TimeRange, span: tuple[int, int] | None, y: tuple[float, float]) -> None:
    """The times that other views show, as far as the plot has them: all others are dimmed."""
    if span is None or span[1] <= time.from_ms or span[0] >= time.to_ms:
        return
    left, right, (top, bottom) = time.x(span[0]), time.x(span[1]), y
    title = "not shown by the other views; a click, or Escape, shows all of the time"
    for side, x, end in (("before", time.left, left), ("after", right, time.right)):
        drawing.rect(f"{side} the span", x, top, end - x, bottom - top, fill="bg", opacity=0.6, title=title)
    drawing.path(
        "span", f"M{left:g} {top:g}V{bottom:g}M{right:g} {top:g}V{bottom:g}", stroke="available", stroke_width=2
    )


class _Scale(NamedTuple):
    """Offsets from `bottom` up to `top`, px."""

    offsets: tuple[int, int]
    top: float
    bottom: float

    def y(self, offset: float) -> float:
        low, high = self.offsets
        return self.bottom - min(max((offset - low) / (high - low), 0), 1) * (self.bottom - self.top)

    def ticks(self) -> list[int]:
        """Round offsets, at most six."""
        low, high = self.offsets
        step = next(base * 10**power for power in range(18) for base in (1, 2, 5) if base * 10**power * 5 >= high - low)
        return [*range(-(-low // step) * step, high + 1, step)]


def _draw_offsets(drawing: Drawing, scale: _Scale, left: float, right: float) -> None:
    for offset in scale.ticks():
        y = scale.y(offset)
        drawing.line(f"grid {offset}", left, y, right, y)
        drawing.label(f"offset {offset}", left - 6, y + 4, f"{offset:,}", anchor="end", style="small soft")


def _draw_states(drawing: Drawing, content: RasterContent, time: TimeRange, scale: _Scale) -> None:
    """One path for each state. States differ in fill and texture; below the SPSO they are faded."""
    for suffix, samples, opacity in (("", content.states, 0.9), (" below the SPSO", content.past, 0.3)):
        for state, rectangles in samples.items():
            fill = _fill(state)
            faint = state == "acknowledged" or fill is None
            drawing.path(
                f"{state}{suffix}", "".join(_rectangle(part, time, scale) for part in rectangles),
                fill=fill or state, stroke="none", opacity=opacity * (0.62 if faint else 1),
                shape_rendering="crispEdges", title=f"{state}{suffix}",
            )  # fmt: skip


def _fill(state: str) -> str | None:
    """Without the outlines and glyphs of cells, the veil of returned records would be that of unknown ones."""
    return None if state == "returned" else SHAPES[state]["fill"]


def _rectangle(part: Rectangle, time: TimeRange, scale: _Scale) -> str:
    from_ms, to_ms, first, end = part
    x, top = time.x(from_ms), scale.y(end)
    width, height = time.x(to_ms) - x, scale.y(first) - top
    return f"M{x:.1f} {top:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}z"


def _draw_window(drawing: Drawing, content: RasterContent, time: TimeRange, scale: _Scale) -> None:
    """The lines of the SPSO and of the SPEO."""
    until = min(content.now_ms, content.to_ms)
    for key, steps, stroke, dash in (("SPSO", content.spso, 1.8, None), ("SPEO", content.window_end, 1.4, "5 3")):
        if steps:
            path = _line(steps, until, time, scale)
            drawing.path(key, path, stroke="ink", stroke_width=stroke, stroke_dasharray=dash, title=key)


def _draw_bounds(drawing: Drawing, content: RasterContent, time: TimeRange, scale: _Scale) -> None:
    """The present offsets of the SPSO and of the SPEO, above all lines: none may cross them."""
    until = min(content.now_ms, content.to_ms)
    for key, text, y in _bound_labels(content, scale):
        _label_at(drawing, key, text, (time.x(until), y), (time.left + 4, time.right - 4))


def _bound_labels(content: RasterContent, scale: _Scale) -> list[tuple[str, str, float]]:
    """(key, text, y) of the window's bounds: the SPEO above its line and the SPSO below it where there is room; one
    text for an empty window."""
    spso, speo = window_text(content)
    low, high = scale.y(content.spso[-1][1]), scale.y(content.window_end[-1][1])
    below = low + 14 if low + 18 <= scale.bottom else low - 6
    if content.spso[-1][1] >= content.window_end[-1][1]:
        return [("SPSO text", f"{spso} · {speo}", below)]
    above = high - 6 if high - 18 >= scale.top else high + 12
    if below - above < LINE:  # the lines are near each other, at the top or at the bottom
        above, below = (above, above + LINE) if above + LINE + 4 <= scale.bottom else (below - LINE, below)
    return [("SPEO text", speo, above), ("SPSO text", spso, below)]


def _label_at(drawing: Drawing, key: str, text: str, at: tuple[float, float], room: tuple[float, float]) -> None:
    """A text after the moment, or before it if there is no room after it; it stays inside of the plot. Its ground
    covers the steps of the window's bounds before the moment."""
    (x, y), (left, right), width = at, room, text_width(text, SMALL, strong=True)
    after, before = x + 6 + width <= right, x - 6 - width >= left
    start = x + 6 if after else x - 6 - width if before else left
    drawing.rect(f"{key} ground", start - 2, y - 10, width + 4, LINE, rx=3, fill="card", opacity=0.85)
    drawing.label(
        key, start + width / 2, y, text, anchor="middle", style="strong small", stroke="bg", stroke_width=3,
        paint_order="stroke",
    )  # fmt: skip


def _line(steps: Steps, until: float, time: TimeRange, scale: _Scale) -> str:
    """A line of steps up to a time."""
    d = f"M{time.x(steps[0][0]):.1f} {scale.y(steps[0][1]):.1f}"
    for (_, _), (at, value) in pairwise(steps):
        d += f"H{time.x(at):.1f}V{scale.y(value):.1f}"
    return f"{d}H{time.x(until):.1f}"


def window_text(content: RasterContent) -> tuple[str, str]:
    """The SPSO, with the member that it waits for; and the SPEO, the last offset in flight."""
    spso, window_end = content.spso[-1][1], content.window_end[-1][1]
    if spso >= window_end:
        return f"SPSO {spso:,}", "empty window"
    return content.waits or f"SPSO {spso:,}", f"SPEO {'at most ' if content.at_most else ''}{window_end - 1:,}"


def _draw_notices(drawing: Drawing, content: RasterContent, time: TimeRange, y: tuple[float, float]) -> None:
    """A line for each notice, with its text above the plot where there is room."""
    top, bottom = y
    taken = [time.left - 4.0, time.left - 4.0]
    for number, notice in enumerate((*content.notices, *content.ahead)):
        ahead = number >= len(content.notices)
        x, colour = time.x(notice.time_ms), "alarm" if notice.hot else "acquired" if ahead else "soft"
        key = f"{notice.text} {notice.time_ms:.0f} {number}"
        title = f"{clock(int(notice.time_ms) - content.origin_ms)} {notice.text}"
        drawing.line(f"line {key}", x, top, x, bottom, stroke=colour, stroke_dasharray="3 3", title=title)
        width = text_width(notice.text, SMALL)
        anchored = min(max(x - width / 2, time.left), max(time.right - width, time.left))
        row = next((row for row in (1, 0) if taken[row] < anchored), None)
        if row is not None and anchored + width <= time.right + 1:
            taken[row] = anchored + width + 6
            style = "small hot" if notice.hot else "small soft"
            drawing.label(f"text {key}", anchored, top - 18 + 12 * row, notice.text, style=style, title=title)


def _draw_expired(drawing: Drawing, content: RasterContent, time: TimeRange, scale: _Scale) -> None:
    """A triangle at each expired lock."""
    if content.expired:
        marks = ((time.x(at), scale.y((first + end) / 2)) for at, first, end in content.expired)
        d = "".join(f"M{max(x - 5, time.left):.1f} {y:.1f}L{x:.1f} {y - 4:.1f}L{x:.1f} {y + 4:.1f}z" for x, y in marks)
        title = f"{count_text(len(content.expired), 'lock')} ran out"
        drawing.path("expired", d, fill="alarm", stroke="bg", stroke_width=0.5, title=title)


def _draw_legend(drawing: Drawing, content: RasterContent) -> None:
    """The states that the plot has."""
    x = 8.0
    for state in (*STATES, *UNKNOWNS):
        if state in content.states or state in content.past:
            fill = _fill(state)
            drawing.rect(
                f"legend {state}", x, 3, 10, 10, rx=2, fill=fill or state, opacity=0.55 if fill is None else None
            )
            drawing.label(f"legend text {state}", x + 14, 12, state, style="small soft")
            x += 22 + text_width(state, SMALL)


def _unknown(content: RasterContent) -> str:
    where = f"{content.topic}-{content.partition}"
    return f"{where}: nothing is known yet" if content.at_most else f"{where}: no consumer has fetched from it yet"


def _words(content: RasterContent) -> Iterator[str]:
    """The picture in words."""
    at = f"{clock(content.from_ms - content.origin_ms)} to {clock(content.now_ms - content.origin_ms)}"
    if not content.known:
        yield f"{_unknown(content)} ({at})"
        return
    low, high = content.offsets
    yield f"{content.topic}-{content.partition} from {at}: offsets {range_text(low, high)}, " + ", ".join(
        window_text(content)
    )
    if content.expired:
        yield f"{count_text(len(content.expired), 'lock')} ran out"
    for notice in (*content.notices, *content.ahead):
        yield f"{clock(int(notice.time_ms) - content.origin_ms)} {notice.text}"
