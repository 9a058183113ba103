"""The partition strip in a real JupyterLab: pressed, typed at, scrubbed, and looked at in both themes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from shareq.trace.palette import DARK, LIGHT
from tests.browser.pages import cells, notebook, open_strip
from tests.widgets.fakes import payments

pytestmark = pytest.mark.browser

SOURCE = "from tests.widgets.fakes import FakeCluster, payments, wide; cluster = FakeCluster(payments(), 10)"
SHOW = "from shareq_widgets import strip; strip(cluster, group='payments', topic='orders', view=cluster.view)"
SNAPSHOTS = payments().snapshots


@pytest.fixture
def strip(browser_page: Page, jupyterlab: str, jupyterlab_folder: Path) -> Iterator[Locator]:
    notebook(jupyterlab_folder, "strip.ipynb", SOURCE, SHOW)
    yield open_strip(browser_page, jupyterlab, "strip.ipynb")
    browser_page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")


def told(order: int) -> dict[int, tuple[str, int]]:
    """The same from the snapshot."""
    runs: list[list[Any]] = SNAPSHOTS[order]["runs"]
    return {offset: (run[2], run[3]) for run in runs for offset in range(run[0], run[1])}


def expect_order(strip: Locator, order: int) -> None:
    expect(strip).to_have_attribute("data-order", str(order))
    assert cells(strip) == told(order)


def test_step_and_back_change_the_cells(strip: Locator, tmp_path: Path) -> None:
    expect_order(strip, 10)
    strip.get_by_text("step ▶").click()
    expect_order(strip, 11)
    assert cells(strip)[102] == ("acknowledged", 1)
    assert strip.locator("[data-offset='100']").get_attribute("data-member") == "consumer-1"
    expect(strip.locator(".sq-sentence")).to_have_text(
        "event 11 of 11: 102 became acknowledged, the window starts at 100"
    )
    strip.get_by_text("◀ step").click()
    expect_order(strip, 10)
    strip.screenshot(path=tmp_path / "step.png")


def test_every_event_to_the_end_and_then_it_says_so(strip: Locator) -> None:
    for order in range(11, len(SNAPSHOTS)):
        strip.get_by_text("step ▶").click()
        expect_order(strip, order)
    strip.get_by_text("step ▶").click()
    expect(strip.locator(".sq-sentence b")).to_contain_text("Nothing more happens to this partition")


def test_keyboard(strip: Locator) -> None:
    strip.focus()
    for key, order in [("ArrowLeft", 9), ("ArrowRight", 10), ("Home", 0), ("End", 10), ("ArrowRight", 11)]:
        strip.press(key)
        expect_order(strip, order)
    for key, order in [("ArrowLeft", 10), ("l", 11)]:
        strip.press(key)
        expect_order(strip, order)


def test_zoom_by_keyboard_and_back_to_fit(strip: Locator) -> None:
    box = strip.locator(".sq-run rect").first
    expect(box).to_have_attribute("width", "30")
    strip.press("-")
    expect(box).to_have_attribute("width", re.compile(r"^23\.4"))
    strip.press("f")
    expect(box).to_have_attribute("width", "30")


def test_scrub(strip: Locator) -> None:
    strip.locator("input[type=range]").fill("3")
    expect_order(strip, 3)
    strip.get_by_title("time-out, event 7").click()
    expect_order(strip, 7)


def test_play_runs_to_the_end_and_pause_stands_still(strip: Locator) -> None:
    strip.locator("select").select_option("10")
    strip.get_by_text("▶ play").click()
    expect(strip).to_have_attribute("data-order", str(len(SNAPSHOTS) - 1))
    expect(strip.get_by_text("▶ play")).to_be_visible()
    strip.press("Home")
    strip.locator("select").select_option("0.25")
    strip.press(" ")
    expect(strip.get_by_text("pause")).to_be_visible()
    strip.press(" ")
    expect(strip.get_by_text("▶ play")).to_be_visible()


def test_pointing_at_a_cell_tells_about_it(strip: Locator) -> None:
    strip.locator("[data-offset='105']").hover()
    expect(strip.locator(".sq-tip")).to_contain_text(
        "offset 105\nacquired by consumer-3 (C)\ndelivery 5 of 5, the last attempt"
    )
    expect(strip.locator(".sq-tip")).to_contain_text("of lock left")


def test_what_a_screen_reader_gets(strip: Locator) -> None:
    expect(strip).to_have_attribute("aria-label", "payments, orders-0 · leader broker 2")
    expect(strip.locator("svg[role=img]")).to_have_attribute("aria-label", SNAPSHOTS[10]["text"])
    expect(strip.locator("output")).to_have_attribute("aria-live", "polite")


def test_other_cells_move_a_live_strip(strip: Locator, browser_page: Page) -> None:
    browser_page.evaluate(
        """async () => {
            const panel = window.jupyterapp.shell.currentWidget;
            await panel.sessionContext.session.kernel.requestExecute({code: "cluster.arrive()"}).done;
        }"""
    )
    expect_order(strip, 11)


BAND = """strip => {
    const canvas = strip.querySelector(".sq-plot canvas"), ratio = canvas.width / canvas.clientWidth;
    const [x, y] = [canvas.clientWidth / 2, 32].map(at => Math.round(at * ratio));
    return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3);
}"""


def test_follows_the_theme_of_jupyterlab(strip: Locator, browser_page: Page, tmp_path: Path) -> None:
    for theme, shown, palette in [("JupyterLab Dark", "dark", DARK), ("JupyterLab Light", "light", LIGHT)] * 2:
        browser_page.evaluate(f"window.jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
        expect(strip).to_have_attribute("data-theme", shown)
        expect(strip).to_have_css("background-color", f"rgb{tuple(bytes.fromhex(palette['bg'][1:]))}")
        assert bytes(strip.evaluate(BAND)).hex() == palette["band"][1:]
        expect(browser_page.locator("#jupyterlab-splash")).to_have_count(0)  # JupyterLab trips over a second change
        strip.screenshot(path=tmp_path / f"{shown}.png")


def test_reduced_motion_draws_at_once(strip: Locator, browser_page: Page) -> None:
    browser_page.emulate_media(reduced_motion="reduce")
    strip.get_by_text("step ▶").click()
    expect_order(strip, 11)
    assert strip.locator(".sq-flow").count() == 0


def test_a_wide_window_is_drawn_as_blocks_and_zooms_to_cells(
    browser_page: Page, jupyterlab: str, jupyterlab_folder: Path, tmp_path: Path
) -> None:
    wide = "from tests.widgets.fakes import FakeCluster, wide; cluster = FakeCluster(wide(4000), 1)"
    notebook(jupyterlab_folder, "wide.ipynb", wide, SHOW)
    strip = open_strip(browser_page, jupyterlab, "wide.ipynb")
    expect(strip).to_have_attribute("data-mode", "runs")
    assert strip.locator(".sq-run").count() == 0
    strip.screenshot(path=tmp_path / "wide.png")
    for _ in range(24):
        strip.press("+")
    expect(strip).to_have_attribute("data-mode", "cells")
    expect(strip.locator(".sq-overview")).to_be_visible()
    assert 10 < len(cells(strip)) < 120
    strip.screenshot(path=tmp_path / "zoomed.png")
    strip.press("f")
    expect(strip).to_have_attribute("data-mode", "runs")
