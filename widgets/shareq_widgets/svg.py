"""A drawing as a static, self-contained SVG: for saved notebooks, exported pages and files."""

from __future__ import annotations

import re
from typing import Any, Final

from shareq.model.printable import escape
from shareq.trace.views.palette import LIGHT
from shareq_widgets.drawing import Drawing, Element
from shareq_widgets.look import THEMES
from shareq_widgets.terms import explained

FONT: Final = "Inter,system-ui,'DejaVu Sans',sans-serif"

STYLES: Final[dict[str, dict[str, str]]] = {
    "strong": {"font-weight": "700"},
    "small": {"font-size": "10.5"},
    "soft": {"fill": "soft"},
    "hot": {"fill": "alarm", "font-weight": "650"},
    "faded": {"opacity": ".7"},
    "struck": {"text-decoration": "line-through"},
    "target": {},
}
"""Bold; small; secondary; in the alarm colour; half transparent; struck through. "target": of a rectangle without a
fill, which takes the clicks of its whole area. Several are separated by spaces."""

ARROWHEADS: Final = {"arrow": "soft", "hot-arrow": "alarm"}
"""The markers at the end of a path, and their colours."""

Colours = dict[str, str]


def to_svg(drawing: Drawing, *, theme: str = "light", now_ms: int = 0) -> str:
    """The drawing as SVG markup. `now_ms`: the displayed time, which countdowns and countups are relative to.

    ValueError for an unknown theme.
    """
    return svg_of(drawing, colours_of(theme), now_ms=now_ms)


def colours_of(theme: str) -> Colours:
    """The palette of a picture; ValueError for an unknown theme."""
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, not {theme!r}")
    return THEMES[theme]


def svg_of(drawing: Drawing, colours: Colours, *, now_ms: int = 0) -> str:
    """The drawing in these colours, by their names in the palette; a value may be a CSS variable."""
    drawn = "".join(_markup(element, colours, now_ms) for element in drawing.elements)
    return document(drawing.width, drawing.height, colours, drawing.text, f"<defs>{fills(colours)}</defs>{drawn}")


def document(width: float, height: float, colours: Colours, text: str, content: str) -> str:
    """Markup as a picture of its own. `text`: the same in words."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" font-family="{FONT}" font-size="12" fill="{colours["ink"]}" '
        f'style="background:{colours["bg"]};max-width:100%;height:auto"><title>{escape(text)}</title>{content}</svg>'
    )


def size_of(markup: str) -> tuple[float, float]:
    """The width and height of a picture, px; ValueError for markup without them."""
    width, height = (re.match(rf'[^>]* {side}="([0-9.]+)"', markup) for side in ("width", "height"))
    if width is None or height is None:
        raise ValueError(f"the picture must have a width and a height, not {markup[:80]!r}")
    return float(width[1]), float(height[1])


def patterns(colours: Colours) -> str:
    """Hatch (archived), dots (archiving), veil (unknown): fills that differ without colour."""
    grey = colours["archived"]
    ground = f'<rect width="6" height="6" fill="{grey}" opacity=".28"/>'
    return (
        f'<pattern id="sq-hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)">{ground}<path d="M0 0v6" stroke="{grey}" stroke-width="2.4"/></pattern>'
        f'<pattern id="sq-dots" width="6" height="6" patternUnits="userSpaceOnUse">{ground}'
        f'<circle cx="3" cy="3" r="1.3" fill="{grey}"/></pattern>'
        f'<pattern id="sq-veil" width="6" height="5" patternUnits="userSpaceOnUse">'
        f'<path d="M0 1h6" stroke="{colours["unknown"]}" stroke-width="1.6" opacity=".5"/></pattern>'
    )


def fills(colours: Colours) -> str:
    """The patterns, and the markers at the end of a path."""
    return patterns(colours) + "".join(
        f'<marker id="sq-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{colours[colour]}"/></marker>'
        for name, colour in ARROWHEADS.items()
    )


IN_PAGE: Final = fills({colour: f"var(--sq-{colour})" for colour in LIGHT})
"""Those of a page, in the colours of its theme."""


def paint(name: Any, colours: Colours) -> str:
    """A colour or a pattern of the palette by its name; "none" is itself. KeyError for other names."""
    if name in ("hatch", "dots", "veil", *ARROWHEADS):
        return f"url(#sq-{name})"
    return "none" if name == "none" else colours[name]


def _markup(element: Element, colours: Colours, now_ms: int) -> str:
    attributes: dict[str, Any] = dict(element["attributes"])
    for style in element.get("style", "").split():
        attributes |= STYLES[style]
    for name in ("fill", "stroke", "marker-end"):
        if name in attributes:
            attributes[name] = paint(attributes[name], colours)
    drawn = "".join(f' {name}="{escape(_value(value))}"' for name, value in attributes.items())
    text = element.get("text", "")
    if "countdown" in element:
        text = seconds_left(element["countdown"] - now_ms)
    if "countup" in element:
        text = (text or "{}").replace("{}", seconds_left(now_ms - element["countup"]))
    return f"<{element['tag']}{drawn}>{escape(text)}{title_of(text, element.get('title', ''))}</{element['tag']}>"


def title_of(text: str, title: str = "") -> str:
    """The tooltip of a text, as an element: its own title, and the meanings of its terms."""
    whole = explained(text, title)
    return f"<title>{escape(whole)}</title>" if whole else ""


def seconds_left(ms: int) -> str:
    """A time left or passed, never negative, in seconds."""
    return f"{max(ms, 0) / 1000:.1f} s"


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
