"""A sequence diagram of the newest requests and responses: who called whom, in which order, and what came back.

Time runs downwards. Each message has a line of its own, so that those of one instant stay readable in their order; a
pause between two messages is drawn in proportion to the span, long ones shortened: the times on the left are exact.
Arrows lean downwards to show their direction, not a latency. A box shows that a broker works for a request: from its
arrival to the last event that it caused, see `shareq.trace.analysis.caused_events`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from shareq_widgets import selection
from shareq_widgets.drawing import Drawing
from shareq_widgets.pictures.messages_content import (
    MOST,
    SPAN_MS,
    Detail,
    MessagesContent,
    Participant,
    ShownExchange,
    content,
)
from shareq_widgets.pictures.time_plot import clock, duration
from shareq_widgets.text_fit import SMALL, clipped, text_width, wrapped

__all__ = ["MOST", "SPAN_MS", "MessagesContent", "content", "draw"]

GUTTER, HEAD, ROW, LEAN = 66, 56, 18, 6
COLUMN = 46
"""Smallest distance of two columns; participants that do not fit share a column."""
PAUSES, PAUSE = 120, 36
"""Height of all pauses together if they fill the span, and the greatest height of one."""
ASIDE = 760
"""From this width on, the selected messages are beside the diagram."""
LINES = 14
"""Number of lines of a message, and of events, that are shown."""

HEAD_ROOM: Final = 52.0
"""A head has at least this width; it may reach over its column."""

Row = tuple[int, int, ShownExchange, bool]
"""(order, time ms, exchange, True for the response): one message."""


def draw(content: MessagesContent, width: float) -> Drawing:
    """The diagram; below it, or beside it if there is room, the selected messages."""
    drawing = Drawing(width, text="\n".join(_words(content)))
    if not content.exchanges:
        lines = wrapped(_nothing(content), width - 16, SMALL)
        for place, line in enumerate(lines):
            drawing.label(f"nothing {place}", 8, 24 + 15 * place, line, style="soft small")
        drawing.height = 25 + 15 * len(lines)
    else:
        aside = content.detail is not None and width >= ASIDE
        diagram = _Diagram(drawing, content, width * 0.58 if aside else width)
        diagram.draw()
        drawing.height = diagram.bottom + 10
    if content.detail is not None:
        left, top = (width * 0.6, 8.0) if width >= ASIDE and content.exchanges else (8.0, drawing.height + 4)
        drawing.height = max(drawing.height, _draw_detail(drawing, content.detail, left, top))
    return drawing


class _Column(NamedTuple):
    key: str
    x: float
    participant: Participant
    members: int


class _Diagram:
    def __init__(self, drawing: Drawing, content: MessagesContent, width: float) -> None:
        self._drawing, self._content, self._width = drawing, content, width
        self._rows = _rows(content)
        self._ys = _places(self._rows, content)
        self._orders = [row[0] for row in self._rows]
        self._columns = _columns(content, width)
        self.bottom = self._ys[-1] + ROW + 8

    def draw(self) -> None:
        drawing, bottom = self._drawing, self.bottom
        for column in dict.fromkeys(self._columns.values()):
            self._draw_head(column)
        for one in self._content.exchanges:
            self._draw_work(one)
        for row, y, before in zip(self._rows, self._ys, [None, *self._rows], strict=False):
            if before is None or before[1] != row[1]:
                time = clock(row[1] - self._content.origin_ms)
                drawing.label(f"time {_key(row)}", GUTTER - 8, y + 3, time, anchor="end", style="small soft")
            self._draw_message(row, y)
        for one in self._content.exchanges:
            self._draw_open(one)
        drawing.line("now", GUTTER - 4, bottom, self._width - 8, bottom, stroke="ink", stroke_width=1.5)
        now = clock(self._content.now_ms - self._content.origin_ms)
        drawing.label("now time", GUTTER - 8, bottom + 3, now, anchor="end", style="small strong")
        if self._content.earlier:
            more = f"and {self._content.earlier:,} earlier"
            drawing.label("earlier", 4, 12, more, style="small soft")

    def _draw_head(self, column: _Column) -> None:
        drawing, (key, x, who, count) = self._drawing, column
        room = self._room()
        with drawing.about(*[about for about in (who.about,) if about]):
            drawing.line(
                f"{key} line", x, HEAD - 3, x, self.bottom, stroke="line", opacity=None if who.present else 0.5
            )
            if who.letter and count == 1:
                drawing.badge(key, x - 9, HEAD - 28, who.letter, who.colour, alive=who.present, title=who.name)
                return
            style = "small" if who.present or count > 1 else "small faded struck"
            title = who.name if count == 1 else f"{count} of them"
            for number, line in enumerate(_head(who, count, room)):
                shown, y = clipped(line, max(room, HEAD_ROOM), SMALL), HEAD - 21 + 12 * number
                drawing.label(f"{key} {number}", x, y, shown, anchor="middle", style=style, title=title)

    def _room(self) -> float:
        """The distance of two columns."""
        xs = sorted({column.x for column in self._columns.values()})
        return min((b - a for a, b in pairwise(xs)), default=self._width / 2)

    def _draw_work(self, one: ShownExchange) -> None:
        """The box of a broker that works for the exchange."""
        if one.last_event is None:
            return
        top = self._y(one.sent[0]) + LEAN
        bottom = self._y(one.last_event) + ROW / 2
        if one.answered and self._following(one.last_event) == one.answered[0]:
            bottom = self._y(one.answered[0])
        x = self._columns[one.target].x
        with self._drawing.about(selection.message(one.number)):
            self._drawing.rect(
                f"work {one.number}", x - 6, top, 12, max(bottom - top, 6), rx=2, fill="band", stroke="bandline",
                title=f"{one.label}: the broker works for it",
            )  # fmt: skip

    def _y(self, order: int) -> float:
        """The place of the last message at or before an order."""
        return self._ys[max(bisect_right(self._orders, order) - 1, 0)]

    def _following(self, order: int) -> int | None:
        place = bisect_right(self._orders, order)
        return self._orders[place] if place < len(self._orders) else None

    def _draw_message(self, row: Row, y: float) -> None:
        """The arrow of a request or a response, and its words."""
        _, time_ms, one, is_response = row
        source, target = self._columns[one.source].x, self._columns[one.target].x
        x1, x2 = (target, source) if is_response else (source, target)
        hot = bool(one.errors) if is_response else one.lost
        text = self._shared_letter(one) + _text(one, is_response=is_response)
        names = {who.key: who.name for who in self._content.participants}
        ends = (one.target, one.source) if is_response else (one.source, one.target)
        at = clock(time_ms - self._content.origin_ms)
        title = f"{at}  {names[ends[0]]} to {names[ends[1]]}: {one.api}{' response' if is_response else ''}, {text}"
        with self._drawing.about(selection.message(one.number)):
            self._drawing.path(
                f"arrow {_key(row)}", _arrow(x1, x2, y), stroke="alarm" if hot else "ink", stroke_width=1.4,
                marker_end="hot-arrow" if hot else "arrow", title=title,
                stroke_dasharray="5 2" if is_response else None,
            )  # fmt: skip
            self._draw_words(row, text, title, (x1, x2, y - 2), hot=hot)

    def _shared_letter(self, one: ShownExchange) -> str:
        """The letter of the member, if its column is shared."""
        if self._columns[one.source].members == 1:
            return ""
        (who,) = (who for who in self._content.participants if who.key == one.source)
        return f"{who.letter}: " if who.letter else ""

    def _draw_words(self, row: Row, text: str, title: str, place: tuple[float, float, float], *, hot: bool) -> None:
        """The words above the arrow from x1 to x2: at its middle, or away from its head if they are too long."""
        x1, x2, y = place
        left, right = GUTTER - 4, self._width - 4
        shown = clipped(text, right - left, SMALL)
        half = text_width(shown, SMALL) / 2
        middle = (x1 + x2) / 2
        if x1 == x2:
            middle = x1 + 24 + half
        elif x2 > x1:
            middle = min(middle, x2 - 8 - half)
        else:
            middle = max(middle, x2 + 8 + half)
        x = min(max(middle, left + half), right - half)
        self._drawing.label(
            f"words {_key(row)}", x, y, shown, anchor="middle", style="small hot" if hot else "small", title=title,
            stroke="bg", stroke_width=3, paint_order="stroke",
        )  # fmt: skip

    def _draw_open(self, one: ShownExchange) -> None:
        """A request that waits for its response: a dashed line down to the moment."""
        if one.answered is not None or one.lost:
            return
        x = self._columns[one.target].x
        with self._drawing.about(selection.message(one.number)):
            self._drawing.line(
                f"open {one.number}", x, self._y(one.sent[0]) + LEAN, x, self.bottom, stroke="ink", stroke_width=1.4,
                stroke_dasharray="2 3", title=f"{one.label}: no response yet",
            )  # fmt: skip


def _rows(content: MessagesContent) -> list[Row]:
    """The messages in their order."""
    rows: list[Row] = [(*one.sent, one, False) for one in content.exchanges]
    rows += [(*one.answered, one, True) for one in content.exchanges if one.answered]
    return sorted(rows, key=lambda row: row[0])


def _places(rows: Sequence[Row], content: MessagesContent) -> list[float]:
    """The y of each message: a line for each, and the pauses between them."""
    ys, y = [], float(HEAD + 14)
    span_ms = max(content.now_ms - content.from_ms, 1)
    for before, row in zip([None, *rows], rows, strict=False):
        if before is not None:
            y += ROW + min((row[1] - before[1]) / span_ms * PAUSES, PAUSE)
        ys.append(y)
    return ys


def _columns(content: MessagesContent, width: float) -> dict[str, _Column]:
    """The column of each participant. If there are too many, first those without a message are left out; then those of
    a kind share one column: share coordinators first, and of a kind those longest without a message first."""
    who = list(content.participants)
    last = {key: place for place, one in enumerate(content.exchanges) for key in (one.source, one.target)}
    fit = max(int((width - GUTTER - 34) / COLUMN) + 1, 2)
    if len(who) > fit:
        who = [one for one in who if one.key in last]
    shared: dict[str, list[Participant]] = {}
    for kinds in (("coordinator",), ("member", "client"), ("broker",)):
        rest = sorted((one for one in who if one.kind in kinds), key=lambda one: last.get(one.key, -1))
        too_many = len(who) + len(shared) - fit
        if too_many > 0 and len(rest) > 1:
            shared[kinds[0]] = rest[: too_many + 1]
            who = [one for one in who if one not in shared[kinds[0]]]
    slots: list[list[Participant]] = [[one] for one in who]
    slots += shared.values()
    ranks = ("member", "client", "broker", "coordinator")
    slots.sort(key=lambda slot: (ranks.index(slot[0].kind), len(slot) > 1))  # stable: the order of the participants
    step = (width - GUTTER - 34) / max(len(slots) - 1, 1)
    columns: dict[str, _Column] = {}
    for place, slot in enumerate(slots):
        key = slot[0].key if len(slot) == 1 else f"other {slot[0].kind}s"
        column = _Column(key, GUTTER + 10 + place * step, slot[0], len(slot))
        columns |= {one.key: column for one in slot}
    return columns


def _head(who: Participant, count: int, room: float) -> tuple[str, ...]:
    """The lines of a column's head; `room`: its width."""
    if count > 1:
        several = f"{count} more"
        return {"coordinator": ("share", "coords."), "broker": (several, "brokers")}.get(who.kind, (several, "clients"))
    if who.kind == "coordinator":
        number = who.key.partition(":")[2]
        words = f"coord. {number}"
        return "share", words if text_width(words, SMALL) < room - 2 else f"co. {number}"
    return tuple(who.name.split()) if who.kind == "broker" and room < COLUMN + 8 else (who.name,)


