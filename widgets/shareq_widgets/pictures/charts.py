"""Small charts of a group over time, one below the other on one time axis, with the values of the moment in large.

Lag and records in flight are those at each time; throughput, redeliveries and time-outs are counted in buckets of equal
length; lock wait and attempts are means over the records completed in a bucket. A drag over the charts selects times:
`Drawing.brush` has the area and the times at its edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from shareq.model.ids import Place
from shareq.trace.analysis.tally import Gauges, Tallies, Tally
from shareq_widgets.drawing import Drawing
from shareq_widgets.instant import Instant
from shareq_widgets.pictures.raster_content import SPAN_MS, times
from shareq_widgets.pictures.time_plot import (
    DRAG,
    STEPS_MS,
    TimeRange,
    clock,
    draw_axis,
    draw_moment,
    duration,
)
from shareq_widgets.pictures.words import first_fitting
from shareq_widgets.text_fit import SMALL, text_width

BUCKETS = 120
"""Maximum number of buckets of a chart."""
SHORTEST_MS = 100
RATE_MS = 1_000
"""The throughput of the moment is a mean over this time before it, or over the length of a bucket if that is more."""

Point = tuple[int, int, float | None]
"""(from ms, to ms, value); None: not known, or nothing to take a mean of."""


class Chart(NamedTuple):
    """`current`: the value of the moment, or over the span; None: not known. `of`: its limit, if it has one. `hot`: a
    person should look."""

    name: str
    unit: str
    bars: bool
    points: tuple[Point, ...]
    current: float | None
    of: int | None = None
    hot: bool = False


class ChartsContent(NamedTuple):
    """`partitions`: the number of share-partitions that the charts are about. `bucket_ms`: the length of a bucket."""

    about: str
    partitions: int
    origin_ms: int
    now_ms: int
    from_ms: int
    to_ms: int
    bucket_ms: int
    charts: tuple[Chart, ...]


class _Series(NamedTuple):
    """What the charts need of one share-partition: its gauges at the edges, its counts in the buckets between them, and
    the records accepted before the moment."""

    gauges: list[Gauges]
    counts: list[Tally]
    accepted: int


def content(
    instant: Instant,
    topic: str | None = None,
    partition: int | None = None,
    *,
    from_ms: int | None = None,
    to_ms: int | None = None,
    span_ms: int = SPAN_MS,
) -> ChartsContent:
    """The charts of all share-partitions of the group, or of one topic or share-partition, up to the moment.

    Without `from_ms`: the last `span_ms`, or less as in `raster`; without `to_ms`: a little more than the moment. The
    cost follows the entries in this time.
    """
    begin, end = times(instant, from_ms, to_ms, span_ms)
    shown_to = min(instant.now_ms, end)
    bucket_ms = next(step for step in STEPS_MS if step >= max((end - begin) / BUCKETS, SHORTEST_MS))
    found = [
        at for at in instant.history.share_partitions(instant.until)
        if topic in (None, at[0]) and partition in (None, at[1])
    ]  # fmt: skip
    edges = _edges(begin, shown_to, instant.origin_ms, bucket_ms)
    about = "all share-partitions" if topic is None else topic if partition is None else f"{topic}-{partition}"
    rate_ms = max(bucket_ms, RATE_MS)
    series = [_series(instant, at, edges, rate_ms) for at in found]
    charts = _charts(edges, series, (bucket_ms, max(shown_to - begin, 0)))
    accepted = sum(values.accepted for values in series)
    return ChartsContent(
        about, len(found), instant.origin_ms, instant.now_ms, begin, end, bucket_ms,
        tuple(_with_rate(chart, accepted * 1000 / rate_ms) for chart in charts),
    )  # fmt: skip


def _with_rate(chart: Chart, rate: float) -> Chart:
    """The throughput with its value of the moment, over the last second or bucket; other charts as they are."""
    return chart._replace(current=rate) if chart.name == "throughput" and chart.current is not None else chart


def _edges(begin: int, end: int, origin_ms: int, bucket_ms: int) -> list[int]:
    """The edges of the buckets: round times, so that a bucket stays the same while the moment moves on; and the end."""
    first = origin_ms + (begin - origin_ms) // bucket_ms * bucket_ms
    return [*range(first, end, bucket_ms), max(end, first + 1)]


def _series(instant: Instant, at: Place, edges: Sequence[int], rate_ms: int) -> _Series:
    """The values of a share-partition, without entries after the moment."""
    timeline = instant.history.timeline(*at)
    tallies = instant.history.kept((Tallies, *at), lambda: Tallies(timeline))
    stop = timeline.count(instant.until)
    counts = [min(timeline.at_time(edge), stop) for edge in (edges[-1] - rate_ms, *edges)]
    _, (rate,) = tallies.at([counts[0], counts[-1]])
    return _Series(*tallies.at(counts[1:]), rate.accepted)


def _charts(edges: Sequence[int], series: Sequence[_Series], times_ms: tuple[int, int]) -> Iterator[Chart]:
    """The charts; `series`: of each share-partition; `times_ms`: the length of a bucket, and of all that is shown. The
    last bucket counts what it has so far."""
    bucket_s = times_ms[0] / 1000
    last = [values.gauges[-1] for values in series]
    unseen = not last or any(gauges.observed for gauges in last)
    buckets = list(pairwise(edges))

    def gauge(get: Callable[[Gauges], int | None]) -> list[float | None]:
        return [_total([get(values.gauges[place]) for values in series]) for place in range(len(edges))]

    def counts(get: Callable[[Tally], int]) -> list[float]:
        """The sums in each bucket."""
        return [sum(get(values.counts[place]) for values in series) for place in range(len(buckets))]

    def chart(name: str, unit: str, values: Sequence[float | None], current: float | None, *, bars: bool) -> Chart:
        points = tuple((a, b, None if unseen else value) for (a, b), value in zip(buckets, values, strict=True))
        return Chart(name, unit, bars, points, None if unseen else current)

    lag, in_flight = gauge(lambda g: g.lag), gauge(lambda g: g.in_flight)
    accepted, completed, waits = counts(lambda t: t.accepted), counts(lambda t: t.completed), counts(lambda t: t.waits)
    redelivered, timeouts = counts(lambda t: t.redelivered), counts(lambda t: t.timeouts)
    attempts, waited_ms = counts(lambda t: t.attempts), counts(lambda t: t.waited_ms)
    over = f"in {duration(times_ms[1])}"
    points = tuple((a, b, value) for (a, b), value in zip(buckets, lag[1:], strict=True))
    yield Chart("lag", "records", bars=False, points=points, current=lag[-1])
    yield chart("in flight", "records", in_flight[1:], in_flight[-1], bars=False)._replace(
        of=None if unseen else sum(gauges.limit for gauges in last), hot=any(gauges.full for gauges in last)
    )
    yield chart("throughput", "accepted/s", [count / bucket_s for count in accepted], 0, bars=True)
    yield chart("redeliveries", over, redelivered, sum(redelivered), bars=True)
    yield chart("time-outs", over, timeouts, sum(timeouts), bars=True)
    yield chart("lock wait", "ms", _means(waited_ms, waits), _mean(sum(waited_ms), sum(waits)), bars=False)
    yield chart("attempts", "", _means(attempts, completed), _mean(sum(attempts), sum(completed)), bars=False)


def _total(values: Sequence[int | None]) -> float | None:
    """The sum; None if there are no values, or one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _mean(total: float, count: float) -> float | None:
    return total / count if count else None


