"""What tests of pictures check in every drawing: elements inside of it, at most 400, texts that do not overlap."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations
from typing import NamedTuple

from shareq_widgets.drawing import Drawing, Element
from shareq_widgets.look import THEMES
from shareq_widgets.svg import to_svg

MOST_ELEMENTS = 400
WIDTHS = (320, 374, 480, 760, 1200)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float


def texts(drawing: Drawing, prefix: str = "") -> list[str]:
    """The texts of a drawing, of the elements whose key begins with `prefix`."""
    return [e["text"] for e in drawing.elements if e["key"].startswith(prefix) and e.get("text")]


def box(element: Element) -> Box:
    """The extent of an element; of a text as estimated from its length; of a path from its absolute coordinates."""
    at, tag = element["attributes"], element["tag"]
    if tag == "text":
        width = len(element.get("text", "")) * (5.2 if "small" in element.get("style", "") else 6)
        left = at["x"] - {"start": 0, "middle": width / 2, "end": width}[at["text-anchor"]]
        return Box(left, at["y"] - 8, left + width, at["y"] + 2)
    if tag == "rect":
        return Box(at["x"], at["y"], at["x"] + at["width"], at["y"] + at["height"])
    if tag == "circle":
        return Box(at["cx"] - at["r"], at["cy"] - at["r"], at["cx"] + at["r"], at["cy"] + at["r"])
    if tag == "line":
        return Box(min(at["x1"], at["x2"]), min(at["y1"], at["y2"]), max(at["x1"], at["x2"]), max(at["y1"], at["y2"]))
    return _of_path(at["d"])


def _of_path(d: str) -> Box:
    """Of a path with the commands M, L, H, V, h, v and z."""
    xs, ys, x, y = [], [], 0.0, 0.0
    for command, rest in re.findall(r"([MLHVhvz])([^MLHVhvz]*)", d):
        found = [float(number) for number in _NUMBER.findall(rest)]
        if command in "ML":
            x, y = found[-2:]
            xs += found[::2]
            ys += found[1::2]
        elif command in "Hh":
            x = found[0] + (x if command == "h" else 0)
        elif command in "Vv":
            y = found[0] + (y if command == "v" else 0)
        xs.append(x)
        ys.append(y)
    return Box(min(xs), min(ys), max(xs), max(ys))


def check(drawing: Drawing, *, overlaps: bool = False) -> None:
    """Every element is inside the drawing; texts do not overlap unless `overlaps`; both themes make valid SVG."""
    assert len(drawing.elements) <= MOST_ELEMENTS
    assert drawing.text
    for element in drawing.elements:
        left, top, right, bottom = box(element)
        assert min(left, top) >= -0.5, element
        assert right <= drawing.width + 0.5, element
        assert bottom <= drawing.height + 0.5, element
    boxes = [(element, box(element)) for element in drawing.elements if element["tag"] == "text"]
    for (one, a), (other, b) in [] if overlaps else combinations(boxes, 2):
        apart = a.right <= b.left or b.right <= a.left or a.bottom <= b.top or b.bottom <= a.top
        assert apart, (one, other)
    for theme in THEMES:
        ET.fromstring(to_svg(drawing, theme=theme))
