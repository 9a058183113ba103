"""The waits of the benchmarks: they end, and their errors name the views that are not drawn."""

from __future__ import annotations

import pytest
from playwright.sync_api import Error, Page

from tests.browser.pages import click_ms, seek_ms, wait_for_pictures

pytestmark = pytest.mark.browser

LIMIT_MS = 300
VIEWS = """
<div class="sq-view" aria-label="Locks" data-order="7"><button data-do="back"></button>
    <div class="sq-plot"><i data-key="a"></i></div><div class="sq-time"><input type="range" max="50"></div></div>
<div class="sq-view" aria-label="Raster" data-order="7"></div>
<script>
    const [locks, raster] = document.querySelectorAll(".sq-view");
    const move = () => requestAnimationFrame(() => {
        locks.dataset.order = 6;
        if (window.complete) raster.dataset.order = 6;
    });
    locks.querySelector("button").onclick = locks.querySelector("input").oninput = move;
</script>
"""


@pytest.fixture
def page(browser_page: Page) -> Page:
    """Two views; the second one has no picture, and follows the first one when `complete` is set."""
    browser_page.set_content(VIEWS)
    return browser_page


def test_a_click_ends_with_the_frame_of_the_last_view(page: Page) -> None:
    page.evaluate("window.complete = true")
    assert click_ms(page) > 0


def test_a_seek_ends_with_the_frame_of_the_last_view(page: Page) -> None:
    page.evaluate("window.complete = true")
    assert seek_ms(page, 0.3) > 0
    assert page.locator("input").input_value() == "15"


def test_a_click_names_the_view_that_does_not_follow(page: Page) -> None:
    with pytest.raises(Error, match=f"no picture of the new moment within {LIMIT_MS} ms: Raster"):
        click_ms(page, LIMIT_MS)


def test_a_wait_for_pictures_names_the_view_without_one(page: Page) -> None:
    with pytest.raises(AssertionError, match=f"no picture within {LIMIT_MS} ms: Raster$"):
        wait_for_pictures(page, 2, LIMIT_MS)
    page.evaluate("raster.dataset.mode = 'cells'")
    wait_for_pictures(page, 2)
