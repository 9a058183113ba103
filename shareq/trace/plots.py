"""Pictures of a journal: what became of each offset over time, and how far a group is behind.

Needs matplotlib, which is imported when the first picture is drawn. Colours follow the light or dark style in force.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from io import BytesIO
from typing import TYPE_CHECKING, Any

from shareq.model.errors import ConfigException
from shareq.model.events import DurableStateRead, MemberLeft, RecordsAppended, RecordsChanged, WindowMoved
from shareq.trace.index import index_of
from shareq.trace.journal import Journal
from shareq.trace.lag import lag_over_time
from shareq.trace.ledger import partitions_of
from shareq.trace.marks import Mark, Marks
from shareq.trace.palette import DARK, HATCHES, LIGHT, SERIES, STATES, UNKNOWNS
from shareq.trace.roster import Roster
from shareq.trace.sampling import PAST, Raster, sample
from shareq.trace.sources import opened
from shareq.trace.story import Story, journal_of
from shareq.trace.words import listed, many

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TURNS = ("broker_killed", "leader_moved", "disturbed", "fault", "member_left")
"""The marks that a plot shows as vertical lines."""
_OF_RECORDS = (RecordsAppended, RecordsChanged, WindowMoved, DurableStateRead)


class Plot:
    """A drawn figure. `figure` and `axes` are matplotlib's own, to be changed at will; `text` says what they show."""

    def __init__(self, figure: Figure, axes: list[Axes], text: str, *, shown: bool) -> None:
        self.figure, self.axes, self.text = figure, axes, text
        self._shown = shown

    def __repr__(self) -> str:
        return self.text

    def _repr_png_(self) -> bytes | None:
        """None where the axes were given: their owner shows them."""
        if not self._shown:
            return None
        out = BytesIO()
        self.figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
        return out.getvalue()


def raster(
    source: Any, group: str, topic: str, partition: int | None = None, ax: Axes | None = None, *, by: str = "time"
) -> Plot:
    """Offset by time, coloured and hatched by state, with the SPSO and SPEO lines and what broke.

    `partition` None: all partitions of the topic, one below the other. `by`: "time", or "event" for an even step with
    every event, which shows what a virtual clock let happen at one moment. ConfigException for absurd arguments.
    """
    journal = journal_of(source)
    partitions = partitions_of(journal, topic) if partition is None else [partition]
    if by not in ("time", "event"):
        raise ConfigException(f"by={by!r}: must be 'time' or 'event'")
    if not partitions or (ax is not None and len(partitions) > 1):
        raise ConfigException(f"partition={partition!r}: must be one of {partitions_of(journal, topic)} of {topic!r}")
    figure, axes = _axes(ax, len(partitions), 2.4 if len(partitions) > 1 else 4.2)
    colours, texts = _colours(axes[0]), []
    stories = [_told(journal, group, topic, number) for number in partitions]
    moments = _moments(mark for story in stories for mark in _turns(story))
    span = (0.0, max(_end(story, journal.origin_ms, by) for story in stories))
    for number, story, axis in zip(partitions, stories, axes, strict=True):
        xs = _positions(story, journal.origin_ms, by)
        picture = sample(story.entries, xs, span)
        _draw_states(axis, picture, colours)
        axis.set_title(f"{group} on {topic}-{number}", loc="left", fontsize="medium", pad=14)
        axis.set_ylabel("offset")
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.locator_params(axis="y", integer=True)
        axis.set_xlim(*span)
        axis.set_ylim(picture.offsets[0], picture.offsets[-1])
        turns = _turns(story)
        _draw_turns(axis, {mark["time_ms"]: xs[mark["order"] - 1] for mark in turns}, moments, colours)
        texts.append(_raster_text(f"{group} on {topic}-{number}", picture, turns, journal.origin_ms))
    axes[-1].set_xlabel("seconds since the start" if by == "time" else "event of the share-partition")
    _legend(figure, axes, ax)
    return Plot(figure, axes, "\n".join(texts), shown=ax is None)


