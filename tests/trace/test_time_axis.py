"""The time axis: proportional to time, with idle stretches folded."""

from __future__ import annotations

import pytest

from shareq.trace.analysis.time_axis import FOLD_OVER_MS, FOLDED_MS, Folds

OVER = FOLD_OVER_MS + 1


@pytest.mark.parametrize(
    ("times_ms", "now_ms", "folds", "length_ms"),
    [
        pytest.param([], 0, [], 0, id="an empty journal"),
        pytest.param([5, 30_000], 0, [], 30_000, id="the wait for a lock keeps its length"),
        pytest.param([FOLD_OVER_MS], 0, [], FOLD_OVER_MS, id="the longest stretch that is not folded"),
        pytest.param([10, 10 + OVER, 20 + OVER], 0, [(10, 10 + OVER)], 10 + FOLDED_MS + 10, id="an idle stretch"),
        pytest.param([OVER, 3 * OVER], 0, [(0, OVER), (OVER, 3 * OVER)], 2 * FOLDED_MS, id="two in a row"),
        pytest.param([10], 500, [], 500, id="the present is the end"),
        pytest.param([10], 10 + OVER, [(10, 10 + OVER)], 10 + FOLDED_MS, id="idle until now"),
        pytest.param([700], 500, [], 700, id="a source without a clock of its own"),
    ],
)
def test_folds(times_ms: list[int], now_ms: int, folds: list[tuple[int, int]], length_ms: int) -> None:
    found = Folds(0)
    for place in range(0, len(times_ms), 2):
        found.add(times_ms[place : place + 2])
    axis = found.axis(now_ms)
    assert (list(axis.folds), axis.length_ms) == (folds, length_ms)
    assert (axis.start_ms, axis.end_ms) == (0, max([now_ms, *times_ms]))


@pytest.mark.parametrize(
    ("between", "shown"),
    [
        pytest.param((10, 20), (10, 20, []), id="without a fold"),
        pytest.param((-5, 9 * OVER), (0, 3 * OVER, [(100, 100 + 2 * OVER)]), id="more than the axis"),
        pytest.param((0, 200), (0, 200, []), id="the short begin of a fold is not folded"),
        pytest.param((100 + OVER, 3 * OVER), (100 + OVER, 3 * OVER, [(100 + OVER, 100 + 2 * OVER)]), id="its rest is"),
    ],
)
def test_a_part_of_an_axis(between: tuple[int, int], shown: tuple[int, int, list[tuple[int, int]]]) -> None:
    found = Folds(0)
    found.add([100, 100 + 2 * OVER, 3 * OVER])
    part = found.axis(0).between(*between)
    assert (part.start_ms, part.end_ms, list(part.folds)) == shown
