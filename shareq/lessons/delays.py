"""A plot of flight delays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shareq.trace.views.palette import SERIES
from shareq.trace.views.plots import Plot

ROW_INCHES = 0.26


def delays_plot(table: Any, names: Mapping[str, str]) -> Plot:
    """Mean delay and worst tenth, in minutes, for each index of a pandas table with columns flights, mean, worst_tenth.

    Needs matplotlib, which is imported here. The text colour follows the current light or dark style.
    """
    from matplotlib.figure import Figure

    rows = table.sort_values("mean")
    labels = [f"{names.get(name, name)}  {count:,}" for name, count in zip(rows.index, rows.flights, strict=True)]
    figure = Figure(figsize=(10, 0.9 + ROW_INCHES * len(rows)), layout="constrained")
    axis = figure.subplots()
    axis.barh(labels, rows["mean"], color=SERIES[0][0], label="mean delay")
    axis.plot(rows.worst_tenth, labels, "D", color=SERIES[1][0], markersize=5, label="one flight in ten is later")
    axis.set_xlabel("minutes")
    axis.margins(y=0.01)
    axis.grid(axis="x", alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.legend(loc="lower right", frameon=False, fontsize="small")
    return Plot(figure, [axis], _words(rows, names), shown=True)


def _words(rows: Any, names: Mapping[str, str]) -> str:
    first, last = rows.iloc[0], rows.iloc[-1]
    least, most = (names.get(each.name, each.name) for each in (first, last))
    return (
        f"{int(rows.flights.sum()):,} flights. Least late: {least}, {first['mean']:.1f} minutes on average; "
        f"most: {most}, {last['mean']:.1f} minutes, and one flight in ten later than {last.worst_tenth:.0f}."
    )
