"""The charts of the report, each with its description. matplotlib is imported when a chart is drawn."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from shareq.spark.pipeline.figures import BINS
from shareq.trace.journal.event_text import count_text, list_text, member_name
from shareq.trace.views.figure_text import figure_text
from shareq.trace.views.palette import LIGHT, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]

MOST_LINES = 6
MOST_BARS = 16
LABEL_CHARACTERS = 32
"""Of a name beside its bar, or in a legend of three columns."""

OUTCOMES: Mapping[str, tuple[str, str]] = {
    "accept": (LIGHT["acknowledged"], ""),
    "held": (LIGHT["acquired"], ""),
    "release": (LIGHT["available"], "||"),
    "lock_timeout": (LIGHT["alarm"], "\\\\"),
    "session_release": (LIGHT["unknown"], "--"),
    "txn_abort": (LIGHT["unknown"], "\\\\"),
    "lost": (LIGHT["bandline"], "++"),
    "reject": (LIGHT["archived"], "////"),
    "gap": (LIGHT["line"], "xx"),
    "aborted": (LIGHT["soft"], "++"),
    "log_start": (LIGHT["line"], "||"),
    "missing": (LIGHT["line"], "--"),
    "passed": (LIGHT["card"], ""),
}
"""Colour and hatch of each outcome; outcomes that are record states have the states' colours."""

_STYLE: Any = {
    "svg.hashsalt": "shareq",
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9.5,
    "hatch.linewidth": 0.7,
    "hatch.color": LIGHT["bg"],
}
"""Text stays text, and equal charts have equal bytes."""

ACTIVITY = {
    "acquired": "acquired",
    "accepted": "acknowledged",
    "returned": "available",
    "archived": "archived",
    "expired": "unknown",
}
"""What happened to records -> the state with its colour."""


class Chart(NamedTuple):
    """A chart as an SVG data URL, and its description."""

    title: str
    text: str
    source: str


def _chart(title: str, text: str, draw: Callable[[Axes], None], *, height: float = 3.0) -> Chart:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6.4, height), layout="constrained", facecolor="none")
        axis = figure.subplots(subplot_kw={"facecolor": "none"})
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color=LIGHT["line"], linewidth=0.6)
        axis.set_axisbelow(True)
        draw(axis)
        out = BytesIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})  # `savefig` draws all twice
    return Chart(title, text, f"data:image/svg+xml;base64,{b64encode(out.getvalue()).decode()}")


def activity(rows: Sequence[Row], span_s: float) -> Chart:
    """Records by what happened to them, over time."""
    width = span_s / BINS
    series: dict[str, list[float]] = {what: [0.0] * BINS for what in ACTIVITY}
    for row in rows:
        series[row["what"]][row["bin"]] += row["records"]
    totals = {what: sum(values) for what, values in series.items()}

    def draw(axis: Axes) -> None:
        xs = [bin_ * width for bin_ in range(BINS)]
        for (what, values), (_, dash) in zip(series.items(), SERIES, strict=False):
            if totals[what]:
                axis.plot(xs, values, color=LIGHT[ACTIVITY[what]], linestyle=dash, linewidth=1.8, label=what)
        axis.set_xlim(0, span_s)
        axis.set_xlabel("seconds since the start")
        axis.set_ylabel(f"records in {width:,.3g} s")
        axis.set_ylim(bottom=0)
        _thousands(axis.yaxis)
        axis.legend(fontsize="small", frameon=False, ncols=len(ACTIVITY), loc="lower left", bbox_to_anchor=(0, 1))

    sums = ", ".join(f"{int(total):,} {what}" for what, total in totals.items() if total)
    return _chart("Activity", f"Records over {span_s:,.1f} s: {sums}. Each acquisition counts.", draw)


