"""The control room in a real JupyterLab: controls, stories, tabs, its state, and its widths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.pages import execute, kernel_value, notebook, wide_page
from tests.browser.test_views import until_equal

pytestmark = pytest.mark.browser

CELLS = (
    "from tests.browser.busy import GROUP, TOPIC, busy; cluster = busy()",
    "from shareq_widgets import control_room; room = control_room(cluster, group=GROUP, topic=TOPIC)",
    "room",
)
TALL = 2_600
RECORDS = "sum(cluster.log('jobs', p).log_end_offset for p in (0, 1))"
"""The records of the topic, and its markers."""


@pytest.fixture(scope="module")
def lab_page(browser: Browser, jupyterlab: str, jupyterlab_folder: Path) -> Iterator[Page]:
    """The page with the room. An error in its scripts fails the tests."""
    notebook(jupyterlab_folder, "room.ipynb", *CELLS)
    with wide_page(browser, jupyterlab, "room.ipynb", TALL) as page:
        expect(page.locator(".sq-room .sq-view")).to_have_count(7)
        yield page


@pytest.fixture
def page(lab_page: Page) -> Page:
    execute(lab_page, "room.leave(); room.state = {'time_ms': None, 'selection': '', 'views': {}}")
    expect_together(lab_page)
    return lab_page


MOMENTS = "[...new Set([...document.querySelectorAll('.sq-room .sq-view')].map(view => view.dataset.now))]"


def expect_together(page: Page) -> str:
    """All views of the room show the moment of the kernel; returns it."""
    now = "str(int(room.screen.timeline.snapshot['now_ms']))"
    (found,) = until_equal(lambda: page.evaluate(MOMENTS), lambda: [kernel_value(page, now)])
    return str(found)


def control(page: Page, name: str) -> Locator:
    """The row of a control."""
    return page.locator(".sq-control").filter(has=page.get_by_text(name, exact=True))


def expect_code(page: Page, line: str) -> None:
    expect(page.locator(".sq-code")).to_have_text(line)


def test_the_timeline_shows_the_moment_and_moves_all_views(page: Page) -> None:
    """Its picture is empty: the view must be laid out all the same."""
    timeline = page.locator(".sq-area-timeline .sq-view")
    expect(timeline.locator(".sq-marks button").first).to_be_visible()
    expect(timeline.get_by_text("● live")).to_have_attribute("aria-pressed", "true")
    end = expect_together(page)
    timeline.get_by_text("◀ step").click()
    expect(timeline).not_to_have_attribute("data-now", end)
    expect_together(page)
    expect(timeline.get_by_text("● live")).to_have_attribute("aria-pressed", "false")


def test_produce_and_advance_do_what_their_line_says(page: Page) -> None:
    before = kernel_value(page, RECORDS)
    produce = control(page, "produce")
    produce.get_by_role("spinbutton").fill("7")
    produce.get_by_role("spinbutton").press("Enter")
    produce.get_by_role("button").click()
    expect_code(page, "feed.send(7)")
    assert kernel_value(page, RECORDS) == before + 7
    now = int(expect_together(page))
    advance = control(page, "advance")
    advance.get_by_role("spinbutton").fill("2500")
    advance.get_by_role("spinbutton").press("Enter")
    advance.get_by_role("button").click()
    expect_code(page, "cluster.advance(2500)")
    expect(page.locator(".sq-area-timeline .sq-view")).to_have_attribute("data-now", str(now + 2500))
    expect_together(page)


def test_an_added_consumer_is_shown_and_can_be_crashed(page: Page) -> None:
    add = control(page, "add consumer")
    add.get_by_role("button").click()
    expect(page.locator(".sq-code")).to_contain_text("team.add(")
    name = kernel_value(page, "list(room.panel.steering.team)[-1].name")
    execute(page, "cluster.advance(6000)")
    expect(page.locator(".sq-area-right .sq-picture")).to_contain_text(name)
    page.locator(".sq-panel").get_by_text(f"consumer {name}", exact=True).click()
    page.get_by_role("button", name=f"crash {name}").click()
    assert kernel_value(page, "list(room.panel.steering.team)[-1].state") == "crashed"


def test_a_refused_value_is_explained_and_changes_nothing(page: Page) -> None:
    before = kernel_value(page, RECORDS)
    produce = control(page, "produce")
    produce.get_by_role("spinbutton").fill("-3")
    produce.get_by_role("spinbutton").press("Enter")
    produce.get_by_role("button").click()
    expect(page.locator(".sq-refused")).to_contain_text("produce=-3: must be a whole number in")
    assert kernel_value(page, RECORDS) == before


def test_a_story_is_told_step_by_step_and_left(page: Page) -> None:
    page.get_by_role("button", name="A crashed consumer").click()
    story = page.locator(".sq-story")
    expect(story).to_contain_text("step 0 of")
    ask = page.get_by_role("button", name="what happens?")
    for step in (1, 2):
        ask.click()
        expect(story).to_contain_text(f"step {step} of")
        expect_together(page)
    assert kernel_value(page, "room.screen.timeline.total") > 0
    expect(page.locator(".sq-area-timeline .sq-marks").get_by_text("A crashed")).to_be_visible()
    expect(page.get_by_role("button", name="A crashed consumer: 2 of")).to_have_class(re.compile("sq-on"))
    page.get_by_role("button", name="end the story").click()
    expect(story).to_have_count(0)
    assert kernel_value(page, "room.screen is room._own")
    expect_together(page)


LOST = """
strip = room.screen.strip
moments = map(strip.view.snapshot, range(strip.total))
strip.seek(next(moment["order"] for moment in moments if moment["runs"] and not moment["loaded"]))
"""


def test_records_of_a_lost_leader_are_faded_until_the_next_one_loads_them(page: Page) -> None:
    page.get_by_role("button", name="Failover of the share-partition leader").click()
    for step in (1, 2):
        page.get_by_role("button", name="what happens?").click()
        expect(page.locator(".sq-story")).to_contain_text(f"step {step} of")
    faded = page.locator(".sq-area-strip .sq-plot.sq-stale")
    expect(faded).to_have_count(0)
    execute(page, LOST)
    expect(faded).to_have_count(1)
    page.get_by_role("button", name="end the story").click()
    expect(faded).to_have_count(0)


def test_tabs_show_the_other_views_at_the_same_moment(page: Page) -> None:
    page.locator(".sq-area-timeline .sq-view").get_by_text("◀ step").click()
    for tab in ("Record", "State topic", "Cluster", "Charts"):
        page.get_by_role("button", name=tab, exact=True).click()
    shown = {"left": "record", "middle": "state_topic", "right": "cluster", "wide": "charts", "narrow": "messages"}
    until_equal(lambda: kernel_value(page, "room.state['views']"), lambda: shown)
    expect_together(page)
    for tab in ("Locks", "Record states", "Group", "Offsets over time"):
        page.get_by_role("button", name=tab, exact=True).click()
    expect_together(page)


def test_a_copied_state_is_restored(page: Page) -> None:
    end = expect_together(page)
    page.locator(".sq-area-timeline .sq-view input[type=range]").fill("9000")
    expect(page.locator(".sq-area-timeline .sq-view")).not_to_have_attribute("data-now", end)
    page.locator(".sq-area-right [data-about^='member:']").first.dispatch_event("click")
    page.get_by_role("button", name="Charts", exact=True).click()
    until_equal(lambda: kernel_value(page, "room.state['views']['wide']"), lambda: "charts")
    now, copied = expect_together(page), kernel_value(page, "room.state")
    assert copied["selection"].startswith("member:")
    execute(page, "room.state = {'time_ms': None, 'selection': '', 'views': {'wide': 'raster'}}")
    until_equal(lambda: expect_together(page), lambda: end)
    execute(page, f"room.state = {copied!r}")
    until_equal(lambda: expect_together(page), lambda: now)
    assert kernel_value(page, "room.state") == copied
    expect(page.locator(".sq-area-wide svg[role=img]")).to_be_visible()


OUTSIDE = """() => {
    const room = document.querySelector(".sq-room"), box = room.getBoundingClientRect(), found = [];
    if (room.scrollWidth > room.clientWidth + 1) found.push("the room is wider than its place");
    for (const area of room.querySelectorAll(":scope > *")) {
        const {left, right, height} = area.getBoundingClientRect();
        if (left < box.left - 2 || right > box.right + 2) found.push(`${area.className} is outside the room`);
        if (height < 60) found.push(`${area.className} is ${height} px high`);
        if (area.scrollWidth > area.clientWidth + 2) found.push(`${area.className} is wider than its place`);
    }
    for (const view of room.querySelectorAll(".sq-picture")) {
        const plot = view.querySelector(".sq-plot").getBoundingClientRect();
        for (const node of view.querySelectorAll("[data-key]")) {
            const at = node.getBoundingClientRect();
            if (at.width && (at.left < plot.left - 2 || at.right > plot.right + 2 || at.bottom > plot.bottom + 2))
                found.push(`${view.ariaLabel}: ${node.dataset.key}`);
        }
    }
    for (const text of room.querySelectorAll(".sq-strip .sq-plot text")) {
        const at = text.getBoundingClientRect(), plot = text.closest(".sq-plot").getBoundingClientRect();
        if (at.left < plot.left - 2 || at.right > plot.right + 2) found.push(`strip: ${text.textContent}`);
    }
    for (const text of room.querySelectorAll(".sq-ticks span, .sq-marks span")) {
        const at = text.getBoundingClientRect(), time = text.closest(".sq-time").getBoundingClientRect();
        if (at.left < time.left - 2 || at.right > time.right + 2) found.push(`timeline: ${text.textContent}`);
    }
    return found;
}"""


@pytest.mark.parametrize("width", [480, 760, 1_400, 2_200])
def test_nothing_is_outside_its_place(page: Page, width: int, tmp_path: Path) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": TALL + 2_000 * (width < 1_000)})
    expect_together(page)
    room: Any = page.locator(".sq-room")
    until_equal(lambda: page.evaluate(OUTSIDE), list)
    room.screenshot(path=tmp_path / f"room {width}.png")
