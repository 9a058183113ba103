"""The partition strip as a static, self-contained SVG: the look of the live one, from the same snapshot and by the same
rules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from math import ceil, floor
from typing import Any, Final, NamedTuple

from shareq.model.printable import escape
from shareq.trace.views.palette import SYMBOLS
from shareq.trace.views.snapshot import Run, StripSnapshot
from shareq_widgets.blocks import PALE, block_paths
from shareq_widgets.look import SHAPES, SIZES, in_legend, letter_size
from shareq_widgets.strip_layout import (
    Label,
    OffsetScale,
    labels,
    lane_labels,
    lane_y,
    lines,
    lock_left,
    scale_of,
)
from shareq_widgets.svg import Colours, colours_of, document, paint, patterns, title_of
from shareq_widgets.text_fit import clipped, text_width
from shareq_widgets.words import Lane, chips, clock_text, is_stale, lanes, sentence, where

TOP: Final = 44
"""Room above the strip for the title and the chips."""
TAIL, LEGEND = 34, 22
"""Room below the lanes for the sentence, and for each line of the legend."""

BETWEEN: Final = "   ·   "
"""What stands between two chips."""


class Cell(NamedTuple):
    """Content of one offset. `kind` is run, past, beyond (above the window) or dash (outside the log, or a gap)."""

    kind: str
    state: str = ""
    delivery_count: int = 0
    letter: str = ""
    to_state: str = ""
    colour: str = ""


class Stage(NamedTuple):
    """A constant layout for a series of pictures: offsets do not move, and every member keeps its lane.

    It has room for `window` offsets from `first` on, and for the lanes of `members` members.
    """

    first: int
    window: int
    members: int


def draw(
    snapshot: StripSnapshot,
    *,
    theme: str = "light",
    width: int = 1084,
    stage: Stage | None = None,
    bare: bool = False,
) -> str:
    """The picture of a snapshot, with its window fitted into `width` pixels, or on a stage. `bare`: without texts
    around it.

    ValueError for an unknown theme or a picture too narrow for its gutters.
    """
    colours = colours_of(theme)
    if width < 320:
        raise ValueError(f"width must be at least 320 pixels, not {width!r}")
    shown, more = lanes(snapshot, everyone=stage is not None)
    stage = stage or Stage(snapshot["spso"], snapshot["window_end"] - snapshot["spso"], len(shown) + bool(more))
    scale = scale_of(stage.first, stage.window, width)
    foot = lane_y(max(len(shown), stage.members))
    legend = [] if bare else _legend(snapshot, scale)
    top, tail = (0, 4) if bare else (TOP, TAIL + LEGEND * len(legend))
    height = round(top + foot + tail)
    parts = [
        *(() if bare else _head(snapshot, width, colours)),
        f'<g transform="translate(0 {top})">',
        *_band(snapshot, scale, colours),
        *_stale(snapshot, (_cells if scale.cells else _blocks)(snapshot, scale, colours)),
        *_lines(snapshot, scale, colours),
        *_stale(snapshot, _lanes(snapshot, shown, scale, colours)),
        *(_label(label, colours) for label in labels(snapshot, scale)),
        *(_label(label, colours) for label in lane_labels(snapshot, shown, more, scale)),
        *(() if bare else _tail(snapshot, foot, width, colours)),
        *(
            _text(16, foot + 40 + LEGEND * row, line.replace(" ", "\N{NO-BREAK SPACE}"), colours["soft"])
            for row, line in enumerate(legend)
        ),
        "</g>",
    ]
    return document(width, height, colours, snapshot["text"], f"<defs>{patterns(colours)}</defs>{''.join(parts)}")


def cell_at(snapshot: StripSnapshot, offset: int) -> Cell:
    """The cell of an offset: its run, its faded past, or a place without a record."""
    members = {member["id"]: member for member in snapshot["members"]}
    if snapshot["spso"] <= offset < snapshot["window_end"]:
        run = _run_at(snapshot["runs"], offset)
        if run is None:
            return Cell("dash")
        holder = members.get(run[4], {"letter": "?", "colour": ""}) if run[4] else {"letter": "", "colour": ""}
        return Cell("run", run[2], run[3], holder["letter"], run[7] or "", holder["colour"])
    if offset < snapshot["spso"]:
        run = _run_at(snapshot["past"], offset)
        return Cell("past", run[2], run[3]) if run else Cell("dash")
    return Cell("beyond" if offset < snapshot["log_end"] else "dash")


def _run_at(runs: list[Run], offset: int) -> Run | None:
    index = bisect_right(runs, offset, key=lambda run: run[0]) - 1
    return runs[index] if index >= 0 and offset < runs[index][1] else None


def _text(x: float, y: float, text: str, colour: str, **attributes: Any) -> str:
    extra = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}"{extra}>{escape(text)}{title_of(text)}</text>'


def _paint(name: str | None, colours: Colours) -> str:
    return paint(name or "none", colours)


def _head(snapshot: StripSnapshot, width: float, colours: Colours) -> Iterator[str]:
    """Title to the left, chips to the right; the place between them, as much of it as has room."""
    texts = [(chip.before + chip.value + chip.after, chip.hot) for chip in chips(snapshot)]
    time = f"t {clock_text(snapshot['now_ms'] - snapshot['origin_ms'])}"
    figures = BETWEEN.join([*(text for text, _ in texts), time])
    taken = text_width(snapshot["group"], 17, strong=True) + text_width(figures)
    place = where(snapshot)
    yield (
        f'<text x="16" y="28"><tspan font-size="17" font-weight="700">{escape(snapshot["group"])}</tspan>'
        f'<tspan dx="14" fill="{colours["soft"]}">{escape(clipped(place, width - 56 - taken))}</tspan>'
        f"{title_of(place)}</text>"
    )
    title = title_of(" ".join(chip.before + chip.after for chip in chips(snapshot)))
    shown = BETWEEN.join([*(_tspan(text, hot, colours) for text, hot in texts), time])
    yield f'<text x="{width - 16:g}" y="28" text-anchor="end">{shown}{title}</text>'


def _tspan(text: str, hot: bool, colours: Colours) -> str:
    return f'<tspan fill="{colours["alarm" if hot else "ink"]}">{escape(text)}</tspan>'


def _band(snapshot: StripSnapshot, scale: OffsetScale, colours: Colours) -> Iterator[str]:
    """The ground of the window; an empty one has none."""
    if snapshot["spso"] == snapshot["window_end"]:
        return
    left, right = scale.x(snapshot["spso"]) - 4, scale.x(snapshot["window_end"]) + 1
    top = SIZES["cell_top"] - SIZES["band_above"]
    height = SIZES["cell_height"] + SIZES["band_above"] + SIZES["band_below"]
    yield (
        f'<rect x="{left:g}" y="{top:g}" width="{right - left:g}" height="{height:g}" rx="8" '
        f'fill="{colours["band"]}" stroke="{colours["bandline"]}"/>'
    )


LABELS: Final[dict[str, dict[str, str]]] = {
    "": {},
    "strong": {"font-weight": "600"},
    "small": {"font-size": "10.5"},
    "hot": {},
}
"""Attributes of the styles of labels, and their colours."""
INKS: Final = {"": "ink", "strong": "ink", "small": "soft", "hot": "alarm"}


def _label(label: Label, colours: Colours) -> str:
    return _text(
        label.x, label.y, label.text, colours[INKS[label.style]], **{"text-anchor": label.anchor}, **LABELS[label.style]
    )


def _lines(snapshot: StripSnapshot, scale: OffsetScale, colours: Colours) -> Iterator[str]:
    """The sides of the window, and the ends of the log as dotted lines."""
    for line in lines(snapshot, scale):
        path = f'<path d="M{line.x:g} {line.top:g}V{line.bottom:g}"'
        if line.kind == "flag":
            yield f'{path} stroke="{colours["bandline"]}" stroke-width="2"/>'
        elif 0 <= line.x <= scale.width:
            yield f'{path} stroke="{colours["soft"]}" stroke-dasharray="2 3"/>'


def _stale(snapshot: StripSnapshot, parts: Iterator[str]) -> Iterator[str]:
    """Parts of the picture, faded if they show what a leader has had that lost the share-partition."""
    if is_stale(snapshot):
        yield f'<g opacity=".45">{"".join(parts)}</g>'
    else:
        yield from parts


def _cells(snapshot: StripSnapshot, scale: OffsetScale, colours: Colours) -> Iterator[str]:
    """One cell per offset."""
    for offset in range(max(floor(scale.first), 0), ceil(scale.offset(scale.width))):
        place, cell = f"{scale.x(offset):g} {SIZES['cell_top']:g}", cell_at(snapshot, offset)
        yield f'<g transform="translate({place})">{cell_markup(cell, snapshot, scale.pitch, colours)}</g>'


def cell_markup(cell: Cell, snapshot: StripSnapshot, pitch: float, colours: Colours) -> str:
    """One cell, its top left corner at 0,0."""
    width, height = pitch - SIZES["gap"], SIZES["cell_height"]
    box = f'<rect width="{width:g}" height="{height:g}" rx="6"'
    if cell.kind == "dash":
        return f'<path d="M{width / 2 - 3:g} {height / 2:g}h6" stroke="{colours["line"]}" stroke-width="2"/>'
    if cell.kind == "beyond":
        return f'{box} fill="none" stroke="{colours["line"]}" stroke-width="1.2" stroke-dasharray="3 3"/>'
    shape, stroke = SHAPES[cell.state], colours[SHAPES[cell.state]["stroke"]]
    parts = [
        f'{box} fill="{_paint(shape["fill"], colours)}" stroke="{stroke}" stroke-width="{shape["width"]}"/>',
        _glyph(cell, width, colours),
        _stripe(cell, width, colours),
        _count(cell, snapshot["delivery_count_limit"], pitch, colours),
    ]
    around = f'<rect x="-2" y="-2" width="{width + 4:g}" height="{height + 4:g}" rx="8" fill="none"'
    if cell.state == "acquired" and cell.delivery_count >= snapshot["delivery_count_limit"]:
        parts.append(f'{around} stroke="{colours["alarm"]}" stroke-width="2.2"/>')
    if cell.to_state:
        parts.append(f'{around} stroke="{colours["ink"]}" stroke-width="1.4" stroke-dasharray="4 3"/>')
    return f'<g opacity=".45">{"".join(parts)}</g>' if cell.kind == "past" else "".join(parts)


def _glyph(cell: Cell, width: float, colours: Colours) -> str:
    """The state's shape; an acquired cell shows its holder, or, dashed, the target state of a write under way."""
    shape, ink = SHAPES[cell.to_state or cell.state], colours[SHAPES[cell.state]["ink"]]
    if shape["glyph"] is None:
        y = SIZES["glyph"] + 5
        style = {"text_anchor": "middle", "font_weight": 700, "font_size": f"{letter_size(width, cell.letter):g}"}
        return _text(width / 2, y, cell.letter, ink, **style)
    dashes = ' stroke-dasharray="2.5 2"' if cell.to_state else ""
    room = width - 2 * SHAPES[cell.state]["width"]
    shrunk = "" if room >= SIZES["glyph_width"] else f" scale({room / SIZES['glyph_width']:.3g})"
    return (
        f'<path transform="translate({width / 2:g} {SIZES["glyph"]:g}){shrunk}" d="{shape["glyph"]}" fill="none" '
        f'stroke="{ink}" stroke-width="{1.7 if cell.to_state else 2.4}" stroke-linecap="round"{dashes}/>'
    )