def lag(rows: Sequence[Row], span_s: float) -> Chart:
    """The lag by share-partition over time; the largest ones singly, the others summed up."""
    series: dict[str, dict[int, tuple[int, int]]] = {}
    for row in rows:
        series.setdefault(f"{row['topic']}-{row['partition']}", {})[row["bin"]] = (row["max_lag"], row["lag"])
    worst = sorted(series, key=lambda name: (-max(series[name].values())[0], name))
    shown = {name: series[name] for name in worst[: MOST_LINES - (len(worst) > MOST_LINES)]}
    others = worst[len(shown) :]
    width = span_s / BINS

    def draw(axis: Axes) -> None:
        lines = {name: {at: most for at, (most, _) in values.items()} for name, values in shown.items()}
        if others:
            begun = min(min(series[name]) for name in others)
            lines[f"{len(others)} others, together"] = {
                at: sum(series[name].get(at, (0, 0))[0] for name in others) for at in range(begun, BINS)
            }
        for (name, values), (colour, dash) in zip(lines.items(), SERIES, strict=False):
            axis.step([at * width for at in values], list(values.values()), where="post", color=colour, linestyle=dash,
                      linewidth=1.8, label=figure_text(name, LABEL_CHARACTERS))  # fmt: skip
        axis.set_xlim(0, span_s)
        axis.set_xlabel("seconds since the start")
        axis.set_ylabel(f"most lag in {width:,.3g} s, records")
        axis.set_ylim(bottom=0)
        _thousands(axis.yaxis)
        axis.legend(fontsize="small", frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))

    texts = [
        f"{name} at most {max(v.values())[0]:,}, {list(v.values())[-1][1]:,} in the end" for name, v in shown.items()
    ]
    if others:
        most = max(max(series[name].values())[0] for name in others)
        left = sum(list(series[name].values())[-1][1] for name in others)
        texts.append(f"{len(others)} others at most {most:,} each, {left:,} together in the end")
    return _chart("Lag", f"Records above the SPSO that are not finished: {'; '.join(texts)}.", draw)


def latency(rows: Sequence[Row]) -> Chart:
    """Percentiles by topic and stage."""
    marks = (
        ("p50_ms", "o", "half"),
        ("p95_ms", "D", "95 of 100"),
        ("p99_ms", "s", "99 of 100"),
        ("max_ms", "|", "all"),
    )
    named = {f"{row['topic']}: {row['stage']}": row for row in _stages(rows)}

    def draw(axis: Axes) -> None:
        names = list(named)
        for place, name in enumerate(names):
            axis.hlines(place, named[name]["p50_ms"], named[name]["max_ms"], color=LIGHT["line"], linewidth=3)
        for (column, marker, label), (colour, _) in zip(marks, SERIES, strict=False):
            values = [named[name][column] for name in names]
            axis.plot(values, range(len(names)), marker, color=colour, markersize=8, label=label, markeredgewidth=2)
        axis.set_yticks(range(len(names)), names)
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.set_xscale("symlog", linthresh=1)
        axis.set_xlim(left=0)
        axis.set_xlabel("ms, logarithmic above 1")
        _thousands(axis.xaxis)
        axis.legend(title=None, fontsize="small", frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))

    texts = [
        f"{name} p50 {row['p50_ms']:,.0f} ms, p95 {row['p95_ms']:,.0f}, p99 {row['p99_ms']:,.0f}, "
        f"at most {row['max_ms']:,.0f}"
        for name, row in named.items()
    ]
    text = (
        "Delivery: from the append to the first acquisition; processing: from an acquisition to its durable "
        f"acceptance; whole: from the append to the acceptance. {'; '.join(texts)}."
    )
    return _chart("Latency", text, draw, height=1.3 + 0.36 * max(len(named), 3))


def _stages(rows: Sequence[Row]) -> list[Row]:
    """The stages in order, of the topics with the most records."""
    order = ("delivery", "processing", "whole")
    topics = sorted({row["topic"] for row in rows}, key=lambda t: -sum(r["records"] for r in rows if r["topic"] == t))[
        :4
    ]
    return sorted(
        (r for r in rows if r["topic"] in topics), key=lambda r: (topics.index(r["topic"]), order.index(r["stage"]))
    )


