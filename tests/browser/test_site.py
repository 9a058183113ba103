"""The static site in a real browser, from a plain web server on this machine, without any other network."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from binder.site.build import build
from binder.site.lessons import PLOT, served_lessons
from tests.browser.pages import cells

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]  # it builds the site

SITE = Path(__file__).parents[2] / "build" / "site"
LESSON = "02_window.ipynb"
PATIENCE_MS = 240_000
"""Longest wait for one step: the browser compiles Python, and a step may be all cells of a lesson."""
AT_THE_END = re.compile(r"(\d+) of \1:")
"""The sentence of a strip about its last event."""


class Served(SimpleHTTPRequestHandler):
    """The files of a folder, without a log; in the lesson, without the cells that need Pyodide's server."""

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 the name of http.server
        """Write nothing."""

    def translate_path(self, path: str) -> str:
        wanted = Path(super().translate_path(path))
        plain = Path(self.directory).with_name("site-test") / LESSON
        return str(plain if wanted.name == LESSON else wanted)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the site, built from this checkout."""
    build(SITE)
    lesson: dict[str, Any] = json.loads((SITE / "files" / LESSON).read_text())
    lesson["cells"] = [cell for cell in lesson["cells"] if not PLOT.search("".join(cell["source"]))]
    plain = SITE.with_name("site-test")
    plain.mkdir(exist_ok=True)
    (plain / LESSON).write_text(json.dumps(lesson))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Served, directory=str(SITE))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def outside(browser_page: Page, site: str) -> list[str]:
    """The requests to any other address. All of them fail."""
    refused: list[str] = []

    def decide(route: Route) -> None:
        if route.request.url.startswith(site):
            route.continue_()
        else:
            refused.append(route.request.url)
            route.abort()

    context: BrowserContext = browser_page.context
    context.route("**/*", decide)
    context.set_default_timeout(PATIENCE_MS)
    return refused


def test_from_the_front_page_to_a_lesson_that_runs(browser_page: Page, site: str, outside: list[str]) -> None:
    """The story plays by itself, one click opens a lesson, all its cells run, and its strip follows them."""
    page = browser_page
    page.goto(site)
    story = page.frame_locator("iframe")
    expect(story.locator(".sq-run").filter(has_text="A").first).to_be_visible()
    save_picture(page, "front page")
    expect(page.get_by_role("link", name="Open the first lesson")).to_have_attribute("href", re.compile("01_record"))
    assert [link for link in links(page) if not (SITE / link).is_file()] == []
    assert outside == []

    page.get_by_role("link", name="02 The window").click()
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()  # cells that run before are lost
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    strip = page.locator(".sq-strip").first
    strip.scroll_into_view_if_needed()  # what no screen shows is not drawn
    expect(strip).to_have_attribute("data-mode", re.compile("cells|runs"), timeout=PATIENCE_MS)
    page.wait_for_function(ALL_RAN, timeout=PATIENCE_MS)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.stderr"], .jp-RenderedText[data-mime-type*=error]')
    assert errors.all_inner_texts() == []
    save_picture(page, "lesson")
    assert {url.split("/")[2] for url in outside} <= {"cdn.jsdelivr.net"}

    sentence = strip.locator(".sq-sentence")
    strip.scroll_into_view_if_needed()  # it plays what the cells have done
    expect(sentence).to_have_text(AT_THE_END, timeout=PATIENCE_MS)
    strip.get_by_role("button", name="◀ step").click()
    expect(sentence).not_to_have_text(AT_THE_END)
    assert cells(strip)


def links(page: Page) -> list[str]:
    """The files to which the front page leads: its own, JupyterLab's, and the lessons that JupyterLab opens."""
    found: list[str] = page.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert len(found) > len(served_lessons())
    pages, _, opened = zip(*(address.partition("?path=") for address in found), strict=True)
    return [*pages, *(f"files/{name}" for name in opened if name)]


ALL_RAN = """() => {
    const notebook = window.document.querySelector(".jp-Notebook");
    const prompts = [...notebook.querySelectorAll(".jp-CodeCell .jp-InputArea-prompt")].map(node => node.textContent);
    return prompts.length && prompts.every(text => /\\[\\d+\\]/.test(text));
}"""


def save_picture(page: Page, name: str) -> None:
    folder = os.environ.get("SHAREQ_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