def _stripe(cell: Cell, width: float, colours: Colours) -> str:
    """The holder's colour, beside its letter."""
    if cell.state != "acquired" or not cell.colour:
        return ""
    y, height = SIZES["cell_height"] - SIZES["stripe"] - 2, SIZES["stripe"]
    return f'<rect x="3" y="{y:g}" width="{width - 6:g}" height="{height:g}" rx="1.5" fill="{colours[cell.colour]}"/>'


def _count(cell: Cell, limit: int, pitch: float, colours: Colours) -> str:
    """The delivery count as pips of the limit, or as a number where pips would not be legible."""
    if cell.state == "unknown":
        return ""
    width, y, solid = pitch - SIZES["gap"], SIZES["cell_height"] - SIZES["pips"], SHAPES[cell.state]["ink"] == "onfill"
    ink = colours["onfill" if solid else "ink"]
    space = min(5, (width - 8) / max(limit - 1, 1))
    if pitch < SIZES["pitch_pips"] or space < 3:
        return _text(width / 2, y + 3, str(cell.delivery_count), ink, text_anchor="middle", font_size=10)
    start, radius = width / 2 - space * (limit - 1) / 2, min(1.9, space * 0.4)
    return "".join(
        f'<circle cx="{start + i * space:g}" cy="{y:g}" r="{radius:g}" stroke="{ink}" '
        + (f'stroke-width="0" fill="{ink}"/>' if i < cell.delivery_count else 'stroke-width=".6" fill="none"/>')
        for i in range(limit)
    )


