"""Blocks of a window too wide for cells: every record counts, also where many share a pixel."""

from __future__ import annotations

from collections import Counter
from math import floor
from random import Random

import pytest

from shareq_widgets.blocks import LEAST, block_paths, blocks
from shareq_widgets.look import SHAPES

PARTS = 200
"""Each record is counted in so many parts."""


def runs_of(states: list[str], first: int = 100) -> list[tuple[int, int, str]]:
    return [(first + place, first + place + 1, state) for place, state in enumerate(states)]


@pytest.mark.parametrize("pitch", [3.7, 0.9, 0.37, 0.05])
def test_a_column_shows_the_share_of_each_state(seed: int, pitch: float) -> None:
    states = Random(seed).choices(list(SHAPES), (5, 5, 9, 1, 2, 1, 1), k=2_000)
    expected: dict[int, Counter[str]] = {}
    for place, state in enumerate(states):
        for part in range(PARTS):
            expected.setdefault(floor((place + (part + 0.5) / PARTS) * pitch), Counter())[state] += 1
    heights: dict[int, dict[str, float]] = {}
    for block in blocks(runs_of(states), lambda offset: (offset - 100) * pitch):
        assert block.right - block.left == 1
        drawn = heights.setdefault(int(block.left), {})
        drawn[block.state] = drawn.get(block.state, 0) + block.high - block.low
    assert heights.keys() == expected.keys()
    for column, counts in expected.items():
        if len(counts) == 1 and pitch >= 1:
            (state,) = counts
            assert heights[column][state] == SHAPES[state]["block"]
        else:
            shares = {state: count / counts.total() for state, count in counts.items()}
            drawn = {state: heights[column].get(state, 0) for state in heights[column] | counts}
            assert drawn == pytest.approx(
                {state: shares.get(state, 0) for state in drawn}, abs=2 * max(pitch, 1) / PARTS + LEAST
            )


def test_states_of_a_column_lie_above_each_other() -> None:
    """What is done below, what waits above, without gaps."""
    (acknowledged, acquired, available) = blocks(
        runs_of(["available", "acquired", "acknowledged", "acknowledged"]), lambda offset: (offset - 100) / 4
    )
    assert (acknowledged.state, acknowledged.low, acknowledged.high, acknowledged.look) == (
        "acknowledged",
        0,
        0.5,
        "filled",
    )
    assert (acquired.state, acquired.low, acquired.high) == ("acquired", 0.5, 0.75)
    assert (available.state, available.low, available.high, available.look) == ("available", 0.75, 1, "pale")


def test_wide_runs_are_blocks_of_their_own() -> None:
    wide, *columns, hollow = blocks(
        [(0, 5, "acknowledged"), (5, 7, "archived"), (8, 19, "available")], lambda o: o * 0.8
    )
    assert (wide.left, wide.right, wide.high, wide.look) == (0, 4, SHAPES["acknowledged"]["block"], "filled")
    assert [(one.left, one.right, one.high) for one in columns] == [
        (4, 5, SHAPES["archived"]["block"]),
        (5, 6, SHAPES["archived"]["block"]),
    ]
    assert (hollow.left, hollow.right) == pytest.approx((6.4, 15.2))
    assert hollow.look == "lines"


def test_the_number_of_blocks_follows_the_width() -> None:
    states = Random(1).choices(["available", "acquired", "acknowledged"], k=100_000)
    drawn = list(blocks(runs_of(states), lambda offset: (offset - 100) / 100))
    assert len(drawn) <= 3 * 1_000
    paths = list(block_paths(runs_of(states), lambda offset: (offset - 100) / 100, 84, 44))
    assert {(path.state, path.look) for path in paths} == {
        ("available", "pale"), ("acquired", "filled"), ("acknowledged", "filled"),
    }  # fmt: skip
    assert sum(len(path.d) for path in paths) < 100_000


def test_no_runs_have_no_blocks() -> None:
    assert list(blocks([], float)) == []
