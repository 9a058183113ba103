"""What-if in a real JupyterLab: sliders move the mark, the words are the table's, "now" follows the configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from shareq.sim.what_if import Setting, stored_table
from shareq.trace.views.palette import DARK
from shareq_widgets.pictures.what_if_words import WhatIfContent, verdict
from tests.browser.pages import execute, kernel_value, themed

pytestmark = pytest.mark.browser

SETUP = """
from shareq import Cluster
from shareq_widgets import what_if
cluster = Cluster(brokers=1, seed=1)
cluster.create_topic("jobs")
view = what_if(cluster, group="crew")
"""
LOCK = "share.record.lock.duration.ms"


MARKS = """() => ["now", "chosen"].map(name =>
    Number(document.querySelector(`[data-key="p99_ms ${name} mark"]`)?.getAttribute("x1")))"""
"""The places of the two marks in one drawing: the next one may have another width."""


def words(chosen: Setting, current: Setting, workload: str = "mixed") -> str:
    return verdict(WhatIfContent(stored_table(), workload, chosen, current, "crew"))


def test_what_if(run_notebook: Callable[..., Page], tmp_path: Path) -> None:
    page = run_notebook(SETUP, "view")
    view = page.locator(".sq-what-if")
    text, code = view.locator(".sq-picture .sq-text"), view.locator(".sq-code")
    expect(text).to_contain_text(words(Setting(), Setting()))
    now_x, chosen_x = page.evaluate(MARKS)
    assert now_x == chosen_x
    expect(code).to_have_text("# this setting is in force")
    expect(view.locator('[data-key="p99_ms value"]')).to_have_css("font-size", "16px")

    view.get_by_role("slider").first.press("ArrowLeft")
    expect(text).to_contain_text(words(Setting(20_000), Setting()))
    now_x, chosen_x = page.evaluate(MARKS)
    assert chosen_x < now_x
    expect(code).to_have_text(f"cluster.configure_group('crew', {{'{LOCK}': 20000}})")

    execute(page, f"cluster.configure_group('crew', {{'{LOCK}': 60000}})")
    expect(text).to_contain_text(words(Setting(20_000), Setting(60_000)))
    now_x, chosen_x = page.evaluate(MARKS)
    assert chosen_x < now_x
    expect(view.locator('[data-key="p99_ms now mark text"]')).to_have_text("now: 60 s")

    view.get_by_role("button", name="apply to crew").click()
    expect(text).to_contain_text(words(Setting(20_000), Setting(20_000)))
    expect(code).to_have_text("# this setting is in force")
    assert kernel_value(page, "dict(cluster.image.group_configs['crew'])") == {LOCK: "20000"}

    view.get_by_role("combobox").select_option("crashes")
    expect(text).to_contain_text(words(Setting(20_000), Setting(20_000), "crashes"))
    with themed(page, "dark"):
        ground = f"rgb{tuple(bytes.fromhex(DARK['bg'][1:]))}"
        expect(view.locator(".sq-picture")).to_have_css("background-color", ground)
        view.screenshot(path=tmp_path / "what_if.png")
