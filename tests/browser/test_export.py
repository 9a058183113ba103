"""A saved page, opened from its file: it plays the journal without a kernel and without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from shareq.broker import Cluster
from shareq_widgets import control_room, locks, states, strip
from shareq_widgets.player import Player
from shareq_widgets.room_picture import SCREEN_WIDTH
from shareq_widgets.words import words
from tests.browser.busy import GROUP, TOPIC, busy
from tests.browser.pages import cells
from tests.browser.story import payments
from tests.browser.test_views import until_equal

pytestmark = pytest.mark.browser

PLACE: dict[str, Any] = {"group": "payments", "topic": "orders"}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return payments()


@pytest.fixture
def offline_page(browser_page: Page) -> Page:
    """A page without a network. A request for anything but the file fails the test."""
    browser_page.context.set_offline(True)
    return browser_page


def opened(page: Page, view: Player, folder: Path, **options: Any) -> Locator:
    """The view in its saved page."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(view.save(folder / "view.html", **options).as_uri())
    shown = page.locator(".sq-view")
    expect(shown).to_have_attribute("data-order", str(view.view.total()))
    assert len(asked) == 1
    return shown


def expect_cells(shown: Locator, view: Player, order: int) -> None:
    """The records in the window are those of the journal, once the strip has come to rest."""
    snapshot: Any = view.view.snapshot(order)  # between the events of one step, runs may end above the window
    spans = [(max(run[0], snapshot["spso"]), min(run[1], snapshot["window_end"]), run) for run in snapshot["runs"]]
    expected = {offset: (run[2], run[3]) for first, end, run in spans for offset in range(first, end)}
    expect(shown.locator(".sq-run")).to_have_count(len(expected))
    assert cells(shown) == expected


def expect_moment(shown: Locator, view: Player, order: int, *, internals: bool = False) -> None:
    """The cells and the sentence are those of the journal at that moment."""
    expect(shown).to_have_attribute("data-order", str(order))
    snapshot: Any = view.view.snapshot(order)
    expect(shown).to_have_attribute("data-now", str(snapshot["now_ms"]))
    expect_cells(shown, view, order)
    sentence = words(snapshot, view.view.total(), internals=internals)["sentence"]
    expect(shown.locator(".sq-sentence")).to_have_text("".join(sentence[:3]))


def test_steps_are_those_of_the_journal(offline_page: Page, cluster: Cluster, tmp_path: Path) -> None:
    view = strip(cluster, **PLACE)
    shown = opened(offline_page, view, tmp_path)
    shown.press("Home")
    expect_moment(shown, view, 0)
    order = 0
    while order < view.view.total():
        order = view.view.next_step(order)
        shown.get_by_text("step ▶").click()
        expect_moment(shown, view, order)
    shown.press("End")  # time has passed since the last event
    expect(shown).to_have_attribute("data-now", str(cluster.now_ms))
    shown.get_by_text("step ▶").click()
    expect(shown.locator(".sq-sentence b")).to_have_text("This is the end of the recording.")
    shown.get_by_text("◀ step").click()
    shown.get_by_text("◀ step").click()
    expect_moment(shown, view, view.view.previous_step(order))


def test_internals_are_single_events(offline_page: Page, cluster: Cluster, tmp_path: Path) -> None:
    view = strip(cluster, **PLACE)
    shown = opened(offline_page, view, tmp_path)
    shown.press("Home")
    shown.press("i")
    for order in range(1, 35):
        shown.press("ArrowRight")
        expect_moment(shown, view, order, internals=True)


def test_the_slider_seeks_a_time(offline_page: Page, cluster: Cluster, tmp_path: Path) -> None:
    view = strip(cluster, **PLACE)
    shown = opened(offline_page, view, tmp_path)
    axis = view.view.axis()
    for share in (0.1, 0.33, 0.5, 0.92):
        slider = shown.locator(".sq-time input")
        value = int(axis.length_ms * share)
        slider.evaluate(
            "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', {bubbles: true})); }", value
        )
        time_ms = axis.start_ms + value
        expect(shown).to_have_attribute("data-now", str(time_ms))
        order = view.view.at_time(time_ms)
        expect(shown).to_have_attribute("data-order", str(order))
        expect_cells(shown, view, order)


def test_play_ends_with_the_recording(offline_page: Page, cluster: Cluster, tmp_path: Path) -> None:
    view = strip(cluster, **PLACE)
    shown = opened(offline_page, view, tmp_path)
    shown.press("Home")
    shown.locator("select").select_option("10")
    shown.get_by_text("▶ play").click()
    expect(shown.locator(".sq-sentence b")).to_have_text("This is the end of the recording.")
    expect(shown).to_have_attribute("data-order", str(view.view.total()))
    expect(shown.get_by_text("▶ play")).to_be_visible()
    expect_cells(shown, view, view.view.total())