def _arrow(x1: float, x2: float, y: float) -> str:
    """The path of an arrow that leans downwards; of a broker to itself, a loop."""
    if x1 == x2:
        return f"M{x1:.1f} {y:.1f}h18v{LEAN}h-16"
    gap = 2 if x2 > x1 else -2
    return f"M{x1:.1f} {y:.1f}L{x2 - gap:.1f} {y + LEAN:.1f}"


def _key(row: Row) -> str:
    return f"{row[2].number} {'response' if row[3] else 'request'}"


def _text(one: ShownExchange, *, is_response: bool) -> str:
    if is_response:
        return one.answer
    return f"{one.label}: lost, the broker stopped" if one.lost else one.label


# ---- the selected messages -------------------------------------------------------------------------------------------


def _draw_detail(drawing: Drawing, detail: Detail, left: float, top: float) -> float:
    """A card with the messages as indented lines, and the events; returns its bottom."""
    width = drawing.width - left - 8
    lines = list(_detail_lines(detail))
    bottom = top + 16 + 14 * len(lines)
    with drawing.about(selection.message(detail.number)):
        drawing.rect("detail", left, top, width, bottom - top, rx=8, fill="card", stroke="line")
        for number, (indent, text, style) in enumerate(lines):
            x = left + 10 + 6 * indent
            shown = clipped(text, left + width - 10 - x, SMALL)
            drawing.label(f"detail {number}", x, top + 18 + 14 * number, shown, style=style, title=text)
    return bottom + 8


