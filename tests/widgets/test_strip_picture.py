"""The static picture: well-formed, complete, in the palette's colours, with the same cells as a scan of all runs."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.trace.views.palette import DARK, LIGHT, STATES
from shareq_widgets.look import SHAPES, SIZES, THEMES, fit
from shareq_widgets.strip_layout import labels, lines, scale_of
from shareq_widgets.strip_picture import Cell, cell_at, cell_markup, draw
from shareq_widgets.text_fit import SMALL, text_width
from shareq_widgets.words import where
from tests.widgets.fakes import every_state, payments, wide

SVG = "{http://www.w3.org/2000/svg}"
ALL = every_state()
SNAPSHOTS = payments().snapshots
BAND = f'fill="{LIGHT["band"]}" stroke="{LIGHT["bandline"]}"'


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 600, 1084])
@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(ALL, id="every state"),
        pytest.param(SNAPSHOTS[0], id="empty window"),
        pytest.param(wide(2000).snapshots[-1], id="wide window"),
        pytest.param(ALL | {"log_end": -1, "lag": None, "leader": -1}, id="unknown log end"),
    ],
)
def test_well_formed_and_self_contained(snapshot: Any, width: int, theme: str) -> None:
    svg = draw(snapshot, theme=theme, width=width)
    root = ET.fromstring(svg)
    assert root.get("width") == str(width)
    assert root.findtext(f"{SVG}title") == snapshot["text"]
    assert "var(" not in svg
    assert "href" not in svg
    colours = {colour.lower() for colour in re.findall(r'"(#[0-9a-fA-F]{6})', svg)}
    assert colours <= set((LIGHT if theme == "light" else DARK).values())


def test_the_records_and_locks_of_a_lost_leader_are_faded() -> None:
    loaded, lost, observed = (
        draw(ALL | more).count('<g opacity=".45">')
        for more in ({}, {"loaded": False}, {"loaded": False, "observed": True})
    )
    assert (lost, observed) == (loaded + 2, loaded)


def test_an_empty_window_has_no_ground() -> None:
    """As in the live strip: a sliver beside the flag would look like a window of one record."""
    assert draw(ALL).count(BAND) == 1
    assert draw(SNAPSHOTS[0]).count(BAND) == 0


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_shape(state: str) -> None:
    svg = draw(ALL)
    glyph = SHAPES[state]["glyph"]
    assert f'd="{glyph}"' in svg if glyph else ">C</text>" in svg


@pytest.mark.parametrize(
    ("cell", "shown", "not_shown"),
    [
        pytest.param(Cell("run", "available", 2), 'fill="none" stroke="#56b4e9"', "url(", id="available is hollow"),
        pytest.param(Cell("run", "acquired", 1, "A"), ">A</text>", "dasharray", id="acquired shows its holder"),
        pytest.param(Cell("run", "acquired", 5, "A"), 'stroke="#d55e00"', "dasharray", id="last attempt is ringed"),
        pytest.param(
            Cell("run", "archived", 5), "url(#sq-hatch)", "#d55e00", id="archived at the limit is not an alarm"
        ),
        pytest.param(Cell("run", "archiving", 5), "url(#sq-dots)", "#d55e00", id="archiving is dotted"),
        pytest.param(Cell("run", "acquired", 1, "A", "acknowledged"), "l4.5 5 8-10", ">A<", id="prepared accept"),
        pytest.param(Cell("run", "acquired", 1, "A", "available"), "a6 6 0", ">A<", id="prepared release"),
        pytest.param(Cell("run", "acquired", 1, "A", "archived"), "l10 10", ">A<", id="prepared reject"),
        pytest.param(Cell("past", "acknowledged", 1), 'opacity=".45"', "dasharray", id="below the SPSO is faded"),
        pytest.param(Cell("beyond"), 'stroke-dasharray="3 3"', "circle", id="above the window is a dashed outline"),
        pytest.param(Cell("dash"), "h6", "rect", id="outside the log is a dash"),
    ],
)
def test_cells(cell: Cell, shown: str, not_shown: str) -> None:
    markup = cell_markup(cell, ALL, 33, LIGHT)
    assert shown in markup
    assert not_shown not in markup


@pytest.mark.parametrize("to_state", ["acknowledged", "available", "archived"])
def test_a_prepared_write_is_dashed_twice(to_state: str) -> None:
    markup = cell_markup(Cell("run", "acquired", 1, "A", to_state), ALL, 33, LIGHT)
    assert markup.count("stroke-dasharray") == 2
    assert f'fill="{LIGHT["acquired"]}"' in markup


@pytest.mark.parametrize(
    ("pitch", "limit", "circles"),
    [
        pytest.param(33, 5, 5, id="pips of the limit"),
        pytest.param(33, 2, 2, id="smallest limit"),
        pytest.param(33, 10, 0, id="too many pips: a number"),
        pytest.param(20, 5, 0, id="too narrow: a number"),
    ],
)
def test_delivery_count(pitch: float, limit: int, circles: int) -> None:
    markup = cell_markup(Cell("run", "acknowledged", 2), ALL | {"delivery_count_limit": limit}, pitch, LIGHT)
    assert markup.count("<circle") == circles
    assert circles or ">2</text>" in markup


@pytest.mark.parametrize("state", [state for state in STATES if SHAPES[state]["glyph"]])
def test_the_glyph_of_a_narrow_cell_does_not_touch_its_box(state: str) -> None:
    pitch = SIZES["pitch_cells"]
    while pitch < SIZES["pitch"]:
        markup = cell_markup(Cell("run", state, 1), ALL, pitch, LIGHT)
        box, line = float(SHAPES[state]["width"]), 2.4
        half = float(re.search(r'd="M-(\d)', markup)[1]) + line / 2  # type: ignore[index]
        scale = re.search(r"scale\(([\d.]+)\)", markup)
        inside = (pitch - SIZES["gap"] - box) / 2
        assert inside - half * (float(scale[1]) if scale else 1) > 0.5
        pitch += 1


EMPTY_LOG = {"spso": 0, "window_end": 0, "log_start": 0, "log_end": 0, "runs": [], "past": []}


@pytest.mark.parametrize(
    ("window", "cells"),
    [
        pytest.param(1, True, id="one offset"),
        pytest.param(18, True, id="eighteen offsets"),
        pytest.param(55, True, id="narrow cells"),
        pytest.param(200, False, id="blocks"),
        pytest.param(100_000, False, id="a very wide window"),
    ],
)
def test_fit(window: int, cells: bool) -> None:
    pitch = fit(window, 1084)
    assert pitch * window <= 1084 - SIZES["gutter_left"] - SIZES["gutter_right"]
    assert (pitch >= SIZES["pitch_cells"]) is cells


def test_the_ends_of_a_short_log_have_labels_apart() -> None:
    places = re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="(\w+)"[^>]*>(log \w+) 0<', draw(ALL | EMPTY_LOG))
    assert [(anchor, end) for _, anchor, end in places] == [("end", "log start"), ("start", "log end")]
    assert float(places[0][0]) < float(places[1][0])


@pytest.mark.parametrize("width", [320, 480, 760, 1084])
@pytest.mark.parametrize(
    ("spso", "window_end"), [(0, 10), (0, 50), (0, 100), (15_000, 15_100), (14_990, 17_500), (200, 200)]
)
def test_no_line_crosses_the_number_of_an_offset(spso: int, window_end: int, width: int) -> None:
    """The lines of the window and of the log's ends have names of their own."""
    snapshot = ALL | {"spso": spso, "window_end": window_end, "log_start": 0, "log_end": window_end + 100}
    scale = scale_of(spso, window_end - spso, width)
    numbers = [label for label in labels(snapshot, scale) if label.text.isdecimal()]
    assert numbers or width == 320  # the only ones may be at the lines
    for label in numbers:
        half = text_width(label.text, SMALL) / 2
        assert all(abs(label.x - line.x) > half for line in lines(snapshot, scale)), label


