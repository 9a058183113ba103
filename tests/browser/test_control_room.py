"""The control room in a real JupyterLab: controls, stories, tabs, its state, and its widths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import execute, kernel_value, tall_page, themed
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
def lab_page(lab: Page, jupyterlab_folder: Path) -> Iterator[Page]:
    """The page with the room. An error in its scripts fails the tests."""
    with tall_page(lab, jupyterlab_folder, TALL, *CELLS) as page:
        expect(page.locator(".sq-room .sq-view")).to_have_count(7)
        yield page


@pytest.fixture
def page(lab_page: Page) -> Page:
    lab_page.set_viewport_size({"width": 1_400, "height": TALL})
    lab_page.locator(".sq-room").evaluate("room => room.scrollIntoView()")
    execute(lab_page, "room.leave(); room.state = {'time_ms': None, 'selection': '', 'views': {}}")
    execute(lab_page, "[row.accept() for row in room.panel._rows.values()]")  # the reasons of refused values
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
    time = page.locator(".sq-area-strip .sq-chip").last
    expect(time).to_have_text(re.compile(r"^t \d\d:\d\d\.\d{3} · [\d.]+ m?s before now$"))
    timeline.get_by_text("● live").click()
    expect(time).to_have_text(re.compile(r"^t \d\d:\d\d\.\d{3}$"))


def test_produce_and_advance_do_the_same_as_their_line(page: Page) -> None:
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
    until_equal(lambda: kernel_value(page, "list(room.panel.steering.team)[-1].state"), lambda: "crashed")


def test_a_refused_value_is_explained_and_changes_nothing(page: Page) -> None:
    before = kernel_value(page, RECORDS)
    produce = control(page, "produce")
    produce.get_by_role("spinbutton").fill("-3")
    produce.get_by_role("spinbutton").press("Enter")
    produce.get_by_role("button").click()
    expect(page.locator(".sq-refused")).to_contain_text("-3: must be a whole number in")
    assert kernel_value(page, RECORDS) == before


def test_a_story_goes_step_by_step_and_can_be_left(page: Page) -> None:
    page.get_by_role("button", name="2 crashed consumer").click()
    story = page.locator(".sq-story")
    expect(story).to_contain_text("step 0 of")
    ask = page.get_by_role("button", name="what happens?")
    for step in (1, 2):
        ask.click()
        expect(story).to_contain_text(f"step {step} of")
        expect_together(page)
    assert kernel_value(page, "room.screen.timeline.total") > 0
    expect(page.locator(".sq-area-timeline .sq-marks").get_by_text("A crashed")).to_be_visible()
    expect(page.get_by_role("button", name="2 crashed consumer: 2 of")).to_have_class(re.compile("sq-on"))
    page.get_by_role("button", name="end the story").click()
    expect(story).to_have_count(0)
    assert kernel_value(page, "room.screen is room._own")
    expect_together(page)


LOST = """
strip = room.screen.strip
moments = map(strip.view.snapshot, range(strip.total))
strip.seek(next(moment["order"] for moment in moments if moment["runs"] and not moment["loaded"]))
"""


SAMPLE = """() => {
    const view = document.querySelector(".sq-area-middle .sq-view"), text = view.querySelector(".sq-text");
    window.sampled = [];
    const sample = () => {
        window.sampled.push([Number(view.dataset.now), text.textContent]);
        window.sampling = requestAnimationFrame(sample);
    };
    sample();
}"""
"""In each frame: the time of the record states, and their picture as text."""
LAST = "max(e.time_ms for e in room.screen.strip.view.journal if getattr(e.event, 'cause', '') == 'acquire')"
"""The time of the last acquisition."""


def test_no_view_is_ahead_of_the_moment_that_is_played(page: Page) -> None:
    page.get_by_role("button", name="1 poison").click()
    expect(page.locator(".sq-story")).to_contain_text("step 0 of")
    begun = int(expect_together(page))
    page.evaluate(SAMPLE)
    page.get_by_role("button", name="what happens?").click()
    expect(page.locator(".sq-area-timeline .sq-view")).to_have_attribute("data-now", str(begun + 10_000))
    acquired_ms = int(kernel_value(page, LAST))
    sampled = page.evaluate("() => { cancelAnimationFrame(window.sampling); return window.sampled; }")
    assert acquired_ms > begun
    assert {now_ms for now_ms, text in sampled if "attempt 5" in text if now_ms < acquired_ms} == set()
    assert any("attempt 5" in text for _, text in sampled)
    page.get_by_role("button", name="end the story").click()
    expect(page.locator(".sq-story")).to_have_count(0)


HIDDEN = "hints => hints.scrollHeight - hints.clientHeight"
"""The height of the text that a person has to scroll to, px."""


def test_all_that_the_panel_says_is_in_sight(page: Page) -> None:
    """A hint of what to do first, the line of the last click, and its meaning."""
    hints = page.locator(".sq-hints")
    for hint, line in (
        ("Add a consumer, produce records, and advance the clock; or choose a story.", "cluster.advance(1000)"),
        ("consumer-1 receives its partitions with its next heartbeat, at 00:05.109.", "feed = Feed(cluster, 'orders')"),
    ):
        execute(page, f"panel = room.panel; panel._hint.value = {hint!r}")
        execute(page, f"panel._show_code({line!r}, meaning='Lets this much of the time of the cluster pass.')")
        expect(hints.locator(".sq-hint")).to_contain_text(hint)
        assert hints.evaluate(HIDDEN) <= 0
    execute(page, "panel._hint.value = ''; panel._show_code('')")


PLACES = """() => {
    const top = node => Math.round(node.getBoundingClientRect().top), panel = document.querySelector(".sq-panel");
    return [...panel.querySelectorAll(".widget-button")].map(one => [one.textContent, top(one) - top(panel)]);
}"""
"""The buttons of the panel and where they stand in it, px."""


def test_a_click_moves_no_button_of_the_panel(page: Page) -> None:
    """The text about the click may be long or short. The reason of a refusal moves what is below its field only."""
    before = page.evaluate(PLACES)
    for name, value, shown in (
        ("produce", "3", "feed.send(3)"),
        ("produce", "-3", "-3: must be a whole number"),
        ("produce", "4", "feed.send(4)"),
        ("advance", "2500", "cluster.advance(2500)"),
        ("delay state writes", None, "cluster.delay_appends("),
    ):
        if value is None:
            execute(page, "panel = room.panel; panel.act(panel.steering['delay state writes'], 100)")
        else:
            use = control(page, name)
            use.get_by_role("spinbutton").fill(value)
            use.get_by_role("spinbutton").press("Enter")
            use.get_by_role("button").click()
        if shown.startswith("-"):
            expect(control(page, name).locator(".sq-refused")).to_contain_text(shown)
            above = [text for text, _ in before].index(name) + 1
            assert page.evaluate(PLACES)[:above] == before[:above]
            continue
        expect(page.locator(".sq-done")).to_contain_text(shown)
        assert page.evaluate(PLACES) == before
    execute(page, "panel.steering.do('clear faults')")


def test_a_step_of_a_story_moves_none_of_its_buttons(page: Page) -> None:
    page.get_by_role("button", name="1 poison").click()
    ask = page.get_by_role("button", name="what happens?")
    expect(ask).to_be_visible()
    before = page.evaluate(PLACES)[:3]
    assert [text for text, _ in before] == ["advance 1 s", "what happens?", "end the story"]
    ask.click()
    expect(page.locator(".sq-story")).to_contain_text("step 1 of")
    assert page.evaluate(PLACES)[:3] == before
    page.get_by_role("button", name="end the story").click()
    expect(page.locator(".sq-story")).to_have_count(0)


def test_records_of_a_lost_leader_are_faded_until_the_next_one_loads_them(page: Page) -> None:
    page.get_by_role("button", name="6 leader fails").click()
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


def test_a_click_in_the_line_of_a_message_shows_it(page: Page) -> None:
    """Not on its arrow or its words only; the card is brought into sight, and the biography stays."""
    page.set_viewport_size({"width": 1_400, "height": 700})
    shown = page.locator(".sq-area-narrow .sq-picture")
    expect(shown).to_contain_text("A click on a message shows its fields.")
    key = shown.locator("[data-key^=target]").last.get_attribute("data-key")
    line, card = shown.locator(f"[data-key='{key}']"), shown.locator("[data-key=detail]")
    expect(card).to_have_count(0)
    line.scroll_into_view_if_needed()
    line.click(position={"x": 4, "y": 6})
    expect(card).to_be_in_viewport(ratio=0.5)
    expect(line).to_have_attribute("data-about", str(card.get_attribute("data-about")))
    expect(line).to_have_class(re.compile("sq-selected"))
    line.click(position={"x": 4, "y": 6})
    expect(card).to_have_count(0)


def test_a_mark_at_the_end_has_its_label_inside(page: Page) -> None:
    execute(page, "cluster.advance(20_000); cluster.kill_broker(2); cluster.start_broker(2)")
    label = page.locator(".sq-area-timeline .sq-marks span").filter(has_text="broker 2 killed")
    expect(label).to_be_visible()
    until_equal(lambda: page.evaluate(OUTSIDE), list)


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


MISFITS = """() => [...document.querySelectorAll(".sq-room .sq-picture .sq-plot")]
    .map(plot => [plot.clientWidth, plot.querySelector(":scope > svg").viewBox.baseVal.width])
    .filter(([place, picture]) => place !== picture)"""
"""The widths of places and of their pictures, where they differ."""
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))"


def test_pictures_have_the_widths_of_their_places_after_a_change_of_theme(page: Page) -> None:
    """While JupyterLab loads the theme, they have others for a moment."""
    with themed(page, "dark"):
        page.evaluate(TWO_FRAMES)
        expect_together(page)
        until_equal(lambda: page.evaluate(MISFITS), list)
