"""A drawing and its SVG: keys, subjects, colours of both themes, countdowns."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from shareq.trace.views.palette import MEMBER_COLOURS
from shareq_widgets.drawing import Drawing
from shareq_widgets.look import THEMES
from shareq_widgets.selection import member, parse, record
from shareq_widgets.svg import to_svg

SVG = "{http://www.w3.org/2000/svg}"


def small() -> Drawing:
    drawing = Drawing(200, 50, text="one lock")
    with drawing.about(member("m-a")):
        drawing.rect("bar", 10.123, 4, 50, 20, fill="acquired", stroke="alarm", title="A <holds> 3")
        with drawing.about(record("orders", 0, 7)):
            drawing.label("left", 70, 16, "", countdown=9_500, style="hot small")
    drawing.path("edge", "M0 0h9", marker_end="arrow")
    return drawing


def test_a_key_is_unique() -> None:
    drawing = small()
    with pytest.raises(ValueError, match="key='bar'"):
        drawing.rect("bar", 0, 0, 1, 1)
    with pytest.raises(ValueError, match="key='edge'"):
        drawing.extend(small().elements[2:])


def test_elements_name_their_subjects() -> None:
    drawing = small()
    assert drawing.find("bar")["about"] == ["member:m-a"]
    assert drawing.find("left")["about"] == ["member:m-a", "record:orders-0:7"]
    assert "about" not in drawing.find("edge")
    assert parse("record:orders-0:7").name == "orders-0:7"
    for bad in ("", "member", "member:", "planet:mars"):
        with pytest.raises(ValueError, match="subject must be"):
            parse(bad)


@pytest.mark.parametrize("theme", THEMES)
def test_svg_has_the_colours_of_its_theme(theme: str) -> None:
    root = ET.fromstring(to_svg(small(), theme=theme, now_ms=2_000))
    bar, left = root.find(f"{SVG}rect"), root.find(f"{SVG}text")
    assert bar is not None
    assert left is not None
    assert (bar.get("fill"), bar.get("stroke"), bar.get("x")) == (
        THEMES[theme]["acquired"],
        THEMES[theme]["alarm"],
        "10.12",
    )
    assert bar.findtext(f"{SVG}title") == "A <holds> 3"
    assert left.text == "7.5 s"
    assert left.get("font-size") == "10.5"
    assert root.findtext(f"{SVG}title") == "one lock"


def test_an_element_that_travels_is_drawn_at_its_place_where_nothing_moves() -> None:
    drawing = small()
    drawing.circle("token", 30, 20, 9, along="M0 20H30")
    assert drawing.find("token")["along"] == "M0 20H30"
    assert "along" not in drawing.find("bar")
    circle = ET.fromstring(to_svg(drawing)).find(f"{SVG}circle")
    assert circle is not None
    assert circle.attrib == {"cx": "30", "cy": "20", "r": "9", "fill": "none"}


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(ValueError, match="theme must be one of light, dark, not 'blue'"):
        to_svg(small(), theme="blue")


@pytest.mark.parametrize(
    ("text", "now_ms", "shown"),
    [
        pytest.param("", 3_200, "1.2 s", id="the seconds alone"),
        pytest.param("silent {} of 45 s", 9_000, "silent 7.0 s of 45 s", id="within a text"),
        pytest.param("♥ {}", 1_000, "♥ 0.0 s", id="never negative"),
    ],
)
def test_a_countup_shows_the_time_since(text: str, now_ms: int, shown: str) -> None:
    drawing = Drawing(100, 20)
    drawing.label("since", 0, 10, text, countup=2_000)
    found = ET.fromstring(to_svg(drawing, now_ms=now_ms)).find(f"{SVG}text")
    assert found is not None
    assert found.text == shown


def test_an_element_may_travel_along_a_path() -> None:
    drawing = Drawing(100, 20)
    drawing.circle("token", 90, 10, 3, along="M0 10H90")
    drawing.circle("still", 10, 10, 3)
    assert drawing.find("token")["along"] == "M0 10H90"
    assert "along" not in drawing.find("still")
    assert "along" not in drawing.find("token")["attributes"]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("alive", [True, False])
def test_the_letter_of_a_member_stands_out_from_its_badge(theme: str, alive: bool) -> None:
    """Also on the pale badge of a dead one, in each colour."""
    colours = THEMES[theme]
    for colour in (f"member{number}" for number in range(MEMBER_COLOURS)):
        drawing = Drawing(100, text="a member")
        drawing.badge("m", 0, 0, "A", colour, alive=alive)
        badge, letter = (drawing.find(f"m {part}")["attributes"] for part in ("badge", "letter"))
        ground = over(colours[colour], colours["bg"], badge.get("opacity", 1))
        ink = over(colours[letter["fill"]], ground, letter.get("opacity", 1))
        low, high = sorted((luminance(ink), luminance(ground)))
        assert (high + 0.05) / (low + 0.05) > 3.5  # the contrast ratio of WCAG


def over(colour: str, ground: str, opacity: float) -> str:
    """A colour on another one."""
    parts = [int(colour[at : at + 2], 16) * opacity + int(ground[at : at + 2], 16) * (1 - opacity) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(part):02x}" for part in parts)


def luminance(colour: str) -> float:
    """The relative luminance of WCAG, 0 to 1."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
