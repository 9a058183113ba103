"""Every view and every control in Notebook 7 and on a page of Voila: what is seen is the journal at that moment,
without an error.

The cluster of the page repeats itself: the test has the same one, and the same views, in its own process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from shareq.sim.race import RaceSetting, run_race
from shareq_widgets import ControlRoom, control_room, race
from shareq_widgets.pictures.race import verdict
from shareq_widgets.steering import STORIES
from tests.browser.busy import Everything, cells_of, described, everything, pictures_of
from tests.browser.pages import READY_MS, notebook, run_all
from tests.browser.test_every_control import USES, fresh, unfold, use
from tests.browser.test_views import SEEN, until_equal

pytestmark = pytest.mark.browser

CODE = "from tests.browser.busy import everything; all_views = everything(); all_views.page"
STEERED = "from tests.browser.test_places import steered; room = steered(); room"
VOILA = (
    "from shareq_widgets.show.app import serve; serve({!r}, port=0, theme='light', opened=print, open_browser=False)"
)
PLACES = ("Notebook 7", "Voila")
HEIGHT = 6_000
"""Of the page, px: it has room for all views, because one outside of the screen does not follow the others."""
STORY = "crashed consumer"
OURS = ("blob:", "anywidget", "shareq", "sq-")
"""Parts of an error of a view: its module is loaded from a blob. Notebook 7 and Voila have errors of their own on every
page, such as a missing setting, command or extension of JupyterLab."""


@contextmanager
def clean_page(browser: Browser) -> Iterator[Page]:
    """A page on which a view must cause no error, neither raised nor in the console."""
    context = browser.new_context(viewport={"width": 1400, "height": HEIGHT}, reduced_motion="reduce")
    context.set_default_timeout(READY_MS)
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(f"{error}\n{error.stack}"))
    page.on(
        "console",
        lambda message: errors.append(f"{message.text} {message.location}") if message.type == "error" else None,
    )
    yield page
    context.close()
    found = [error for error in errors if any(part in error for part in OURS)]
    assert found == [], "\n".join(found)


@contextmanager
def in_notebook(browser: Browser, address: str, folder: Path, code: str = CODE) -> Iterator[Page]:
    notebook(folder, "places.ipynb", code)
    with clean_page(browser) as page:
        run_all(page, f"{address}notebooks/places.ipynb")
        yield page
        page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")


@contextmanager
def in_voila(browser: Browser, code: str = CODE) -> Iterator[Page]:
    command = [sys.executable, "-u", "-c", VOILA.format(code)]
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


class Place(NamedTuple):
    """A page with all views, and the same views in the test's process."""

    page: Page
    views: Everything


@pytest.fixture(scope="module", params=PLACES)
def place(
    request: pytest.FixtureRequest, browser: Browser, jupyterlab: str, jupyterlab_folder: Path
) -> Iterator[Place]:
    opened = in_voila(browser) if request.param == "Voila" else in_notebook(browser, jupyterlab, jupyterlab_folder)
    with opened as page:
        views = everything()
        expect(page.locator(".sq-picture")).to_have_count(len(views.pictures))
        yield Place(page, views)


WIDTHS = """() => [...document.querySelectorAll(".sq-picture .sq-plot")].map(plot => plot.clientWidth)"""
STRIPS = """() => [...document.querySelectorAll(".sq-strip")].map(strip => ({
    now: strip.dataset.now, order: strip.dataset.order, spso: strip.dataset.spso, window_end: strip.dataset.windowEnd,
    words: strip.querySelector("svg[role=img]").ariaLabel,
    cells: Object.fromEntries([...strip.querySelectorAll(".sq-run")].map(
        ({dataset}) => [dataset.offset, [dataset.state, dataset.count, dataset.letter ?? null]])),
}))"""


def expect_agreement(place: Place) -> None:
    """All views show what those of the test's process have, at the widths of the page."""
    page, views = place

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


def test_every_view_shows_the_journal_and_moves(place: Place) -> None:
    page, views = place
    views.pictures["locks"].last()
    expect_agreement(place)
    page.locator(".sq-picture").first.get_by_text("◀ step").click()
    views.pictures["locks"].back()
    expect_agreement(place)
    page.locator(".sq-area-timeline .sq-marks button").nth(1).click()
    marks = views.room.screen.timeline.snapshot["marks"]
    assert marks
    until_equal(lambda: len({seen["order"] for seen in page.evaluate(SEEN, list(views.pictures)).values()}), lambda: 1)


