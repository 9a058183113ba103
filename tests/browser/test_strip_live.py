"""The partition strip of a running cluster in a real JupyterLab: a button of the page advances the cluster.

With SHAREQ_PICTURES=FOLDER the pictures of the README are written there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from shareq.trace import view
from tests.browser.pages import cells, execute, start, strip_in
from tests.browser.story import payments
from tests.browser.test_views import until_equal

pytestmark = pytest.mark.browser

SOURCE = "from tests.browser.story import payments; cluster = payments()"
SHOW = "from shareq_widgets import strip; strip(cluster, group='payments', topic='orders', theme='THEME')"
UNDER_WAY = (119, 120)
"""Offsets that consumer-1 has accepted at the end of the story, whose write is not durable yet."""


def picture(tmp_path: Path, name: str) -> Path:
    return Path(os.environ.get("SHAREQ_PICTURES", tmp_path)) / name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_run_on_advances_the_cluster(run_notebook: Callable[..., Page], tmp_path: Path, theme: str) -> None:
    strip = strip_in(run_notebook(SOURCE, SHOW.replace("THEME", theme), size={"width": 1500, "height": 1000}))
    end = view(payments(), "payments", "orders", 0).total()
    expect(strip).to_have_attribute("data-order", str(end))
    assert [cells(strip)[offset] for offset in UNDER_WAY] == [("acquired", 1), ("acquired", 1)]
    strip.screenshot(path=picture(tmp_path, f"strip-{theme}.png"))
    run_on = strip.locator("[data-do=run_on]")
    run_on.click()
    expect(run_on).to_have_text("❚❚ stop running")
    expect(strip.locator(f"[data-offset='{UNDER_WAY[0]}']")).to_have_attribute("data-state", "acknowledged")
    run_on.click()
    expect(run_on).to_have_text("run on ▶▶")
    expect(run_on).to_have_attribute("aria-pressed", "false")
    assert [cells(strip)[offset] for offset in UNDER_WAY] == [("acknowledged", 1), ("acknowledged", 1)]
    while int(strip.get_attribute("data-order") or 0) > end:
        sentence = strip.locator(".sq-sentence").inner_text()  # of a moment between two events, too
        strip.get_by_text("◀ step").click()
        expect(strip.locator(".sq-sentence")).not_to_have_text(sentence)
    assert [cells(strip)[offset] for offset in UNDER_WAY] == [("acquired", 1), ("acquired", 1)]


RUNNING = """
from shareq import AcknowledgeType, Cluster, Producer, ShareConsumer
cluster = Cluster(clock=10.0, config={"group.share.max.record.lock.duration.ms": 3_600_000})
cluster.create_topic("orders")
for_long = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 3_600_000}
cluster.configure_group("payments", for_long)
with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
    for number in range(20):
        producer.produce("orders", f"order {number}")
conf = {"share.acknowledgement.mode": "explicit", "max.poll.interval.ms": 3_600_000}
consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "payments", **conf})
consumer.subscribe(["orders"])
messages = consumer.poll(60)
assert len(messages) == 20
"""
FROM_NOW_ON = """
cluster.configure_group("payments", {"share.record.lock.duration.ms": 15_000})
for message in messages:
    consumer.acknowledge(message, AcknowledgeType.RENEW)
consumer.commit_sync()
"""
"""The locks last six minutes of real time, so that none expires while the page loads, and then a second and a half."""


def test_locks_time_out_on_a_running_clock_without_input(run_notebook: Callable[..., Page]) -> None:
    """Without any input the clock moves, and the strip shows when the locks time out."""
    page = run_notebook(RUNNING, SHOW.replace("THEME", "auto"))
    strip = strip_in(page)
    begun = int(strip.get_attribute("data-order") or "")
    held = {offset for offset, (state, _) in cells(strip).items() if state == "acquired"}
    assert held
    clock = strip.locator(".sq-chips span", has_text="t ").last
    shown = clock.inner_text()
    expect(clock).not_to_have_text(shown)
    assert int(strip.get_attribute("data-order") or "") >= begun
    execute(page, FROM_NOW_ON)
    expect(strip.locator(".sq-run[data-state='acquired']")).to_have_count(0)
    assert int(strip.get_attribute("data-order") or "") > begun
    assert all(cells(strip)[offset][0] != "acquired" for offset in held if offset in cells(strip))


BUSY = """
while shown.live:
    pass
"""


def test_a_busy_cell_does_not_freeze_the_strip_of_a_running_clock(run_notebook: Callable[..., Page]) -> None:
    """While a cell runs, the locks time out in the strip, and its buttons work: the cell ends with the click."""
    show = SHOW.replace("THEME", "auto").replace("; strip", "; shown = strip") + "; shown"
    page = run_notebook(RUNNING, show)
    strip = strip_in(page)
    expect(strip.locator(".sq-run[data-state='acquired']").first).to_be_visible()
    start(page, FROM_NOW_ON + BUSY)
    expect(strip.locator(".sq-run[data-state='acquired']")).to_have_count(0)
    assert page.evaluate("window.cell") == "runs"
    strip.get_by_text("◀ step").click()
    page.wait_for_function("window.cell === 'ok'")
    expect(strip.get_by_text("● live")).to_have_attribute("aria-pressed", "false")


MANY = "from tests.browser.crews import crew; cluster = crew(400, 40)"
OF_MANY = "from shareq_widgets import strip; strip(cluster, group='crew', topic='jobs', animate=False)"
HOLDERS = """root => {
    const plot = root.querySelector(".sq-plot").getBoundingClientRect();
    const cells = [...root.querySelectorAll(".sq-cell[data-state=acquired]")].filter(cell => {
        const {left, right} = cell.getBoundingClientRect();
        return right > plot.left && left < plot.right;
    });
    const lanes = [...root.querySelectorAll(".sq-plot text")].map(text => text.firstChild.nodeValue.split(" ")[0]);
    return [lanes, [...new Set(cells.map(cell => cell.dataset.member))]];
}"""
"""The names of the lanes (and other words), and the holders of the records in view."""


def test_holders_in_view_have_lanes(run_notebook: Callable[..., Page]) -> None:
    """Of forty members ten have lanes: those whose records are in view, wherever that is."""
    strip = strip_in(run_notebook(MANY, OF_MANY, size={"width": 1000, "height": 1000}))
    expect(strip).to_have_attribute("data-mode", "runs")
    at_first = set(strip.evaluate(HOLDERS)[0])
    for _ in range(14):
        strip.press("+")
    expect(strip).to_have_attribute("data-mode", "cells")
    plot, seen = strip.locator(".sq-plot"), set[str]()

    def without_lane() -> set[str]:
        lanes, held = map(set, strip.evaluate(HOLDERS))
        seen.update(held)
        return held - lanes

    for _ in range(12):  # from the middle of the window to its end
        box = plot.bounding_box()
        assert box is not None
        plot.page.mouse.move(box["x"] + 700, box["y"] + 60)
        plot.page.mouse.wheel(300, 0)
        until_equal(without_lane, set)
    assert seen - at_first