def _detail_lines(detail: Detail) -> Iterator[tuple[int, str, str]]:
    """(indent in characters, text, style) of each line of the card."""
    yield 0, detail.title, "strong small"
    yield from _section("request", detail.request)
    yield from _section("response", ("none yet",) if detail.response is None else detail.response)
    yield from _section("events that it caused", detail.events)


def _section(title: str, lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    yield 0, title, "small soft"
    for line in lines[:LINES] or ("no fields" if title != "events that it caused" else "none",):
        text = line.lstrip()
        yield 2 + len(line) - len(text), text, "small"
    if len(lines) > LINES:
        yield 2, f"and {len(lines) - LINES} more lines", "small soft"


# ---- words -----------------------------------------------------------------------------------------------------------


def _nothing(content: MessagesContent) -> str:
    if not content.traced:
        return "No messages so far. Only trace_messages=True records them."
    return f"No messages in the last {duration(content.now_ms - content.from_ms)}."


def _words(content: MessagesContent) -> Iterator[str]:
    """The last exchanges, one a line."""
    if not content.exchanges:
        yield _nothing(content)
        return
    count = len(content.exchanges) + content.earlier
    yield f"{count:,} requests in the last {duration(content.now_ms - content.from_ms)}"
    names = {who.key: who.name for who in content.participants}
    for one in content.exchanges[-5:]:
        answer = "lost" if one.lost else one.answer or "no response yet"
        time = clock(one.sent[1] - content.origin_ms)
        yield f"{time}  {names[one.source]} to {names[one.target]}: {one.label}; {answer}"