def lag_plot(source: Any, group: str, topic: str | None = None, ax: Axes | None = None) -> Plot:
    """How many records a group still has to do, for each partition over time, with what broke.

    `topic` None: all topics of the group. `source` may be a bootstrap address, too: then the plot shows how far behind
    the group is now. An observer, or a view of one, tells how it came to that.
    """
    source, close = opened(source, group, topic)
    if close is not None:
        with closing(source):
            source.refresh()
    journal = journal_of(source)
    about = [s for s in index_of(journal).subjects() if s.group == group and s.topic and s.partition is not None]
    wanted = sorted({(str(s.topic), s.partition or 0) for s in about if topic in (None, s.topic)})
    if not wanted:
        raise ConfigException(f"group={group!r}: must be one that the journal has share-partitions of")
    figure, axes = _axes(ax, 1, 3.4)
    axis, colours, texts = axes[0], _colours(axes[0]), []
    stories = {at: _told(journal, group, *at) for at in wanted}
    end_s = max(_end_s(story, journal.origin_ms) for story in stories.values())
    for place, at in enumerate(stories):
        series = lag_over_time(journal, group, *at) or [(journal.origin_ms, 0)]
        seconds = [(time_ms - journal.origin_ms) / 1000 for time_ms, _ in series]
        lags = [lag for _, lag in series]
        colour, dash = SERIES[place % len(SERIES)]
        name = f"{at[0]}-{at[1]}"
        axis.step(
            [*seconds, max(end_s, seconds[-1])], [*lags, lags[-1]], where="post", color=colour, linewidth=1.8,
            label=name, linestyle=dash,
        )  # fmt: skip
        texts.append(f"{name}: at most {max(lags):,}, {lags[-1]:,} in the end")
    axis.set_xlim(0, end_s * 1.02 or 1)
    axis.set_ylim(bottom=0)
    turns = [mark for story in stories.values() for mark in _turns(story)]
    positions = {mark["time_ms"]: (mark["time_ms"] - journal.origin_ms) / 1000 for mark in turns}
    _draw_turns(axis, positions, _moments(turns), colours)
    axis.set_title(f"Lag of {group}", loc="left", fontsize="medium", pad=14)
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.set_xlabel("seconds since the start")
    axis.set_ylabel("records to do")
    axis.grid(axis="y", color=colours["line"], linewidth=0.6)
    axis.set_axisbelow(True)
    _legend(figure, axes, ax)
    return Plot(figure, axes, f"Lag of {group}. " + "; ".join(texts) + ".", shown=ax is None)


# ---- drawing ---------------------------------------------------------------------------------------------------------


def _axes(ax: Axes | None, count: int, height: float) -> tuple[Figure, list[Axes]]:
    """The given axes, or a figure of our own that pyplot does not know, so that it is shown once."""
    from matplotlib.figure import Figure

    if ax is not None:
        figure = ax.get_figure(root=True)
        assert isinstance(figure, Figure)
        return figure, [ax]
    figure = Figure(figsize=(10, height * count + 0.7), layout="constrained")
    return figure, list(figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0])


