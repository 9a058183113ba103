"""The acquisition locks of a group as bars on one time axis, with a *now* line.

The axis stays and the *now* line moves: between two snapshots only that line and the solid parts of the bars change.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from shareq.model.states import RecordState
from shareq.trace.journal.event_text import range_text
from shareq_widgets import selection
from shareq_widgets.drawing import Drawing
from shareq_widgets.pictures.locks_content import (
    ROWS,
    LockRow,
    LocksContent,
    content,
    more_words,
    nothing_held,
    row_words,
    words,
)
from shareq_widgets.text_fit import SMALL, clipped, text_width
from shareq_widgets.time_scale import TimeScale, round_scale, time_text

__all__ = ["ROWS", "LockRow", "LocksContent", "content", "draw"]

AHEAD_MS: Final = 6_000
"""The axis reaches at least this far after now, so that the *now* line can move before the next snapshot."""
PAST_SHARE: Final = 1.5
"""The axis reaches back at most this many times as far as it reaches ahead, or as the longest lock lasts."""

TOP: Final = 26.0
PITCH: Final = 31.0
BAR: Final = 15.0
AXIS: Final = 22.0
MORE: Final = 18.0
RIGHT: Final = 46.0
"""Room for the seconds behind the last bar."""
RIGHT_UNKNOWN: Final = 74.0
RIGHT_WORDS: Final = 136.0
"""Room for the words where a deadline is not known, in a narrow and in a wide picture."""
BADGE: Final = 26.0
MARKED: Final = 100
WIDE: Final = 560.0
"""From this width on, rows have the names of members."""

STATE_FILL: Final[dict[RecordState, dict[str, Any]]] = {
    RecordState.ACKNOWLEDGED: {"fill": "acknowledged", "stroke": "acknowledged"},
    RecordState.AVAILABLE: {"fill": "bg", "stroke": "available", "stroke_width": 2},
    RecordState.ARCHIVED: {"fill": "hatch", "stroke": "archived"},
    RecordState.ARCHIVING: {"fill": "dots", "stroke": "archiving"},
}
"""The bar of a lock that has ended looks like its records since then."""


class _Frame(NamedTuple):
    """What all rows share."""

    drawing: Drawing
    content: LocksContent
    scale: TimeScale
    gutter: float
    now_x: float


class _Bar(NamedTuple):
    left: float
    right: float
    top: float


def draw(content: LocksContent, width: float) -> Drawing:
    """The bars: solid is past, hollow is left, a notch is a renewal."""
    rows = [*content.rows, *content.ended]
    bottom = TOP + max(len(rows), 1) * PITCH
    drawing = Drawing(width, bottom + AXIS + (MORE if content.more else 0), text=words(content))
    gutter = _gutter(content, width)
    known = all(row.deadline_ms is not None for row in content.rows)
    scale = _scale(content, gutter, width - (RIGHT if known else RIGHT_UNKNOWN if width < WIDE else RIGHT_WORDS))
    frame = _Frame(drawing, content, scale, gutter, scale.x(content.now_ms))
    _axis(frame, bottom)
    for place, row in enumerate(rows):
        with drawing.about(*_subjects(row)):
            _row(frame, row, TOP + place * PITCH)
    if not rows:
        over = {"stroke": "bg", "stroke_width": 6, "paint_order": "stroke"}  # the lines of the axis
        y = TOP + PITCH / 2 + 4
        drawing.label("none", width / 2, y, nothing_held(content), anchor="middle", style="soft", **over)
    if content.more:
        _more(frame, bottom + AXIS + MORE - 6)
    _now(frame, bottom)
    return drawing


def _subjects(row: LockRow) -> list[str]:
    """A single record selects itself, a range its holder."""
    subjects = [selection.member(row.holder.member_id), selection.partition(row.topic, row.partition)]
    if row.end - row.first == 1:
        subjects.insert(0, selection.record(row.topic, row.partition, row.first))
    return subjects


def _records(row: LockRow) -> list[str]:
    """The records of a range, so that its bar is marked when one of them is selected; at most MARKED."""
    offsets = range(row.first, min(row.end, row.first + MARKED))
    return [selection.record(row.topic, row.partition, offset) for offset in offsets] if len(offsets) > 1 else []


# ---- axis ------------------------------------------------------------------------------------------------------------


def _scale(content: LocksContent, left: float, right: float) -> TimeScale:
    now, rows = content.now_ms, [*content.rows, *content.ended]
    longest = max([row.duration_ms for row in rows], default=0)
    ahead = max([row.deadline_ms - now for row in content.rows if row.deadline_ms is not None], default=0)
    if not content.rows:
        ahead = longest  # the axis stays when the last lock ends, and the words of ended ones have room
    past = max([now - row.acquired_ms for row in rows if row.acquired_ms is not None], default=0)
    earliest = now - min(past, round(PAST_SHARE * max(ahead, longest, AHEAD_MS)))
    return round_scale(earliest, now + max(ahead, AHEAD_MS), content.origin_ms, left, right)


def _axis(frame: _Frame, bottom: float) -> None:
    drawing, origin_ms = frame.drawing, frame.content.origin_ms
    for tick in frame.scale.ticks(origin_ms, max(54, drawing.width / 13)):
        key = f"tick {tick.time_ms - origin_ms}"
        drawing.line(key, tick.x, TOP - 6, tick.x, bottom)
        drawing.label(f"{key} time", tick.x, bottom + 15, tick.text, anchor="middle", style="small soft")


def _now(frame: _Frame, bottom: float) -> None:
    drawing, x, rate = frame.drawing, frame.now_x, frame.scale.per_ms
    drawing.line("now", x, TOP - 8, x, bottom + 2, stroke="ink", stroke_width=1.6, rates={"x1": rate, "x2": rate})
    drawing.label("now word", x, TOP - 12, "now", anchor="middle", style="strong", rates={"x": rate})


# ---- rows ------------------------------------------------------------------------------------------------------------


def _gutter(content: LocksContent, width: float) -> float:
    """The room for badges and labels: as much as they need, at most 45 % of the width."""
    rows = [*content.rows, *content.ended]
    offsets = [text_width(_offsets(row), strong=True) for row in rows]
    under = [text_width(_under(row, content, width), SMALL) for row in rows]
    return min(BADGE + max([*offsets, *under, 30.0]) + 10, width * 0.45)


def _offsets(row: LockRow) -> str:
    return range_text(row.first, row.end)


def _under(row: LockRow, content: LocksContent, width: float) -> str:
    """The second line of a row's label: the delivery, the share-partition, the member's name."""
    parts = [f"{row.delivery_count}/{row.delivery_count_limit}"]
    if content.several:
        parts.insert(0, f"{row.topic}-{row.partition}")
    holder = f"{row.holder.name} {row.holder.sign}" if width >= WIDE else row.holder.sign
    if holder:
        parts.insert(0, holder.strip())
    return " · ".join(parts)


def _row(frame: _Frame, row: LockRow, top: float) -> None:
    drawing, content, key = frame.drawing, frame.content, row.key
    faint = "" if row.holder.works else " faded"
    title = row_words(row, content)
    drawing.badge(key, 0, top + 2, row.holder.letter, row.holder.colour, alive=row.holder.works, title=title)
    room = frame.gutter - BADGE - 6
    offsets = clipped(_offsets(row), room / 1.1)
    drawing.label(f"{key} offsets", BADGE, top + 10, offsets, style=f"strong{faint}", title=title)
    under = clipped(_under(row, content, drawing.width), room, SMALL)
    hot = row.last_attempt and row.ended_ms is None
    style = "small hot" if hot else f"small{faint or ' soft'}"
    drawing.label(f"{key} delivery", BADGE, top + 23, under, style=style, title=title)
    if row.ended_ms is None:
        _held(frame, row, top + 4, title)
    else:
        _ended(frame, row, row.ended_ms, top + 4, title)


def _held(frame: _Frame, row: LockRow, top: float, title: str) -> None:
    drawing, scale, key, now_x = frame.drawing, frame.scale, row.key, frame.now_x
    urgent = row.urgent(frame.content.now_ms)
    colour = "alarm" if urgent else "acquired"
    dim = None if row.holder.works else 0.5
    left = scale.left if row.acquired_ms is None else scale.x(row.acquired_ms)
    end = now_x if row.deadline_ms is None else scale.x(row.deadline_ms)
    more: dict[str, Any] = {"fill": colour, "opacity": dim, "rx": 3, "title": title}
    drawing.rect(f"{key} past", left, top, now_x - left, BAR, rates={"width": scale.per_ms}, **more)
    dashes = None if row.holder.works else "4 3"
    frame_width = max(end, left + 2) - left
    with drawing.about(*_records(row)):
        drawing.rect(
            f"{key} lock", left, top, frame_width, BAR, rx=3, stroke=colour, stroke_width=1.6, stroke_dasharray=dashes,
            opacity=dim, title=title,
        )  # fmt: skip
    _beginning(frame, row, top)
    _renewals(frame, row, top)
    _writing(frame, row, top, left, end)
    if row.deadline_ms is None:
        text = "deadline not known" if drawing.width >= WIDE else "not known"
        _beside(frame, row, text, _Bar(left, now_x, top))
    else:
        style = "hot" if urgent else "soft"
        drawing.label(f"{key} left", end + 6, top + 12, "", countdown=row.deadline_ms, style=style, title=title)


def _beside(frame: _Frame, row: LockRow, text: str, bar: _Bar) -> None:
    """A text on a solid bar, before it, behind it, or behind the reach of the *now* line: where it fits first."""
    room, key, y = text_width(text, SMALL), f"{row.key} {'left' if row.ended_ms is None else 'ended'}", bar.top + 11.5
    solid = row.state in (RecordState.ACQUIRED, RecordState.ACKNOWLEDGED)
    if solid and room + 8 <= bar.right - bar.left:
        frame.drawing.label(key, bar.right - 5, y, text, anchor="end", fill="onfill", style="small")
    elif frame.scale.left + room + 6 <= bar.left:
        frame.drawing.label(key, bar.left - 5, y, text, anchor="end", style="small soft")
    elif bar.right + room + 8 <= frame.now_x:
        frame.drawing.label(key, bar.right + 5, y, text, style="small soft")
    else:
        x = frame.scale.x(frame.content.now_ms + AHEAD_MS) + 6
        text = clipped(text, frame.drawing.width - x, SMALL)
        frame.drawing.label(key, x, y, text, style="small soft", title=row_words(row, frame.content))


def _beginning(frame: _Frame, row: LockRow, top: float) -> None:
    """A mark on a bar that begins before the axis."""
    if row.acquired_ms is None or row.acquired_ms < frame.scale.start_ms:
        x, y = frame.scale.left + 4, top + BAR / 2
        frame.drawing.path(f"{row.key} earlier", f"M{x + 4:g} {y - 4:g}l-4 4l4 4", stroke="onfill", stroke_width=1.4)


def _renewals(frame: _Frame, row: LockRow, top: float) -> None:
    """A notch for each renewal, and the word beside the last one, where it fits on the solid part."""
    shown = sorted({time for time in row.renewals if time >= frame.scale.start_ms})
    for time in shown:
        x = frame.scale.x(time)
        frame.drawing.line(
            f"{row.key} renewed {time}", x, top - 3, x, top + BAR + 3, stroke="ink", stroke_width=1.8,
            title=f"renewed at {time_text(time - frame.content.origin_ms, 1)}",
        )  # fmt: skip
    if not shown:
        return
    x, text = frame.scale.x(shown[-1]) + 4, "renewed" if row.renewed == 1 else f"renewed {row.renewed:,}×"
    if x + text_width(text, SMALL) <= frame.now_x - 2:
        frame.drawing.label(f"{row.key} renewed", x, top + 11.5, text, fill="onfill", style="small")


def _writing(frame: _Frame, row: LockRow, top: float, left: float, end: float) -> None:
    """The state write under way: inside the hollow part beyond the reach of the *now* line, or before the bar."""
    if not row.writing:
        return
    text = f"writing {row.writing.replace('_', ' ')}"
    room = text_width(text, SMALL)
    reached = frame.scale.x(frame.content.now_ms + AHEAD_MS)
    if reached + room + 8 <= end:
        frame.drawing.label(f"{row.key} writing", end - 5, top + 11.5, text, anchor="end", style="small")
    elif frame.scale.left + room + 6 <= left:
        frame.drawing.label(f"{row.key} writing", left - 5, top + 11.5, text, anchor="end", style="small")


def _ended(frame: _Frame, row: LockRow, ended_ms: int, top: float, title: str) -> None:
    drawing, scale, key = frame.drawing, frame.scale, row.key
    left = scale.left if row.acquired_ms is None else scale.x(row.acquired_ms)
    end = max(scale.x(ended_ms), left + 2)
    with drawing.about(*_records(row)):
        drawing.rect(f"{key} past", left, top, end - left, BAR, rx=3, opacity=0.8, title=title, **STATE_FILL[row.state])
    _beginning(frame, row, top)
    _beside(frame, row, row.ended, _Bar(left, end, top))


def _more(frame: _Frame, y: float) -> None:
    """The rows without a place. The seconds have a fixed place on the right, the words end before it."""
    drawing, content = frame.drawing, frame.content
    known = content.more_deadline_ms is not None
    x = drawing.width - (RIGHT if known else 0)
    drawing.label("more", x, y, more_words(content), anchor="end", style="small soft")
    if known:
        drawing.label("more left", x + 3.5, y, "", countdown=content.more_deadline_ms, style="small soft")