def _blocks(snapshot: StripSnapshot, scale: OffsetScale, colours: Colours) -> Iterator[str]:
    """A wide window as blocks: instead of a glyph the height shows the state."""
    foot = SIZES["cell_top"] + SIZES["cell_height"]
    for path in block_paths(
        ((first, end, state) for first, end, state, *_ in snapshot["runs"]), scale.x, foot, SIZES["cell_height"]
    ):
        if path.look == "lines":
            yield f'<path d="{path.d}" stroke="{colours[path.state]}" stroke-width="2"/>'
        elif path.look == "pale":
            yield f'<path d="{path.d}" fill="{colours[path.state]}" opacity="{PALE}"/>'
        else:
            yield f'<path d="{path.d}" fill="{_paint(SHAPES[path.state]["fill"], colours)}"/>'


def _lanes(snapshot: StripSnapshot, owners: list[Lane], scale: OffsetScale, colours: Colours) -> Iterator[str]:
    """A bar for each range that a member holds, filled by its lock's time left."""
    rows = {lane.id: lane_y(row) for row, lane in enumerate(owners)}
    thin: dict[str, dict[tuple[int, float], str]] = {}
    for first, end, state, _, member, deadline_ms, *_ in snapshot["runs"]:
        if state != "acquired" or member not in rows:
            continue
        known = deadline_ms is not None  # an observed lock has no known deadline
        left_ms, hot = lock_left(snapshot, deadline_ms) if known else (snapshot["lock_duration_ms"], False)
        part, y, x = min(left_ms / snapshot["lock_duration_ms"], 1), rows[member], scale.x(first)
        colour, width = colours["alarm" if hot else "acquired"], scale.x(end) - x - SIZES["gap"] * scale.cells
        if width < SIZES["lane_bar_narrow"]:
            thin.setdefault(colour, {}).setdefault((round(x), y), _thin(x, y, width, part))  # one for each pixel
            continue
        bar = f'<rect x="{x:g}" y="{y:g}" height="{SIZES["lane_bar"]:g}" rx="4"'
        yield f'{bar} width="{width:g}" fill="none" stroke="{colour}"/>'
        yield f'{bar} width="{width * part:.1f}" fill="{colour}"/>'
    for colour, paths in thin.items():
        yield f'<path d="{"".join(paths.values())}" fill="{colour}"/>'


