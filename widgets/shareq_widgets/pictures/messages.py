"""A sequence diagram of the newest requests and responses: their senders, receivers, order and results.

Time runs downwards. Each message has a line of its own, so that those of one instant stay readable in their order;
equal exchanges of members that share a column have one together, with their number. A
pause between two messages is drawn in proportion to the span, long ones shortened: the times on the left are exact.
Arrows lean downwards to show their direction, not a latency. A box shows that a broker works for a request: from its
arrival to the last event that it caused, see `shareq.trace.analysis.caused_events`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final

from shareq.trace.journal.event_text import count_text
from shareq_widgets import selection
from shareq_widgets.drawing import Drawing
from shareq_widgets.pictures.messages_columns import COLUMN, GUTTER, LIFELINES, Column, columns, head
from shareq_widgets.pictures.messages_content import (
    MOST,
    MOST_REFUSED,
    SPAN_MS,
    Detail,
    MessagesContent,
    ShownExchange,
    content,
    recent,
)
from shareq_widgets.pictures.messages_filter import SelectedParty, draw_buttons
from shareq_widgets.pictures.messages_rows import MessageRow, rows
from shareq_widgets.pictures.time_plot import clock, duration
from shareq_widgets.terms import meanings
from shareq_widgets.text_fit import SMALL, clipped, text_width, wrapped

__all__ = [
    "COLUMN",
    "LIFELINES",
    "MOST",
    "MOST_REFUSED",
    "SPAN_MS",
    "Detail",
    "MessagesContent",
    "content",
    "draw",
    "recent",
]

HEAD, ROW, LEAN = 56, 20, 4
PAUSES, PAUSE = 120, 36
"""Height of all pauses together if they fill the span, and the greatest height of one."""
OPEN_APART, MOST_APART = 3.0, 3
"""The distance of the lines of two open requests, and the number of lines beside the first one."""
ASIDE = 760
"""From this width on, the selected messages are beside the diagram."""
LINES = 14
"""Number of lines of a message, and of events, that are shown."""

HINT: Final = "A click on a message shows its fields."
HINT_HEIGHT: Final = 14

SHORT: Final = 130.0
"""Words beside a shorter arrow may pass its tail, up to this width, px; an error may always."""
HEAD_ROOM: Final = 52.0
"""A head has at least this width; it may reach over its column."""

Buttons = tuple[Collection[str], SelectedParty | None]
"""The parts that are left out, and the selected member or broker; see `messages_filter`."""


def draw(content: MessagesContent, width: float, selected: str = "", buttons: Buttons | None = None) -> Drawing:
    """The diagram; below it, or beside it if there is room, the selected messages. `selected`: the selected subject; a
    member keeps its lifeline. `buttons`: what those above it show and hide; None: there are none."""
    drawing = Drawing(width, text="\n".join(_words(content)))
    top = 0.0 if buttons is None or not content.traced else draw_buttons(drawing, *buttons)
    if not content.exchanges:
        lines = wrapped(_nothing(content), width - 16, SMALL)
        for place, line in enumerate(lines):
            drawing.label(f"nothing {place}", 8, top + 24 + 15 * place, line, style="soft small")
        drawing.height = top + 25 + 15 * len(lines)
    else:
        aside = content.detail is not None and width >= ASIDE
        diagram = _Diagram(drawing, content, (width * 0.58 if aside else width, top), selected)
        if buttons is not None:
            diagram.draw_targets()
        diagram.draw()
        drawing.height = diagram.bottom + 10
        if buttons is not None and content.detail is None:
            drawing.height += HINT_HEIGHT
            drawing.label("hint", 4, drawing.height - 4, HINT, style="small soft")
    drawing.height = _draw_refused(drawing, content)
    if content.detail is not None:
        left, y = (width * 0.6, top + 8) if width >= ASIDE and content.exchanges else (8.0, drawing.height + 4)
        drawing.height = max(drawing.height, _draw_detail(drawing, content.detail, left, y))
    return drawing


class _Diagram:
    def __init__(self, drawing: Drawing, content: MessagesContent, place: tuple[float, float], selected: str) -> None:
        """`place`: the width and the top."""
        width, top = place
        self._drawing, self._content, self._width, self._head = drawing, content, width, top + HEAD
        self._columns = columns(content, width, selected)
        self._names = {one.key: one.name for one in content.participants}
        self._rows = rows(content, self._columns)
        self._ys = _places(self._rows, content, self._head + 14)
        self._orders = [row.order for row in self._rows]
        self._texts = {row.key: self._text(row) for row in self._rows}
        self._titles = {row.key: self._title(row) for row in self._rows}
        self.bottom = self._ys[-1] + ROW + 8

    def draw(self) -> None:
        drawing, bottom = self._drawing, self.bottom
        for column in dict.fromkeys(self._columns.values()):
            self._draw_head(column)
        for row in self._rows:
            self._draw_work(row)
        self._draw_all_open()
        for row, y, before in zip(self._rows, self._ys, [None, *self._rows], strict=False):
            if before is None or before.time_ms != row.time_ms:
                time = clock(row.time_ms - self._content.origin_ms)
                drawing.label(f"time {row.key}", GUTTER - 8, y + 3, time, anchor="end", style="small soft")
            self._draw_words(row, y)
        for row, y in zip(self._rows, self._ys, strict=True):
            self._draw_arrow(row, y)
        drawing.line("now", GUTTER - 4, bottom, self._width - 8, bottom, stroke="ink", stroke_width=1.5)
        now = clock(self._content.now_ms - self._content.origin_ms)
        drawing.label("now time", GUTTER - 8, bottom + 3, now, anchor="end", style="small strong")
        if self._content.earlier:
            more = f"and {count_text(self._content.earlier, 'earlier request')}"
            drawing.label("earlier", 4, self._head - HEAD + 12, more, style="small soft")

    def draw_targets(self) -> None:
        """For each message the place of a click: its whole line, below all that is drawn."""
        for row, y in zip(self._rows, self._ys, strict=True):
            with self._drawing.about(*_subjects(row)):
                self._drawing.rect(
                    f"target {row.key}", GUTTER - 4, y - 11, self._width - GUTTER, ROW, style="target",
                    title=self._titles[row.key],
                )  # fmt: skip

    def _draw_head(self, column: Column) -> None:
        drawing, (key, x, participant, count) = self._drawing, column
        room = self._room()
        with drawing.about(*([participant.about] if participant.about and count == 1 else [])):
            drawing.line(
                f"{key} line",
                x,
                self._head - 3,
                x,
                self.bottom,
                stroke="line",
                opacity=None if participant.present else 0.5,
            )
            if participant.letter and count == 1:
                drawing.badge(
                    key,
                    x - 9,
                    self._head - 28,
                    participant.letter,
                    participant.colour,
                    alive=participant.present,
                    title=participant.name,
                )
                return
            style = "small" if participant.present or count > 1 else "small faded struck"
            title = participant.name if count == 1 else f"{count} of them"
            for number, line in enumerate(head(participant, count, room)):
                shown, y = clipped(line, max(room, HEAD_ROOM), SMALL), self._head - 21 + 12 * number
                drawing.label(f"{key} {number}", x, y, shown, anchor="middle", style=style, title=title)

    def _room(self) -> float:
        """The distance of two columns."""
        xs = sorted({column.x for column in self._columns.values()})
        return min((b - a for a, b in pairwise(xs)), default=self._width / 2)

    def _draw_work(self, row: MessageRow) -> None:
        """The box of a broker that works for one or several exchanges: from the first request to the last response."""
        one = row.one
        if row.is_response or one.last_event is None:
            return
        top = self._y(one.sent[0]) + LEAN
        last = row.exchanges[-1]
        bottom = self._y(max(each.last_event or 0 for each in row.exchanges)) + ROW / 2
        if last.answered and self._following(last.last_event or 0) == last.answered[0]:
            bottom = self._y(last.answered[0])
        x = self._columns[one.target].x
        with self._drawing.about(*(selection.message(each.number) for each in row.exchanges)):
            self._drawing.rect(
                f"work {one.number}", x - 6, top, 12, max(bottom - top, 6), rx=2, fill="band", stroke="bandline",
                title=f"{row.times}{one.label}: the broker works for it",
            )  # fmt: skip

    def _y(self, order: int) -> float:
        """The place of the last message at or before an order."""
        return self._ys[max(bisect_right(self._orders, order) - 1, 0)]

    def _following(self, order: int) -> int | None:
        place = bisect_right(self._orders, order)
        return self._orders[place] if place < len(self._orders) else None

    def _ends(self, row: MessageRow) -> tuple[float, float]:
        """Where the arrow of a message begins and ends."""
        source, target = self._columns[row.one.source].x, self._columns[row.one.target].x
        return (target, source) if row.is_response else (source, target)

    def _draw_arrow(self, row: MessageRow, y: float) -> None:
        """The arrow of a request or a response, above the words of its neighbours."""
        hot = _is_hot(row)
        with self._drawing.about(*_subjects(row)):
            self._drawing.path(
                f"arrow {row.key}", _arrow(*self._ends(row), y), stroke="alarm" if hot else "ink", stroke_width=1.4,
                marker_end="hot-arrow" if hot else "arrow", title=self._titles[row.key],
                stroke_dasharray="5 2" if row.is_response else None,
            )  # fmt: skip

    def _text(self, row: MessageRow) -> str:
        return (row.times or self._shared_letter(row.one)) + _text(row.one, is_response=row.is_response)

    def _title(self, row: MessageRow) -> str:
        """Time, sender, receiver, API and words; of several exchanges, all their members. The epoch in a heartbeat's
        response is that of the member."""
        words = self._texts[row.key]
        epoch = meanings("member epoch") if row.is_response and "epoch " in words else ""
        one, at = row.one, clock(row.time_ms - self._content.origin_ms)
        members = ", ".join(self._names[each.source] for each in row.exchanges)
        ends = (self._names[one.target], members) if row.is_response else (members, self._names[one.target])
        api = f"{one.api}{' response' if row.is_response else ''}"
        return "\n".join(filter(None, (f"{at}  {ends[0]} to {ends[1]}: {api}, {words}", epoch)))

    def _shared_letter(self, one: ShownExchange) -> str:
        """The letter of the member, if its column is shared."""
        if self._columns[one.source].members == 1:
            return ""
        (sender,) = (other for other in self._content.participants if other.key == one.source)
        return f"{sender.letter}: " if sender.letter else ""

    def _draw_words(self, row: MessageRow, y: float) -> None:
        """The words above the arrow: at its middle, or away from its head if they are longer than a short arrow; they
        do not pass it. Their outline covers the lifelines behind them."""
        (x1, x2), text, hot = self._ends(row), self._texts[row.key], _is_hot(row)
        left, right = float(GUTTER - 4), self._width - 4
        room = right - left if hot else SHORT
        if x1 == x2:
            left = x1 + 24
        elif x2 > x1:
            left, right = max(left, min(x1, x2 - 8 - room)), x2 - 8
        else:
            left, right = x2 + 8, min(right, max(x1, x2 + 8 + room))
        shown = clipped(text, (right - left) / (1.1 if hot else 1), SMALL)
        half = text_width(shown, SMALL, strong=hot) / 2
        middle = left + half if x1 == x2 else (x1 + x2) / 2
        x = min(max(middle, left + half), right - half)
        with self._drawing.about(*_subjects(row)):
            self._drawing.label(
                f"words {row.key}", x, y - 2, shown, anchor="middle", style="small hot" if hot else "small",
                title=self._titles[row.key], stroke="bg", stroke_width=5, paint_order="stroke",
            )  # fmt: skip

    def _draw_all_open(self) -> None:
        """For each request that waits for its response a dashed line down to the moment, beside those before."""
        waiting: dict[str, int] = {}
        for one in self._content.exchanges:
            if one.answered is None and not one.lost:
                beside = waiting[one.target] = waiting.get(one.target, -1) + 1
                self._draw_open(one, self._columns[one.target].x + OPEN_APART * min(beside, MOST_APART))

    def _draw_open(self, one: ShownExchange, x: float) -> None:
        with self._drawing.about(selection.message(one.number)):
            self._drawing.line(
                f"open {one.number}", x, self._y(one.sent[0]) + LEAN, x, self.bottom, stroke="ink", stroke_width=1.4,
                stroke_dasharray="2 3", title=f"{one.label}: no response yet",
            )  # fmt: skip


def _is_hot(row: MessageRow) -> bool:
    """True for a message with an error, and for a request that was lost."""
    return bool(row.one.errors) if row.is_response else row.one.lost


def _subjects(row: MessageRow) -> list[str]:
    return [selection.message(each.number) for each in row.exchanges]


def _places(rows: Sequence[MessageRow], content: MessagesContent, y: float) -> list[float]:
    """The y of each message, the first one's is given: a line for each, and the pauses between them."""
    ys = []
    span_ms = max(content.now_ms - content.from_ms, 1)
    for before, row in zip([None, *rows], rows, strict=False):
        if before is not None:
            y += ROW + min((row.time_ms - before.time_ms) / span_ms * PAUSES, PAUSE)
        ys.append(y)
    return ys