def attempts(rows: Sequence[Row]) -> Chart:
    """The outcomes of the nth deliveries."""
    counts = sorted({row["delivery_count"] for row in rows})
    ended: dict[str, dict[int, int]] = {}
    for row in rows:
        of_outcome = ended.setdefault(row["outcome"], dict.fromkeys(counts, 0))
        of_outcome[row["delivery_count"]] += row["records"]
    outcomes = [outcome for outcome in OUTCOMES if outcome in ended]

    def draw(axis: Axes) -> None:
        bottoms = [0] * len(counts)
        for outcome in outcomes:
            heights = [ended[outcome][count] for count in counts]
            colour, hatch = OUTCOMES[outcome]
            axis.bar([str(c) for c in counts], heights, bottom=bottoms, color=colour, hatch=hatch, linewidth=0.6,
                     edgecolor=LIGHT["bg"], label=outcome, width=0.7)  # fmt: skip
            bottoms = [low + height for low, height in zip(bottoms, heights, strict=True)]
        axis.set_xlabel("delivery count")
        axis.set_ylabel("records")
        axis.grid(visible=False, axis="x")
        _thousands(axis.yaxis)
        axis.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))

    texts = [f"delivery {c}: " + ", ".join(f"{ended[o][c]:,} {o}" for o in outcomes if ended[o][c]) for c in counts]
    return _chart("Redeliveries", f"The outcomes of deliveries. {'; '.join(texts)}.", draw)


def occupancy(rows: Sequence[Row]) -> Chart:
    """The occupancy of the windows."""
    fullest = sorted(rows, key=lambda r: (-(r["mean_occupancy"] or 0), r["topic"], r["partition"]))[:MOST_BARS]
    names = [f"{row['topic']}-{row['partition']}" for row in fullest]

    def draw(axis: Axes) -> None:
        means = [100 * (row["mean_occupancy"] or 0) for row in fullest]
        full = [100 * (row["full_share"] or 0) for row in fullest]
        places = range(len(names))
        axis.barh([p - 0.19 for p in places], means, height=0.36, color=LIGHT["available"], label="filled, on average")
        axis.barh([p + 0.19 for p in places], full, height=0.36, color=LIGHT["alarm"], hatch="////", linewidth=0,
                  edgecolor=LIGHT["bg"], label="time in which it was full")  # fmt: skip
        _names(axis, names)
        axis.set_xlim(0, 100)
        axis.set_xlabel("% of the record locks, % of the time")
        axis.legend(fontsize="small", frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))

    texts = [
        f"{name} {100 * (row['mean_occupancy'] or 0):.0f} % on average, at most {row['max_in_flight']:,} in flight"
        for name, row in zip(names, fullest, strict=True)
    ]
    text = f"Offsets in flight, relative to the limit: {list_text(texts, 6)}."
    return _chart("Window occupancy", text, draw, height=1.3 + 0.36 * max(len(names), 3))


def shares(rows: Sequence[Row], fairness: float | None) -> Chart:
    """The records that each member acquired and accepted."""
    busiest = sorted(rows, key=lambda row: (-row["accepted"], -row["acquired"], row["member_id"]))
    shown = busiest[:MOST_BARS]
    names = [_member(row) for row in shown]

    def draw(axis: Axes) -> None:
        for what, height, colour in (("acquired", 0.7, "line"), ("accepted", 0.42, "acknowledged")):
            axis.barh(range(len(names)), [row[what] for row in shown], height=height, color=LIGHT[colour], label=what)
        _names(axis, names)
        axis.set_xlabel("records")
        _thousands(axis.xaxis)
        axis.legend(fontsize="small", frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))

    index = "no record accepted" if fairness is None else f"Jain's index {fairness:.2f}, where 1 is even"
    texts = [f"{name} {row['accepted']:,}" for name, row in zip(names, shown, strict=True)]
    text = f"{count_text(len(rows), 'member')}, {index}. Accepted: {list_text(texts, 6)}."
    return _chart("Fairness", text, draw, height=1.3 + 0.36 * max(len(names), 3))


def _member(row: Row) -> str:
    name = member_name(row["member_id"])
    return name if row["client_id"] in (None, "", row["member_id"]) else f"{row['client_id']} {name}"


def _names(axis: Axes, names: Sequence[str]) -> None:
    """Label the bars, the first one on top."""
    axis.set_yticks(range(len(names)), [figure_text(name, LABEL_CHARACTERS) for name in names])
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.grid(visible=False, axis="y")


def _thousands(axis: Any) -> None:
    axis.set_major_formatter("{x:,.0f}")


def drawn(charts: Iterable[Chart | None]) -> list[Chart]:
    """The charts that have data."""
    return [chart for chart in charts if chart is not None]