def _thin(x: float, y: float, width: float, part: float) -> str:
    """A bar too narrow to run down sideways: it runs down from the top."""
    bottom, x = y + SIZES["lane_bar"], round(x)
    return f"M{x:g} {bottom:g}V{bottom - SIZES['lane_bar'] * part:.1f}h{max(round(width), 1)}V{bottom:g}z"


def _tail(snapshot: StripSnapshot, y: float, width: float, colours: Colours) -> Iterator[str]:
    """The last event, as much of it as has room."""
    place, what, why, hot = sentence(snapshot, snapshot["total"])
    what = clipped(what, (width - 32 - text_width(place)) / 1.1)
    why = clipped(why, width - 32 - text_width(place) - text_width(what, strong=True))
    strong = f'<tspan font-weight="700" fill="{colours["alarm" if hot else "ink"]}">{escape(what)}</tspan>'
    title = title_of(what + why)
    yield f'<text x="16" y="{y + 18:g}" fill="{colours["soft"]}">{escape(place)}{strong}{escape(why)}{title}</text>'


def _legend(snapshot: StripSnapshot, scale: OffsetScale) -> list[str]:
    """The meaning of the signs, in lines that fit."""
    signs = [f"{SYMBOLS[state]} {state}" for state in in_legend(snapshot)]
    if snapshot["observed"]:
        signs.append("(either: available, or held by an unknown member)")
        signs.append("●●○○○ deliveries of the limit" if scale.cells else "height: the state, or its share")
        signs.append("bars: records held by a member")
    elif scale.cells:
        signs += ["dashed: write under way", "●●○○○ deliveries of the limit", "bars: lock time left"]
    else:
        signs += ["height: the state, or its share", "available is hollow", "bars: lock time left"]
    lines: list[str] = []
    for sign in signs:
        longer = f"{lines[-1]}     {sign}" if lines else sign
        if lines and text_width(longer) <= scale.width - 32:
            lines[-1] = longer
        else:
            lines.append(sign)
    return lines
