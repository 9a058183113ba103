"""Cubic curves, and parts of them."""

from __future__ import annotations

from typing import NamedTuple

Point = tuple[float, float]


class Curve(NamedTuple):
    """A cubic Bézier curve; `first` and `second` are its control points."""

    start: Point
    first: Point
    second: Point
    end: Point

    @property
    def d(self) -> str:
        """The data of an SVG path."""
        places = [f"{x:.1f} {y:.1f}" for x, y in self]
        return f"M{places[0]}C{' '.join(places[1:])}"

    def until(self, part: float) -> Curve:
        """The beginning of the curve up to `part`, from 0 to 1 (de Casteljau's construction)."""
        rows: list[list[Point]] = [list(self)]
        while len(rows[-1]) > 1:
            rows.append([_between(a, b, part) for a, b in zip(rows[-1], rows[-1][1:], strict=False)])
        return Curve(*(row[0] for row in rows))


def _between(a: Point, b: Point, part: float) -> Point:
    return a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part
