"""Plots of a journal: the state of each offset over time, and the lag of a group.

Needs matplotlib, which is imported when the first picture is drawn. Colours follow the light or dark style in force.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from shareq.extras import require
from shareq.model.errors import ConfigException
from shareq.model.events import DurableStateRead, RecordsAppended, RecordsChanged, WindowMoved
from shareq.trace.analysis.lag import lag_over_time
from shareq.trace.analysis.ledger import partitions_of
from shareq.trace.analysis.one_thread import by_one_thread
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.journal import Journal, journal_of
from shareq.trace.journal.event_text import count_text, list_text
from shareq.trace.views.figure_text import figure_text
from shareq.trace.views.marks import failures
from shareq.trace.views.member_names import names_of
from shareq.trace.views.palette import DARK, HATCHES, LIGHT, SERIES, STATES, UNKNOWNS
from shareq.trace.views.raster_sampling import PAST, Raster, sample
from shareq.trace.views.snapshot import Mark
from shareq.trace.views.subjects import check_subject
from shareq.trace.views.themed_svg import themed_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SVG_BYTES = 140_000
"""The most bytes of a plot as SVG in a notebook; a larger one is a PNG only."""
_OF_RECORDS = (RecordsAppended, RecordsChanged, WindowMoved, DurableStateRead)


class Plot:
    """A drawn figure. `figure` and `axes` are matplotlib objects that may be changed; `text` describes them."""

    def __init__(self, figure: Figure, axes: list[Axes], text: str, *, shown: bool) -> None:
        self.figure, self.axes, self.text = figure, axes, text
        self._shown = shown

    def __repr__(self) -> str:
        return self.text

    def _repr_png_(self) -> bytes | None:
        """None if the axes were given: their owner shows them."""
        if not self._shown:
            return None
        out = BytesIO()
        self.figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
        return out.getvalue()

    def _repr_svg_(self) -> str | None:
        """The same for notebooks that show SVG: it follows their light or dark theme.

        None if the axes were given, in a dark style of matplotlib, or if it would be larger than `MOST_SVG_BYTES`.
        """
        from matplotlib.colors import to_hex

        if not self._shown or to_hex(self.figure.get_facecolor()) != LIGHT["bg"]:
            return None
        made = themed_figure(self.figure)
        return made if len(made.encode()) <= MOST_SVG_BYTES else None


@by_one_thread
def raster(
    source: Any, group: str, topic: str, partition: int | None = None, ax: Axes | None = None, *, by: str = "time"
) -> Plot:
    """Offset by time, coloured and hatched by state, with the SPSO and SPEO lines and a line for each failure.

    `partition` None: all partitions of the topic, one below the other. `by`: "time", or "event" for equal steps from
    event to event, which separates events at one instant of a virtual clock. ConfigException for invalid arguments.
    """
    journal = journal_of(source)
    if by not in ("time", "event"):
        raise ConfigException(f"by={by!r}: must be 'time' or 'event'")
    check_subject(journal, group, topic, partition)
    partitions = partitions_of(journal, topic) if partition is None else [partition]
    if not partitions or (ax is not None and len(partitions) > 1):
        raise ConfigException(f"partition={partition!r}: must be one of {partitions_of(journal, topic)} of {topic!r}")
    figure, axes = _axes(ax, len(partitions), 2.4 if len(partitions) > 1 else 4.2)
    colours, texts = _colours(axes[0]), []
    timelines = [_timeline(journal, group, topic, number) for number in partitions]
    moments = _moments(mark for timeline in timelines for mark in _failures(timeline))
    span = (0.0, max(_end(timeline, journal.origin_ms, by) for timeline in timelines))
    for number, timeline, axis in zip(partitions, timelines, axes, strict=True):
        xs = _positions(timeline, journal.origin_ms, by)
        picture = sample(timeline.entries, xs, span)
        _draw_states(axis, picture, colours)
        axis.set_title(figure_text(f"{group} on {topic}-{number}"), loc="left", fontsize="medium", pad=14)
        axis.set_ylabel("offset")
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.locator_params(axis="y", integer=True)
        axis.set_xlim(*span)
        axis.set_ylim(picture.offsets[0], picture.offsets[-1])
        failures = _failures(timeline)
        _draw_failures(axis, {mark["time_ms"]: xs[mark["order"] - 1] for mark in failures}, moments, colours)
        texts.append(_raster_text(f"{group} on {topic}-{number}", picture, failures, journal.origin_ms))
    axes[-1].set_xlabel("seconds since the start" if by == "time" else "event of the share-partition")
    _legend(figure, axes, ax)
    return Plot(figure, axes, "\n".join(texts), shown=ax is None)


@by_one_thread
def lag_plot(source: Any, group: str, topic: str | None = None, ax: Axes | None = None) -> Plot:
    """Lag of a group by partition over time, with a line for each failure.

    `topic` None: all topics of the group.
    """
    journal = journal_of(source)
    about = [s for s in journal.subjects() if s.group == group and s.topic and s.partition is not None]
    wanted = sorted({(str(s.topic), s.partition or 0) for s in about if topic in (None, s.topic)})
    if not wanted:
        raise ConfigException(f"group={group!r}: must be one that the journal has share-partitions of")
    figure, axes = _axes(ax, 1, 3.4)
    axis, colours, texts = axes[0], _colours(axes[0]), []
    timelines = {at: _timeline(journal, group, *at) for at in wanted}
    end_s = max(_end_s(timeline, journal.origin_ms) for timeline in timelines.values())
    for place, at in enumerate(timelines):
        series = lag_over_time(journal, group, *at) or [(journal.origin_ms, 0)]
        seconds = [(time_ms - journal.origin_ms) / 1000 for time_ms, _ in series]
        lags = [lag for _, lag in series]
        colour, dash = SERIES[place % len(SERIES)]
        name = f"{at[0]}-{at[1]}"
        axis.step(
            [*seconds, max(end_s, seconds[-1])], [*lags, lags[-1]], where="post", color=colour, linewidth=1.8,
            label=figure_text(name), linestyle=dash,
        )  # fmt: skip
        texts.append(f"{name}: at most {max(lags):,}, {lags[-1]:,} in the end")
    axis.set_xlim(0, end_s * 1.02 or 1)
    axis.set_ylim(bottom=0)
    failures = [mark for timeline in timelines.values() for mark in _failures(timeline)]
    positions = {mark["time_ms"]: (mark["time_ms"] - journal.origin_ms) / 1000 for mark in failures}
    _draw_failures(axis, positions, _moments(failures), colours)
    axis.set_title(figure_text(f"Lag of {group}"), loc="left", fontsize="medium", pad=14)
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.set_xlabel("seconds since the start")
    axis.set_ylabel("records to do")
    axis.grid(axis="y", color=colours["line"], linewidth=0.6)
    axis.set_axisbelow(True)
    _legend(figure, axes, ax)
    return Plot(figure, axes, f"Lag of {group}. " + "; ".join(texts) + ".", shown=ax is None)


# ---- drawing ---------------------------------------------------------------------------------------------------------


def _axes(ax: Axes | None, count: int, height: float) -> tuple[Figure, list[Axes]]:
    """The given axes, or those of a new figure outside pyplot, which a notebook shows once."""
    require("lab", "matplotlib", "numpy")
    from matplotlib.figure import Figure

    if ax is not None:
        figure = ax.get_figure(root=True)
        assert isinstance(figure, Figure)
        return figure, [ax]
    figure = Figure(figsize=(10, height * count + 0.7), layout="constrained")
    return figure, list(figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0])


def _colours(axis: Axes) -> dict[str, str]:
    """The palette for the background: light or dark."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(axis.get_facecolor())
    return DARK if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else LIGHT


