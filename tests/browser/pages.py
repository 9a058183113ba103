"""Helpers of the browser tests: write a notebook, open its page, read its strip."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

READY_MS = 60_000


def notebook(folder: Path, name: str, *cells: str) -> None:
    """A notebook of code cells, not run yet."""
    shape: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    made = [{**shape, "id": f"cell-{i}", "source": source} for i, source in enumerate(cells)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (folder / name).write_text(json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


def open_strip(page: Page, address: str, name: str) -> Locator:
    """Open the notebook, run all of it, and wait until its strip shows cells or blocks."""
    page.goto(f"{address}lab/tree/{name}?reset")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=READY_MS)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=READY_MS)
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    strip = page.locator(".sq-strip")
    expect(strip).to_have_attribute("data-mode", re.compile("cells|runs"), timeout=READY_MS)
    strip.scroll_into_view_if_needed()
    return strip


# A command before the kernel is ready makes JupyterLab open a dialog that asks for a kernel and blocks.
KERNEL_IS_READY = """() => {
    const session = window.jupyterapp?.shell.currentWidget?.sessionContext;
    return session?.isReady && session.session?.kernel?.status === "idle";
}"""
RUN_ALL = """() => {
    const done = ok => { window.allCellsRan = ok; };
    window.jupyterapp.commands.execute("notebook:run-all-cells").then(done, () => done(false));
}"""


def run_all(page: Page, address: str) -> None:
    """Open a notebook, run all its cells, and wait until they have run. A cell that fails is an AssertionError."""
    page.goto(address)
    page.wait_for_function(KERNEL_IS_READY, timeout=READY_MS)
    page.evaluate(RUN_ALL)
    page.wait_for_function("() => window.allCellsRan !== undefined", timeout=READY_MS)
    assert page.evaluate("() => window.allCellsRan"), page.locator(".jp-OutputArea").all_inner_texts()


@contextmanager
def wide_page(browser: Browser, address: str, name: str, height: int) -> Iterator[Page]:
    """A page of 1,400 px with a notebook, without the side bar, running all cells. An error in its scripts fails."""
    context = browser.new_context(viewport={"width": 1400, "height": height})
    context.set_default_timeout(READY_MS)
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}lab/tree/{name}?reset")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=READY_MS)
    for command in ("application:toggle-left-area", "notebook:run-all-cells"):
        page.evaluate(f"window.jupyterapp.commands.execute('{command}')")
    yield page
    page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")
    context.close()
    assert errors == []


def cells(strip: Locator) -> dict[int, tuple[str, int]]:
    """State and delivery count by offset, read from the page."""
    shown = strip.locator(".sq-run").evaluate_all("all => all.map(cell => ({...cell.dataset}))")
    return {int(cell["offset"]): (cell["state"], int(cell["count"])) for cell in shown}


def execute(page: Page, code: str) -> None:
    """Run code in the notebook's kernel that is in none of its cells."""
    page.evaluate(
        """async code => {
            const panel = window.jupyterapp.shell.currentWidget;
            await panel.sessionContext.session.kernel.requestExecute({code}).done;
        }""",
        code,
    )


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
