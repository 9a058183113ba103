"""The partition strip in a real JupyterLab: clicks, keys, scrubbing, and both themes. The tests share a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from shareq.trace.views.palette import DARK, LIGHT
from shareq_widgets.words import clock_text
from tests.browser.pages import cells, execute, opened, run_cells, themed
from tests.widgets.fakes import ORIGIN_MS, payments

pytestmark = pytest.mark.browser

SOURCE = "from tests.widgets.fakes import FakeCluster, payments, wide; cluster = FakeCluster(payments(), 10)"
PLACE = "import ipywidgets; place = ipywidgets.VBox(); place"
SHOW = """
from shareq_widgets import strip
place.children = (strip(cluster, group='payments', topic='orders', view=cluster.view),)
"""
CLEAR = "shown, place.children = place.children, ()\nfor each in shown: each.close()"
SNAPSHOTS = payments().snapshots


@pytest.fixture(scope="module")
def page(lab: Page, jupyterlab_folder: Path) -> Iterator[Page]:
    """A page with an empty place: the tests share it and its kernel."""
    with opened(lab, jupyterlab_folder, PLACE) as page:
        run_cells(page)
        yield page


@pytest.fixture
def show(page: Page) -> Iterator[Callable[..., Locator]]:
    """A function that runs code, which names a `cluster`, and shows its strip."""
    strip = page.locator(".sq-strip")

    def shown(*sources: str) -> Locator:
        for source in (*map(dedent, sources), SHOW):
            execute(page, source)
        expect(strip).to_have_attribute("data-mode", re.compile("cells|runs"))
        strip.scroll_into_view_if_needed()
        return strip

    page.emulate_media(reduced_motion="no-preference")
    page.mouse.move(0, 0)
    yield shown
    execute(page, CLEAR)
    expect(strip).to_have_count(0)


@pytest.fixture
def strip(show: Callable[..., Locator]) -> Locator:
    return show(SOURCE)


def expected_cells(order: int) -> dict[int, tuple[str, int]]:
    """The same as `cells`, computed from the snapshot."""
    runs: list[list[Any]] = SNAPSHOTS[order]["runs"]
    return {offset: (run[2], run[3]) for run in runs for offset in range(run[0], run[1])}


def expect_order(strip: Locator, order: int) -> None:
    expect(strip).to_have_attribute("data-order", str(order))
    expect(strip.locator(".sq-run")).to_have_count(len(expected_cells(order)))
    assert cells(strip) == expected_cells(order)


def test_step_and_back_change_the_cells(strip: Locator, page: Page, tmp_path: Path) -> None:
    expect_order(strip, 10)
    execute(page, "cluster.arrive()")
    expect_order(strip, 11)
    strip.get_by_text("◀ step").click()
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


def test_steps_end_with_the_recording(strip: Locator) -> None:
    strip.press("Home")
    for order in range(1, 11):
        strip.get_by_text("step ▶").click()
        expect_order(strip, order)
    strip.get_by_text("step ▶").click()
    expect(strip.locator(".sq-sentence b")).to_have_text(
        "This is the end of the recording: run on lets the cluster run."
    )
    expect_order(strip, 10)


def test_run_on_lets_the_cluster_run(strip: Locator) -> None:
    button = strip.locator("[data-do=run_on]")
    expect(button).to_have_attribute("aria-pressed", "false")
    strip.locator("select").select_option("10")
    button.click()
    expect_order(strip, len(SNAPSHOTS) - 1)
    expect(strip.locator(".sq-sentence b")).to_contain_text("Nothing more happens here but heartbeats")
    expect(button).to_have_attribute("aria-pressed", "false")


STEPS = "from tests.widgets.fakes import FakeView; cluster.view = FakeView(payments().snapshots, [0, 4, 9, 12])"


def test_internals_split_a_step_into_its_events(show: Callable[..., Locator]) -> None:
    strip = show(SOURCE, STEPS)
    strip.press("Home")
    for key, order in [("ArrowRight", 4), ("ArrowRight", 9), ("ArrowLeft", 4)]:
        strip.press(key)
        expect_order(strip, order)
    strip.press("i")
    expect(strip.get_by_text("internals")).to_have_attribute("aria-pressed", "true")
    strip.press("ArrowRight")
    expect_order(strip, 5)


def test_keyboard(strip: Locator) -> None:
    strip.focus()
    for key, order in [("ArrowLeft", 9), ("ArrowRight", 10), ("Home", 0), ("End", 10), ("ArrowRight", 10)]:
        strip.press(key)
        expect_order(strip, order)
    for key, order in [("ArrowLeft", 9), ("l", 10)]:
        strip.press(key)
        expect_order(strip, order)


def test_zoom_by_keyboard_and_back_to_fit(strip: Locator) -> None:
    box = strip.locator(".sq-run rect").first
    expect(box).to_have_attribute("width", "30")
    strip.press("-")
    expect(box).to_have_attribute("width", re.compile(r"^23\.4"))
    strip.press("f")
    expect(box).to_have_attribute("width", "30")


def left_of(strip: Locator, offset: int) -> float:
    """Left edge of an offset's cell, in px from the left of the plot."""
    cell, plot = strip.locator(f"[data-offset='{offset}'] rect").first.bounding_box(), box_of(strip)
    assert cell is not None
    return float(cell["x"]) - plot[0]