def _means(totals: Sequence[float], counts: Sequence[float]) -> list[float | None]:
    return [_mean(total, count) for total, count in zip(totals, counts, strict=True)]


# ---- drawing ---------------------------------------------------------------------------------------------------------

TOP, GAP, PLOT, TALL = 8, 12, 34, 42
"""`TALL`: the height of a plot beside tall neighbours, px."""
COLOURS = {
    "lag": "ink",
    "in flight": "acquired",
    "throughput": "acknowledged",
    "redeliveries": "available",
    "time-outs": "acquired",
    "lock wait": "soft",
    "attempts": "soft",
}


MEANS = ("lock wait", "attempts")
"""The charts of means."""
NAMES_ROOM, NARROW_ROOM = 150, 132
"""The width of the names and values, and that in a narrow picture, px."""
BIG = 16.0
"""The font size of a value, px."""


def draw(content: ChartsContent, width: float, *, tall: bool = False) -> Drawing:
    """One row for each chart: name, value and unit on the left, the chart, its greatest value on the right."""
    drawing = Drawing(width, text=_words(content))
    left = NARROW_ROOM if width < 480 else NAMES_ROOM
    time = TimeRange(content.from_ms, content.to_ms, left, width - 46)
    plot = TALL if tall else PLOT
    bottom = TOP + (plot + GAP) * len(content.charts) - GAP
    drawing.height = bottom + 24
    for number, chart in enumerate(content.charts):
        top = TOP + number * (plot + GAP)
        _draw_chart(drawing, chart, time, (top, top + plot))
    draw_axis(drawing, "time", time, content.origin_ms, bottom + 15)
    draw_moment(drawing, time, content.now_ms, TOP - 4, bottom + 3)
    drawing.brush = time.brush(TOP, bottom)
    return drawing