def test_the_race_is_run_and_turned(place: Place) -> None:
    race = place.page.locator(".sq-race")
    for workers in (4, 5):
        workers_shown = race.locator(".widget-readout").first
        workers_shown.fill(str(workers))
        workers_shown.press("Enter")
        setting = RaceSetting(records=60, workers=workers)
        expect(race.locator(".sq-race-text")).to_contain_text(verdict(run_race(setting)))


def expect_agreement_near_the_end(place: Place) -> None:
    """Go to the end, and a step back: what has moved depends on the picture before, but for a step back."""
    page, timeline = place.page, place.views.room.screen.timeline
    shown = page.locator(".sq-area-timeline .sq-view")
    shown.press("End")
    timeline.last()
    expect(shown).to_have_attribute("data-now", str(timeline.snapshot["now_ms"]))
    shown.get_by_text("◀ step").click()
    timeline.back()
    expect_agreement(place)


def test_a_story_of_the_room_is_played(place: Place) -> None:
    """Each step has its answer, and the room shows the journal of the story; then it shows the page's cluster again."""
    page, views = place
    expect_agreement_near_the_end(place)
    alone = {name: picture for name, picture in views.pictures.items() if not name.startswith("room ")}
    page.get_by_role("button", name=f"{list(STORIES).index(STORY) + 1} {STORIES[STORY].label}").click()
    story, shown = views.room.begin_story(STORY), page.locator(".sq-story")
    pictures = alone | {f"room {name}": view for name, view in pictures_of(views.room).items()}
    strips = (views.strips[0], views.room.screen.strip)
    while not story.done:
        page.get_by_role("button", name="what happens?").click()
        story.next()
        expect(shown).to_contain_text(f"step {story.position} of {story.count}")
        expect(shown).to_contain_text(story.answer)
        expect_agreement_near_the_end(Place(page, views._replace(pictures=pictures, strips=strips)))
    page.get_by_role("button", name="end the story").click()
    views.room.leave()
    expect(shown).to_have_count(0)
    expect_agreement_near_the_end(place)


def test_the_panel_of_the_room_steers(place: Place) -> None:
    """The last test of a place: it moves the cluster of the page."""
    panel, room = place.page.locator(".sq-panel"), place.views.room
    assert room.panel is not None
    for name in ("produce", "advance"):
        panel.get_by_role("button", name=name, exact=True).click()
        expect(panel.locator(".sq-code")).to_have_text(room.panel.steering.do(name, room.panel.steering[name].value))
    expect_agreement_near_the_end(place)


AT_REST = """() => new Promise(done => {
    const panel = document.querySelector(".sq-panel");
    const end = () => { watch.disconnect(); done(); };
    const watch = new MutationObserver(() => { clearTimeout(quiet); quiet = setTimeout(end, 300); });
    let quiet = setTimeout(end, 300);
    watch.observe(panel, {childList: true, subtree: true});
})"""
"""The panel is laid out again after the line of a use is shown: a click in the middle of that would miss its button."""


def steered() -> ControlRoom:
    """A room whose panel is used from its first control to the last."""
    return control_room(fresh(), group="crew", topic="jobs", animate=False)


@pytest.mark.parametrize("name", PLACES)
def test_every_control_is_used(browser: Browser, jupyterlab: str, jupyterlab_folder: Path, name: str) -> None:
    """The page shows the line of each use; at the end its views show the journal that these lines have here."""
    opened = (
        in_voila(browser, STEERED) if name == "Voila" else in_notebook(browser, jupyterlab, jupyterlab_folder, STEERED)
    )
    with opened as page:
        room = steered()
        assert room.panel is not None
        code = page.locator(".sq-panel .sq-code")
        code.wait_for()
        for control, value, *_ in USES:
            unfold(page)
            page.evaluate(AT_REST)
            use(page, control, value)
            expect(code).to_have_text(room.panel.steering.do(control, value))
        pictures = pictures_of(room)
        timeline = page.locator(".sq-area-timeline .sq-view")
        timeline.press("End")
        room.screen.timeline.last()
        expect_agreement(Place(page, Everything(pictures, (room.screen.strip,), race(records=60), room)))
        room.close()
