"""Helpers of the browser tests: write a notebook, open its page, read its strip."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, Locator, Page, ViewportSize, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

READY_MS = 60_000
"""The longest wait for a change of a page."""
SIZE: ViewportSize = {"width": 1280, "height": 900}
SCALE = 2 if "SHAREQ_PICTURES" in os.environ else 1
"""Pixels of a picture for one of the page: those of the README are sharp on every screen."""


def notebook(folder: Path, name: str, *cells: str) -> None:
    """A notebook of code cells, not run yet."""
    shape: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    made = [{**shape, "id": f"cell-{i}", "source": source} for i, source in enumerate(cells)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (folder / name).write_text(json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


# A command before the kernel is ready makes JupyterLab open a dialog that asks for a kernel and blocks.
KERNEL_IS_READY = """() => {
    const session = window.jupyterapp?.shell.currentWidget?.sessionContext;
    return session?.isReady && session.session?.kernel?.status === "idle";
}"""
RUN_ALL = """() => {
    const done = ok => { window.allCellsRan = ok; };
    window.allCellsRan = undefined;
    window.jupyterapp.commands.execute("notebook:run-all-cells").then(done, () => done(false));
}"""
OPEN = "path => window.jupyterapp.commands.execute('docmanager:open', {path}).then(() => null)"
CLOSE = """async () => {
    for (const panel of [...window.jupyterapp.shell.widgets("main")].filter(panel => panel.sessionContext)) {
        await panel.sessionContext.shutdown();
        panel.dispose();  // without the question that a close of an unsaved notebook asks
    }
}"""


def run_all(page: Page, address: str) -> None:
    """Load a page with a notebook and run its cells, see `run_cells`."""
    page.goto(address)
    page.wait_for_function(KERNEL_IS_READY, timeout=READY_MS)
    run_cells(page)


def run_cells(page: Page) -> None:
    """Run all cells of the notebook and wait until they have run. A cell that fails is an AssertionError."""
    page.evaluate(RUN_ALL)
    page.wait_for_function("() => window.allCellsRan !== undefined", timeout=READY_MS)
    assert page.evaluate("() => window.allCellsRan"), page.locator(".jp-OutputArea").all_inner_texts()


@contextmanager
def opened(lab: Page, folder: Path, *sources: str) -> Iterator[Page]:
    """JupyterLab's page with a new notebook of these code cells, not run yet, whose kernel is ready. The notebook is
    closed afterwards and its kernel ends. An error in the page's own scripts fails the test."""
    name = f"notebook_{len(list(folder.glob('*.ipynb')))}.ipynb"
    notebook(folder, name, *sources)
    errors: list[str] = []

    def note(error: Error) -> None:
        errors.append(error.stack or str(error))

    lab.on("pageerror", note)
    lab.set_viewport_size(SIZE)
    lab.emulate_media(reduced_motion="no-preference")
    lab.mouse.move(0, 0)
    try:
        lab.evaluate(OPEN, name)
        lab.wait_for_function(KERNEL_IS_READY, timeout=READY_MS)
        yield lab
    finally:
        lab.evaluate(CLOSE)
        lab.remove_listener("pageerror", note)
    assert errors == [], errors  # a fixture's assertion is not explained


@contextmanager
def tall_page(lab: Page, folder: Path, height: int, *sources: str) -> Iterator[Page]:
    """JupyterLab's page, 1,400 px wide, with a new notebook of these cells, all of which have run: see `opened`."""
    with opened(lab, folder, *sources) as page:
        page.set_viewport_size({"width": 1400, "height": height})
        run_cells(page)
        yield page


def strip_in(page: Page) -> Locator:
    """The strip of a page, in sight, once it shows cells or blocks."""
    strip = page.locator(".sq-strip")
    expect(strip).to_have_attribute("data-mode", re.compile("cells|runs"), timeout=READY_MS)
    strip.scroll_into_view_if_needed()
    return strip


@contextmanager
def new_page(browser: Browser) -> Iterator[Page]:
    """An empty page of its own context. An error in the page's own scripts fails the test."""
    context = browser.new_context(viewport=SIZE, device_scale_factor=SCALE)
    context.set_default_timeout(READY_MS)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == [], errors  # a fixture's assertion is not explained


@contextmanager
def themed(page: Page, theme: str) -> Iterator[None]:
    """A theme, "light" or "dark", of JupyterLab; light again afterwards, as the server keeps it for later pages."""
    try:
        change_theme(page, theme)
        yield
    finally:
        change_theme(page, "light")