def _draw_chart(drawing: Drawing, chart: Chart, time: TimeRange, y: tuple[float, float]) -> None:
    (top, bottom), name, colour = y, chart.name, COLOURS[chart.name]
    value = value_text(chart)
    drawing.label(f"{name} name", 8, top + 10, _label(chart), style="small soft")
    known = chart.current is not None
    drawing.label(
        f"{name} value", 8, top + 28, value, style="strong hot" if chart.hot else "strong" if known else "soft small",
        font_size=BIG if known else None,
    )  # fmt: skip
    if known:
        x = 12 + text_width(value, BIG, strong=True)
        unit = first_fitting((_unit(chart), "full" if chart.hot else ""), time.left - 4 - x, SMALL)
        drawing.label(f"{name} unit", x, top + 28, unit, style="small soft")
    drawing.rect(f"{name} plot", time.left, top, time.right - time.left, bottom - top, fill="card", stroke="line",
                 title=f"{name}; {DRAG}")  # fmt: skip
    high = max((value for _, _, value in chart.points if value is not None), default=0)
    if any(value is not None for _, _, value in chart.points):
        scale = _Scale(time, bottom, (bottom - top - 4) / (high or 1))
        if chart.bars:
            drawing.path(f"{name} bars", _bars(chart, scale), fill=colour, stroke="none", title=name)
        else:
            drawing.path(f"{name} area", _bars(chart, scale), fill=colour, stroke="none", opacity=0.18)
            drawing.path(f"{name} line", _line(chart, scale), stroke=colour, stroke_width=1.6, title=name)
        drawing.label(f"{name} most", time.right + 4, top + 9, number_text(high), style="small soft")
        drawing.label(f"{name} least", time.right + 4, bottom, "0", style="small soft")


class _Scale(NamedTuple):
    time: TimeRange
    bottom: float
    per_unit: float

    def y(self, value: float) -> float:
        return self.bottom - value * self.per_unit


def _bars(chart: Chart, scale: _Scale) -> str:
    """A rectangle for each bucket with a value, as one path."""
    d = "M0 0"
    parts = []
    for from_ms, to_ms, value in chart.points:
        x, width = scale.time.x(from_ms), scale.time.x(to_ms) - scale.time.x(from_ms)
        if value and width > 0:
            height = scale.bottom - scale.y(value)
            gap = 0.5 if chart.bars and width > 2 else 0
            parts.append(f"M{x:.1f} {scale.bottom:.1f}v{-height:.1f}h{width - gap:.1f}v{height:.1f}z")
    return "".join(parts) or d


def _line(chart: Chart, scale: _Scale) -> str:
    """A line of steps, with a gap where there is no value."""
    d, drawn = "", False
    for from_ms, to_ms, value in chart.points:
        if value is not None:
            y = scale.y(value)
            d += f"V{y:.1f}" if drawn else f"M{scale.time.x(from_ms):.1f} {y:.1f}"
            d += f"H{scale.time.x(to_ms):.1f}"
        drawn = value is not None
    return d


def number_text(value: float) -> str:
    """A number of at most three or four digits: 0.25, 3.1, 412, 1,204, 31k."""
    if value >= 1e6:
        return f"{value / 1e6:.3g}M"
    if value >= 1e4:
        return f"{value / 1e3:.0f}k"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2g}" if value < 10 else f"{value:.0f}"


def value_text(chart: Chart) -> str:
    """The value of the moment."""
    return "not known" if chart.current is None else number_text(chart.current)


def _unit(chart: Chart) -> str:
    return chart.unit if chart.of is None else f"of {chart.of:,}{', full' if chart.hot else ''}"


def _label(chart: Chart) -> str:
    return f"{chart.name}, mean" if chart.name in MEANS else chart.name


def _words(content: ChartsContent) -> str:
    """All values in one line."""
    at = clock(content.now_ms - content.origin_ms)
    parts = [f"{_label(c)} {value_text(c)} {'' if c.current is None else _unit(c)}".rstrip() for c in content.charts]
    return f"{content.about} at {at}: " + "; ".join(parts)
