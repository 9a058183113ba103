"""A group's lock duration and limits against p99, redeliveries, archived records and throughput: four small charts.

The figures are computed beforehand, see `shareq.sim.what_if`. Two settings are compared: a chosen one, and the one that
is in force. A setting in force between two computed ones has the figures of the nearest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from math import ceil, floor, log10
from typing import Any, Final, NamedTuple

from shareq.sim.what_if import Figure, Setting
from shareq_widgets.drawing import Drawing
from shareq_widgets.pictures.what_if_words import (
    CHARTS,
    LOCK,
    WhatIfChart,
    WhatIfContent,
    notes,
    setting_text,
    time_text,
    value_text,
    verdict,
    words,
)
from shareq_widgets.text_fit import SMALL, clipped, text_width, wrapped

LINE: Final = 15.0
HEAD: Final = 62.0
"""Of a chart, above its lines: the name, the values, and the words of both marks, px."""
PLOT: Final = 92.0
"""The area in which a chart draws its lines."""
FOOT: Final = 30.0
LEFT: Final = 54.0
GAP: Final = 16.0

CHOSEN: Final = "member0"
NOW: Final = "ink"
"""The colours of the two settings, which also differ in the dashes of their lines and the fill of their points."""


class _Axis(NamedTuple):
    """Values `low`..`high`, drawn from `start` to `stop`, px; values beyond are drawn at the end.

    `zero`: the low end of a logarithmic axis stands for 0, too.
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool
    zero: bool = False

    def at(self, value: float) -> float:
        low, high, shown = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, shown = log10(low), log10(high), log10(shown)
        return self.start + (shown - low) / ((high - low) or 1) * (self.stop - self.start)


class _Plot(NamedTuple):
    """A chart at its place: `x` is the axis of lock durations, `y` that of the figure."""

    drawing: Drawing
    shown: WhatIfContent
    chart: WhatIfChart
    x: _Axis
    y: _Axis
    top: float

    @property
    def bottom(self) -> float:
        return self.top + PLOT


def draw(shown: WhatIfContent, width: float) -> Drawing:
    """The comparison, the charts side by side as the width allows, and the notes."""
    drawing = Drawing(width, text=words(shown))
    y = 0.0
    for place, line in enumerate(wrapped(_unbroken(verdict(shown)), width - 8, strong=True)):
        y += LINE
        drawing.label(f"verdict {place}", 4, y, line, style="strong")
    y = _draw_legend(drawing, shown, y + LINE + 6) + 12
    columns = 4 if width >= 900 else 2 if width >= 440 else 1
    wide, high = (width - GAP * (columns - 1)) / columns, HEAD + PLOT + FOOT
    for place, chart in enumerate(CHARTS):
        row, column = divmod(place, columns)
        _draw_chart(drawing, shown, chart, (column * (wide + GAP), y + row * high), wide)
    y += ceil(len(CHARTS) / columns) * high + 10
    for number, note in enumerate(notes(shown)):
        for place, line in enumerate(wrapped(_unbroken(note), width - 8, SMALL)):
            drawing.label(f"note {number}.{place}", 4, y, line, style="small soft")
            y += LINE
    drawing.height = y - LINE + 6
    return drawing


def _unbroken(text: str) -> str:
    """The text with spaces before units at which no line is broken."""
    return re.sub(r"(?<=\d) (?=(?:ms|s|min|%)\b|%)", "\N{NO-BREAK SPACE}", text)


def _draw_legend(drawing: Drawing, shown: WhatIfContent, y: float) -> float:
    """Both settings with the look of their lines; returns the base line of the last row."""
    rows = [("chosen", f"chosen: {setting_text(shown.chosen)}")]
    if shown.current is not None:
        rows.append(("now", f"now{shown.where and f' in {shown.where}'}: {setting_text(shown.current)}"))
    x = 4.0
    for name, text in rows:
        wide = 34 + text_width(text, SMALL)
        if x > 4 and x + wide > drawing.width - 4:
            x, y = 4.0, y + LINE
        drawing.line(f"legend {name} line", x, y - 4, x + 28, y - 4, **_stroke(name))
        _draw_point(drawing, f"legend {name}", (x + 14, y - 4), name)
        drawing.label(f"legend {name} text", x + 34, y, clipped(text, drawing.width - x - 38, SMALL), style="small")
        x += wide + 24
    return y


