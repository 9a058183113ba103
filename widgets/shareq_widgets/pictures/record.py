"""The biography of one record: why it is where it is, its holders, for how long, under which configuration."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal.event_text import count_text
from shareq_widgets import selection
from shareq_widgets.drawing import Drawing
from shareq_widgets.instant import Instant
from shareq_widgets.look import SHAPES
from shareq_widgets.pictures.record_chapters import NO_LEADER, Chapter, chapters, config_text
from shareq_widgets.pictures.record_place import RecordPlace, place_of
from shareq_widgets.text_fit import SMALL, clipped, text_width, wrapped
from shareq_widgets.time_scale import TimeScale, duration_text, round_scale, time_text

__all__ = ["Chapter", "RecordContent", "RecordPlace", "config_text", "content", "draw", "draw_none"]

SHOWN_CHAPTERS: Final = 14
"""With more chapters, those after the first are left out and counted."""
SEGMENTS: Final = 60
NOTCHES: Final = 20
"""The most segments, and renewals, on the band: the last ones."""
AHEAD_MS: Final = 6_000

SPINE: Final = 78.0
LINE: Final = 14.5
BAND: Final = 22.0
WIDE: Final = 720.0
"""From this width on, details stand beside the titles."""
TITLES: Final = 324.0
"""The width of the titles in a wide picture."""


class RecordContent(NamedTuple):
    """`place`: where the record is and why. `chapters`: its life so far, oldest first."""

    group_id: str
    topic: str
    partition: int
    offset: int
    now_ms: int
    origin_ms: int
    place: RecordPlace
    chapters: tuple[Chapter, ...]


def content(instant: Instant, topic: str, partition: int, offset: int) -> RecordContent:
    """The life of the record at an offset, up to this moment. ValueError for an offset that no log can have.

    An offset that is not written yet, or that the log has lost, has a `place` that says so.
    """
    for name, value in (("partition", partition), ("offset", offset)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name}={value!r}: must be a whole number from 0")
    history, until = instant.history, instant.until
    changes = history.record(topic, partition, offset).until(until)
    state = history.share_partition(topic, partition, until)
    return RecordContent(
        history.group_id,
        topic,
        partition,
        offset,
        instant.now_ms,
        instant.origin_ms,
        place_of(instant, state, offset, changes),
        chapters(instant, changes),
    )


def draw_none(state: SharePartitionState, width: float) -> Drawing:
    """The picture without a selected record, and without one at the SPSO."""
    name = f"{state.topic}-{state.partition}"
    end = f"its window is empty at SPSO {state.spso:,}, the end of the log" if state.log_end > 0 else "its log is empty"
    head, why = f"{name} · no record is selected", f"{name} has no record in flight or waiting: {end}."
    hint = "Select a record in the strip to see what happened to it."
    drawing = Drawing(width, text=f"{head}\n{why} {hint}")
    drawing.label("title", 0, 13, clipped(head, width / 1.1), style="strong")
    lines = [(line, "") for line in wrapped(why, width)] + [(line, "soft") for line in wrapped(hint, width)]
    drawing.height = 38.0
    for number, (line, style) in enumerate(lines):
        drawing.label(f"why {number}", 0, drawing.height, line, style=style)
        drawing.height += LINE + 2
    return drawing


# ---- words -----------------------------------------------------------------------------------------------------------


def words(content: RecordContent) -> str:
    """The picture in words: the place, the reason, and a line for each chapter."""
    head = f"{content.topic}-{content.partition} offset {content.offset}: {_state_name(content.place)}"
    lines = [f"{head}, {content.place.where}", content.place.why]
    chapters = [_chapter_words(chapter, content) for chapter in _shown(content)]
    hidden = len(content.chapters) - len(chapters)
    left_out = [_left_out(hidden)] if hidden else []
    return "\n".join([*lines, *chapters[:1], *left_out, *chapters[1:]])


def _shown(content: RecordContent) -> list[Chapter]:
    """The first chapter and the last ones, SHOWN_CHAPTERS in all."""
    every = content.chapters
    return [*every[:1], *every[max(len(every) - SHOWN_CHAPTERS, 0) + 1 :]]


def _left_out(hidden: int) -> str:
    return f"{count_text(hidden, 'chapter')} left out"


def _state_name(place: RecordPlace) -> str:
    return {"above": "not in flight", "below": "not in flight", "none": "no record"}.get(place.name, place.name)


def _chapter_words(chapter: Chapter, content: RecordContent) -> str:
    holder = "" if chapter.holder is None else f", {chapter.holder}"
    details = "".join(f"; {text}" for text in chapter.details)
    return f"{_time(chapter.start_ms, content)} {chapter.title}{holder} ({_length(chapter)}){details}"


def _length(chapter: Chapter) -> str:
    return "until now" if chapter.end_ms is None else duration_text(chapter.end_ms - chapter.start_ms)


def _time(time_ms: int, content: RecordContent) -> str:
    return time_text(time_ms - content.origin_ms, 1)


# ---- the drawing -----------------------------------------------------------------------------------------------------


def draw(content: RecordContent, width: float) -> Drawing:
    """The state and the reason on top, then the life as a band over time, then the chapters one below the other."""
    drawing = Drawing(width, text=words(content))
    with drawing.about(
        selection.record(content.topic, content.partition, content.offset),
        selection.partition(content.topic, content.partition),
    ):
        y = _head(drawing, content)
        if content.chapters:
            y = _band(drawing, content, y + 12)
            y = _story(drawing, content, y + 16)
    drawing.height = y + 4
    return drawing


def _head(drawing: Drawing, content: RecordContent) -> float:
    place, room = content.place, drawing.width - 44
    _cell(drawing, content)
    title = clipped(f"{content.topic}-{content.partition} · offset {content.offset}", room / 1.1)
    drawing.label("title", 44, 13, title, style="strong")
    where = clipped(f"{_state_name(place)}, {place.where}", room, SMALL)
    drawing.label("where", 44, 29, where, style="small soft", title=place.where)
    y = 52.0
    for number, line in enumerate(wrapped(place.why, drawing.width)):
        drawing.label(f"why {number}", 0, y, line)
        y += LINE + 2
    return y - LINE


def _cell(drawing: Drawing, content: RecordContent) -> None:
    """The record as the strip draws it, with the letter and the colour of its holder."""
    shape = SHAPES.get(content.place.name)
    if shape is None:
        drawing.rect("cell", 1, 1, 32, 32, rx=6, stroke="line", stroke_width=1.5, stroke_dasharray="4 3")
        return
    fill, stroke = shape["fill"] or "bg", shape["stroke"]
    drawing.rect("cell", 1, 1, 32, 32, rx=6, fill=fill, stroke=stroke, stroke_width=shape["width"])
    if shape["glyph"]:
        move = "translate(17 17)"
        drawing.path("cell glyph", shape["glyph"], stroke=shape["ink"], stroke_width=2.2, transform=move)
    holder = content.chapters[-1].holder if content.chapters else None
    if holder is not None and content.place.name == "acquired":
        drawing.label("cell letter", 17, 19, holder.letter, anchor="middle", fill="onfill", style="strong")
        drawing.rect("cell stripe", 7, 25, 20, 3.5, rx=1.5, fill=holder.colour)


# ---- the band --------------------------------------------------------------------------------------------------------


def _band(drawing: Drawing, content: RecordContent, top: float) -> float:
    shown = content.chapters[-SEGMENTS:]
    deadline = 0 if shown[-1].end_ms is not None else shown[-1].deadline_ms or 0
    end = max(content.now_ms + AHEAD_MS, deadline)
    scale = round_scale(shown[0].start_ms, end, content.origin_ms, 1, drawing.width - 1)
    for tick in scale.ticks(content.origin_ms, max(64, drawing.width / 12)):
        key, room = f"tick {tick.time_ms - content.origin_ms}", text_width(tick.text, SMALL) / 2
        drawing.line(key, tick.x, top - 4, tick.x, top + BAND + 4)
        x = min(max(tick.x, room), drawing.width - room)
        drawing.label(f"{key} time", x, top + BAND + 17, tick.text, anchor="middle", style="small soft")
    if deadline:
        x = scale.x(shown[-1].start_ms)
        drawing.rect(
            "lock", x, top, scale.x(deadline) - x, BAND, rx=3, stroke="acquired", stroke_width=1.6,
            stroke_dasharray="4 3", title=f"locked until {_time(deadline, content)}",
        )  # fmt: skip
    for chapter in shown:
        _segment(drawing, content, scale, chapter, top)
    renewals = {time_ms for chapter in shown for time_ms in chapter.renewals if time_ms >= scale.start_ms}
    for time_ms in sorted(renewals)[-NOTCHES:]:
        x, title = scale.x(time_ms), f"renewed at {_time(time_ms, content)}"
        drawing.line(f"renewed {time_ms}", x, top - 3, x, top + BAND + 3, stroke="ink", stroke_width=1.8, title=title)
    x, rate = scale.x(content.now_ms), scale.per_ms
    drawing.line("now", x, top - 6, x, top + BAND + 6, stroke="ink", stroke_width=1.6, rates={"x1": rate, "x2": rate})
    return top + BAND + 20


def _segment(drawing: Drawing, content: RecordContent, scale: TimeScale, chapter: Chapter, top: float) -> None:
    goes_on = chapter.end_ms is None
    left = scale.x(chapter.start_ms)
    right = scale.x(content.now_ms if chapter.end_ms is None else chapter.end_ms)
    width = max(right - left - (0 if goes_on else 1), 1.5)
    drawing.rect(
        f"{chapter.key} segment", left, top, width, BAND, title=_chapter_words(chapter, content),
        rates={"width": scale.per_ms} if goes_on else None, **_paint(chapter),
    )  # fmt: skip
    if chapter.holder is not None and width >= text_width(chapter.holder.letter, strong=True) + 4:
        letter = chapter.holder.letter
        drawing.label(
            f"{chapter.key} by", left + width / 2, top + 15.5, letter, anchor="middle", fill="onfill", style="strong"
        )


def _paint(chapter: Chapter) -> dict[str, Any]:
    """The look of a chapter's state: as in the strip."""
    if chapter.state is None:
        return {"stroke": "line", "stroke_dasharray": "4 3" if chapter.title == NO_LEADER else None, "rx": 3}
    shape = SHAPES[chapter.state.name.lower()]
    return {"fill": shape["fill"] or "bg", "stroke": shape["stroke"], "stroke_width": 1.4, "rx": 3}


