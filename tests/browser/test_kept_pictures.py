"""A saved notebook has the pictures of the end of its run, and of what its views show: the cells of the views ran when
nothing had happened yet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from playwright.sync_api import Browser, Page, expect

from shareq.trace.views.themed_svg import themed
from tests.browser.pages import execute, kernel_value, notebook, run_all
from tests.browser.test_places import clean_page
from tests.polling import eventually
from tests.stored_notebooks import WIDGET

pytestmark = pytest.mark.browser

CELLS = (
    """
    from shareq import Cluster, Producer, ShareConsumer
    from shareq_widgets import control_room, strip
    cluster = Cluster(brokers=1)
    cluster.create_topic("orders")
    cluster.configure_group("payments", {"share.auto.offset.reset": "earliest"})
    """,
    'shown = strip(cluster, group="payments", topic="orders"); shown',
    'room = control_room(cluster, group="payments", topic="orders"); room',
    'alone = strip(cluster, group="payments", topic="orders", linked=False); alone',
    """
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(8):
        producer.produce("orders", b"")
    producer.flush()
    ann = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "payments", "client.id": "ann",
                         "share.acknowledgement.mode": "explicit"})
    ann.subscribe(["orders"])
    for message in ann.poll(10):
        ann.acknowledge(message)
    cluster.advance(1000)
    ann.commit_sync()
    producer.produce("orders", b"")
    producer.flush()
    ann.poll(10)
    cluster.crash(ann)
    cluster.advance(60_000)
    """,
)
BOARD = "moments of the recording"
BOARDS = """() => [...window.jupyterapp.shell.currentWidget.context.model.cells]
    .flatMap(cell => cell.toJSON().outputs ?? [])
    .filter(output => output.data?.["application/vnd.jupyter.widget-view+json"])
    .map(output => [output.data["image/svg+xml"]].flat().join("").includes("moments of the recording"))"""
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save').then(() => null)"
DIRTY = "() => window.jupyterapp.shell.currentWidget.context.model.dirty"
PLACES = ("lab/tree", "notebooks")
"""The addresses of a notebook in JupyterLab and in Notebook 7."""


def pictures(path: Path) -> list[str]:
    """The stored pictures of the views, in order: SVG."""
    try:
        cells = json.loads(path.read_text())["cells"]
    except ValueError:  # half written
        return []
    found = [output["data"] for cell in cells for output in cell.get("outputs", ()) if "data" in output]
    return ["".join(data["image/svg+xml"]) for data in found if WIDGET in data]


def boards(path: Path) -> list[bool]:
    """True for each view whose stored picture is a storyboard."""
    return [BOARD in picture for picture in pictures(path)]


@pytest.fixture(params=PLACES)
def opened(
    request: pytest.FixtureRequest, jupyterlab: str, jupyterlab_folder: Path, browser: Browser
) -> Iterator[tuple[Page, Path]]:
    """The page of a notebook with views at its top, all cells of which have run, and its file."""
    name = f"kept_{PLACES.index(request.param)}.ipynb"
    notebook(jupyterlab_folder, name, *map(dedent, CELLS))
    with clean_page(browser) as page:
        run_all(page, f"{jupyterlab}{request.param}/{name}?reset")
        expect(page.locator(".sq-strip")).to_have_count(3)
        yield page, jupyterlab_folder / name
        page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")


def test_a_saved_run_has_the_storyboards_of_its_end(opened: tuple[Page, Path]) -> None:
    """A save at once after the last cell, and without a look at the views. They stay on the page as they are."""
    page, path = opened
    page.evaluate("document.querySelectorAll('.sq-strip').forEach(strip => { strip.dataset.drawnBefore = 'yes'; })")
    page.evaluate(SAVE)
    eventually(lambda: boards(path), [True, True, True])
    expect(page.locator(".sq-strip[data-drawn-before]")).to_have_count(3)
    page.wait_for_function(f"() => !({DIRTY})()")


def test_a_saved_view_is_at_the_moment_that_it_shows(opened: tuple[Page, Path]) -> None:
    """The picture follows a view that has been moved since the run, and a notebook that is only looked at is saved
    once."""
    page, path = opened
    page.evaluate(SAVE)
    eventually(lambda: boards(path), [True, True, True])
    execute(page, "alone.first()")
    shown = kernel_value(page, "alone.to_svg()")
    page.evaluate(SAVE)
    eventually(lambda: pictures(path)[2:], [themed(shown)])
    assert boards(path)[:2] == [True, True]


def test_the_pictures_of_a_run_need_no_save_in_time(opened: tuple[Page, Path]) -> None:
    """Soon after a run the notebook has its pictures, so that they are saved also when the kernel ends before."""
    page, path = opened
    page.wait_for_function(f"count => ({BOARDS})().filter(Boolean).length === count", arg=3)
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.evaluate(SAVE)
    eventually(lambda: boards(path), [True, True, True])
