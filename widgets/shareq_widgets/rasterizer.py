"""SVG pictures as PNG, in the fonts that come with matplotlib."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from threading import local
from typing import Any, Final

from shareq.extras import require
from shareq_widgets.look import THEMES

PACKAGES: Final = ("resvg", "matplotlib")
FONTS: Final = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")


def rasterized(svg: str, *, theme: str = "light", scale: float = 1) -> bytes:
    """A PNG on the background of a theme, `scale` pixels for each pixel of the picture.

    ModuleNotFoundError with the command to run if a package is missing.
    """
    require("lab", *PACKAGES)
    import resvg

    tree = _parsed(svg)
    width, height = (max(round(length * scale), 1) for length in tree.int_size())
    ground = THEMES[theme]["bg"].lstrip("#")
    red, green, blue = (int(ground[i : i + 2], 16) for i in (0, 2, 4))
    drawn: bytes = resvg.render(
        tree, (scale, 0, 0, 0, scale, 0), bg_size=(width, height), bg_color=(red, green, blue, 255)
    )
    return drawn


def _parsed(svg: str) -> Any:
    """ValueError for malformed markup: resvg panics, and its PanicException is no Exception, so that a notebook's
    display would end with it."""
    import resvg

    try:
        return resvg.usvg.Tree.from_str(svg, _options())
    except BaseException as problem:
        if type(problem).__name__ == "PanicException":
            raise ValueError(f"malformed picture: {problem}") from problem
        raise


_made: Final = local()
"""The options of each thread: resvg allows no other thread than that which has made them. A kernel has several."""


def _options() -> Any:
    """The fonts are read once in a thread; matplotlib, whose import takes long, is not imported."""
    import resvg

    if hasattr(_made, "options"):
        return _made.options
    found = find_spec("matplotlib")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "mpl-data" / "fonts" / "ttf"
    options = resvg.usvg.Options.default()
    for font in FONTS:
        options.load_font_file(str(folder / font))
    options.font_family = "DejaVu Sans"
    _made.options = options
    return options