# ---- the chapters ----------------------------------------------------------------------------------------------------


def _story(drawing: Drawing, content: RecordContent, top: float) -> float:
    y, shown = top, _shown(content)
    hidden = len(content.chapters) - len(shown)
    for number, chapter in enumerate(shown):
        below = _chapter(drawing, content, chapter, y)
        last = number == len(shown) - 1
        if not last:
            drawing.line(f"{chapter.key} spine", SPINE, y + 14, SPINE, below, stroke="line", stroke_width=2)
        y = below
        if number == 0 and hidden:
            drawing.label("hidden", SPINE + 16, y + 11, _left_out(hidden), style="small soft")
            drawing.line("hidden spine", SPINE, y, SPINE, y + 20, stroke="line", stroke_dasharray="2 3", stroke_width=2)
            y += 20
    return y


def _chapter(drawing: Drawing, content: RecordContent, chapter: Chapter, top: float) -> float:
    """One chapter: its time, a dot in the colour of its state, title and details. Returns the place of the next one."""
    key, x = chapter.key, SPINE + 16
    drawing.label(
        f"{key} time", SPINE - 12, top + 11, _time(chapter.start_ms, content), anchor="end", style="small soft"
    )
    paint = {**_paint(chapter), "stroke_width": 2, "rx": None}
    if chapter.state is None:
        paint |= {"fill": "bg", "stroke": "soft"}
    drawing.circle(f"{key} dot", SPINE, top + 7, 5.5, **paint)
    if chapter.holder is not None:
        with drawing.about(selection.member(chapter.holder.member_id)):
            drawing.badge(key, x, top - 3, chapter.holder.letter, chapter.holder.colour, alive=chapter.holder.works)
        x += 24
    style = "hot" if chapter.last_attempt and chapter.end_ms is None else "strong"
    wide = drawing.width >= WIDE
    room = SPINE + 16 + TITLES if wide else drawing.width
    lines = [(text, style) for text in wrapped(_title(chapter), room - x, strong=True)]
    below = _lines(drawing, f"{key} title", lines, x, top + 11)
    if wide:
        return max(below, _details(drawing, chapter, room + 12, top + 11)) + 4
    return _details(drawing, chapter, SPINE + 16, below) + 4


