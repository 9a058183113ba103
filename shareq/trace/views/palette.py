"""Colours, symbols and hatches of widgets, plots and HTML reprs.

The hues are from the Okabe-Ito set, safe for the colour-blind; nevertheless every state has its own fill *and* shape.
`alarm` is only for what needs attention: last attempt, lock about to expire, failed write, full window.
"""

from typing import Any, Final

STATES: Final[tuple[str, ...]] = ("available", "acquired", "acknowledged", "archiving", "archived")
"""The record states in the order of legends, tables and plots."""

UNKNOWNS: Final[tuple[str, ...]] = ("returned", "unknown")
"""The names for observed records that are available, or held by a member that reports no deliveries."""

SYMBOLS: Final[dict[str, str]] = {
    "available": "○",
    "acquired": "■",
    "acknowledged": "✓",
    "archiving": "⧗",
    "archived": "✕",
    "returned": "◌",
    "unknown": "?",
}

LIGHT: Final[dict[str, str]] = {
    "available": "#56b4e9",
    "acquired": "#e69f00",
    "acknowledged": "#009e73",
    "archiving": "#8a8f98",
    "archived": "#8a8f98",
    "returned": "#56b4e9",
    "unknown": "#cc79a7",
    "alarm": "#d55e00",
    "ink": "#1f2430",
    "soft": "#6b7280",
    "line": "#d7dbe2",
    "band": "#eef4fb",
    "bandline": "#9db8d6",
    "card": "#fafbfc",
    "bg": "#ffffff",
    "onfill": "#14181f",
    "member0": "#3f51d1",
    "member1": "#9a3fb5",
    "member2": "#00798c",
    "member3": "#8c5a00",
    "member4": "#b5345c",
    "member5": "#4a7a1e",
    "member6": "#5d5a88",
    "member7": "#2f6f9f",
}

DARK: Final[dict[str, str]] = {
    "available": "#56b4e9",
    "acquired": "#f0b429",
    "acknowledged": "#2fbf95",
    "archiving": "#7d8590",
    "archived": "#7d8590",
    "returned": "#56b4e9",
    "unknown": "#d894b8",
    "alarm": "#ff8a4c",
    "ink": "#e8ebf0",
    "soft": "#98a1ae",
    "line": "#353c48",
    "band": "#1b2735",
    "bandline": "#47688c",
    "card": "#191d25",
    "bg": "#14171d",
    "onfill": "#14181f",
    "member0": "#8c9bff",
    "member1": "#d78bee",
    "member2": "#4cc3d4",
    "member3": "#d9a441",
    "member4": "#f08bab",
    "member5": "#9ccf6a",
    "member6": "#b3afe0",
    "member7": "#7fc0ee",
}

MEMBER_COLOURS: Final = 8
"""Members have the colours member0, member1, ... by their place, repeated after this many; the letter is what tells
them apart."""


def member_colour(place: int) -> str:
    """The name of the colour of the member at a place, from 0."""
    return f"member{place % MEMBER_COLOURS}"


HATCHES: Final[dict[str, str]] = {
    "available": "...",
    "acquired": "",
    "acknowledged": "",
    "archiving": "xx",
    "archived": "////",
    "returned": "oo",
    "unknown": "--",
}
"""matplotlib's hatches, which distinguish the states without colour. Acquired and acknowledged are solid; they differ
in lightness, and in their side of the SPSO line.
"""

SERIES: Final[tuple[tuple[str, Any], ...]] = (
    ("#2f8fd0", "-"),
    ("#d98200", "--"),
    ("#009e73", "-."),
    ("#cc79a7", ":"),
    ("#56b4e9", (0, (6, 1, 1, 1, 1, 1))),
    ("#7a7f87", (0, (1, 1))),
)
"""Colour and dash of lines, by partition; readable on light and dark, repeated from the seventh on."""
