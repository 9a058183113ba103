"""SVG pictures in the theme of their reader: the dark colours, the ground, and what a viewer without styles shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from shareq.trace import Plot, lag_plot, raster, state_diagram
from shareq.trace.views import plots
from shareq.trace.views.palette import DARK, LIGHT
from shareq.trace.views.themed_svg import themed
from tests.trace.histories import GROUP, TOPIC
from tests.trace.test_plots import HISTORY, journal_of

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" style="background:#ffffff;max-width:100%">'
    f'<path fill="{LIGHT["ink"]}" stroke="{LIGHT["line"]}"/><path fill="#123456" stroke="{LIGHT["onfill"]}"/></svg>'
)

PLOTS: dict[str, Callable[[], Plot]] = {
    "raster": lambda: raster(journal_of(HISTORY), GROUP, TOPIC, 0),
    "lag": lambda: lag_plot(journal_of(HISTORY), GROUP),
    "diagram": state_diagram,
}


@cache
def svg_of(name: str) -> str:
    """Drawn once for all tests."""
    svg = PLOTS[name]()._repr_svg_()
    assert svg is not None
    return svg


@pytest.fixture(params=PLOTS)
def svg(request: pytest.FixtureRequest) -> str:
    return svg_of(request.param)


def rules(svg: str) -> dict[tuple[str, str], str]:
    """(attribute, light colour) -> dark colour, of the media query."""
    (sheet,) = re.findall(r"<style>@media\(prefers-color-scheme:dark\)\{(.*)\}</style>", svg)
    found = re.findall(r'\.sq-themed \[(\w+)="(#\w+)"\]\{(\w+):(#\w+)\}', sheet)
    assert all(kind == changed for kind, _, changed, _ in found)
    return {(kind, light): dark for kind, light, _, dark in found}


def test_each_colour_of_the_palette_has_its_dark_one_and_no_other_colour_changes() -> None:
    assert rules(themed(PICTURE)) == {
        ("fill", LIGHT["ink"]): DARK["ink"],
        ("stroke", LIGHT["line"]): DARK["line"],
        ("fill", LIGHT["bg"]): DARK["bg"],
        ("stroke", LIGHT["bg"]): DARK["bg"],
    }


def test_the_ground_is_an_element_that_changes_with_the_theme() -> None:
    root = ET.fromstring(themed(PICTURE))
    ground = root[1]
    assert (ground.tag, ground.get("fill"), ground.get("width")) == (f"{SVG}rect", LIGHT["bg"], "100%")
    assert root.get("style") == "max-width:100%"
    assert root.get("class") == "sq-themed"
    assert (root.get("width"), root.get("height")) == ("100%", None)


def test_other_markup_is_refused() -> None:
    with pytest.raises(ValueError, match="must be an SVG, not '<p>'"):
        themed("<p>")


def test_a_plot_is_an_svg_without_styles_of_its_own(svg: str) -> None:
    """A viewer that removes styles shows the light picture: no colour of it is in a style."""
    assert len(svg.encode()) <= plots.MOST_SVG_BYTES
    root = ET.fromstring(svg)
    assert [node.tag for node in root.iter() if node.get("style")] == []
    assert [node.get("id") for node in root.iter(f"{SVG}style")] == [None]


def test_a_plot_is_drawn_the_same_again() -> None:
    plot = PLOTS["lag"]()
    assert svg_of("lag") == plot._repr_svg_() == plot._repr_svg_()


def test_all_ink_of_a_plot_is_light_on_dark(svg: str) -> None:
    """Each dark colour that it is drawn with has a light one in the media query."""
    dark = {
        (kind, colour)
        for kind, colour in re.findall(r' (fill|stroke)="(#\w{6})"', svg)
        if sum(bytes.fromhex(colour[1:])) < 3 * 0x48
    }
    assert ("fill", "#000000") in dark  # texts
    changed = rules(svg)
    assert {pair for pair in dark if pair not in changed} == set()
    assert all(sum(bytes.fromhex(changed[pair][1:])) > 3 * 0x90 for pair in dark)


def test_a_figure_in_a_dark_style_or_on_given_axes_is_no_svg() -> None:
    with mpl.rc_context({"figure.facecolor": "black", "axes.facecolor": "black"}):
        assert PLOTS["lag"]()._repr_svg_() is None
    axis = Figure().subplots()
    assert lag_plot(journal_of(HISTORY), GROUP, ax=axis)._repr_svg_() is None


def test_a_large_plot_is_no_svg(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(svg_of("lag").encode())
    for most, there in ((size, True), (size - 1, False)):
        monkeypatch.setattr(plots, "MOST_SVG_BYTES", most)
        assert (PLOTS["lag"]()._repr_svg_() is not None) == there


def test_a_hatch_of_dots_is_short() -> None:
    """Hundreds of circles in one path: each is two arcs."""
    svg = svg_of("raster")
    longest = max(re.findall(r' d="([^"]*)"', svg), key=len)
    assert longest.count("a") == 2 * longest.count("M") > 400
    assert len(longest) < 30_000
