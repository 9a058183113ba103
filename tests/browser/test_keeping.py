"""The buttons below *save* in a page: downloads of a view and of a room, and the line of Python of its state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Download, Locator, Page, expect

from tests.browser.pages import execute, kernel_value, tall_page

pytestmark = pytest.mark.browser

CELLS = (
    "from tests.browser.busy import GROUP, TOPIC, busy; cluster = busy()",
    "from shareq_widgets import control_room, locks; room = control_room(cluster, group=GROUP, topic=TOPIC)",
    "room",
    "view = locks(cluster, group=GROUP, linked=False); view",
)
TALL = 2_600
TITLE = "control-room-of-crew-on-jobs-0"


@pytest.fixture(scope="module")
def page(lab: Page, jupyterlab_folder: Path) -> Iterator[Page]:
    """The page with a room, and with a view alone below it."""
    with tall_page(lab, jupyterlab_folder, TALL, *CELLS) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        expect(page.locator(".sq-view")).to_have_count(8)
        yield page


@pytest.fixture
def room(page: Page) -> Locator:
    """The timeline of the room, whose buttons are those of the room."""
    execute(page, "room.state = {'time_ms': None, 'selection': '', 'views': {}}")
    return page.locator(".sq-area-timeline .sq-view")


@pytest.fixture
def alone(page: Page) -> Locator:
    return page.locator(".sq-view").last


def open_shelf(view: Locator) -> Locator:
    """The group of buttons; *save* opens it, and says that it is open."""
    opener, shelf = view.get_by_role("button", name="save", exact=True), view.get_by_role("group", name="save")
    if opener.get_attribute("aria-expanded") == "false":
        expect(shelf).to_be_hidden()
        opener.press("Enter")
    expect(opener).to_have_attribute("aria-expanded", "true")
    expect(shelf).to_be_visible()
    return shelf


def saved(page: Page, view: Locator, button: str) -> Download:
    shelf = open_shelf(view)
    with page.expect_download() as download:
        shelf.get_by_role("button", name=button).click()
    return download.value


def test_the_room_is_downloaded_as_a_picture(page: Page, room: Locator) -> None:
    made = saved(page, room, "picture (PNG)")
    assert made.suggested_filename == f"{TITLE}.png"
    assert made.path().read_bytes().startswith(b"\x89PNG")
    expect(room.locator(".sq-kept")).to_have_text(f"saved; in Python:room.save('{TITLE}.png')")


def test_the_room_is_downloaded_as_a_drawing_of_the_shown_moment(page: Page, room: Locator) -> None:
    room.get_by_text("◀ step").click()
    expect(room.get_by_text("● live")).to_have_attribute("aria-pressed", "false")
    made = saved(page, room, "picture (SVG)").path().read_text()
    clock = page.locator(".sq-area-strip .sq-chip").last.inner_text().removeprefix("t ").partition(" ")[0]
    assert made.startswith("<svg")
    assert clock in made


def test_the_downloaded_page_of_a_view_plays(page: Page, browser: Browser, alone: Locator, tmp_path: Path) -> None:
    made = saved(page, alone, "page that plays")
    assert made.suggested_filename == "locks-group-crew.html"
    made.save_as(tmp_path / made.suggested_filename)
    context = browser.new_context(offline=True)
    opened = context.new_page()
    opened.goto((tmp_path / made.suggested_filename).as_uri())
    shown = opened.locator(".sq-view")
    expect(shown).to_have_attribute("data-order", str(kernel_value(page, "view.total")))
    expect(shown.get_by_role("button", name="save")).to_have_count(0)
    shown.press("Home")
    expect(shown).to_have_attribute("data-order", "0")
    context.close()


def test_the_copied_line_shows_the_same_again(page: Page, room: Locator) -> None:
    room.get_by_text("◀ step").click()
    room.get_by_text("◀ step").click()
    expect(room.get_by_text("● live")).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Charts", exact=True).click()
    expect(page.locator(".sq-area-wide .sq-view[aria-label^=Charts]")).to_be_visible()
    shown = kernel_value(page, "room.state")
    open_shelf(room).get_by_role("button", name="copy state").click()
    expect(room.locator(".sq-kept")).to_contain_text("copied:")
    line = page.evaluate("navigator.clipboard.readText()")
    assert room.locator(".sq-kept code").inner_text() == line
    execute(page, "room.state = {'time_ms': None, 'selection': '', 'views': {'wide': 'raster'}}")
    execute(page, line)
    assert kernel_value(page, "room.state") == shown


def test_what_cannot_be_made_is_explained(page: Page, alone: Locator) -> None:
    execute(page, "def refuse(*_): raise ModuleNotFoundError('pip install it')\nview._kept.exported = refuse")
    open_shelf(alone).get_by_role("button", name="picture (PNG)").click()
    expect(alone.locator(".sq-kept")).to_have_text("pip install it")