def box_of(strip: Locator) -> tuple[float, float, float, float]:
    """Left, top, width, height of the plot, px of the page."""
    box = strip.locator(".sq-plot").bounding_box()
    assert box is not None
    return box["x"], box["y"], box["width"], box["height"]


X = """(strip, [offset, least, most]) => {
    const cell = strip.querySelector(`[data-offset='${offset}'] rect`), plot = strip.querySelector(".sq-plot");
    const left = cell ? cell.getBoundingClientRect().x - plot.getBoundingClientRect().x : NaN;
    return left >= least && left <= most;
}"""
"""True if a cell begins between two positions of the plot, in px."""


def expect_left(strip: Locator, offset: int, left: float, *, least: float | None = None) -> None:
    """Wait until the cell's left edge is there (or between `least` and there): movements are animated."""
    bounds = [offset, left - 1.5 if least is None else least, left + 1.5]
    handle = strip.element_handle()
    strip.page.wait_for_function(f"([strip, bounds]) => ({X})(strip, bounds)", arg=[handle, bounds])


def test_dragging_the_plot_moves_it_along_the_log(strip: Locator, page: Page) -> None:
    x, y, width, height = box_of(strip)
    before = left_of(strip, 105)
    page.mouse.move(x + width / 2, y + height / 2)
    page.mouse.down()
    page.mouse.move(x + width / 2 - 60, y + height / 2, steps=4)
    page.mouse.up()
    expect_left(strip, 105, before - 60)
    page.mouse.move(x + width / 2, y + height / 2)  # released: a movement only shows the tooltip
    expect_left(strip, 105, before - 60)
    strip.focus()
    strip.press("f")
    expect_left(strip, 105, before)


def test_the_wheel_zooms_at_the_pointer_with_ctrl_and_pans_with_shift(strip: Locator, page: Page) -> None:
    x, y, _, height = box_of(strip)
    cell = strip.locator(".sq-run rect").first
    at = left_of(strip, 105)
    page.mouse.move(x + at, y + height / 2)
    page.keyboard.down("Control")
    page.mouse.wheel(0, 60)
    page.keyboard.up("Control")
    expect(cell).not_to_have_attribute("width", "30")
    expect_left(strip, 105, at)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 40)
    page.keyboard.up("Shift")
    expect_left(strip, 105, at - 10, least=at - 50)


def test_wheel_without_modifier_scrolls_the_page(strip: Locator, page: Page) -> None:
    x, y, _, height = box_of(strip)
    before = left_of(strip, 105)
    strip.evaluate(
        "strip => { window.spared = 0; strip.addEventListener('wheel', e => window.spared += !e.defaultPrevented); }"
    )
    page.mouse.move(x + 200, y + height / 2)
    page.mouse.wheel(0, 10)
    page.wait_for_function("() => window.spared === 1")
    assert left_of(strip, 105) == before


def test_scrub(strip: Locator) -> None:
    """The timeline is time: locks run down between two events, too."""
    third, fourth = (snapshot["now_ms"] - ORIGIN_MS for snapshot in SNAPSHOTS[3:5])
    range_ = strip.locator("input[type=range]")
    for place, order in [(third, 3), (fourth - 1, 3), (fourth, 4)]:
        range_.fill(str(place))
        expect_order(strip, order)
        expect(strip.locator(".sq-chips")).to_contain_text(f"t {clock_text(place)}")
    expect(range_).to_have_attribute("aria-valuetext", re.compile(r"^00:0\d\.\d{3} of 00:0\d\.\d{3}, event 4 of 10$"))
    strip.get_by_title("time-out, event 7").click()
    expect_order(strip, 7)


def test_near_marks_are_one_and_idle_time_is_folded(show: Callable[..., Locator], tmp_path: Path) -> None:
    source = """
    from tests.widgets.fakes import FakeCluster, History
    story = History().acquire("m-a", 100, 106).settle(100, 101, "available", "lock_timeout")
    story.settle(101, 102, "available", "lock_timeout").settle(102, 103, "available", "lock_timeout", 900_000)
    cluster = FakeCluster(story, 4)
    """
    strip = show(source)
    expect(strip.locator(".sq-folds span")).to_have_attribute("title", "15:00.000 without an event, folded")
    marks = strip.locator(".sq-marks button")
    expect(marks).to_have_count(2)
    expect(marks.first).to_have_attribute("title", "time-out, event 2\ntime-out, event 3")
    strip.screenshot(path=tmp_path / "folds.png")
    marks.first.click()
    expect(strip).to_have_attribute("data-order", "2")


