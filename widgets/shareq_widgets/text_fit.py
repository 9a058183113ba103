"""Text that fits: estimated widths, lines and abbreviations. The estimate is for DejaVu Sans, the widest font used."""

from __future__ import annotations

from typing import Final

NORMAL: Final = 12.0
SMALL: Final = 10.5
_NARROW: Final = frozenset(" .,:;'|!()[]fijlrtI‹›·")
_WIDE: Final = frozenset("mwMWABCDEFGHKNOQRSUVXYZ–—%@…")


def text_width(text: str, size: float = NORMAL, *, strong: bool = False) -> float:
    """An upper estimate of the width of a text in pixels."""
    narrow = sum(c in _NARROW for c in text)
    wide = sum(c in _WIDE for c in text)
    em = 0.38 * narrow + 0.84 * wide + 0.63 * (len(text) - narrow - wide)
    return em * size * (1.1 if strong else 1.0)


def clipped(text: str, width: float, size: float = NORMAL) -> str:
    """The text, or as much of its beginning as fits, with an ellipsis; empty if not even that fits."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text and text.rstrip() + "…"


def wrapped(text: str, width: float, size: float = NORMAL, *, strong: bool = False) -> list[str]:
    """The text in lines that fit; a word that is too long for a line is clipped."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, strong=strong) <= width:
            lines[-1] = longer
        else:
            lines.append(clipped(word, width, size))
    return lines
