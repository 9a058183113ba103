"""One clock: while a control room plays what a click has caused, all its views show one moment, in every frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import execute, wait_for_pictures

pytestmark = pytest.mark.browser

ROOM = """
from shareq import Cluster
from shareq_widgets import control_room
cluster = Cluster(brokers=3, seed=7, trace_messages=True)
cluster.create_topic("orders", 2)
room = control_room(cluster, group="payments", topic="orders")
do = room.panel.steering.do
do("share.auto.offset.reset of payments", "earliest")
for policy in ("accept", "release some", "renew"):
    do("add consumer", policy)
do("rate", 8)
do("advance", 12_000)
room
"""

SAMPLE = """() => {
    const text = selector => document.querySelector(`.sq-room ${selector}`).textContent;
    const views = [...document.querySelectorAll(".sq-room .sq-view")];
    window.sampled = [];
    window.sampling = true;
    const sample = () => setTimeout(() => {
        if (!window.sampling) return;
        window.sampled.push({
            moments: [...new Set(views.map(view => `${view.dataset.moment} at ${view.dataset.now}`))],
            texts: [...views.map(view => view.querySelector(".sq-text")?.textContent)],
            chips: text(".sq-area-strip .sq-chips").replace(/t .*/, ""),
            time: text(".sq-area-strip .sq-chip:last-child").match(/[0-9:.]+/)[0],
            panel: text(".sq-standing .widget-html"),
        });
        requestAnimationFrame(sample);
    });
    sample();
}"""
"""After each frame: the moments that the views show, their texts, the time of the strip, and the clock of the panel."""
END = "() => { window.sampling = false; return window.sampled; }"
ADVANCE = "advance 1 s"


@pytest.fixture
def page(run_notebook: Callable[..., Page]) -> Page:
    """A page with the room, its panel and all views in sight."""
    page = run_notebook(ROOM, size={"width": 1600, "height": 1600})
    wait_for_pictures(page, 7)
    expect(page.locator(".sq-panel").get_by_role("button", name=ADVANCE)).to_be_visible()
    return page


def expect_at(page: Page, time: str) -> None:
    """The room has arrived at a time."""
    expect(page.locator(".sq-standing")).to_contain_text(f"The clock stands at {time}.")
    expect(page.locator(".sq-area-strip .sq-chip").last).to_have_text(f"t {time}")


def sampled(page: Page, clicks: int, time: str) -> list[dict[str, Any]]:
    """What the frames have shown from before the first click until the room has arrived."""
    page.evaluate(SAMPLE)
    for _ in range(clicks):
        page.get_by_role("button", name=ADVANCE).click()
    expect_at(page, time)
    frames: list[dict[str, Any]] = page.evaluate(END)
    return frames


def check_one_clock(frames: list[dict[str, Any]], end: str) -> None:
    """Each frame shows one moment, the texts are those of the moment, and the panel is not ahead."""
    shown: dict[str, Any] = {}
    for frame in frames:
        (moment,) = frame["moments"]
        assert shown.setdefault(moment, (frame["texts"], frame["chips"])) == (frame["texts"], frame["chips"])
        if frame["time"] < end:
            assert frame["panel"] != f"The clock stands at {end}."


@pytest.mark.parametrize("clicks", [1, 2])
def test_each_frame_shows_one_moment_of_what_is_played(page: Page, clicks: int) -> None:
    """The second click is one during the play of the first. A browser without processor time draws no frame between
    the first and the last: the room plays on until it has drawn some."""
    for seconds in range(12, 12 + 20 * clicks, clicks):
        expect_at(page, f"00:{seconds}.000")
        end = f"00:{seconds + clicks}.000"
        frames = sampled(page, clicks, end)
        check_one_clock(frames, end)
        if len({moment for frame in frames for moment in frame["moments"]}) > 4:
            break
    else:
        pytest.fail("no frame between the first and the last of a play")
    assert f"The clock goes to {end}." in {frame["panel"] for frame in frames}


def test_without_motion_all_views_go_to_the_end_in_one_frame(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    expect(page.locator(".sq-area-strip .sq-view")).to_have_attribute("data-animate", "false")
    expect_at(page, "00:12.000")
    frames = sampled(page, 1, "00:13.000")
    check_one_clock(frames, "00:13.000")
    assert {frame["time"] for frame in frames} == {"00:12.000", "00:13.000"}


def test_an_open_tooltip_follows_its_record(page: Page) -> None:
    """The pointer rests on the record while a consumer accepts it."""
    cell = page.locator(".sq-area-strip [data-state=acquired]").first
    place = cell.bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    tip = page.locator(".sq-area-strip .sq-tip")
    expect(tip).to_contain_text("acquired by")
    execute(page, "do('rate', 0); do('advance', 5_000)")
    expect(tip).not_to_contain_text("acquired by")
    expect(tip).to_contain_text("offset ")
    page.mouse.move(place["x"], place["y"] + 400)
    expect(tip).to_be_hidden()
