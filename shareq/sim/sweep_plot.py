"""The plot of a sweep. Needs matplotlib, which is imported when it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import median
from typing import TYPE_CHECKING, Any

from shareq.extras import require
from shareq.trace import Plot
from shareq.trace.views.palette import SERIES

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MARKERS = "osD^vPX*<>"
MOST_COLUMNS = 3
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


def panels_of(table: Any, facets: Sequence[str]) -> list[tuple[str, Any]]:
    """The runs of each combination of these parameters, with its name; all runs if there is no parameter."""
    if not facets:
        return [("", table)]
    found: dict[tuple[Any, ...], list[int]] = {}
    for row, values in enumerate(zip(*[table[name].to_pylist() for name in facets], strict=True)):
        found.setdefault(values, []).append(row)
    order = sorted(found, key=lambda values: [_place((value,)) for value in values])
    names = [", ".join(f"{name} {value}" for name, value in zip(facets, values, strict=True)) for values in order]
    return [(name, table.take(found[values])) for name, values in zip(names, order, strict=True)]


def draw(table: Any, x: str, y: str, *, color: str | None, facets: Sequence[str], ax: Axes | None) -> Plot:
    """One panel per combination of `facets`; in it one line per value of `color`, distinguished by hue, dash and
    marker."""
    require("lab", "matplotlib")
    from matplotlib.figure import Figure

    panels = panels_of(table, facets)
    columns = min(len(panels), MOST_COLUMNS)
    rows = -(-len(panels) // columns)
    if ax is None:
        figure: Any = Figure(figsize=(max(8, 4 * columns), 4.5 if rows == 1 else 3.2 * rows), layout="constrained")
        axes = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    else:
        figure, axes = ax.get_figure(root=True), [ax]
    assert isinstance(figure, Figure)
    ticks = sorted(
        {at for line in lines_of(table, x, y, None).values() for at, _ in line}, key=lambda at: _place((at,))
    )
    texts = []
    for axis, (name, part) in zip(axes, panels, strict=False):
        found = _panel(axis, lines_of(part, x, y, color), ticks, y if color is None else f"{color} ")
        texts += [f"{name}, {text}" if name else text for text in found]
        axis.set_xlabel(x)
        axis.set_ylabel(y)
        axis.label_outer()
        axis.set_title(name, fontsize="medium")
    for axis in axes[len(panels) :]:
        axis.remove()
    if entries := _legend_entries(axes[: len(panels)]):
        lines, labels = list(entries.values()), list(entries)
        if ax is None:  # beside the panels, where it covers no line
            figure.legend(lines, labels, loc="outside right upper", fontsize="small")
        else:
            ax.legend(lines, labels, fontsize="small")
    heads = [f"{y} by {x}, medians", *(texts or ["no run has this figure"])]
    return Plot(figure, axes[: len(panels)], "\n".join(heads), shown=ax is None)


def _panel(axis: Axes, lines: Mapping[Any, Line], ticks: Sequence[Any], label: str) -> list[str]:
    """Draw lines; returns a sentence for each. `label`: the figure, or the parameter of the lines and a space."""
    numeric = all(isinstance(at, (int, float)) for at in ticks)
    texts = []
    for number, (group, line) in enumerate(lines.items()):
        name = f"{label}{group}" if label.endswith(" ") else label
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
    return texts


def _legend_entries(axes: Sequence[Axes]) -> dict[str, Artist]:
    """A line of each name in the panels; empty if there is only one name."""
    found: dict[str, Artist] = {}
    for axis in axes:
        for line, name in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(str(name), line)
    return found if len(found) > 1 else {}
