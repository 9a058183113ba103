"""Offset by time of one share-partition: the state of each record, the SPSO and SPEO, deaths and expired locks.

A drag over the plot selects times: `Drawing.brush` has the area and the times at its edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from shareq.extras import require
from shareq.model.events import MemberLeft, RecordsChanged
from shareq.model.states import RecordEvent, RecordState
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal import Entry
from shareq.trace.journal.event_text import count_text, range_text
from shareq.trace.views.marks import Marks, has_left_by_itself
from shareq.trace.views.palette import STATES, UNKNOWNS
from shareq.trace.views.plots import MARKED
from shareq.trace.views.raster_sampling import PAST, Raster, sample
from shareq_widgets import selection
from shareq_widgets.drawing import Drawing
from shareq_widgets.instant import Instant
from shareq_widgets.look import SHAPES
from shareq_widgets.pictures.time_plot import TimeRange, clock, draw_axis, draw_moment
from shareq_widgets.text_fit import SMALL, text_width

LOCK_TIMEOUT = str(RecordEvent.LOCK_TIMEOUT)
SPAN_MS = 60_000
SPAN_EVENTS = 75_000
"""Maximum number of entries of the journal in the times of a picture that no argument sets: with more of them in a
minute, it shows less than a minute."""
COLUMNS, ROWS = 200, 72
"""Maximum samples of a picture."""
AHEAD = 8
"""Without a given end, the times reach past the moment by this part of the span: room for locks that will run out."""

Rectangle = tuple[float, float, int, int]
"""(from ms, to ms, first offset, end offset) of samples in one state."""
Steps = tuple[tuple[float, int], ...]
"""(from ms, offset) at each change."""


class Notice(NamedTuple):
    """Something that happened at a time, or will; `hot`: a person should look."""

    time_ms: float
    text: str
    hot: bool


class RasterContent(NamedTuple):
    """`states`: name -> samples; `past`: those below the SPSO. `offsets`: the range drawn, half-open. `spso`,
    `window_end`: half-open edges of the window over time. `expired`: (time ms, first, end) of expired locks.
    `ahead`: when the locks of the moment will run out. `waits`: the member that holds the record at the SPSO.
    `known`: False until the share-partition is loaded, or something durable is read. `at_most`: the SPEO is an
    upper bound: the source is observed.
    """

    topic: str
    partition: int
    origin_ms: int
    now_ms: int
    from_ms: int
    to_ms: int
    known: bool
    at_most: bool
    offsets: tuple[int, int]
    states: dict[str, tuple[Rectangle, ...]]
    past: dict[str, tuple[Rectangle, ...]]
    spso: Steps
    window_end: Steps
    expired: tuple[tuple[float, int, int], ...]
    notices: tuple[Notice, ...]
    ahead: tuple[Notice, ...]
    waits: str


def content(
    instant: Instant,
    topic: str,
    partition: int,
    *,
    columns: int = COLUMNS,
    rows: int = ROWS,
    from_ms: int | None = None,
    to_ms: int | None = None,
) -> RasterContent:
    """The records from `from_ms` to `to_ms`, up to the moment. Without `from_ms`: the last minute, or the time of the
    last SPAN_EVENTS if it is shorter; without `to_ms`: a little more than the moment. The cost follows the entries in
    this time. Needs numpy.
    """
    require("lab", "numpy")
    begin, end = times(instant, from_ms, to_ms)
    history = instant.history
    timeline = history.timeline(topic, partition)
    stop = timeline.count(instant.until)
    place = min(timeline.at_time(begin), stop)
    start = timeline.state(place).copy()
    entries = timeline.entries[place:stop]
    drawn = [entry for entry in entries if entry.time_ms <= end]
    shown_to = min(instant.now_ms, end)
    part = max((shown_to - begin) / (end - begin), 0)
    picture = sample(
        drawn, [entry.time_ms for entry in drawn], (begin, max(shown_to, begin + 1)),
        start=start, size=(max(round(columns * part), 1), rows),
    )  # fmt: skip
    state = history.share_partition(topic, partition, instant.until)
    first_known = _first_known(drawn, start, begin)
    last = (instant.now_ms, state.spso, state.window_end) if begin <= instant.now_ms <= end else None
    return RasterContent(
        topic, partition, instant.origin_ms, instant.now_ms, begin, end,
        first_known is not None and shown_to >= begin, state.uncertain,
        (int(picture.offsets[0]), int(picture.offsets[-1])), _samples(picture, 0), _samples(picture, PAST),
        _steps(picture, picture.spso, first_known, last and (last[0], last[1])),
        _steps(picture, picture.window_end, first_known, last and (last[0], last[2])),
        _expired(drawn), tuple(_notices(instant, drawn)), tuple(_ahead(instant, state, end)),
        _waits(instant, state),
    )  # fmt: skip


def times(instant: Instant, from_ms: int | None, to_ms: int | None, span_ms: int = SPAN_MS) -> tuple[int, int]:
    """The times of a picture; ValueError if `from_ms` is not before `to_ms`."""
    begin = _begin(instant, span_ms) if from_ms is None else from_ms
    end = max(instant.now_ms, begin + 1) + (instant.now_ms - begin) // AHEAD if to_ms is None else to_ms
    if begin >= end:
        raise ValueError(f"from_ms={begin}: must be before to_ms={end}")
    return begin, end


def _begin(instant: Instant, span_ms: int) -> int:
    """The time from which on a picture shows what happened, so that its cost is bounded."""
    journal = instant.history.journal
    place = instant.until - SPAN_EVENTS - journal.dropped
    earliest_ms = journal[place].time_ms if 0 <= place < len(journal) else instant.origin_ms
    return max(instant.origin_ms, instant.now_ms - span_ms, earliest_ms)


def _first_known(entries: Sequence[Entry], start: SharePartitionState, begin: int) -> float | None:
    """The time from which on a window is known."""
    if start.loaded or start.window_end > start.spso:
        return begin
    known = ("SharePartitionLoaded", "DurableStateRead", "RecordsHeld")
    return next((entry.time_ms for entry in entries if type(entry.event).__name__ in known), None)


def _samples(picture: Raster, past: int) -> dict[str, tuple[Rectangle, ...]]:
    """The rectangles of each state that occurs."""
    found = {}
    for code, state in enumerate((*STATES, *UNKNOWNS), start=1 + past):
        corners = picture.rectangles(code)
        if len(corners):
            found[state] = tuple((float(a[0]), float(b[0]), int(a[1]), int(b[1])) for a, _, b, _ in corners)
    return found


def _steps(picture: Raster, values: Any, from_ms: float | None, last: tuple[int, int] | None) -> Steps:
    """The changes of a line from a time on; `last`: its time and value at the moment, if that is drawn."""
    steps: list[tuple[float, int]] = []
    for left, right, value in zip(picture.x[:-1], picture.x[1:], values, strict=True):
        if from_ms is not None and right > from_ms and (not steps or steps[-1][1] != value):
            steps.append((max(float(left), from_ms), int(value)))
    if from_ms is not None and last is not None and (not steps or steps[-1][1] != last[1]):
        steps.append(last)
    return tuple(steps)


def _expired(entries: Sequence[Entry]) -> tuple[tuple[float, int, int], ...]:
    return tuple(
        [
            (entry[1], event[4], event[5])
            for entry in entries
            if type(event := entry[3]) is RecordsChanged and event[3] == LOCK_TIMEOUT
        ]
    )


def _notices(instant: Instant, entries: Sequence[Entry]) -> Iterator[Notice]:
    """Deaths, failures and elections; a member that leaves by itself is none."""
    marks = Marks(instant.name)
    marks.add(0, [entry for entry in entries if type(entry[3]) is not MemberLeft or not has_left_by_itself(entry)])
    for mark in marks.shown():
        if mark["kind"] in MARKED:
            hot = mark["kind"] in ("broker_killed", "fault", "member_left", "disturbed")
            yield Notice(mark["time_ms"], mark["text"], hot)


def _ahead(instant: Instant, state: SharePartitionState, end: int) -> Iterator[Notice]:
    """When the locks of each member will run out, in the times drawn: the first of its deadlines."""
    first: dict[str, int] = {}
    for _, _, status in state.runs:
        if status.member_id is not None and status.deadline_ms is not None:
            first[status.member_id] = min(status.deadline_ms, first.get(status.member_id, status.deadline_ms))
    for member_id, deadline_ms in sorted(first.items(), key=lambda item: item[1]):
        if instant.now_ms < deadline_ms <= end:
            yield Notice(deadline_ms, f"{instant.letter(member_id)}'s locks run out", False)


def _waits(instant: Instant, state: SharePartitionState) -> str:
    """Why the SPSO stays where it is, if a member holds the record there."""
    for _, _, status in state.runs.overlap(state.spso, state.spso + 1):
        if status.state is RecordState.ACQUIRED and status.member_id is not None and state.loaded:
            return f"SPSO waits for {instant.letter(status.member_id)}'s {state.spso:,}"
    return ""


# ---- drawing ---------------------------------------------------------------------------------------------------------

TOP, AXIS = 44, 20
TALL = 320
"""The height of the plot beside tall neighbours, px."""
LINE = 13
"""The height of a line of text, px."""


def draw(content: RasterContent, width: float, *, tall: bool = False) -> Drawing:
    """The plot: one path for each state, the lines of SPSO and SPEO, the moment, and what happened."""
    drawing = Drawing(width, text="\n".join(_words(content)))
    bottom = TOP + (TALL if tall else 150 if width < 600 else 180)
    drawing.height = bottom + AXIS + 4
    high = content.offsets[1]
    left = 14 + text_width(f"{high:,}", SMALL)
    time = TimeRange(content.from_ms, content.to_ms, left, width - 14)
    scale = _Scale(content.offsets, TOP, bottom)
    drawing.brush = time.brush(TOP, bottom)
    with drawing.about(selection.partition(content.topic, content.partition)):
        drawing.rect("plot", left, TOP, time.right - left, bottom - TOP, title="drag to look at another moment",
                     fill="card", stroke="line")  # fmt: skip
        draw_axis(drawing, "time", time, content.origin_ms, bottom + 15)
        if not content.known:
            drawing.label("unknown", left + 10, TOP + 24, _unknown(content), style="small soft")
            draw_moment(drawing, time, content.now_ms, TOP - 4, bottom + 3)
            return drawing
        _draw_offsets(drawing, scale, left, time.right)
        _draw_states(drawing, content, time, scale)
        _draw_window(drawing, content, time, scale)
        _draw_notices(drawing, content, time, (TOP, bottom))
        _draw_expired(drawing, content, time, scale)
        draw_moment(drawing, time, content.now_ms, TOP - 4, bottom + 3)
    _draw_legend(drawing, content)
    return drawing


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
            fill = SHAPES[state]["fill"]
            faint = state == "acknowledged" or fill is None
            drawing.path(
                f"{state}{suffix}", "".join(_rectangle(part, time, scale) for part in rectangles),
                fill=fill or state, stroke="none", opacity=opacity * (0.62 if faint else 1),
                shape_rendering="crispEdges", title=f"{state}{suffix}",
            )  # fmt: skip


def _rectangle(part: Rectangle, time: TimeRange, scale: _Scale) -> str:
    from_ms, to_ms, first, end = part
    x, top = time.x(from_ms), scale.y(end)
    width, height = time.x(to_ms) - x, scale.y(first) - top
    return f"M{x:.1f} {top:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}z"


def _draw_window(drawing: Drawing, content: RasterContent, time: TimeRange, scale: _Scale) -> None:
    """The lines of the SPSO and of the SPEO with their present offsets."""
    until = min(content.now_ms, content.to_ms)
    for key, steps, stroke, dash in (("SPSO", content.spso, 1.8, None), ("SPEO", content.window_end, 1.4, "5 3")):
        if steps:
            path = _line(steps, until, time, scale)
            drawing.path(key, path, stroke="ink", stroke_width=stroke, stroke_dasharray=dash, title=key)
    for key, text, y in _bound_labels(content, scale):
        _label_at(drawing, key, text, (time.x(until), y), (time.left + 4, time.right - 4))


def _bound_labels(content: RasterContent, scale: _Scale) -> list[tuple[str, str, float]]:
    """(key, text, y) of the window's bounds: the SPEO above its line and the SPSO below it where there is room; one
    text for an empty window."""
    spso, speo = window_text(content)
    low, high = scale.y(content.spso[-1][1]), scale.y(content.window_end[-1][1])
    below = low + 14 if low + 18 <= scale.bottom else low - 6
    if content.spso[-1][1] >= content.window_end[-1][1]:
        return [("SPSO text", f"{spso}, {speo}", below)]
    above = high - 6 if high - 18 >= scale.top else high + 12
    if below - above < LINE:  # the lines are near each other, at the top or at the bottom
        above, below = (above, above + LINE) if above + LINE + 4 <= scale.bottom else (below - LINE, below)
    return [("SPEO text", speo, above), ("SPSO text", spso, below)]


def _label_at(drawing: Drawing, key: str, text: str, at: tuple[float, float], room: tuple[float, float]) -> None:
    """A text after the moment, or before it if there is no room after it; it stays inside of the plot."""
    (x, y), (left, right), width = at, room, text_width(text, strong=True)
    after, before = x + 6 + width <= right, x - 6 - width >= left
    drawing.label(
        key, x + 6 if after else x - 6 if before else left, y, text, anchor="end" if before and not after else "start",
        style="strong small", stroke="bg", stroke_width=3, paint_order="stroke",
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
        return f"SPSO {spso:,}", "window empty"
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
            fill = SHAPES[state]["fill"]
            drawing.rect(
                f"legend {state}", x, 5, 10, 10, rx=2, fill=fill or state, opacity=0.55 if fill is None else None
            )
            drawing.label(f"legend text {state}", x + 14, 14, state, style="small soft")
            x += 22 + text_width(state, SMALL)


def _unknown(content: RasterContent) -> str:
    where = f"{content.topic}-{content.partition}"
    return f"{where}: nothing is known yet" if content.at_most else f"{where} is not loaded on any broker yet"


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
