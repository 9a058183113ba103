"""Every view in Notebook 7 and on a page of Voila: what is seen is the journal at that moment, without an error.

The cluster of the page repeats itself: the test has the same one, and the same views, in its own process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from shareq.sim.race import RaceSetting, run_race
from shareq_widgets.pictures.race import verdict
from tests.browser.busy import Everything, cells_of, described, everything
from tests.browser.pages import notebook, run_all
from tests.browser.test_views import SEEN, until_equal

pytestmark = pytest.mark.browser

CODE = "from tests.browser.busy import everything; all_views = everything(); all_views.page"
VOILA = "from shareq_widgets.show.app import serve; serve({!r}, port=0, theme='light', say=print, open_browser=False)"
PLACES = ("Notebook 7", "Voila")
HEIGHT = 5_200


@contextmanager
def clean_page(browser: Browser) -> Iterator[Page]:
    """A page whose console must stay without errors."""
    context = browser.new_context(viewport={"width": 1400, "height": HEIGHT}, reduced_motion="reduce")
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert errors == []


@contextmanager
def in_notebook(browser: Browser, address: str, folder: Path) -> Iterator[Page]:
    notebook(folder, "places.ipynb", CODE)
    with clean_page(browser) as page:
        run_all(page, f"{address}notebooks/places.ipynb")
        yield page
        page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")


@contextmanager
def in_voila(browser: Browser) -> Iterator[Page]:
    command = [sys.executable, "-u", "-c", VOILA.format(CODE)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process,
        clean_page(browser) as page,
    ):
        assert process.stdout is not None
        try:
            page.goto(process.stdout.readline().strip())
            yield page
        finally:
            process.terminate()


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest, browser: Browser, jupyterlab: str, jupyterlab_folder: Path) -> Iterator[Page]:
    opened = in_voila(browser) if request.param == "Voila" else in_notebook(browser, jupyterlab, jupyterlab_folder)
    with opened as page:
        expect(page.locator(".sq-picture")).to_have_count(len(known().pictures))
        yield page


_KNOWN: list[Everything] = []


def known() -> Everything:
    """The views in the test's process."""
    if not _KNOWN:
        _KNOWN.append(everything())
    return _KNOWN[0]


WIDTHS = """() => [...document.querySelectorAll(".sq-picture .sq-plot")].map(plot => plot.clientWidth)"""
STRIPS = """() => [...document.querySelectorAll(".sq-strip")].map(strip => ({
    now: strip.dataset.now, order: strip.dataset.order, spso: strip.dataset.spso, window_end: strip.dataset.windowEnd,
    words: strip.querySelector("svg[role=img]").ariaLabel,
    cells: Object.fromEntries([...strip.querySelectorAll(".sq-run")].map(
        ({dataset}) => [dataset.offset, [dataset.state, dataset.count, dataset.letter ?? null]])),
}))"""


def expect_agreement(page: Page) -> None:
    """All views show what those of the test's process have, at the widths of the page."""
    views = known()

    def wanted() -> Any:
        for picture, width in zip(views.pictures.values(), page.evaluate(WIDTHS), strict=True):
            picture.width = width
        return described(views.pictures)

    until_equal(partial(page.evaluate, SEEN, list(views.pictures)), wanted)
    strips = [
        {
            "now": str(int(strip.snapshot["now_ms"])),
            "order": str(strip.order),
            "spso": str(strip.snapshot["spso"]),
            "window_end": str(strip.snapshot["window_end"]),
            "words": strip.snapshot["text"],
            "cells": cells_of(strip),
        }
        for strip in views.strips
    ]
    until_equal(partial(page.evaluate, STRIPS), lambda: strips)


def test_every_view_shows_the_journal_and_moves(place: Page) -> None:
    views = known()
    views.pictures["locks"].last()
    expect_agreement(place)
    place.locator(".sq-picture").first.get_by_text("◀ step").click()
    views.pictures["locks"].back()
    expect_agreement(place)
    place.locator(".sq-area-timeline .sq-marks button").nth(1).click()
    marks = views.room.screen.timeline.snapshot["marks"]
    assert marks
    until_equal(lambda: len({seen["order"] for seen in place.evaluate(SEEN, list(views.pictures)).values()}), lambda: 1)


def test_the_race_is_run_and_turned(place: Page) -> None:
    race = place.locator(".sq-race")
    for workers in (RaceSetting().workers, RaceSetting().workers + 1):
        setting = RaceSetting(records=60, workers=workers)
        expect(race.locator(".sq-race-text")).to_contain_text(verdict(run_race(setting)))
        race.get_by_role("slider").first.press("ArrowRight")


def test_the_panel_of_the_room_steers(place: Page) -> None:
    """The last test of a place: it moves the cluster of the page."""
    panel = place.locator(".sq-panel")
    panel.get_by_role("button", name="step", exact=True).click()
    expect(panel.locator(".sq-code")).to_have_text("cluster.step()")
    expect(place.locator(".sq-area-timeline .sq-view")).to_have_attribute("data-now", re.compile(r"\d+"))