def _details(drawing: Drawing, chapter: Chapter, x: float, y: float) -> float:
    """The seconds left of a lock, and the details, from `y` on. Returns the base line of the next text."""
    key = chapter.key
    if chapter.end_ms is None and chapter.deadline_ms is not None:
        drawing.label(f"{key} left", x, y, "lock left", style="small soft")
        at = x + 6 + text_width("lock left", SMALL)
        drawing.label(f"{key} seconds", at, y, "", countdown=chapter.deadline_ms, style="small strong")
        y += LINE
    for number, text in enumerate(chapter.details):
        hot = text in chapter.alarms
        texts = wrapped(text, drawing.width - x, SMALL, strong=hot)
        lines = [(line, "small hot" if hot else "small soft") for line in texts]
        y = _lines(drawing, f"{key} {number}", lines, x, y)
    return y


def _title(chapter: Chapter) -> str:
    holder = "" if chapter.holder is None else f"{chapter.holder.name} · "
    length = "" if chapter.end_ms is None else " " + f"· {_length(chapter)}".replace(" ", "\u00a0")
    return f"{holder}{chapter.title}{length}"


def _lines(drawing: Drawing, key: str, lines: list[tuple[str, str]], x: float, y: float) -> float:
    for number, (line, style) in enumerate(lines):
        drawing.label(f"{key} {number}", x, y, line, style=style)
        y += LINE
    return y
