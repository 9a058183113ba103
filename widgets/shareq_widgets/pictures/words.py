"""Short words for times and rates, and the longest words that fit."""

from __future__ import annotations

from collections.abc import Sequence

from shareq_widgets.text_fit import NORMAL, clipped, text_width

COUNTING = "00.0 s"
"""The widest usual text in the place of "{}" in a text that counts."""


def seconds(ms: int) -> str:
    """A duration: whole seconds without decimals."""
    return f"{ms // 1000:,} s" if ms % 1000 == 0 else f"{ms / 1000:,.1f} s"


def rate_words(rate: float) -> str:
    """A number a second: one decimal below 10."""
    return f"{rate:,.0f}" if rate >= 10 or rate == int(rate) else f"{rate:.1f}"


def short_count(count: int) -> str:
    """A count in at most four characters and a unit."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= 10 * size:
            return f"{count // size:,}{unit}"
    return f"{count:,}"


def clipped_inside(text: str, width: float, size: float = NORMAL) -> str:
    """The text, or as much of its beginning and its end as fits, with an ellipsis between: names differ at the end."""
    if text_width(text, size) <= width:
        return text
    for kept in range(len(text) - 1, 1, -1):
        end = min(3, (kept + 1) // 2)
        shorter = text[: kept - end] + "…" + text[-end:]
        if text_width(shorter, size) <= width:
            return shorter
    return ""


def first_fitting(choices: Sequence[str], width: float, size: float = NORMAL) -> str:
    """The first of these texts that fits; else the last one, clipped."""
    for text in choices:
        if text_width(text.replace("{}", COUNTING), size) <= width:
            return text
    return clipped(choices[-1].replace("{}", ""), width, size)