def test_play_reaches_the_end_and_pause_stops(strip: Locator) -> None:
    strip.locator("select").select_option("10")
    strip.get_by_text("▶ play").click()
    expect(strip).to_have_attribute("data-order", "10")
    expect(strip.get_by_text("▶ play")).to_be_visible()
    strip.press("Home")
    strip.locator("select").select_option("0.25")
    strip.press(" ")
    expect(strip.get_by_text("pause")).to_be_visible()
    strip.press(" ")
    expect(strip.get_by_text("▶ play")).to_be_visible()


def test_tooltip_describes_the_cell(strip: Locator) -> None:
    strip.locator("[data-offset='105']").hover()
    expect(strip.locator(".sq-tip")).to_contain_text(
        "offset 105\nacquired by consumer-3 (C)\ndelivery 5 of 5, the last attempt"
    )
    expect(strip.locator(".sq-tip")).to_contain_text("of lock left")


def test_strip_has_roles_and_labels_for_screen_readers(strip: Locator) -> None:
    expect(strip).to_have_attribute("aria-label", "payments, orders-0 · leader broker 2")
    expect(strip.locator("svg[role=img]")).to_have_attribute("aria-label", SNAPSHOTS[10]["text"])
    expect(strip.locator("output.sq-sentence")).to_have_attribute("aria-live", "polite")


def test_an_event_from_another_cell_moves_a_live_strip(strip: Locator, page: Page) -> None:
    execute(page, "cluster.arrive()")
    expect_order(strip, 11)


ORDERS = """strip => {
    window.seen = [strip.dataset.order];
    new MutationObserver(() => window.seen.push(strip.dataset.order)).observe(strip, {attributeFilter: ["data-order"]});
}"""


def test_a_live_strip_plays_what_just_happened(strip: Locator, page: Page) -> None:
    """With reduced motion it shows the end at once."""
    strip.evaluate(ORDERS)
    execute(page, "for _ in range(4): cluster.arrive()")
    expect_order(strip, 14)
    assert page.evaluate("window.seen") == ["10", "11", "12", "13", "14"]
    page.emulate_media(reduced_motion="reduce")
    expect(strip).to_have_attribute("data-animate", "false")
    execute(page, "for _ in range(3): cluster.arrive()")
    expect_order(strip, 17)
    assert page.evaluate("window.seen") == ["10", "11", "12", "13", "14", "17"]


BAND = """strip => {
    const canvas = strip.querySelector(".sq-plot canvas"), ratio = canvas.width / canvas.clientWidth;
    const [x, y] = [canvas.clientWidth / 2, 32].map(at => Math.round(at * ratio));
    return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3);
}"""


def test_follows_the_theme_of_jupyterlab(strip: Locator, page: Page, tmp_path: Path) -> None:
    for theme, palette in [("dark", DARK), ("light", LIGHT)] * 2:
        with themed(page, theme):
            expect(strip).to_have_attribute("data-theme", theme)
            expect(strip).to_have_css("background-color", f"rgb{tuple(bytes.fromhex(palette['bg'][1:]))}")
            assert bytes(strip.evaluate(BAND)).hex() == palette["band"][1:]
            strip.screenshot(path=tmp_path / f"{theme}.png")


def test_reduced_motion_draws_at_once(strip: Locator, page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    for button, order in [("◀ step", 9), ("step ▶", 10)]:
        strip.get_by_text(button).click()
        expect_order(strip, order)
        assert strip.locator(".sq-flow").count() == 0


WIDE = "from tests.widgets.fakes import FakeCluster, wide; cluster = FakeCluster(wide(4000), 1)"


def test_a_wide_window_is_drawn_as_blocks_and_zooms_to_cells(show: Callable[..., Locator], tmp_path: Path) -> None:
    strip = show(WIDE)
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


def test_the_overview_is_dragged_to_another_place(show: Callable[..., Locator], page: Page) -> None:
    strip = show(WIDE)
    for _ in range(24):
        strip.press("+")
    expect(strip).to_have_attribute("data-mode", "cells")
    overview = strip.locator(".sq-overview")
    spso, window_end = (int(strip.get_attribute(f"data-{end}") or "") for end in ("spso", "window-end"))
    overview.scroll_into_view_if_needed()
    box = overview.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    page.mouse.down()
    for share in (0.75, 0.25):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        middle = spso + round(share * (window_end - spso))
        expect(strip.locator(f"[data-offset='{middle}']")).to_be_attached()
    page.mouse.up()