def _arrow(x1: float, x2: float, y: float) -> str:
    """The path of an arrow that leans downwards; of a broker to itself, a loop."""
    if x1 == x2:
        return f"M{x1:.1f} {y:.1f}h18v{LEAN}h-16"
    gap = 2 if x2 > x1 else -2
    return f"M{x1:.1f} {y:.1f}L{x2 - gap:.1f} {y + LEAN:.1f}"


def _text(one: ShownExchange, *, is_response: bool) -> str:
    if is_response:
        return one.answer
    return f"{one.label}: lost, the broker stopped" if one.lost else one.label


# ---- refusals --------------------------------------------------------------------------------------------------------


def _draw_refused(drawing: Drawing, content: MessagesContent) -> float:
    """A line for each refusal, with a cross: below the messages, because a refused client sends none. Returns the
    bottom."""
    y = drawing.height
    for refusal in content.refused:
        y += 16
        key, at = f"refused {refusal.order}", clock(refusal.time_ms - content.origin_ms)
        drawing.label(f"{key} time", GUTTER - 8, y, at, anchor="end", style="small soft")
        drawing.path(f"{key} mark", f"M{GUTTER} {y - 8}l7 7m0 -7l-7 7", stroke="alarm", stroke_width=1.6)
        shown = clipped(refusal.text, drawing.width - GUTTER - 20, SMALL)
        drawing.label(key, GUTTER + 12, y, shown, style="small", title=refusal.text)
    return y + 8 if content.refused else y


