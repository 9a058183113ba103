"""Zoom and filter in a real JupyterLab, by pointer and keyboard; and views that are on no screen, or on it twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import execute, kernel_value, tall_page, wait_for_pictures
from tests.browser.test_views import LAID_OUT, until_equal

pytestmark = pytest.mark.browser

NAMES = ("raster", "charts", "messages", "locks")
CELLS = (
    f"from tests.browser.busy import busy, shown; views = shown(busy()); of = [views[name] for name in {NAMES!r}]",
    "import ipywidgets; place = ipywidgets.VBox(of); place",
)
TALL = 3_000


@pytest.fixture(scope="module")
def lab_page(lab: Page, jupyterlab_folder: Path) -> Iterator[Page]:
    """A page that shows raster, charts, messages and locks, all on the screen."""
    with tall_page(lab, jupyterlab_folder, TALL, *CELLS) as page:
        wait_for_pictures(page, len(NAMES))
        yield page


@pytest.fixture
def page(lab_page: Page) -> Page:
    """The page at the end of the recording, with all of its time and its messages."""
    execute(lab_page, "place.children = of; of[0].zoom(); of[0].select(''); of[0].last(); of[2].without = ()")
    wait_for_pictures(lab_page, len(NAMES))
    expect(lab_page.locator("[data-do=whole]:visible")).to_have_count(0)
    lab_page.wait_for_function(LAID_OUT)
    for place in range(len(NAMES)):
        order = str(kernel_value(lab_page, f"of[{place}].order"))
        expect(lab_page.locator(".sq-picture").nth(place)).to_have_attribute("data-order", order)
    return lab_page


def view(page: Page, name: str) -> Locator:
    return page.locator(".sq-picture").nth(NAMES.index(name))


def span(page: Page) -> list[int]:
    """The times that the charts show."""
    found = kernel_value(page, "[views['charts'].drawing['brush'][end] for end in ('from_ms', 'to_ms')]")
    return [int(time) for time in found]


def drag(page: Page, name: str, first: float, last: float) -> list[int]:
    """Drag over parts of the time axis of a view; returns the times at the beginning and the end."""
    box = view(page, name).locator(".sq-plot svg").bounding_box()
    brush = kernel_value(page, f"views[{name!r}].drawing['brush']")
    width = kernel_value(page, f"views[{name!r}].drawing['width']")
    assert box is not None
    places = [brush["left"] + part * (brush["right"] - brush["left"]) for part in (first, last)]
    x1, x2 = (box["x"] + place * box["width"] / width for place in places)
    y = box["y"] + (brush["top"] + brush["bottom"]) / 2 * box["width"] / width
    page.mouse.move(x1, y)
    page.mouse.down()
    page.mouse.move((x1 + x2) / 2, y)
    page.mouse.move(x2, y)
    page.mouse.up()
    return [round(brush["from_ms"] + part * (brush["to_ms"] - brush["from_ms"])) for part in (first, last)]


@pytest.mark.parametrize("name", ["raster", "charts"])
def test_a_drag_zooms_the_time_axes_of_all_views_and_a_click_shows_all(page: Page, name: str) -> None:
    whole = span(page)
    times = drag(page, name, 0.3, 0.6)
    expect(page.locator("[data-do=whole]:visible")).to_have_count(len(NAMES))
    assert span(page) == pytest.approx(times, abs=100)
    expect(view(page, "raster").locator("[data-key=span]")).to_have_count(1)
    ends = kernel_value(page, "[[v.axis['start_ms'], v.axis['end_ms']] for v in of]")
    assert ends == [span(page)] * len(NAMES)
    expect(view(page, "locks").locator(".sq-ticks span").first).to_be_visible()
    _, clicked_ms = drag(page, "raster", 0.1, 0.1)
    wait_until(page, f"abs(of[0].snapshot['now_ms'] - {clicked_ms}) < 100")  # the last seek of the pointer
    expect(page.locator("[data-do=whole]:visible")).to_have_count(0)
    execute(page, "of[0].last()")
    assert span(page) == whole


def test_keys_zoom_around_the_moment_and_back(page: Page) -> None:
    begin, end = kernel_value(page, "[of[3].axis['first_ms'], of[3].axis['last_ms']]")
    locks = view(page, "locks")
    locks.press("z")
    expect(locks.locator("[data-do=whole]")).to_be_visible()
    assert span(page) == pytest.approx([(begin + end) / 2, end], abs=2)
    locks.press("z")
    wait_until(page, f"of[3].axis['start_ms'] > {(begin + end) // 2 + 2}")
    locks.press("Escape")
    expect(locks.locator("[data-do=whole]")).to_be_hidden()
    assert kernel_value(page, "of[3].axis['start_ms']") == begin


@pytest.mark.parametrize("act", ["click", "Enter", " "])
def test_buttons_of_the_messages_filter_them(page: Page, act: str) -> None:
    messages = view(page, "messages")
    button = messages.locator("rect[data-part=heartbeats]")
    words = messages.locator("text[data-key^='words ']").filter(has_text="ShareGroupHeartbeat")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(button).to_have_attribute("aria-label", "show ShareGroupHeartbeat")
    before = words.count()
    assert before > 0
    use = button.click if act == "click" else lambda: button.press(act)
    use()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(words).to_have_count(0)
    use()
    expect(words).to_have_count(before)


def test_a_view_that_has_left_the_page_is_hidden_and_shown_again_at_the_moment(page: Page) -> None:
    execute(page, "place.children = of[:2]")
    wait_until(page, "[v.hidden for v in of] == [False, False, True, True]")
    execute(page, "of[0].back()")
    expect(page.locator(".sq-picture").first).to_have_attribute("data-order", str(kernel_value(page, "of[0].order")))
    execute(page, "place.children = of")
    wait_until(page, "not any(v.hidden for v in of)")
    order = kernel_value(page, "of[3].order")
    expect(view(page, "locks")).to_have_attribute("data-order", str(order))


def test_a_view_below_the_screen_is_hidden_and_its_copy_on_it_is_not(page: Page) -> None:
    execute(
        page, "far = ipywidgets.Box(layout={'height': '6000px'}); place.children = (of[0], of[3], far, of[3], of[1])"
    )
    wait_until(page, "[v.hidden for v in (of[0], of[3], of[1])] == [False, False, True]")
    execute(page, "of[0].first()")
    expect(page.locator(".sq-picture").nth(1)).to_have_attribute("data-order", "0")


def wait_until(page: Page, condition: str) -> None:
    """Wait until an expression is true in the kernel."""
    until_equal(lambda: kernel_value(page, condition), lambda: True)
