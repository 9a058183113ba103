"""Three to five main moments of a recording in one picture, for readers of a saved notebook."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple, cast

from shareq.model.printable import escape
from shareq.trace.views.marks import KINDS
from shareq.trace.views.snapshot import Mark, Snapshot, StripSnapshot
from shareq_widgets.look import THEMES
from shareq_widgets.showable import Showable
from shareq_widgets.stored import MOST_BYTES
from shareq_widgets.svg import document
from shareq_widgets.text_fit import clipped, text_width, wrapped
from shareq_widgets.words import clock_text

FEWEST: Final = 3
MOST: Final = 5
DULL: Final = ("appended",)
"""Kinds of marks that alone make no main moment."""
ACKNOWLEDGED: Final = ("accept", "release", "reject")
"""Causes of events that make a main moment where marks are too few."""
ACQUIRED: Final = "acquired"
STEPS_SEARCHED: Final = 400
"""The number of steps that are searched for the first acquisition."""
FEW_STEPS: Final = 60
"""The number of steps that are searched for acknowledgements."""
WIDTH: Final = 1084
_HEAD: Final = 44
_CAPTION: Final = 46
_LINE: Final = 16
"""From the first line of a caption to the second and last."""
_GAP: Final = 12


class KeyFrame(NamedTuple):
    """One moment: what was there, and its place among the most important ones, from 0."""

    snapshot: Snapshot
    until: int
    importance: int


class _Picture(NamedTuple):
    markup: str
    height: float
    frame: KeyFrame


class _Heading(NamedTuple):
    """The time of a frame, its sentence, true if it needs attention, and the sentence in lines."""

    time: str
    text: str
    hot: bool
    lines: list[str]


def storyboard(player: Showable, *, theme: str = "light") -> str | None:
    """The main moments of a view as SVG; None if the journal has fewer than three. With large frames it has fewer of
    them: a notebook stores it."""
    pictures = _pictures(player, theme)
    while len(pictures) >= FEWEST:
        made = _drawn(player, pictures, theme)
        if len(made.encode()) <= MOST_BYTES:
            return made
        least = max(pictures, key=lambda picture: picture.frame.importance)
        pictures = [picture for picture in pictures if picture is not least]
    return None


def moments(player: Showable) -> list[KeyFrame]:
    """The beginning, if more happens later, the most important marks, spread in time, and the end: in order."""
    view = player.view
    begin = _beginning(player)
    orders = _marked(player, begin or 0)
    if begin is not None and len(orders) < FEWEST - 1:
        orders += _acknowledged(player, {begin, *orders})[: MOST - 2 - len(orders)]
    if begin is not None and orders:
        orders = [begin, *orders[: MOST - 2]]
    frames = [KeyFrame(view.snapshot(order), view.moment(order), place) for place, order in enumerate(orders)]
    end = view.snapshot()
    if end["order"] not in orders:
        frames.append(KeyFrame(end, view.moment(), len(frames)))
    return sorted(frames, key=lambda frame: int(frame.snapshot["order"]))


def climax(player: Showable) -> KeyFrame:
    """The moment of the most important mark after the beginning; without one, the last of the main moments with the
    most records in flight."""
    marked = _marked(player, _beginning(player) or 0)
    if marked:
        return KeyFrame(player.view.snapshot(marked[0]), player.view.moment(marked[0]), 0)
    return max(reversed(moments(player)), key=lambda frame: _in_flight(frame.snapshot))


def importance(player: Showable) -> int:
    """The rank of the most important mark, from 0; with none, or dull ones only, a rank behind all others."""
    marks = player.view.snapshot()["marks"]
    return min((int(mark["rank"]) for mark in marks if mark["kind"] not in DULL), default=len(KINDS))


def _in_flight(snapshot: Snapshot) -> int:
    """The records of a share-partition that members hold; 0 of a snapshot of a group."""
    runs = cast(StripSnapshot, snapshot)["runs"] if "runs" in snapshot else []
    return sum(run[1] - run[0] for run in runs if run[2] == ACQUIRED)


def _marked(player: Showable, after: int) -> list[int]:
    """The orders at which the steps of the most important marks after an order end, the most important first.

    First one mark of each kind; of one kind, those that are farthest from the others in time.
    """
    view = player.view
    left = [mark for mark in view.snapshot()["marks"] if mark["kind"] not in DULL and mark["order"] > after]
    found: dict[int, int] = {}
    kinds: dict[str, int] = {}

    def order_of(mark: Mark) -> tuple[int, int, int]:
        near = min((abs(mark["time_ms"] - time_ms) for time_ms in found.values()), default=0)
        return kinds.get(mark["kind"], 0), mark["rank"], -near

    while left and len(found) < MOST - 1:
        mark = min(left, key=order_of)
        left.remove(mark)
        kinds[mark["kind"]] = kinds.get(mark["kind"], 0) + 1
        found.setdefault(view.next_step(mark["order"] - 1), mark["time_ms"])
    return list(found)


def _beginning(player: Showable) -> int | None:
    """The order at which the first step that acquires records ends."""
    view = player.view
    for order, end in islice(_steps(player), STEPS_SEARCHED):
        if any(view.cause(inside) == "acquire" for inside in range(order + 1, end + 1)):
            return end
    return None


def _acknowledged(player: Showable, but: set[int]) -> list[int]:
    """The orders at which steps that begin with an acknowledgement end, without those in `but`: spread over them."""
    steps = islice(_steps(player), FEW_STEPS)
    causes = ((end, player.view.cause(order + 1)) for order, end in steps if end not in but)
    found = [end for end, cause in causes if cause in ACKNOWLEDGED]
    count = min(len(found), MOST - 2)
    return [found[place * len(found) // count] for place in range(count)]


def _steps(player: Showable) -> Iterator[tuple[int, int]]:
    """The orders before and at the end of each step."""
    order, end = 0, player.view.next_step(0)
    while end > order:
        yield order, end
        order, end = end, player.view.next_step(end)


def _pictures(player: Showable, theme: str) -> list[_Picture]:
    """The frames drawn; of equal ones the first is kept."""
    found: dict[str, _Picture] = {}
    since = 0
    for frame in moments(player):
        markup, height = player.still(frame.snapshot, frame.until, since, theme, player.still_width)
        found.setdefault(markup, _Picture(markup, height, frame))
        since = frame.until
    return list(found.values())


def _drawn(player: Showable, pictures: list[_Picture], theme: str) -> str:
    colours = THEMES[theme]
    width = player.still_width
    columns = max(int((WIDTH + _GAP) // (width + _GAP)), 1)
    parts, y, captions = [], float(_HEAD), []
    for row in range(0, len(pictures), columns):
        shown = pictures[row : row + columns]
        headings = [_heading(player, picture.frame.snapshot, width) for picture in shown]
        top = _CAPTION + _LINE * (max(len(heading.lines) for heading in headings) - 1)
        for column, (picture, heading) in enumerate(zip(shown, headings, strict=True)):
            x, number = column * (width + _GAP), row + column + 1
            captions.append(f"{number}. {heading.time}: {heading.text}")
            parts.append(_framed(number, heading, (x, y, width), colours))
            parts.append(f'<g transform="translate({x:g} {y + top:g})">{picture.markup}</g>')
        y += top + max(picture.height for picture in shown) + _GAP
    words = player.words_at(player.view.snapshot())
    title = (
        f'<text x="16" y="28"><tspan font-size="17" font-weight="700">{escape(words["title"])}</tspan>'
        f'<tspan dx="14" fill="{colours["soft"]}">{escape(words["where"])} · '
        f"{len(pictures)} moments of the recording</tspan></text>"
    )
    return document(WIDTH, y, colours, "\n".join(captions), title + "".join(parts))


def caption(player: Showable, snapshot: Snapshot) -> tuple[str, str, bool]:
    """The time of a frame, its sentence, and true if it needs attention."""
    _, what, why, hot = player.words_at(snapshot)["sentence"]
    return f"t {clock_text(snapshot['now_ms'] - snapshot['origin_ms'])}", what + why, hot


def _heading(player: Showable, snapshot: Snapshot, width: float) -> _Heading:
    time, text, hot = caption(player, snapshot)
    room = width - 44 - text_width(time) - 24
    first, *others = wrapped(text, room, strong=True) or [""]
    lines = [first, clipped(" ".join(others), room / 1.1)] if others else [first]
    return _Heading(time, text, hot, lines)


def _framed(number: int, heading: _Heading, place: tuple[float, float, float], colours: dict[str, str]) -> str:
    """The lines above a frame. `place`: x, y and width."""
    x, y, width = place
    ink, time = colours["alarm" if heading.hot else "ink"], escape(heading.time)
    lines = "".join(
        f'<text x="{x + 46:g}" y="{y + 27 + _LINE * row:g}" font-weight="700" fill="{ink}">{escape(line)}</text>'
        for row, line in enumerate(heading.lines)
    )
    return (
        f'<path d="M{x:g} {y:g}h{width:g}" stroke="{colours["line"]}"/>'
        f'<circle cx="{x + 26:g}" cy="{y + 23:g}" r="10" fill="{colours["ink"]}"/>'
        f'<text x="{x + 26:g}" y="{y + 27:g}" text-anchor="middle" font-weight="700" '
        f'fill="{colours["bg"]}">{number}</text>{lines}'
        f'<text x="{x + width - 12:g}" y="{y + 27:g}" text-anchor="end" fill="{colours["soft"]}">{time}</text>'
    )
