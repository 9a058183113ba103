"""The static picture of a strip beside the live one: the same lines, labels and cells in the same places."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import floor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Page

from shareq import Cluster
from shareq_widgets import strip
from shareq_widgets.blocks import blocks
from shareq_widgets.look import SHAPES, SIZES, THEMES
from shareq_widgets.strip_layout import scale_of
from shareq_widgets.strip_picture import draw
from tests.browser.crews import GROUP, TOPIC, crew
from tests.browser.story import payments
from tests.browser.test_views import until_equal

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"
LIVE = """() => {
    const svg = document.querySelector(".sq-strip .sq-plot svg[role=img]");
    const all = name => [...svg.querySelectorAll(name)];
    const number = text => Math.round(parseFloat(text)), up = (a, b) => a - b;
    const shapes = cell => [...cell.querySelectorAll("*")].map(one => one.tagName).filter(tag => tag !== "g");
    const place = node => ["x", "y"].map(name => number(node.getAttribute(name)));
    return {
        width: svg.clientWidth,
        lines: all(".sq-flag, .sq-edge").map(line => number(line.getAttribute("d").slice(1)))
            .filter(x => x >= 0 && x <= svg.clientWidth).sort(up),
        labels: all("text:not(.sq-cell text)").map(
            node => [node.firstChild.nodeValue, ...place(node), node.getAttribute("text-anchor") ?? "start"]).sort(),
        cells: all(".sq-cell").map(cell => [
            number(cell.getAttribute("transform").slice(10)), cell.querySelector("text")?.textContent ?? "",
            shapes(cell),
        ]),
    };
}"""
"""What the live picture shows: the places of its lines, its labels, and the shapes of its cells."""


def still(markup: str) -> dict[str, Any]:
    """The same of a static picture without the texts around it."""
    root = ET.fromstring(markup)
    picture = root.find(f"{SVG}g")
    assert picture is not None
    places = [(node, re.match(r"translate\(([-\d.]+) (\d+)\)", node.get("transform", ""))) for node in picture.iter()]
    cells = [(node, found[1]) for node, found in places if found and float(found[2]) == SIZES["cell_top"]]
    inside = {id(text) for cell, _ in cells for text in cell.iter(f"{SVG}text")}
    labels = [node for node in picture.iter(f"{SVG}text") if id(node) not in inside]
    lines = [re.match(r"M([-\d.]+) (?:6|34)V", node.get("d", "")) for node in picture.iter(f"{SVG}path")]
    return {
        "width": int(root.get("width", "")),
        "lines": sorted(near(found[1]) for found in lines if found),
        "labels": sorted(
            [node.text, near(node.get("x", "")), near(node.get("y", "")), node.get("text-anchor", "start")]
            for node in labels
        ),
        "cells": [[near(x), cell.findtext(f".//{SVG}text", ""), shapes_of(cell)] for cell, x in cells],
    }


def near(text: str) -> int:
    """As JavaScript rounds."""
    return floor(float(text) + 0.5)


def shapes_of(cell: ET.Element) -> list[str]:
    return [tag for one in cell.iter() if (tag := one.tag.removeprefix(SVG)) != "g"]


@pytest.mark.parametrize("width", [480, 1_400])
@pytest.mark.parametrize(
    ("made", "key"),
    [
        pytest.param(payments, "End", id="cells"),
        pytest.param(payments, "Home", id="an empty window"),
        pytest.param(lambda: crew(500, 3), "End", id="blocks"),
        pytest.param(lambda: crew(60, 14), "End", id="more members than lanes"),
    ],
)
def test_the_static_picture_stands_as_the_live_one(
    browser_page: Page, tmp_path: Path, made: Callable[[], Cluster], key: str, width: int
) -> None:
    cluster = made()
    group, topic = ("payments", "orders") if "orders" in cluster.image.topics else (GROUP, TOPIC)
    view = strip(cluster, group=group, topic=topic, animate=False)
    browser_page.set_viewport_size({"width": width, "height": 900})
    browser_page.emulate_media(reduced_motion="reduce")
    browser_page.goto(view.save(tmp_path / "strip.html").as_uri())
    shown = browser_page.locator(".sq-strip")
    shown.press(key)
    shown.press("f")
    view.first() if key == "Home" else view.last()
    wanted = still(draw(view.snapshot, width=browser_page.evaluate(LIVE)["width"], bare=True))
    assert wanted["labels"]
    assert wanted["lines"]
    until_equal(lambda: browser_page.evaluate(LIVE), lambda: wanted)


PAINTED = """([colours, top, height]) => {
    const canvas = document.querySelector(".sq-strip .sq-plot canvas");
    const {data, width} = canvas.getContext("2d").getImageData(0, top, canvas.width, height);
    const names = new Map(colours.map(([name, hex]) => [hex, name])), counts = {};
    for (let pixel = 0; pixel < data.length / 4; pixel++) {
        const bytes = [...data.slice(pixel * 4, pixel * 4 + 3)];
        const hex = "#" + bytes.map(byte => byte.toString(16).padStart(2, "0")).join("");
        if (data[pixel * 4 + 3] < 255 || !names.has(hex)) continue;
        const column = counts[pixel % width] ??= {};
        column[names.get(hex)] = (column[names.get(hex)] ?? 0) + 1;
    }
    return counts;
}"""
"""The number of pixels in each column of the blocks that have one of the colours."""


def test_columns_of_a_wide_window_show_the_shares_of_the_states(browser_page: Page, tmp_path: Path) -> None:
    """Also where a pixel stands for a dozen records: as high as in the static picture, but for the two edges."""
    view = strip(crew(5_000, 5), group=GROUP, topic=TOPIC, animate=False)
    browser_page.set_viewport_size({"width": 760, "height": 900})
    browser_page.emulate_media(reduced_motion="reduce")
    browser_page.goto(view.save(tmp_path / "strip.html").as_uri())
    shown = browser_page.locator(".sq-strip")
    shown.press("End")
    shown.press("f")
    view.last()
    scale = scale_of(view.snapshot["spso"], view.snapshot["window_end"] - view.snapshot["spso"],
                     browser_page.evaluate(LIVE)["width"])  # fmt: skip
    solid = [state for state in SHAPES if state in ("acquired", "acknowledged")]
    drawn = [block for block in blocks((run[:3] for run in view.snapshot["runs"]), scale.x) if block.state in solid]
    columns = [
        block
        for block in drawn
        if block.right - block.left == 1 and block.high - block.low != SHAPES[block.state]["block"]
    ]
    assert len(columns) > 100
    area = [[[state, THEMES["light"][state]] for state in solid], SIZES["cell_top"], SIZES["cell_height"]]
    wanted = {(int(block.left), block.state): (block.high - block.low) * SIZES["cell_height"] for block in columns}

    def far() -> list[tuple[int, str]]:
        counts = browser_page.evaluate(PAINTED, area)
        return [at for at, height in wanted.items() if abs(counts.get(str(at[0]), {}).get(at[1], 0) - height) >= 2]

    until_equal(far, list)
