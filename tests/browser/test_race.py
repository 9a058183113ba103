"""The race in a real JupyterLab: sliders, the replay, the theme, and the drawing that fits its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from shareq.sim.race import RaceSetting, run_race
from shareq.trace.views.palette import DARK
from shareq_widgets.pictures.race import verdict
from tests.browser.pages import execute, kernel_value, themed

pytestmark = pytest.mark.browser

CELLS = ("from shareq_widgets import race; view = race(records=60)", "view")

FREE = "svg => svg.parentElement.parentElement.clientWidth - svg.getBoundingClientRect().width"
"""The width that a drawing leaves of its place, px."""


def test_race(run_notebook: Callable[..., Page], tmp_path: Path) -> None:
    page = run_notebook(*CELLS)
    race = page.locator(".sq-race")
    wide, narrow = race.locator(".sq-race-860 svg"), race.locator(".sq-race-380 svg")
    expect(wide).to_be_visible()
    expect(narrow).to_be_hidden()
    expect(race.locator(".sq-race-text")).to_contain_text(verdict(run_race(RaceSetting(records=60))))
    race.get_by_role("slider").first.press("ArrowRight")
    expect(race.locator(".sq-race-text")).to_contain_text(verdict(run_race(RaceSetting(records=60, workers=5))))
    assert kernel_value(page, "view.setting.workers") == 5
    execute(page, "view.shown = 0.0")
    expect(wide).to_contain_text("0 of 60 done")
    race.get_by_role("button").first.click()
    expect(wide).to_contain_text("finished in")
    with themed(page, "dark"):
        expect(wide).to_have_css("background-color", f"rgb{tuple(bytes.fromhex(DARK['bg'][1:]))}")
    page.set_viewport_size({"width": 1_700, "height": 900})
    expect(race.locator(".sq-race-1180 svg")).to_be_visible()
    expect(wide).to_be_hidden()
    page.set_viewport_size({"width": 760, "height": 900})
    expect(race.locator(".sq-race-560 svg")).to_be_visible()
    assert race.locator(".sq-race-560 svg").evaluate(FREE) < 1
    page.set_viewport_size({"width": 520, "height": 900})
    expect(narrow).to_be_visible()
    expect(wide).to_be_hidden()
    race.screenshot(path=tmp_path / "race.png")