def _positions(timeline: PartitionTimeline, origin_ms: int, by: str) -> list[float]:
    """The x position of each entry."""
    if by == "event":
        return [float(i) for i in range(1, len(timeline.entries) + 1)]
    return [(entry.time_ms - origin_ms) / 1000 for entry in timeline.entries]


def _end(timeline: PartitionTimeline, origin_ms: int, by: str) -> float:
    """End of the x axis for this timeline; the state after the last event takes a step as well."""
    return len(timeline.entries) + 1.0 if by == "event" else _end_s(timeline, origin_ms) * 1.02 or 1.0


def _end_s(timeline: PartitionTimeline, origin_ms: int) -> float:
    """Time of the last event about records."""
    times = [e.time_ms for e in timeline.entries if isinstance(e.event, _OF_RECORDS)]
    return (max(times, default=origin_ms) - origin_ms) / 1000


def _draw_states(axis: Axes, picture: Raster, colours: dict[str, str]) -> None:
    """One collection of rectangles for each state, and a faded one for the state below the SPSO."""
    from matplotlib.collections import PolyCollection

    for code, state in enumerate((*STATES, *UNKNOWNS), start=1):
        if state in UNKNOWNS and not picture.has(code):
            continue
        for past in (0, PAST):
            rectangles = picture.rectangles(code + past)
            patches = PolyCollection(
                rectangles,
                facecolors=colours[state],
                edgecolors=colours["bg"] if HATCHES[state] else "none",
                linewidths=0,
                hatch=HATCHES[state] or None,
                alpha=0.45 if past else 1.0,
                antialiaseds=False,
                label=f"_{state} below the SPSO" if past or not picture.has(code) else state,
                gid=f"{state} below the SPSO" if past else state,
                zorder=1,
            )
            axis.add_collection(patches, autolim=False)
    centres = (picture.x[:-1] + picture.x[1:]) / 2
    axis.step(centres, picture.spso, where="mid", color=colours["ink"], linewidth=1.3, label="SPSO")
    end = "SPEO at most" if picture.uncertain else "SPEO"
    axis.step(centres, picture.window_end, where="mid", color=colours["ink"], linewidth=1, linestyle="--", label=end)
    if picture.timeouts:
        x, offsets = zip(*picture.timeouts, strict=True)
        axis.plot(
            x, offsets, linestyle="none", marker="<", markersize=5, color=colours["alarm"],
            markeredgecolor=colours["bg"], markeredgewidth=0.5, label="lock ran out", zorder=4,
        )  # fmt: skip