def _stroke(name: str) -> dict[str, Any]:
    """The look of the lines of a setting, "chosen" or "now"."""
    if name == "chosen":
        return {"stroke": CHOSEN, "stroke_width": 2}
    return {"stroke": NOW, "stroke_width": 1.5, "stroke_dasharray": "4 3"}


def _draw_point(drawing: Drawing, key: str, at: tuple[float, float], name: str, title: str = "") -> None:
    fill, stroke = (CHOSEN, CHOSEN) if name == "chosen" else ("bg", NOW)
    drawing.circle(f"{key} point", *at, 4, fill=fill, stroke=stroke, stroke_width=1.6, title=title)


def _draw_chart(
    drawing: Drawing, shown: WhatIfContent, chart: WhatIfChart, corner: tuple[float, float], wide: float
) -> None:
    """A chart: its name, both values, the lines over the lock duration, the marks of both settings."""
    name, base, (left, top) = chart.name, shown.base, corner
    drawing.label(f"{name} title", left + 4, top + 10, clipped(chart.title, wide - 8, SMALL), style="small soft")
    value = value_text(chart, shown.figure(name, shown.chosen))
    drawing.label(f"{name} value", left + 4, top + 28, value, style="strong", fill=CHOSEN, font_size=16)
    if base is not None:
        x = left + 14 + text_width(value, 16, strong=True)
        text = clipped(f"now {value_text(chart, shown.figure(name, base))}", left + wide - x, SMALL)
        drawing.label(f"{name} now value", x, top + 28, text, style="small")
    grid, upper = shown.table.grid[LOCK], top + HEAD
    x_axis = _Axis(grid[0], grid[-1], left + LEFT, left + wide - 12, log=True)
    plot = _Plot(drawing, shown, chart, x_axis, _values_axis(shown, chart, upper), upper)
    drawing.rect(
        f"{name} plot", left + LEFT - 8, upper - 4, wide - LEFT + 4, PLOT + 8, fill="card", stroke="line", rx=3
    )
    _draw_ticks(plot)
    if base is not None and base[1:] != shown.chosen[1:]:
        _draw_line(plot, base, "now")
    _draw_line(plot, shown.chosen, "chosen")
    if shown.current is not None:
        _draw_mark(plot, shown.current, "now")
    _draw_mark(plot, shown.chosen, "chosen")


def _values_axis(shown: WhatIfContent, chart: WhatIfChart, upper: float) -> _Axis:
    """The axis for all settings of the workload: it stays when another one is chosen."""
    found, lower = shown.table.all(shown.workload, chart.name), upper + PLOT
    high = max((figure.highest for figure in found), default=0.0) or 1.0
    if not chart.log:
        return _Axis(0, high * 1.05, lower, upper, log=False)
    low = min((figure.lowest for figure in found if figure.lowest), default=high)
    zero = any(not figure.lowest for figure in found)
    if zero:
        low = 10.0 ** (floor(log10(low)) - 1)
    return _Axis(low, max(high, low * 10), lower, upper, log=True, zero=zero)


def _draw_ticks(plot: _Plot) -> None:
    drawing, chart, x, y = plot.drawing, plot.chart, plot.x, plot.y
    name = chart.name
    for value in _ticks(y):
        text = chart.text(0 if y.zero and value == y.low else value)
        at = y.at(value)
        drawing.line(f"{name} y {text} line", x.start - 8, at, x.stop + 4, at, stroke_width=0.7)
        drawing.label(f"{name} y {text}", x.start - 12, at + 3.5, text, anchor="end", style="small soft")
    free = -1.0
    for ms in plot.shown.table.grid[LOCK]:
        text, at = time_text(ms), x.at(ms)
        half = text_width(text, SMALL) / 2
        drawing.line(f"{name} x {ms} tick", at, plot.bottom + 4, at, plot.bottom + 8)
        if at - half >= free:
            middle = min(at, x.stop + 12 - half)
            drawing.label(f"{name} x {ms}", middle, plot.bottom + 18, text, anchor="middle", style="small soft")
            free = at + half + 6