@pytest.mark.parametrize("width", [320, 480, 760, 1084])
@pytest.mark.parametrize("snapshot", [ALL, wide(2000).snapshots[-1]], ids=["cells", "blocks"])
def test_sentence_and_legend_end_inside_the_picture(snapshot: Any, width: int) -> None:
    root = ET.fromstring(draw(snapshot, width=width))
    lines = [
        "".join(node.itertext()).removesuffix(node.findtext(f"{SVG}title", "")).replace("\N{NO-BREAK SPACE}", " ")
        for node in root.iter(f"{SVG}text")
        if node.get("x") == "16"
    ]
    assert "bars: lock time left" in lines[-1]
    assert [line for line in lines if text_width(line) > width - 16] == []


def test_members_without_records_and_those_without_a_lane_are_listed() -> None:
    """As in the live strip."""
    one = ALL["members"][0]
    idle = [
        {**one, "id": f"m{n}", "name": f"clerk-{n}", "held": 0, "deadline_ms": None, "alive": True, "frozen": False}
        for n in range(12)
    ]
    svg = draw(ALL | {"members": [*idle, {**idle[0], "id": "gone", "name": "gone", "alive": False}, one]})
    assert svg.count(">holds nothing<") == 9
    assert ">and 3 more<" in svg
    assert ">gone" not in svg


