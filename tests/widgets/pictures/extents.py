"""The boxes that the elements of a drawing cover, for tests of its layout."""

from __future__ import annotations

import re

from shareq_widgets.drawing import Drawing, Element
from shareq_widgets.geometry import Box, text_width

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def extent(element: Element) -> Box:
    """The box of a rectangle, a circle, a line, a text (its width is estimated), or of the points of a path's
    absolute commands."""
    a = element["attributes"]
    if element["tag"] == "rect":
        return Box(a["x"], a["y"], a["x"] + a["width"], a["y"] + a["height"])
    if element["tag"] == "circle":
        return Box.around((a["cx"], a["cy"]), 2 * a["r"], 2 * a["r"])
    if element["tag"] == "line":
        return Box(min(a["x1"], a["x2"]), min(a["y1"], a["y2"]), max(a["x1"], a["x2"]), max(a["y1"], a["y2"]))
    if element["tag"] == "text":
        return _text_box(element)
    return _path_box(a["d"])


def _text_box(element: Element) -> Box:
    a, style = element["attributes"], element.get("style", "")
    size = 10.5 if "small" in style else 12
    width = text_width(element.get("text", ""), size, bold="strong" in style or "hot" in style)
    left = a["x"] - {"start": 0, "middle": width / 2, "end": width}[a["text-anchor"]]
    return Box(left, a["y"] - 0.75 * size, left + width, a["y"] + 0.2 * size)


def _path_box(d: str) -> Box:
    """Commands M, L, C with points, H and V with numbers; relative ones, of small glyphs, are left out."""
    xs, ys = [], []
    for command, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", d):
        numbers = [float(number) for number in _NUMBER.findall(rest)]
        xs += numbers if command == "H" else numbers[::2] if command in "MLC" else []
        ys += numbers if command == "V" else numbers[1::2] if command in "MLC" else []
    return Box(min(xs), min(ys), max(xs), max(ys))


def check_layout(drawing: Drawing, *, may_touch: tuple[str, ...] = ()) -> None:
    """No element lies outside the drawing, no two texts overlap, and there are at most 400 elements. `may_touch`: parts
    of keys of texts that stand on others."""
    assert len(drawing.elements) <= 400
    texts: list[tuple[str, Box]] = []
    for element in drawing.elements:
        box = extent(element)
        inside = min(box.left, box.top) >= -1 and box.right <= drawing.width + 1 and box.bottom <= drawing.height + 1
        assert inside, (element, box, drawing.width, drawing.height)
        if element["tag"] == "text" and not any(part in element["key"] for part in may_touch):
            texts.append((element["key"], box))
    for place, (key, box) in enumerate(texts):
        for other, other_box in texts[place + 1 :]:
            assert not box.overlaps(other_box), (key, box, other, other_box)
