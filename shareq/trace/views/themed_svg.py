"""A light SVG picture that is dark where its reader's theme is dark.

Notebooks and exported pages show an SVG output in an `<img>`, which no style of the page reaches. A media query inside
the picture is what works there: browsers answer it by the `color-scheme` of the place where the image stands, which
JupyterLab sets by its theme. The light colours stay attributes: a viewer that removes styles shows the light picture.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Final

from shareq.trace.views.palette import DARK, LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAME: Final = "sq-themed"
_PAIRS: Final = {LIGHT[name]: DARK[name] for name in LIGHT if LIGHT[name] != DARK[name]} | {"#000000": DARK["ink"]}
"""Light colour -> dark colour; black is the ink of matplotlib."""
_ROOT: Final = re.compile(r"<svg\b[^>]*>")
_CIRCLE: Final = re.compile(r"M (\S+) (\S+) \nC [^C]*C \S+ \S+ \S+ \S+ (\S+) (\S+) \n(?:C[^Cz]*){6}z")
"""A circle as matplotlib writes it: eight curves from its one end, the second of which ends beside the middle."""
_PATH: Final = re.compile(r"<path\b[^>]*>")
_COURSE: Final = re.compile(r' d="[^"]*"')
_OWN: Final = re.compile(r' (?:fill|stroke)="[^"]*"')
_NUMBER: Final = re.compile(r"(\.\d\d)\d+")
_STYLE: Final = re.compile(r' style="([^"]*)"')
_SHEET: Final = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)
_GROUND: Final = re.compile(r"background:#\w+;?")
_SIZE: Final = re.compile(r' (?:width|height)="[^"]*"')


def themed(svg: str) -> str:
    """The picture on a ground of its own, with the dark colours in a media query. ValueError for another markup.

    It is as wide as its place: JupyterLab cuts off what has a size of its own and is wider.
    """
    found = _ROOT.search(svg)
    if found is None:
        raise ValueError(f"the picture must be an SVG, not {svg[:80]!r}")
    root = _SIZE.sub("", _GROUND.sub("", found[0])).replace("<svg", f'<svg class="{_NAME}" width="100%"', 1)
    ground = f'<rect width="100%" height="100%" fill="{LIGHT["bg"]}"/>'
    return f"{svg[: found.start()]}{root}{_style(svg)}{ground}{svg[found.end() :]}"


def _style(svg: str) -> str:
    """A rule for each colour that the picture has."""
    rules = [
        f'.{_NAME}[{kind}="{light}"],.{_NAME} [{kind}="{light}"]{{{kind}:{dark}}}'
        for light, dark in _PAIRS.items()
        for kind in ("fill", "stroke")
        if light == LIGHT["bg"] or f'{kind}="{light}"' in svg
    ]
    return f"<style>@media(prefers-color-scheme:dark){{{''.join(rules)}}}</style>"


def themed_figure(figure: Figure) -> str:
    """A figure of matplotlib in a light style, with attributes instead of its styles."""
    import matplotlib as mpl

    out = StringIO()
    with mpl.rc_context({"svg.hashsalt": "shareq"}):
        figure.savefig(
            out, format="svg", facecolor="none", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    drawn = _PATH.sub(_path, _STYLE.sub(_attributes, _SHEET.sub("", out.getvalue())))
    root = 'fill="#000000" stroke-linejoin="round" stroke-linecap="butt"'
    return themed(drawn[drawn.index("<svg") :].replace("<svg", f"<svg {root}", 1))


def _attributes(style: re.Match[str]) -> str:
    pairs = (one.partition(":") for one in style[1].split(";") if one.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, _, value in pairs)


def _path(found: re.Match[str]) -> str:
    """A path with short numbers; without seams, if it is one of several areas that touch each other."""
    path = _COURSE.sub(lambda course: _NUMBER.sub(r"\1", _CIRCLE.sub(_arcs, course[0])), found[0])
    if ' id="m' in path:  # a marker: each use of it repeats its colours, and a media query reaches only those
        path = _OWN.sub("", path)
    touches = "clip-path=" in path and "stroke=" not in path
    return path.replace("<path", '<path shape-rendering="crispEdges"', 1) if touches else path


def _arcs(circle: re.Match[str]) -> str:
    """A circle in two arcs: a tenth of the text, and hatches of dots have hundreds of circles."""
    x, end, right, y = map(float, circle.groups())
    radius = right - x
    if abs(abs(end - y) - radius) > radius / 1000:
        return circle[0]
    down = 2 * (y - end)
    return f"M{x:g} {end:g}a{radius:g} {radius:g} 0 1 0 0 {down:g}a{radius:g} {radius:g} 0 1 0 0 {-down:g}z"
