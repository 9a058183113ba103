"""Blocks: the form of runs in a window too wide for cells. Instead of a glyph the height shows the state, or, where
several states share a pixel, the share of each. `drawBlocks` in js/draw.js draws the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import ceil, floor
from typing import Final, Literal, NamedTuple

from shareq_widgets.look import SHAPES

WIDE: Final = 4
"""The width from which a run has a block of its own, px."""

LEAST: Final = 0.01
"""A part of a pixel that is not drawn: runs end beside whole pixels by the error of a float."""

PALE: Final = 0.3
"""The opacity of a hollow state in a column with others."""

Look = Literal["filled", "lines", "pale"]
"""How a state is drawn: filled, as two lines (hollow), or pale (hollow, in a column with others)."""


class Block(NamedTuple):
    """A rectangle of one state from `left` to `right`, px; `low` and `high` are parts of a cell's height."""

    state: str
    left: float
    right: float
    low: float
    high: float
    look: Look


class BlockPath(NamedTuple):
    """All blocks of a state that look alike, as the data of one path."""

    state: str
    look: Look
    d: str


def blocks(runs: Iterable[tuple[int, int, str]], x: Callable[[int], float]) -> Iterator[Block]:
    """The blocks of runs (first, end, state) in order. Narrow runs share columns of one pixel, in which each state is
    as high as its share: the number of blocks follows the width, not that of runs."""
    column = _Column(0, {})
    for first, end, state in runs:
        left, right = x(first), x(end)
        if right - left >= WIDE:
            yield from column.blocks()
            column = _Column(0, {})
            yield _alone(state, left, right)
            continue
        for place in range(floor(left), ceil(right)):
            part = min(right, place + 1) - max(left, place)
            if place != column.left:
                yield from column.blocks()
                column = _Column(place, {})
            if part > LEAST:
                column.shares[state] = column.shares.get(state, 0) + part
                column.dense |= right - left < 1
    yield from column.blocks()


def _alone(state: str, left: float, right: float) -> Block:
    shape = SHAPES[state]
    return Block(state, left, right, 0, shape["block"], "filled" if shape["fill"] else "lines")


@dataclass
class _Column:
    """A column of one pixel: the part of each state, and whether a run is narrower than it."""

    left: int
    shares: dict[str, float]
    dense: bool = False

    def blocks(self) -> Iterator[Block]:
        """A column inside a run, or between two of one state, is as high as their blocks."""
        low, whole = 0.0, sum(self.shares.values())
        for state in filter(self.shares.__contains__, reversed(SHAPES)):  # what is done below, what waits above
            if len(self.shares) == 1 and not self.dense:
                yield _alone(state, self.left, self.left + 1)
                return
            high = low + self.shares[state] / whole
            yield Block(state, self.left, self.left + 1, low, high, "filled" if SHAPES[state]["fill"] else "pale")
            low = high


def block_paths(
    runs: Iterable[tuple[int, int, str]], x: Callable[[int], float], foot: float, height: float
) -> Iterator[BlockPath]:
    """The blocks of runs, `height` px above `foot` at the most."""
    outlines: dict[tuple[str, Look], list[str]] = {}
    for block in blocks(runs, x):
        outlines.setdefault((block.state, block.look), []).append(_outline(block, foot, height))
    for (state, look), parts in outlines.items():
        yield BlockPath(state, look, "".join(parts))


def _outline(block: Block, foot: float, height: float) -> str:
    left, right = f"{round(block.left, 1):g}", f"{round(block.right, 1):g}"
    low, high = round(foot - block.low * height, 1), round(foot - block.high * height, 1)
    if block.look == "lines":
        return f"M{left} {high + 1:g}H{right}M{left} {low - 1:g}H{right}"
    return f"M{left} {low:g}V{high:g}H{right}V{low:g}z"