def _ticks(axis: _Axis) -> Iterator[float]:
    """Round values on an axis of figures, with room for their texts."""
    if not axis.log:
        step = 10.0 ** floor(log10(axis.high))
        step = next(one for one in (step / 2, step, 2 * step, 5 * step) if axis.high / one < 4)
        yield from (step * place for place in range(int(axis.high / step) + 1))
        return
    decades = log10(axis.high / axis.low)
    for power in range(floor(log10(axis.low)), ceil(log10(axis.high)) + 1):
        for base in (1, 3) if decades < 2.5 and not axis.zero else (1,):
            value = base * 10.0**power
            if axis.low <= value * (1 + 1e-9) and value <= axis.high:
                yield value


def _draw_line(plot: _Plot, setting: Setting, name: str) -> None:
    """The medians over the lock duration; of the chosen setting with the band, and a point for each."""
    drawing, chart, line = plot.drawing, plot.chart, plot.shown.line(plot.chart.name, setting)
    key, runs = f"{chart.name} {name}", list(_runs(line))
    if not runs:
        return
    if name == "chosen":
        drawing.path(f"{key} band", "".join(_area(run, plot) for run in runs), fill=CHOSEN, stroke="none", opacity=0.16)
    points = (" ".join(f"{plot.x.at(ms):.1f} {plot.y.at(figure.median):.1f}" for ms, figure in run) for run in runs)
    drawing.path(f"{key} line", "".join(f"M{run}" for run in points), **_stroke(name))
    for ms, figure in (point for run in runs for point in run if name == "chosen"):
        low, high = chart.text(figure.lowest), chart.text(figure.highest)
        title = f"lock {time_text(ms)}: {chart.word} {chart.text(figure.median)} ({low} to {high})"
        drawing.circle(f"{key} at {ms}", plot.x.at(ms), plot.y.at(figure.median), 2, fill=CHOSEN, title=title)


def _runs(line: Iterable[tuple[int, Figure | None]]) -> Iterator[list[tuple[int, Figure]]]:
    """The parts of a line that are not interrupted by a missing figure."""
    for known, run in groupby(line, key=lambda point: point[1] is not None):
        if known:
            yield [(ms, figure) for ms, figure in run if figure is not None]


def _area(run: list[tuple[int, Figure]], plot: _Plot) -> str:
    """From the lowest to the highest values."""
    there = [f"{plot.x.at(ms):.1f} {plot.y.at(figure.highest):.1f}" for ms, figure in run]
    back = [f"{plot.x.at(ms):.1f} {plot.y.at(figure.lowest):.1f}" for ms, figure in reversed(run)]
    return f"M{' '.join([*there, *back])}z"


def _draw_mark(plot: _Plot, setting: Setting, name: str) -> None:
    """A setting: a line across at its lock duration, its words above, and a point at its figure.

    Beyond the axis there is no line: the words stand at that end with an arrow.
    """
    drawing, shown, chart, x_axis = plot.drawing, plot.shown, plot.chart, plot.x
    key, ms = f"{chart.name} {name}", setting.lock_duration_ms
    inside, x = x_axis.low <= ms <= x_axis.high, x_axis.at(ms)
    text = f"{'now: ' if name == 'now' else ''}{time_text(ms)}"
    if not inside:
        text = f"{text} →" if ms > x_axis.high else f"← {text}"
    y = plot.top - (20 if name == "now" else 8)
    half = text_width(text, SMALL, strong=name == "chosen") / 2
    middle = min(max(x, x_axis.start - 8 + half), x_axis.stop + 12 - half)
    style, colour = ("small", NOW) if name == "now" else ("small strong", CHOSEN)
    drawing.label(f"{key} mark text", middle, y, text, anchor="middle", style=style, fill=colour)
    if inside:
        drawing.line(f"{key} mark", x, plot.top - 4, x, plot.bottom + 4, **_stroke(name))
    computed = shown.table.nearest(setting)
    figure = None if computed is None else shown.figure(chart.name, computed)
    if computed is not None and figure is not None:
        at = x_axis.at(computed.lock_duration_ms), plot.y.at(figure.median)
        _draw_point(drawing, key, at, name, f"{name}: {chart.word} {chart.text(figure.median)}")