def _failures(timeline: PartitionTimeline) -> list[Mark]:
    """The marks drawn as lines."""
    return failures(timeline.entries, names_of(timeline.journal, timeline.group).name)


def _timeline(journal: Journal, group: str, topic: str, partition: int) -> PartitionTimeline:
    timeline = PartitionTimeline(journal, group, topic, partition)
    timeline.refresh()
    return timeline


def _moments(failures: Iterable[Mark]) -> dict[int, str]:
    """time_ms -> text of all failures at that time."""
    texts: dict[int, list[str]] = {}
    for mark in failures:
        same_time = texts.setdefault(mark["time_ms"], [])
        if mark["text"] not in same_time:
            same_time.append(mark["text"])
    return {time_ms: list_text(texts[time_ms], 3) for time_ms in sorted(texts)}


def _draw_failures(axis: Axes, positions: dict[int, float], moments: dict[int, str], colours: dict[str, str]) -> None:
    """A line for each time, with the number of its text in the legend."""
    end = axis.get_xlim()[1]
    for number, (time_ms, text) in enumerate(moments.items(), start=1):
        x = positions.get(time_ms)
        if x is not None and x <= end:
            sign = chr(ord("①") + number - 1) if number <= 20 else f"({number})"
            axis.axvline(
                x, color=colours["ink"], linewidth=1, linestyle=":", zorder=3, label=figure_text(f"{sign} {text}"),
                gid=f"moment {number}",
            )  # fmt: skip
            axis.text(x, 1.01, sign, transform=axis.get_xaxis_transform(), ha="center", va="bottom", fontsize="small")


def _legend(figure: Figure, axes: list[Axes], given: Axes | None) -> None:
    """States in the palette's order, then lines, then failures; each once, on however many axes."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    known = (*STATES, *UNKNOWNS, "SPSO", "SPEO", "SPEO at most", "lock ran out")
    order = {label: place for place, label in enumerate(known)}
    labels = sorted(found, key=lambda label: order.get(label, len(order)))
    columns = min(len(labels), 6)
    labels = [label for column in range(columns) for label in labels[column::columns]]  # matplotlib fills columns first
    handles = [found[label] for label in labels]
    if given is not None:
        given.legend(handles, labels, fontsize="small", loc="best")
    else:
        figure.legend(handles, labels, loc="outside lower left", ncols=columns, fontsize="small", frameon=False)


def _raster_text(what: str, picture: Raster, failures: Iterable[Mark], origin_ms: int) -> str:
    """The raster as text."""
    low, high = int(picture.offsets[0]), int(picture.offsets[-1])
    spso, window_end = int(picture.spso[-1]), int(picture.window_end[-1])
    speo = f"SPEO {'at most ' if picture.uncertain else ''}{window_end - 1:,}"
    done = ", ".join(f"{count:,} {state}" for state, count in picture.outcomes.items())
    failed = [f"{mark['text']} at {(mark['time_ms'] - origin_ms) / 1000:,.3f} s" for mark in failures]
    parts = [
        f"{what}: offsets {low:,} to {high - 1:,}; {done}",
        f"SPSO {spso:,} and {speo if spso < window_end else 'an empty window'} in the end",
        count_text(len(picture.timeouts), "lock") + " ran out" if picture.timeouts else "",
        list_text(failed, 6),
    ]
    return "; ".join(part for part in parts if part) + "."