def _colours(axis: Axes) -> dict[str, str]:
    """The palette that suits the background."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(axis.get_facecolor())
    return DARK if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else LIGHT


def _positions(story: Story, origin_ms: int, by: str) -> list[float]:
    """Where on the x axis each entry is."""
    if by == "event":
        return [float(i) for i in range(1, len(story.entries) + 1)]
    return [(entry.time_ms - origin_ms) / 1000 for entry in story.entries]


def _end(story: Story, origin_ms: int, by: str) -> float:
    """Where the x axis may end for this story; what the last event has made takes a step, too."""
    return len(story.entries) + 1.0 if by == "event" else _end_s(story, origin_ms) * 1.02 or 1.0


def _end_s(story: Story, origin_ms: int) -> float:
    """When something happened to the records for the last time."""
    times = [e.time_ms for e in story.entries if isinstance(e.event, _OF_RECORDS)]
    return (max(times, default=origin_ms) - origin_ms) / 1000


def _draw_states(axis: Axes, picture: Raster, colours: dict[str, str]) -> None:
    """One collection of rectangles a state, and its faded double below the SPSO."""
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
    axis.step(centres, picture.speo, where="mid", color=colours["ink"], linewidth=1, linestyle="--", label="SPEO")
    if picture.timeouts:
        x, offsets = zip(*picture.timeouts, strict=True)
        axis.plot(
            x, offsets, linestyle="none", marker="<", markersize=5, color=colours["alarm"],
            markeredgecolor=colours["bg"], markeredgewidth=0.5, label="lock ran out", zorder=4,
        )  # fmt: skip


def _turns(story: Story) -> list[Mark]:
    """The marks of the story that are worth a line. Somebody who says goodbye breaks nothing."""
    roster, marks = Roster(), Marks()
    for count, entry in enumerate(story.entries, start=1):
        roster.take_in(count, entry)
        if not (isinstance(entry.event, MemberLeft) and entry.event.reason == "left"):
            marks.take_in(count, entry, roster.name)
    return [mark for mark in marks.shown() if mark["kind"] in TURNS]


def _told(journal: Journal, group: str, topic: str, partition: int) -> Story:
    story = Story(journal, group, topic, partition)
    story.refresh()
    return story


def _moments(turns: Iterable[Mark]) -> dict[int, str]:
    """time_ms -> all that broke at that moment."""
    texts: dict[int, list[str]] = {}
    for mark in turns:
        said = texts.setdefault(mark["time_ms"], [])
        if mark["text"] not in said:
            said.append(mark["text"])
    return {time_ms: listed(texts[time_ms], 3) for time_ms in sorted(texts)}


def _draw_turns(axis: Axes, positions: dict[int, float], moments: dict[int, str], colours: dict[str, str]) -> None:
    """A line for each moment, with the number by which the legend tells what happened then."""
    end = axis.get_xlim()[1]
    for number, (time_ms, text) in enumerate(moments.items(), start=1):
        x = positions.get(time_ms)
        if x is not None and x <= end:
            sign = chr(ord("①") + number - 1) if number <= 20 else f"({number})"
            axis.axvline(
                x, color=colours["ink"], linewidth=1, linestyle=":", zorder=3, label=f"{sign} {text}",
                gid=f"moment {number}",
            )  # fmt: skip
            axis.text(x, 1.01, sign, transform=axis.get_xaxis_transform(), ha="center", va="bottom", fontsize="small")


def _legend(figure: Figure, axes: list[Axes], given: Axes | None) -> None:
    """States in the palette's order, then lines, then what broke; each once however many axes have it."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    order = {label: place for place, label in enumerate((*STATES, *UNKNOWNS, "SPSO", "SPEO", "lock ran out"))}
    labels = sorted(found, key=lambda label: order.get(label, len(order)))
    columns = min(len(labels), 6)
    labels = [label for column in range(columns) for label in labels[column::columns]]  # matplotlib fills columns first
    handles = [found[label] for label in labels]
    if given is not None:
        given.legend(handles, labels, fontsize="small", loc="best")
    else:
        figure.legend(handles, labels, loc="outside lower left", ncols=columns, fontsize="small", frameon=False)


def _raster_text(what: str, picture: Raster, turns: Iterable[Mark], origin_ms: int) -> str:
    """What the raster shows, in words."""
    low, high = int(picture.offsets[0]), int(picture.offsets[-1])
    done = ", ".join(f"{count:,} {state}" for state, count in picture.outcomes.items())
    broke = [f"{mark['text']} at {(mark['time_ms'] - origin_ms) / 1000:,.3f} s" for mark in turns]
    parts = [
        f"{what}: offsets {low:,} to {high - 1:,}; {done}",
        f"SPSO {int(picture.spso[-1]):,} and SPEO {max(int(picture.speo[-1]) - 1, int(picture.spso[-1])):,} in the end",
        many(len(picture.timeouts), "lock") + " ran out" if picture.timeouts else "",
        listed(broke, 6),
    ]
    return "; ".join(part for part in parts if part) + "."
