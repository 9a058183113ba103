"""A partition as a box with its name, and its lag or what is wrong, on one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from shareq_widgets.drawing import Drawing
from shareq_widgets.pictures.partitions import PartitionContent
from shareq_widgets.pictures.words import clipped_inside, first_fitting, short_count
from shareq_widgets.selection import partition as about_partition
from shareq_widgets.text_fit import SMALL, text_width

CHIP_HEIGHT: Final = 21.0
NAME_ROOM: Final = 34.0
"""The least room for a name beside other words."""


@contextmanager
def partition_box(
    drawing: Drawing, one: PartitionContent, at: tuple[float, float, float, float], *, news: str = ""
) -> Iterator[None]:
    """The box of a partition at x, y, width and height; elements added inside are about it. `news`: what happened to
    it, which marks the box."""
    title = "; ".join(filter(None, (f"{one.name}: {one.leader_words}, {one.words}", one.blocked_words, news)))
    with drawing.about(about_partition(one.topic, one.partition)):
        drawing.rect(
            f"partition {one.name}",
            *at,
            rx=7,
            fill="band" if news else "card",
            stroke="alarm" if one.alarming else "bandline" if news else "line",
            stroke_dasharray="4 3" if one.leader == -1 else None,
            title=title,
        )
        yield


def draw_chip(drawing: Drawing, one: PartitionContent, x: float, y: float, width: float, *, news: str = "") -> None:
    """The name, and as many words beside it as fit."""
    key, style = f"partition {one.name}", "small hot" if one.alarming else "small soft"
    with partition_box(drawing, one, (x, y, width, CHIP_HEIGHT), news=news):
        words = first_fitting(_words(one), width - 20 - min(text_width(one.name), 2 * NAME_ROOM), SMALL)
        name = clipped_inside(one.name, width - 20 - text_width(words, SMALL))
        drawing.label(f"{key} name", x + 8, y + 15, name)
        drawing.label(f"{key} lag", x + width - 6, y + 15, words, anchor="end", style=style)


def _words(one: PartitionContent) -> list[str]:
    """From the longest to the shortest."""
    if one.leader == -1:
        return ["no leader"]
    if one.full:
        return ["window full", "full"]
    if one.lag is None:
        return [""]
    return [one.words, one.short_words, f"lag {short_count(one.lag)}"]