def test_a_picture_draws_the_elements_of_each_step(offline_page: Page, cluster: Cluster, tmp_path: Path) -> None:
    for view in (locks(cluster, group="payments", linked=False), states(cluster, group="payments", linked=False)):
        shown = opened(offline_page, view, tmp_path)
        for order in (1, 40, 58):
            view.seek(order - 1)  # the moves of records that a picture shows are those since the frame before
            view.seek(order)
            shown.press("Home")
            shown.press("i")
            for _ in range(order):
                shown.press("ArrowRight")
            shown.press("i")
            expect(shown).to_have_attribute("data-order", str(order))
            keys = shown.locator(".sq-plot [data-key]").evaluate_all("all => all.map(node => node.dataset.key)")
            assert sorted(keys) == sorted(view.drawing["keys"])


@pytest.fixture
def calm_page(browser: Browser) -> Iterator[Page]:
    """A page under reduced motion."""
    context = browser.new_context(reduced_motion="reduce", color_scheme="dark", offline=True)
    yield context.new_page()
    context.close()


def test_reduced_motion_and_the_dark_scheme_are_respected(calm_page: Page, cluster: Cluster, tmp_path: Path) -> None:
    shown = opened(calm_page, locks(cluster, group="payments"), tmp_path)
    expect(shown).to_have_attribute("data-animate", "false")
    expect(shown).to_have_attribute("data-theme", "dark")
    expect(shown.locator(".sq-moving")).to_have_count(0)
    shown.press("Home")
    shown.press("ArrowRight")
    assert shown.evaluate("node => node.getAnimations({subtree: true}).length") == 0


def test_a_theme_of_ones_own_counts_more(calm_page: Page, cluster: Cluster, tmp_path: Path) -> None:
    shown = opened(calm_page, strip(cluster, **PLACE), tmp_path, theme="light")
    expect(shown).to_have_attribute("data-theme", "light")
    ground = calm_page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert json.dumps(ground) == '"rgb(255, 255, 255)"'


SCALES = """() => [...document.querySelectorAll(".sq-room .sq-picture:not(.sq-area-timeline *) .sq-plot svg")].map(
    svg => Math.round(10 * svg.clientWidth / svg.viewBox.baseVal.width) / 10)"""


def test_a_saved_room_has_its_pictures_in_their_size(offline_page: Page, tmp_path: Path) -> None:
    """On the screen that it is saved for: a picture for a wider place would have letters too small to read."""
    room = control_room(busy(), group=GROUP, topic=TOPIC)
    offline_page.set_viewport_size({"width": SCREEN_WIDTH + 20, "height": 900})
    offline_page.goto(room.save(tmp_path / "room.html").as_uri())
    expect(offline_page.locator(".sq-room .sq-view")).to_have_count(len(room.screen.shown))
    until_equal(lambda: offline_page.evaluate(SCALES), lambda: [1.0] * 5)
    offline_page.set_viewport_size({"width": 980, "height": 900})  # the last place is as wide as the page
    until_equal(lambda: max(offline_page.evaluate(SCALES)), lambda: 1.3)
    room.close()


def test_a_saved_room_shows_one_moment_and_one_selection(offline_page: Page, tmp_path: Path) -> None:
    """All views step, seek and select together, as with a kernel."""
    room = control_room(busy(), group=GROUP, topic=TOPIC)
    errors: list[str] = []
    offline_page.on("pageerror", lambda error: errors.append(str(error)))
    offline_page.goto(room.save(tmp_path / "room.html").as_uri())
    views = offline_page.locator(".sq-room .sq-view")
    expect(views).to_have_count(len(room.screen.shown))
    timeline, history = offline_page.locator(".sq-area-timeline .sq-view"), room.screen.timeline.view
    timeline.press("Home")
    order = 0
    for _ in range(12):
        timeline.get_by_text("step ▶").click()
        order = history.next_step(order)
        now = str(history.snapshot(order)["now_ms"])
        for place in range(views.count()):
            expect(views.nth(place)).to_have_attribute("data-now", now)
    timeline.press("End")
    offline_page.locator(".sq-area-right rect[data-about^='member:']").first.dispatch_event("click")
    for area in ("left", "right"):
        expect(offline_page.locator(f".sq-area-{area} .sq-selected").first).to_be_visible()
    room.close()
