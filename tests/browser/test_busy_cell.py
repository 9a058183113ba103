"""A cell that computes for long does not freeze the views of a cluster whose clock runs: all of them move while it
runs, and their buttons work. The cluster may be served, and the views may see it from outside, through its address.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import start

pytestmark = pytest.mark.browser

SETUP = """
from shareq_widgets import control_room
from tests.browser.crews import GROUP, TOPIC, running
cluster, feed = running(rate=20)
source = SOURCE
"""
ROOM = "room = control_room(source, group=GROUP, topic=TOPIC); room"
BUSY = """
computed = 0
while room.screen.timeline.live:
    computed += 1
"""
"""It holds the interpreter whenever it can, until the click."""
VIEWS = """() => [...document.querySelectorAll(".sq-room .sq-view")].filter(view => view.checkVisibility()).map(
    view => {
        const picture = view.querySelector(view.closest(".sq-area-timeline") ? ".sq-time" : ".sq-plot");
        return {now: Number(view.dataset.now), picture: picture.outerHTML};
    }
)"""
"""The moments and pictures of the views in sight; that of the timeline is its axis."""
MOVED = f"""before => ({VIEWS})().every(
    ({{now, picture}}, place) => now > before[place].now + 2_000 && picture !== before[place].picture)"""
"""Each view shows a moment more than two seconds later, in another picture."""


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param("cluster", 7, id="in this kernel"),
        pytest.param("(cluster.serve(), cluster)[1]", 7, id="served"),
        pytest.param("cluster.serve().bootstrap_servers", 6, id="from outside"),  # it shows no messages
    ],
)
def test_a_busy_cell_does_not_freeze_the_views(run_notebook: Callable[..., Page], source: str, count: int) -> None:
    page = run_notebook(SETUP.replace("SOURCE", source), ROOM, size={"width": 1600, "height": 2200})
    expect(page.locator(".sq-room .sq-view:visible")).to_have_count(count)
    timeline = page.locator(".sq-area-timeline .sq-view")
    expect(timeline.get_by_text("● live")).to_have_attribute("aria-pressed", "true")
    start(page, BUSY)
    page.wait_for_function(MOVED, arg=page.evaluate(VIEWS))
    assert page.evaluate("window.cell") == "runs"
    timeline.get_by_text("◀ step").click()
    page.wait_for_function("window.cell === 'ok'")
    expect(timeline.get_by_text("● live")).to_have_attribute("aria-pressed", "false")
