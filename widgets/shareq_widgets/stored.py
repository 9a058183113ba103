"""The pictures that a notebook stores beside a view: for readers without a kernel.

A view is displayed with them, unless a page stores them: then they are made when the page asks, and not before the
first picture of the view.

SVG follows the reader's theme. JupyterLab shows it only in a notebook that it trusts, and PNG in any other one.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from math import sqrt
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from shareq.trace.views.themed_svg import themed
from shareq_widgets.rasterizer import PACKAGES, rasterized
from shareq_widgets.refresh import Refresh
from shareq_widgets.svg import size_of

MOST_BYTES: Final = 140_000
"""The most bytes of a picture in a notebook, before its dark colours are added to it."""
PIXELS: Final = 800_000
"""The most pixels of a PNG that is made while a cell waits for it: about 0.2 s."""
SHARP_PIXELS: Final = 2_500_000
"""The most pixels of a PNG for a notebook that is stored once."""
SHARP: Final = 2
"""The most pixels of a PNG for each pixel of the picture; that is sharp on a dense screen."""
SMALLER: Final = 0.7
"""The ratio of a PNG to the one before that was too large."""
FEWEST_PIXELS: Final = 10_000
COLOURS: Final = 64
"""The number of colours of a PNG: the pictures are flat."""


class Pictured(Protocol):
    """A widget that has a picture of itself."""

    model_id: Any

    def picture(self, *, whole: bool = False) -> str:
        """A light SVG of the shown moment, or of the `whole` recording: its main moments, if there are enough."""


_displayed: WeakValueDictionary[str, Pictured] = WeakValueDictionary()
_drawn: dict[tuple[str, bool], tuple[str, dict[str, str]]] = {}
"""The SVG and the pictures that `_now` made last, for its arguments."""


def _now(model_id: str, whole: bool) -> dict[str, str] | None:
    """The pictures of what a displayed widget shows, or of its whole recording; None if there is no such widget."""
    widget = _displayed.get(model_id)
    if widget is None:
        _drawn.pop((model_id, whole), None)
        return None
    svg = widget.picture(whole=whole)
    before = _drawn.get((model_id, whole))
    if before is None or before[0] != svg:
        before = _drawn[model_id, whole] = svg, pictures(svg)
    return before[1]


@cache
def _refresh() -> Refresh:
    """The widget that keeps the pictures of this kernel's notebook up to date."""
    return Refresh(_now)


def expect_page() -> None:
    """Let a page report that it stores pictures. To be called before a view is made: that takes longer."""
    _refresh()


def bundle(widget: Pictured) -> dict[str, str]:
    """The text of a widget by its MIME type, and its pictures, unless a page stores them later."""
    _displayed[widget.model_id] = widget
    made = {} if _refresh().stored_by_page else pictures(widget.picture())
    return {"text/plain": repr(widget), **made}


def later() -> dict[str, dict[str, str]]:
    """The pictures of the whole recordings of all displayed widgets, by the id of the widget's model."""
    return {model_id: pictures(widget.picture(whole=True), sharp=True) for model_id, widget in _displayed.items()}


def pictures(svg: str, *, sharp: bool = False) -> dict[str, str]:
    """A light picture by its MIME type. `sharp`: take the time for a larger PNG.

    An SVG of more than `MOST_BYTES` is left out; so is the PNG if a package that makes it is missing. A view without a
    picture, such as a timeline, has none.
    """
    made: dict[str, str] = {}
    if not all(size_of(svg)):
        return made
    if len(svg.encode()) <= MOST_BYTES:
        made["image/svg+xml"] = themed(svg)
    if all(find_spec(package) for package in PACKAGES):
        made["image/png"] = png(svg, sharp=sharp)
    return made


def png(svg: str, *, sharp: bool = False) -> str:
    """A PNG of at most `MOST_BYTES`, as base64."""
    from PIL import Image

    width, height = size_of(svg)
    scale = sqrt(SHARP_PIXELS / (width * height)) if sharp else min(sqrt(PIXELS / (width * height)), 1)
    scale = min(scale, SHARP)
    while True:
        picture = Image.open(BytesIO(rasterized(svg, scale=scale))).convert("RGB")
        out = BytesIO()
        flat = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        flat.save(out, "png", optimize=sharp)
        made = b64encode(out.getvalue()).decode()
        if len(made) <= MOST_BYTES or picture.width * picture.height <= FEWEST_PIXELS:
            return made
        scale *= SMALLER
