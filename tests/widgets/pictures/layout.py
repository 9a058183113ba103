"""What tests check in every drawing: elements inside of it, not too many, texts apart, valid SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

from shareq_widgets.drawing import Drawing, Element
from shareq_widgets.geometry import Box, Curve
from shareq_widgets.look import THEMES
from shareq_widgets.svg import to_svg
from shareq_widgets.text_fit import NORMAL, SMALL, text_width

MOST_ELEMENTS = 400
WIDTHS = (320, 374, 480, 760, 1200)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def texts(drawing: Drawing, prefix: str = "") -> list[str]:
    """The texts of a drawing, of the elements whose key begins with `prefix`."""
    return [e["text"] for e in drawing.elements if e["key"].startswith(prefix) and e.get("text")]


def extent(element: Element) -> Box:
    """The box of an element: of a text by its estimated width, of a path by the points of its commands."""
    a, tag = element["attributes"], element["tag"]
    if tag == "rect":
        return Box(a["x"], a["y"], a["x"] + a["width"], a["y"] + a["height"])
    if tag == "circle":
        return Box.around((a["cx"], a["cy"]), 2 * a["r"], 2 * a["r"])
    if tag == "line":
        return Box(min(a["x1"], a["x2"]), min(a["y1"], a["y2"]), max(a["x1"], a["x2"]), max(a["y1"], a["y2"]))
    return _text_box(element) if tag == "text" else _path_box(a["d"])


def _text_box(element: Element) -> Box:
    a, style = element["attributes"], element.get("style", "")
    size = SMALL if "small" in style else NORMAL
    text = "00.0 s" if "countdown" in element else element.get("text", "")
    width = text_width(text, size, strong="strong" in style or "hot" in style)
    left = a["x"] - {"start": 0, "middle": width / 2, "end": width}[a["text-anchor"]]
    return Box(left, a["y"] - 0.75 * size, left + width, a["y"] + 0.2 * size)


def _path_box(d: str) -> Box:
    """Of a path with the commands M, L, C, H, V, h, v and z."""
    xs, ys, x, y = [], [], 0.0, 0.0
    for command, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", d):
        found = [float(number) for number in _NUMBER.findall(rest)]
        if command in "ML":
            xs += found[::2]
            ys += found[1::2]
            x, y = found[-2:]
        elif command == "C":
            for at in range(0, len(found), 6):
                bend, end = found[at : at + 6], (found[at + 4], found[at + 5])
                curve = Curve((x, y), (bend[0], bend[1]), (bend[2], bend[3]), end)
                points = [curve.point(part / 16) for part in range(17)]
                xs += [point[0] for point in points]
                ys += [point[1] for point in points]
                x, y = end
        elif command in "Hh":
            x = found[0] + (x if command == "h" else 0)
        elif command in "Vv":
            y = found[0] + (y if command == "v" else 0)
        xs.append(x)
        ys.append(y)
    return Box(min(xs), min(ys), max(xs), max(ys))


def check_layout(drawing: Drawing, *, may_touch: tuple[str, ...] = ()) -> None:
    """Every element is inside the drawing, no two texts overlap, and both themes make valid SVG.

    `may_touch`: parts of keys of texts that stand on others; "" is any.
    """
    assert len(drawing.elements) <= MOST_ELEMENTS
    assert drawing.text
    apart: list[tuple[str, Box]] = []
    for element in drawing.elements:
        if "transform" in element["attributes"]:  # a glyph, within the shape that it stands on
            continue
        box, key = extent(element), element["key"]
        inside = min(box.left, box.top) >= -1 and box.right <= drawing.width + 1 and box.bottom <= drawing.height + 1
        assert inside or key.endswith(" letter"), (element, box, drawing.width, drawing.height)  # a badge has its own
        if element["tag"] == "text" and not key.endswith(" letter") and not any(part in key for part in may_touch):
            apart.append((key, box))
    for (key, box), (other, other_box) in combinations(apart, 2):
        assert not box.overlaps(other_box), (key, box, other, other_box)
    for theme in THEMES:
        ET.fromstring(to_svg(drawing, theme=theme))
