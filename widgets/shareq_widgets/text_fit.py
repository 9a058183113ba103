"""Text that fits: estimated widths, lines and abbreviations. The estimate is for DejaVu Sans, the widest font used."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

NORMAL: Final = 12.0
SMALL: Final = 10.5
_EMS: Final = {
    **dict.fromkeys(" .,:;'|!()[]fijlrtI‹›·-/", 0.38),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ", 0.75),
    **dict.fromkeys("mwMW–—%@…×→♥", 0.98),
}
_OTHER_EMS: Final = 0.63


def text_width(text: str, size: float = NORMAL, *, strong: bool = False) -> float:
    """An upper estimate of the width of a text in pixels."""
    return _ems(text) * size * (1.1 if strong else 1.0)


@lru_cache(maxsize=4096)
def _ems(text: str) -> float:
    """The width of a text for a size of 1: the pictures of successive moments have mostly the same texts."""
    return sum([_EMS.get(c, _OTHER_EMS) for c in text])


def clipped(text: str, width: float, size: float = NORMAL) -> str:
    """The text, or as much of its beginning as fits, with an ellipsis; empty if not even that fits."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text and text.rstrip() + "…"


def wrapped(text: str, width: float, size: float = NORMAL, *, strong: bool = False) -> list[str]:
    """The text in lines that fit, broken at spaces; a word that is too long for a line is clipped."""
    lines: list[str] = []
    for word in filter(None, text.split(" ")):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, strong=strong) <= width:
            lines[-1] = longer
        else:
            lines.append(clipped(word, width / (1.1 if strong else 1.0), size))
    return lines