def test_a_name_keeps_its_end() -> None:
    member = {**ALL["members"][0], "name": "consumer-of-orders-17", "held": 1}
    assert "consum…-17 A" in draw(ALL | {"members": [member]})
    assert "consu…-17 A" in draw(ALL | {"members": [member]}, width=480)


def test_a_wide_window_stays_small() -> None:
    assert len(draw(wide(20_000).snapshots[-1])) < 150_000


def test_names_are_escaped() -> None:
    nasty = ALL | {"group": "<script>&", "members": [{**ALL["members"][0], "name": '"><b', "held": 1}]}
    ET.fromstring(draw(nasty))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"theme": "blue"}, "theme must be one of light, dark, not 'blue'", id="theme"),
        pytest.param({"width": 100}, "width must be at least 320 pixels, not 100", id="width"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        draw(ALL, **arguments)


def _naive(snapshot: Any, offset: int) -> Cell:
    """The cell of an offset, by a scan of all runs."""
    holders = {member["id"]: (member["letter"], member["colour"]) for member in snapshot["members"]}
    for first, end, state, count, member, _, _, to_state in snapshot["runs"]:
        if first <= offset < end:
            letter, colour = holders.get(member, ("?", "")) if member else ("", "")
            return Cell("run", state, count, letter, to_state or "", colour)
    for first, end, state, count in snapshot["past"]:
        if first <= offset < end:
            return Cell("past", state, count)
    return Cell("beyond" if snapshot["window_end"] <= offset < snapshot["log_end"] else "dash")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_acquired_cell_has_the_colour_of_its_holder(theme: str) -> None:
    colours = THEMES[theme]
    held = Cell("run", "acquired", 2, "B", "", "member1")
    assert f'fill="{colours["member1"]}"' in cell_markup(held, ALL, SIZES["pitch"], colours)
    assert colours["member1"] not in cell_markup(held._replace(state="available"), ALL, SIZES["pitch"], colours)


@given(st.sampled_from([*SNAPSHOTS, ALL]), st.integers(80, 140))
def test_cell_at_equals_a_scan_of_all_runs(snapshot: Any, offset: int) -> None:
    assert cell_at(snapshot, offset) == _naive(snapshot, offset)


def test_a_lock_past_its_deadline_has_no_time_left() -> None:
    late = max(member["deadline_ms"] or 0 for member in ALL["members"]) + 1
    svg = draw(ALL | {"now_ms": late})
    assert ">0.0 s of lock left<" in svg
    assert not re.search(r'>-\d|width="-', svg)


@pytest.mark.parametrize("width", [900, 1_100, 1_500])
def test_a_long_place_ends_before_the_figures(width: int) -> None:
    """Of a share-partition that is seen from outside, for example."""
    shown = ALL | {"observed": False, "tapped": True, "loaded": False}
    head, figures = list(ET.fromstring(draw(shown, width=width)).iter("{http://www.w3.org/2000/svg}text"))[:2]
    group, place = (node.text or "" for node in head.iter("{http://www.w3.org/2000/svg}tspan"))
    figures.remove(figures[-1])  # its tooltip
    used = text_width(group, 17, strong=True) + text_width(place) + text_width("".join(figures.itertext()))
    assert used <= width - 46
    assert (place == where(shown)) == (width == 1_500)
