"""Geometry of pictures: curves that elements travel along, and boxes."""

from __future__ import annotations

from itertools import pairwise
from math import dist

import pytest

from shareq_widgets.geometry import Box, Curve, straight

ARC = Curve((0, 0), (0, 40), (90, 40), (90, 0))


@pytest.mark.parametrize("curve", [ARC, straight((0, 0), (30, 40))], ids=["an arc", "a line"])
def test_points_divide_a_curve_by_its_length(curve: Curve) -> None:
    points = [curve.point(place / 100) for place in range(101)]
    steps = [dist(a, b) for a, b in pairwise(points)]
    assert sum(steps) == pytest.approx(curve.length, rel=0.01)
    assert max(steps) == pytest.approx(min(steps), rel=0.1)


def test_the_first_part_of_a_curve_ends_at_its_point() -> None:
    for part in (0, 0.25, 0.5, 1):
        numbers = [float(text) for text in ARC.until(part)[1:].replace("C", " ").split()]
        assert numbers[:2] == [0, 0]
        assert numbers[-2:] == pytest.approx(ARC.point(part), abs=0.01)
    assert ARC.until(1) == ARC.d == "M0 0C0 40 90 40 90 0"
    assert straight((0, 0), (30, 40)).length == pytest.approx(50)


@pytest.mark.parametrize(
    ("other", "overlap"),
    [
        pytest.param(Box(5, 5, 15, 15), True, id="a common corner"),
        pytest.param(Box(2, 2, 3, 3), True, id="inside"),
        pytest.param(Box(10, 0, 20, 10), False, id="a common edge"),
        pytest.param(Box(0, 11, 10, 12), False, id="below"),
    ],
)
def test_boxes_overlap(other: Box, overlap: bool) -> None:
    box = Box.around((5, 5), 10, 10)
    assert box == (0, 0, 10, 10)
    assert (box.middle, box.width, box.height) == ((5, 5), 10, 10)
    assert box.overlaps(other) is other.overlaps(box) is overlap
