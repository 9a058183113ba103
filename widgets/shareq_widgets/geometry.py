"""Geometry for pictures: boxes that must not overlap, and curves that elements travel along."""

from __future__ import annotations

from bisect import bisect_left
from math import dist
from typing import Final, NamedTuple

Point = tuple[float, float]

_SAMPLES: Final = 32


class Box(NamedTuple):
    """A rectangle by its edges."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, middle: Point, width: float, height: float) -> Box:
        x, y = middle
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> Point:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def overlaps(self, other: Box) -> bool:
        """True if the insides of both have a point in common."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


class Curve:
    """A cubic Bezier curve."""

    def __init__(self, start: Point, leaves: Point, arrives: Point, end: Point) -> None:
        self._points = (start, leaves, arrives, end)
        reached, lengths = start, [0.0]
        for step in range(1, _SAMPLES + 1):
            point = self._at(step / _SAMPLES)[-1]
            lengths.append(lengths[-1] + dist(reached, point))
            reached = point
        self._lengths = lengths

    @property
    def length(self) -> float:
        return self._lengths[-1]

    @property
    def d(self) -> str:
        """The curve as the data of an SVG path."""
        return _data(*self._points)

    def point(self, part: float) -> Point:
        """The point after a part, from 0 to 1, of the length."""
        return self._at(self._parameter(part))[-1]

    def until(self, part: float) -> str:
        """The first part of the curve as the data of an SVG path."""
        return _data(*self._at(self._parameter(part)))

    def _parameter(self, part: float) -> float:
        wanted = min(max(part, 0), 1) * self.length
        place = max(bisect_left(self._lengths, wanted), 1)
        before, after = self._lengths[place - 1], self._lengths[place]
        return (place - 1 + (wanted - before) / (after - before or 1)) / _SAMPLES

    def _at(self, t: float) -> tuple[Point, Point, Point, Point]:
        """The control points of the curve's part up to the parameter t (de Casteljau); the last one is its end."""
        start, b, c, d = self._points
        ab, bc, cd = _between(start, b, t), _between(b, c, t), _between(c, d, t)
        abc, bcd = _between(ab, bc, t), _between(bc, cd, t)
        return start, ab, abc, _between(abc, bcd, t)


def straight(start: Point, end: Point) -> Curve:
    """A line as a curve."""
    return Curve(start, _between(start, end, 1 / 3), _between(start, end, 2 / 3), end)


def _between(a: Point, b: Point, t: float) -> Point:
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t


def _data(start: Point, leaves: Point, arrives: Point, end: Point) -> str:
    numbers = [f"{round(x, 2):g} {round(y, 2):g}" for x, y in (start, leaves, arrives, end)]
    return f"M{numbers[0]}C{' '.join(numbers[1:])}"
