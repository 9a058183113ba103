"""The control room of a busy group, eight seconds after the crash of a consumer, as the README shows it.

With SHAREQ_PICTURES=FOLDER the pictures of the README are written there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import themed

pytestmark = pytest.mark.browser

ROOM = """
from shareq import Cluster
from shareq_widgets import control_room
cluster = Cluster(brokers=3, seed=7, trace_messages=True)
cluster.create_topic("orders", 4)
room = control_room(cluster, group="payments", topic="orders", theme="THEME", animate=False)
do = room.panel.steering.do
do("share.auto.offset.reset of payments", "earliest")
do("share.partition.max.record.locks of payments", 100)
for policy in ("accept", "release some", "renew", "accept"):
    do("add consumer", policy)
for name, ms in zip("ABCD", (300, 500, 900, 400)):
    do(f"work time of {name}", ms)
do("batch", 3)
do("rate", 12)
do("advance", 24_000)
do("crash D")
do("advance", 8_000)
room
"""


PLACES = """() => {
    const page = document.querySelector(".jp-WindowedPanel-outer"), room = document.querySelector(".sq-room");
    page.scrollTop += room.getBoundingClientRect().top - page.getBoundingClientRect().top;
    const { top, height } = page.getBoundingClientRect(), places = {};
    for (const area of ["strip", "timeline", "left", "middle", "right", "wide", "narrow", "panel"]) {
        const box = room.querySelector(`.sq-area-${area}`).getBoundingClientRect();
        places[area] = [Math.round(box.top - top), Math.round(box.bottom - top - height), Math.round(box.width)];
    }
    return places;
}"""
"""By area: the distances of its top and its bottom from those of the page, and its width, px."""


def test_a_room_fits_a_large_screen_and_its_strip_stays_in_sight(run_notebook: Callable[..., Page]) -> None:
    """Of 1,000 px, JupyterLab has 121 around the notebook."""
    page = run_notebook(ROOM.replace("THEME", "light"), size={"width": 1600, "height": 1000})
    expect(page.locator(".sq-room .sq-area-panel.sq-panel")).to_be_visible()
    fits = f"() => Object.values(({PLACES})()).every(([top, below]) => top >= 0 && below <= 0)"
    page.wait_for_function(fits)
    page.set_viewport_size({"width": 1150, "height": 700})
    apart = f"() => Object.entries(({PLACES})()).every(([area, [, , width]]) => area === 'panel' || width >= 320)"
    page.wait_for_function(apart)  # as wide as the drawings' own tests want them
    stays = """() => {
        const page = document.querySelector(".jp-WindowedPanel-outer"), room = document.querySelector(".sq-room");
        page.scrollTop += 300 + room.getBoundingClientRect().top - page.getBoundingClientRect().top;
        return ["strip", "panel"].every(area => {
            const box = room.querySelector(`.sq-area-${area}`).getBoundingClientRect();
            return Math.abs(box.top - page.getBoundingClientRect().top) < 2;
        });
    }"""
    page.wait_for_function(stays)


LAID_OUT = """() => [".sq-area-left", ".sq-area-middle"].every(area => {
    const plot = document.querySelector(`${area} .sq-plot`), made = plot.querySelector("svg[role=img]").viewBox.baseVal;
    return Math.abs(made.width - plot.clientWidth) < 2;
})"""
"""True if the upper pictures are drawn for the widths that they have; those out of sight are when they come into it."""
SCALES = """() => {
    window.scales = [];
    const sample = () => {
        for (const svg of document.querySelectorAll(".sq-room .sq-slot svg[role=img]"))
            window.scales.push(svg.getBoundingClientRect().width / svg.viewBox.baseVal.width);
        window.sampling = requestAnimationFrame(sample);
    };
    sample();
}"""
"""In each frame: the scales of the pictures below the strip."""


def test_a_room_has_legend_and_lanes_where_they_have_room_and_scales_no_picture_up(
    run_notebook: Callable[..., Page],
) -> None:
    """In 1,600 x 1,000 px they would move the raster below the window, which a narrow room does anyway."""
    page = run_notebook(ROOM.replace("THEME", "light"), size={"width": 1600, "height": 1000})
    expect(page.locator(".sq-room .sq-area-panel.sq-panel")).to_be_visible()
    lane = page.locator(".sq-area-strip text[text-anchor=end]", has_text="D †")
    expect(page.locator(".sq-area-strip .sq-cell").first).to_be_visible()
    page.evaluate(SCALES)
    for width, height, legend, lanes in (
        (1600, 1000, 0, 0),
        (2400, 1300, 1, 1),
        (1920, 1080, 1, 0),
        (1150, 1000, 1, 1),
    ):
        page.set_viewport_size({"width": width, "height": height})
        expect(page.locator(".sq-area-strip .sq-legend")).to_be_visible(visible=bool(legend))
        expect(lane).to_have_count(lanes)
        page.wait_for_function(LAID_OUT)
    scales = page.evaluate("() => { cancelAnimationFrame(window.sampling); return window.scales; }")
    assert max(scales) < 1.02


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_room_shows_the_crash_of_a_consumer(run_notebook: Callable[..., Page], tmp_path: Path, theme: str) -> None:
    page = run_notebook(ROOM.replace("THEME", theme), size={"width": 1560, "height": 1720})
    with themed(page, theme):
        room = page.locator(".sq-room")
        strip, locks, group = (room.locator(f".sq-area-{area}") for area in ("strip", "left", "right"))
        expect(strip.locator(".sq-view")).to_have_attribute("data-spso", "45")
        expect(locks.locator("svg text", has_text="21.0 s").first).to_be_visible()
        expect(group.locator("svg text", has_text=re.compile("^crashed")).first).to_be_visible()
        expect(room.locator(".sq-area-wide").locator("svg text", has_text="D crashed").first).to_be_visible()
        expect(room.locator(".sq-area-narrow").locator("svg text", has_text="got 30–34").first).to_be_visible()
        room.screenshot(path=Path(os.environ.get("SHAREQ_PICTURES", tmp_path)) / f"control-room-{theme}.png")