# ---- the selected messages -------------------------------------------------------------------------------------------


def _draw_detail(drawing: Drawing, detail: Detail, left: float, top: float) -> float:
    """A card with the messages as indented lines, and the events; returns its bottom."""
    width = drawing.width - left - 8
    lines = list(_detail_lines(detail))
    bottom = top + 16 + 14 * len(lines)
    with drawing.about(selection.message(detail.number)):
        drawing.rect("detail", left, top, width, bottom - top, rx=8, fill="card", stroke="line")
        drawing.elements[-1]["reveal"] = True
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
    if content.silent:
        return "No client has sent a message so far."
    if content.outside:
        return "No messages are recorded: shareq tap --trace-messages records them."
    if not content.traced:
        advice = ": a cluster with trace_messages=True records them" if content.traceable else ""
        return f"The journal has no messages{advice}."
    return f"No messages in the last {duration(content.now_ms - content.from_ms)}."


def _words(content: MessagesContent) -> Iterator[str]:
    """The last exchanges, and the refusals, one a line."""
    for refusal in content.refused:
        yield f"{clock(refusal.time_ms - content.origin_ms)}  refused: {refusal.text}"
    if not content.exchanges:
        yield _nothing(content)
        return
    count = len(content.exchanges) + content.earlier
    yield f"{count:,} requests in the last {duration(content.now_ms - content.from_ms)}"
    names = {one.key: one.name for one in content.participants}
    for one in content.exchanges[-5:]:
        answer = "lost" if one.lost else one.answer or "no response yet"
        time = clock(one.sent[1] - content.origin_ms)
        yield f"{time}  {names[one.source]} to {names[one.target]}: {one.label}; {answer}"
