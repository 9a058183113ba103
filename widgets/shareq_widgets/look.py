"""Sizes and shapes of the live strip (JavaScript) and the static picture (SVG), so that both look alike.

Colours are names of the palette, never values: each renderer resolves them for its theme. Units: pixels.
"""

from __future__ import annotations

from typing import Any, Final

from shareq.trace.views.palette import DARK, LIGHT, STATES, UNKNOWNS
from shareq.trace.views.snapshot import StripSnapshot

SIZES: Final[dict[str, float]] = {
    "pitch": 33,  # from one cell to the next, at full size
    "pitch_step": 0.9,  # smaller sizes are steps of this ratio, so that small changes of the window do not zoom
    "pitch_cells": 14,  # below this a cell is no longer legible: runs are drawn as blocks
    "pitch_pips": 22,  # below this the delivery count is a number instead of pips
    "gap": 3,
    "cell_top": 40,
    "cell_height": 44,
    "glyph": 19,  # centre of the glyph below the cell's top
    "glyph_width": 14.4,  # of the widest glyph with its line; a cell that has less room inside has a smaller one
    "letter": 14,  # height of the holder's letter
    "pips": 11,  # the line of the delivery count above the cell's bottom
    "stripe": 3.5,  # height of the holder's colour at the cell's bottom
    "band_above": 14,
    "band_below": 30,
    "lane_top": 146,
    "lane": 24,
    "lane_bar": 14,
    "lane_bar_narrow": 12,  # a narrower bar runs down from the top, and not sideways
    "digit": 6.4,  # width of a digit of a small label
    "ends_near": 84,  # two labels of ends of the log need so much room
    "gutter_left": 116,
    "gutter_right": 124,
    "gutter_left_narrow": 102,  # gutters of a picture narrower than `narrow`: shorter names, seconds without words
    "gutter_right_narrow": 64,
    "name_right": 14,  # a name in the gutter ends so far from the window
    "narrow": 760,
    "lanes": 10,  # further members are only counted
}

HOURGLASS = "M-5-6h10l-10 12h10z"
CROSS = "M-5-5l10 10m0-10l-10 10"
RING = "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0"
QUESTION = "M-4-4a4 4 0 1 1 5.8 3.6c-1.3.7-1.8 1.3-1.8 2.9m0 3.9v.1"
SHAPES: Final[dict[str, dict[str, Any]]] = {
    "available": {
        "fill": None,
        "stroke": "available",
        "width": 2.5,
        "glyph": RING,
        "ink": "available",
        "block": 1.0,
    },
    "acquired": {"fill": "acquired", "stroke": "acquired", "width": 1.2, "glyph": None, "ink": "onfill", "block": 1.0},
    "acknowledged": {
        "fill": "acknowledged",
        "stroke": "acknowledged",
        "width": 1.2,
        "glyph": "M-6 0l4.5 5 8-10",
        "ink": "onfill",
        "block": 0.6,
    },
    "archiving": {"fill": "dots", "stroke": "archiving", "width": 1.2, "glyph": HOURGLASS, "ink": "ink", "block": 0.3},
    "archived": {"fill": "hatch", "stroke": "archived", "width": 1.2, "glyph": CROSS, "ink": "ink", "block": 0.3},
    "returned": {"fill": "veil", "stroke": "returned", "width": 2.5, "glyph": RING, "ink": "ink", "block": 0.8},
    "unknown": {"fill": "veil", "stroke": "unknown", "width": 1.2, "glyph": QUESTION, "ink": "ink", "block": 0.45},
}
"""The look of each state: fill and outline of its cell, its glyph (a path around 0,0; None: the holder's letter), and
the height of its block where cells are too narrow for a glyph, so that states differ without colour. `fill` None:
hollow."""

MARKS: Final[dict[str, str]] = {
    "lock_timeout": "acquired",
    "member_left": "alarm",
    "archived": "archived",
    "disturbed": "alarm",
    "leader_moved": "ink",
    "write_failed": "alarm",
    "broker_killed": "alarm",
    "log_start": "soft",
}
"""Kinds of timeline marks and their colours; all other kinds are soft."""

THEMES: Final[dict[str, dict[str, str]]] = {"light": LIGHT, "dark": DARK}
GONE, FROZEN = "†", "❄"
"""Signs behind the name of a member that has left or whose program has ended, and of one whose program is frozen."""

LOCK_ALARM = 6
"""A lock is about to expire when less than one sixth of its duration is left: 5 s of the default 30 s."""


def look() -> dict[str, Any]:
    """The sizes and shapes for the browser."""
    return {"sizes": SIZES, "shapes": SHAPES, "marks": MARKS, "lock_alarm": LOCK_ALARM}


def in_legend(snapshot: StripSnapshot, *, archiving: bool = False) -> list[str]:
    """The states in a legend. In an observed share-partition no record is known to be available."""
    states = [state for state in STATES if archiving or state != "archiving"]
    return [*states[1:], *UNKNOWNS] if snapshot["observed"] else states


def in_width(size: str, width: float) -> float:
    """A size that is another one in a picture narrower than `narrow`."""
    return SIZES[size if width >= SIZES["narrow"] else f"{size}_narrow"]


def letter_size(width: float, letter: str) -> float:
    """The height of a holder's letter in a cell of this width."""
    return min(SIZES["letter"], max(width / (0.75 * max(len(letter), 1)), SIZES["letter"] / 2))


def fit(window: int, width: float) -> float:
    """The largest step of the pitch at which `window` offsets fit between the gutters of a picture `width` wide."""
    room = max(width - in_width("gutter_left", width) - in_width("gutter_right", width), 1)
    pitch = SIZES["pitch"]
    while pitch * (window + 1) > room:
        pitch *= SIZES["pitch_step"]
    return pitch
