"""The control room of a busy group, eight seconds after the crash of a consumer, as the README shows it.

With SHAREQ_PICTURES=FOLDER the pictures of the README are written there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import themed

pytestmark = pytest.mark.browser

ROOM = """
from shareq import Cluster
from shareq_widgets import control_room
cluster = Cluster(brokers=3, seed=7, trace_messages=True)
cluster.create_topic("orders", 4)
room = control_room(cluster, group="payments", topic="orders", theme="THEME", animate=False)
do = room.panel.steering.do
do("share.auto.offset.reset of payments", "earliest")
do("share.partition.max.record.locks of payments", 100)
for policy in ("accept", "release some", "renew", "accept"):
    do("add consumer", policy)
for name, ms in zip("ABCD", (300, 500, 900, 400)):
    do(f"work time of {name}", ms)
do("batch", 3)
do("rate", 12)
do("advance", 24_000)
do("crash D")
do("advance", 8_000)
room
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_room_shows_the_crash_of_a_consumer(
    run_notebook: Callable[..., Page], browser_page: Page, tmp_path: Path, theme: str
) -> None:
    browser_page.set_viewport_size({"width": 1560, "height": 1720})
    page = run_notebook(ROOM.replace("THEME", theme))
    with themed(page, theme):
        page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
        room = page.locator(".sq-room")
        strip, locks, group = (room.locator(f".sq-area-{area}") for area in ("strip", "left", "right"))
        expect(strip.locator(".sq-view")).to_have_attribute("data-spso", "45")
        expect(locks.locator("svg text", has_text="21.0 s").first).to_be_visible()
        expect(group.locator("svg text", has_text=re.compile("^crashed")).first).to_be_visible()
        expect(room.locator(".sq-area-wide").locator("svg text", has_text="D crashed").first).to_be_visible()
        expect(room.locator(".sq-area-narrow").locator("svg text", has_text="got 30–34").first).to_be_visible()
        room.screenshot(path=Path(os.environ.get("SHAREQ_PICTURES", tmp_path)) / f"control-room-{theme}.png")