def change_theme(page: Page, theme: str) -> None:
    """Change the theme of JupyterLab to "light" or "dark", and wait until the page has it: a change during another one
    is refused. The command saves the theme, for later pages, too."""
    change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
    page.evaluate(change, f"JupyterLab {theme.title()}")
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", "true" if theme == "light" else "false")
    expect(page.locator("#jupyterlab-splash")).to_have_count(0)


def cells(strip: Locator) -> dict[int, tuple[str, int]]:
    """State and delivery count by offset, read from the page."""
    shown = strip.locator(".sq-run").evaluate_all("all => all.map(cell => ({...cell.dataset}))")
    return {int(cell["offset"]): (cell["state"], int(cell["count"])) for cell in shown}


def execute(page: Page, code: str) -> None:
    """Run code in the notebook's kernel that is in none of its cells. A click before it may take effect later: another
    thread of the kernel takes its message."""
    page.evaluate(
        """async code => {
            const panel = window.jupyterapp.shell.currentWidget;
            await panel.sessionContext.session.kernel.requestExecute({code}).done;
        }""",
        code,
    )


START = """code => new Promise(begun => {
    const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
    const future = kernel.requestExecute({code});
    window.cell = "runs";
    future.onIOPub = ({header}) => { if (header.msg_type === "execute_input") begun(); };
    future.done.then(reply => { window.cell = reply.content.status; });
})"""


def start(page: Page, code: str) -> None:
    """Start code in the kernel, as a cell does; `window.cell` is "runs" until it ends, then its status."""
    page.evaluate(START, code)


def kernel_value(page: Page, expression: str) -> Any:
    """A JSON value that an expression has in the notebook's kernel."""
    shown = page.evaluate(
        """async expression => {
            const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
            const reply = await kernel.requestExecute({code: "", user_expressions: {value: expression}}).done;
            const {status, data, evalue} = reply.content.user_expressions.value;
            if (status !== "ok") throw new Error(evalue);
            return data["text/plain"];
        }""",
        f"__import__('json').dumps({expression})",
    )
    return json.loads(ast.literal_eval(shown))


MOVE = """([act, limit]) => new Promise((done, fail) => {
    const views = [...document.querySelectorAll(".sq-view")], before = views.map(view => view.dataset.order);
    const waiting = () => views.filter((view, place) => view.dataset.order === before[place]);
    const begun = performance.now();
    const end = finish => { clearTimeout(late); watch.disconnect(); finish(); };
    const late = setTimeout(() => {
        const names = waiting().map(view => view.getAttribute("aria-label")).join("; ");
        end(() => fail(new Error(`no picture of the new moment within ${limit} ms: ${names}`)));
    }, limit);
    const watch = new MutationObserver(() => {
        if (!waiting().length) setTimeout(() => end(() => done(performance.now() - begun)));  // after the drawn frame
    });
    for (const view of views) watch.observe(view, {attributeFilter: ["data-order"]});
    eval(act)(views[0]);
})"""
BACK = "view => view.querySelector('[data-do=back]').click()"
SEEK = """() => {
    const range = [...document.querySelectorAll(".sq-time input")].find(input => input.checkVisibility());
    range.value = Math.round(PART * range.max);
    range.dispatchEvent(new Event("input", {bubbles: true}));
}"""


def click_ms(page: Page, limit_ms: int = READY_MS) -> float:
    """The time from a click on "step back" of the first view to the frame in which the last view of the page shows the
    new moment, ms. An Error of Playwright names the views that show no new moment within the limit."""
    return float(page.evaluate(MOVE, [BACK, limit_ms]))


def seek_ms(page: Page, part: float) -> float:
    """The same from a move of the first timeline in sight to a part, 0 to 1, of its time."""
    return float(page.evaluate(MOVE, [SEEK.replace("PART", str(part)), READY_MS]))


UNDRAWN = """() => [...document.querySelectorAll(".sq-view")]
    .filter(view => !(view.dataset.mode
        || view.querySelector(view.closest(".sq-area-timeline") ? ".sq-marks button" : ".sq-plot [data-key]")))
    .map(view => view.getAttribute("aria-label"))"""
"""The names of the views of a page that have no picture; the timeline of a room has one with its first mark."""


def wait_for_pictures(page: Page, count: int, limit_ms: int = READY_MS) -> None:
    """Wait until a page has `count` views, all with pictures. AssertionError names those without one at the limit."""
    views = page.locator(".sq-view")
    expect(views).to_have_count(count, timeout=limit_ms)
    try:
        page.wait_for_function(f"() => !({UNDRAWN})().length", timeout=limit_ms)
    except PlaywrightTimeoutError:
        raise AssertionError(f"no picture within {limit_ms} ms: {', '.join(page.evaluate(UNDRAWN))}") from None
