"""The plot of a sweep. Needs matplotlib, which is imported when it is drawn."""

from __future__ import annotations

from math import isnan
from statistics import median
from typing import TYPE_CHECKING, Any

from shareq.extras import require
from shareq.trace import Plot
from shareq.trace.views.palette import SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vPX*<>"
Line = list[tuple[Any, list[float]]]
"""(x, the figure of each run at x), by x."""


def lines_of(table: Any, x: str, y: str, color: str | None) -> dict[Any, Line]:
    """The lines by value of `color`. Failed runs and runs without the figure are left out."""
    columns = [table[x].to_pylist(), table[y].to_pylist(), table[color].to_pylist() if color else [None] * len(table)]
    found: dict[Any, dict[Any, list[float]]] = {}
    for at, value, group in zip(*columns, strict=True):
        if value is not None and not isnan(value):
            found.setdefault(group, {}).setdefault(at, []).append(float(value))
    return {group: sorted(found[group].items(), key=_place) for group in sorted(found, key=lambda g: _place((g,)))}


def _place(item: tuple[Any, ...]) -> tuple[bool, Any]:
    """Sorts None, which means "all at once" for an arrival rate, after all numbers."""
    return (item[0] is None, 0 if item[0] is None else item[0])


def draw(table: Any, x: str, y: str, color: str | None, ax: Axes | None) -> Plot:
    """One line per value of `color`, distinguished by hue, dash and marker."""
    require("lab", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained") if ax is None else ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    axis = figure.subplots() if ax is None else ax
    lines = lines_of(table, x, y, color)
    ticks = sorted({at for line in lines.values() for at, _ in line}, key=lambda at: _place((at,)))
    numeric = all(isinstance(at, (int, float)) for at in ticks)
    texts = []
    for number, (group, line) in enumerate(lines.items()):
        name = y if color is None else f"{color} {group}"
        xs = [at if numeric else ticks.index(at) for at, _ in line]
        hue, stroke = SERIES[number % len(SERIES)]
        middles = [median(values) for _, values in line]
        marker = MARKERS[number % len(MARKERS)]
        axis.plot(xs, middles, color=hue, marker=marker, linestyle=stroke, label=name)
        axis.fill_between(xs, [min(v) for _, v in line], [max(v) for _, v in line], color=hue, alpha=0.15, linewidth=0)
        points = (f"{at}: {middle:,.4g}" for (at, _), middle in zip(line, middles, strict=True))
        texts.append(f"{name}: {', '.join(points)}")
    if not numeric:
        axis.set_xticks(range(len(ticks)), [str(at) for at in ticks])
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    if len(lines) > 1:
        axis.legend(fontsize="small")
    rows = texts or ["no run has this figure"]
    return Plot(figure, [axis], "\n".join([f"{y} by {x}, medians", *rows]), shown=ax is None)
