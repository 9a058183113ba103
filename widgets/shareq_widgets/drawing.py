"""A drawing: SVG elements with keys, in colours of the palette. The browser and `svg.py` draw the same description.

A view computes a drawing from the state at one moment and a width; nothing else decides what is shown. In the browser,
elements with a known key move to their new place, so that nothing blinks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from shareq_widgets.text_fit import SMALL, text_width

Element = dict[str, Any]
"""One element. `key`: unique in its drawing; `tag`: rect, circle, line, path or text; `attributes`: of SVG, colours by
their names in the palette. Where they are not empty: `text`, `title` (the tooltip), `about`, `rates`, `countup`,
`countdown`, `along`, `part` and `pressed` (of a button), `reveal`: a page scrolls to it when a click has selected its
subject."""

Anchor = Literal["start", "middle", "end"]


class Drawing:
    """Elements in the order in which they are painted, on `width` by `height` pixels.

    `text`: the same content in words, for readers without the picture.
    """

    def __init__(self, width: float, height: float = 0, *, text: str = "") -> None:
        self.width = width
        self.height = height
        self.text = text
        self.brush: dict[str, float] | None = None
        """The area in which a drag selects times: `left`, `right`, `top`, `bottom` in px, and the times `from_ms` and
        `to_ms` at its left and right edge. None: the picture has no time axis."""
        self.elements: list[Element] = []
        self._keys: set[str] = set()
        self._about: tuple[str, ...] = ()

    @contextmanager
    def about(self, *subjects: str) -> Iterator[None]:
        """Elements added inside are about these subjects: a click selects the first one, and all elements about the
        selected subject are marked. Subjects are made by `shareq_widgets.selection`."""
        before, self._about = self._about, (*self._about, *subjects)
        try:
            yield
        finally:
            self._about = before

    def add(
        self,
        tag: str,
        key: str,
        *,
        text: str = "",
        title: str = "",
        style: str = "",
        rates: dict[str, float] | None = None,
        countup: int | None = None,
        countdown: int | None = None,
        along: str = "",
        **attributes: Any,
    ) -> None:
        """Add an element; ValueError for a key that the drawing has. Attribute names have "_" for "-".

        `style`: some of STYLES in svg.py. `rates`: change of numeric attributes per ms of displayed time after the
        moment of the drawing. `countdown`: a time, ms since the epoch; the text is then the seconds left until it.
        `countup`: the seconds since a time; they replace "{}" in `text`. `along`: the data of a path, in the drawing's
        coordinates, that the element travels when its key first appears: it is moved by the distance from the path's
        end to the point that it has reached, so it comes to rest at its place. Without motion it stands at its place.
        """
        if key in self._keys:
            raise ValueError(f"key={key!r}: the drawing has this element already")
        self._keys.add(key)
        drawn = {}
        for name, value in attributes.items():  # a click draws some thousand elements: no function is called for each
            if value is not None:
                drawn[_NAMES[name]] = round(value, 2) if isinstance(value, float) else value
        element: Element = {"key": key, "tag": tag, "attributes": drawn}
        about = list(self._about)
        for name, value in (("text", text), ("title", title), ("style", style), ("about", about), ("along", along)):
            if value:
                element[name] = value
        if rates:
            element["rates"] = rates
        if countup is not None:
            element["countup"] = countup
        if countdown is not None:
            element["countdown"] = countdown
        self.elements.append(element)

    def rect(self, key: str, x: float, y: float, width: float, height: float, **more: Any) -> None:
        """A rectangle; the defaults are no fill and no stroke."""
        self.add("rect", key, x=x, y=y, width=max(width, 0), height=max(height, 0), **{"fill": "none", **more})

    def circle(self, key: str, x: float, y: float, radius: float, **more: Any) -> None:
        self.add("circle", key, cx=x, cy=y, r=radius, **{"fill": "none", **more})

    def line(self, key: str, x1: float, y1: float, x2: float, y2: float, **more: Any) -> None:
        self.add("line", key, x1=x1, y1=y1, x2=x2, y2=y2, **{"stroke": "line", **more})

    def path(self, key: str, d: str, **more: Any) -> None:
        """A path; the default is a secondary line without a fill."""
        self.add("path", key, d=d, **{"fill": "none", "stroke": "soft", **more})

    def label(self, key: str, x: float, y: float, text: str, *, anchor: Anchor = "start", **more: Any) -> None:
        """A text; `y` is its base line. The default size is 12 px, with style "small" 10.5 px."""
        self.add("text", key, x=x, y=y, text=text, text_anchor=anchor, **{"fill": "ink", **more})

    def badge(self, key: str, x: float, y: float, letter: str, colour: str, *, alive: bool = True, **more: Any) -> None:
        """A member's letter on its colour, 18 px square, its top left corner at x, y."""
        self.rect(f"{key} badge", x, y, 18, 18, rx=5, fill=colour, opacity=None if alive else 0.45, **more)
        self.label(
            f"{key} letter", x + 9, y + 13, letter, anchor="middle", fill="bg" if alive else "ink",
            style="strong small", along=more.get("along", ""),
        )  # fmt: skip

    def button(self, part: str, x: float, y: float, text: str, *, pressed: bool, title: str) -> None:
        """A button of 17 px, its top left corner at x, y, that shows or hides a part of the picture. `pressed`: the
        part is shown."""
        key, width = f"button {part}", button_width(text)
        colour = "available" if pressed else "line"
        self.rect(key, x, y, width, 17, rx=8.5, fill="card" if pressed else "bg", stroke=colour, title=title)
        self.elements[-1] |= {"part": part, "pressed": pressed}
        style = "small" if pressed else "small soft"
        self.label(f"{key} text", x + width / 2, y + 12, text, anchor="middle", style=style, title=title)
        self.elements[-1] |= {"part": part}

    def find(self, key: str) -> Element:
        """The element with this key; KeyError if there is none."""
        for element in self.elements:
            if element["key"] == key:
                return element
        raise KeyError(key)

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin with `prefix`, in order."""
        return [element["key"] for element in self.elements if element["key"].startswith(prefix)]

    def extend(self, elements: Sequence[Element]) -> None:
        """Add elements of another drawing."""
        for element in elements:
            if element["key"] in self._keys:
                raise ValueError(f"key={element['key']!r}: the drawing has this element already")
            self._keys.add(element["key"])
            self.elements.append(element)


def button_width(text: str) -> float:
    """The width of a button, px."""
    return text_width(text, SMALL) + 11


class _Names(dict[str, str]):
    """Names of attributes in Python -> those of SVG."""

    def __missing__(self, name: str) -> str:
        found = self[name] = name.replace("_", "-")
        return found


_NAMES = _Names()
