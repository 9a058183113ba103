"""A whole control room as one static picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from shareq.model.printable import escape
from shareq.trace.views.snapshot import Snapshot
from shareq_widgets.look import THEMES
from shareq_widgets.showable import Showable
from shareq_widgets.storyboard import WIDTH, caption, climax, storyboard
from shareq_widgets.svg import document, size_of
from shareq_widgets.text_fit import clipped

Rows = tuple[tuple[tuple[str, int], ...], ...]
"""The areas of each row, with the columns that each spans."""
Views = Mapping[str, Showable]
"""The views of a room by their areas."""

SCREEN: Final[Rows] = (
    (("strip", 3),),
    (("left", 1), ("middle", 1), ("right", 1)),
    (("wide", 2), ("narrow", 1)),
)
"""The layout of a picture of a whole room."""
PAGE: Final[Rows] = (
    (("strip", 3),),
    (("left", 1), ("middle", 1), ("narrow", 1)),
    (("wide", 1), ("right", 1), ("narrow", 1)),
)
"""The layout of a page on a wide screen, as in shareq_widgets.css."""
OUTSIDE: Final[Rows] = ((("strip", 3),), (("left", 1), ("middle", 1), ("right", 1)), (("wide", 3),))
"""The same of a cluster that is seen from outside, whose messages are hidden."""
SHEET: Final[Rows] = ((("left", 1), ("middle", 1)), (("right", 1), ("narrow", 1)), (("wide", 2),))
"""The layout below a storyboard, as on a narrow screen."""
SCREEN_WIDTH: Final = 1600
MARGIN: Final = 12
TITLE: Final = 30
"""The height of the line above a view or a part."""


class Part(NamedTuple):
    """Markup that stands at 0,0, and its height."""

    markup: str
    height: float


def shown(title: str, views: Views, theme: str = "light", width: int = SCREEN_WIDTH) -> str:
    """The views at the moment that they show."""
    parts = [_line(title, width, theme), *_rows(SCREEN, views, theme, width)]
    return _stacked(title, parts, width, theme)


def summary(title: str, views: Views, theme: str = "light", *, heading: str = "") -> str:
    """The storyboard of the strip, and the other views at its most important moment; with too few moments, all views
    at the moment that they show. `heading`: a line above."""
    top = [_line(heading, WIDTH, theme)] if heading else []
    strip = views["strip"]
    board = storyboard(strip, theme=theme)
    if board is None:
        return _stacked(title, [*top, *_rows(((("strip", 2),), *SHEET), views, theme, WIDTH)], WIDTH, theme)
    frame = climax(strip)
    time, text, _ = caption(strip, frame.snapshot)

    def then(view: Showable, width: int) -> Part:
        snapshot = view.view.snapshot(view.view.at_moment(frame.until))
        at: Snapshot = {**snapshot, "now_ms": frame.snapshot["now_ms"]}
        return Part(*view.still(at, frame.until, frame.until, theme, width))

    then_line = _line(f"All views at {time}: {text}", WIDTH, theme)
    parts = [*top, Part(board, size_of(board)[1]), then_line, *_rows(SHEET, views, theme, WIDTH, then)]
    return _stacked(title, parts, WIDTH, theme)


def widths(rows: Rows, width: int = SCREEN_WIDTH) -> dict[str, int]:
    """The width of each view in a layout, by its area, px."""
    return {area: _wide(row, span, width) for row in rows for area, span in row}


def _wide(row: tuple[tuple[str, int], ...], span: int, width: int) -> int:
    return int((width - MARGIN) / sum(each for _, each in row) * span) - MARGIN


def _rows(
    rows: Rows, views: Views, theme: str, width: int, drawn: Callable[[Showable, int], Part] | None = None
) -> Iterable[Part]:
    """A part for each row. `drawn`: the picture of a view at a width; None: at the moment that it shows."""

    def now(view: Showable, wide: int) -> Part:
        picture = view.to_svg(theme, wide)
        return Part(picture, size_of(picture)[1])

    for row in rows:
        column = (width - MARGIN) / sum(span for _, span in row)
        x, parts, height = float(MARGIN), [], 0.0
        for area, span in row:
            view, wide = views[area], _wide(row, span, width)
            head = Part("", 0) if area == "strip" else _line(view.words["title"], wide, theme)
            picture = (drawn or now)(view, wide)
            parts.append(_at(x, 0, head.markup) + _at(x, head.height, picture.markup))
            x += column * span
            height = max(height, head.height + picture.height)
        yield Part("".join(parts), height + MARGIN)


def _line(text: str, width: float, theme: str) -> Part:
    """A heading with a line above."""
    heading = escape(clipped(text, (width - MARGIN) / 1.3))
    colours = THEMES[theme]
    return Part(
        f'<path d="M0 .5h{width:g}" stroke="{colours["line"]}"/>'
        f'<text x="{MARGIN}" y="{TITLE - 9}" font-size="14" font-weight="700" fill="{colours["ink"]}">{heading}</text>',
        TITLE,
    )


def _at(x: float, y: float, markup: str) -> str:
    return f'<g transform="translate({x:g} {y:g})">{markup}</g>'


def _stacked(title: str, parts: Iterable[Part], width: int, theme: str) -> str:
    y, drawn = 0.0, []
    for part in parts:
        drawn.append(_at(0, y, part.markup))
        y += part.height
    return document(width, y, THEMES[theme], title, "".join(drawn))
