"""Boxes of the elements of a drawing, for tests of its layout."""

from __future__ import annotations

from typing import NamedTuple

from shareq_widgets.drawing import Drawing, Element
from shareq_widgets.text_fit import NORMAL, SMALL, text_width


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def box(element: Element, countdown: str = "00.0 s") -> Box | None:
    """The box of an element; None for a path."""
    a = element["attributes"]
    if element["tag"] == "rect":
        return Box(a["x"], a["y"], a["x"] + a["width"], a["y"] + a["height"])
    if element["tag"] == "circle":
        return Box(a["cx"] - a["r"], a["cy"] - a["r"], a["cx"] + a["r"], a["cy"] + a["r"])
    if element["tag"] == "line":
        return Box(min(a["x1"], a["x2"]), min(a["y1"], a["y2"]), max(a["x1"], a["x2"]), max(a["y1"], a["y2"]))
    if element["tag"] == "path":
        return None
    text = countdown if "countdown" in element else element.get("text", "")
    size = SMALL if "small" in element.get("style", "") else NORMAL
    width = text_width(text, size, strong="strong" in element.get("style", ""))
    left = a["x"] - {"start": 0.0, "middle": width / 2, "end": width}[a["text-anchor"]]
    return Box(left, a["y"] - 0.75 * size, left + width, a["y"] + 0.2 * size)


def check_layout(drawing: Drawing, *, labels_apart: bool = True) -> None:
    """Every element lies in the drawing, and no two texts overlap."""
    texts: list[tuple[str, Box]] = []
    for element in drawing.elements:
        place = box(element)
        if place is None or element["key"].endswith(" letter"):  # badges are made for letters
            continue
        inside = place.left >= -0.5 and place.top >= -0.5
        inside = inside and place.right <= drawing.width + 0.5 and place.bottom <= drawing.height + 0.5
        assert inside, f"{element} at {place} is outside {drawing.width} by {drawing.height}"
        if element["tag"] == "text":
            overlapping = [key for key, other in texts if labels_apart and place.meets(other)]
            assert not overlapping, f"{element['key']!r} overlaps {overlapping}"
            texts.append((element["key"], place))
