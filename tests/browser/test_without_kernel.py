"""A stored notebook without a running kernel: each reader sees the pictures.

With SHAREQ_PICTURES=FOLDER the pictures are written there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.pages import themed
from tests.stored_notebooks import LATER, run

pytestmark = pytest.mark.browser

CELLS = (
    ("from tests.browser.busy import GROUP, TOPIC, busy; cluster = busy()",),
    ("from shareq_widgets import control_room, locks, race, strip",),
    ("strip(cluster, group=GROUP, topic=TOPIC)", LATER),
    ("locks(cluster, group=GROUP)",),
    ("race(workers=4)",),
    ("control_room(cluster, group=GROUP, topic=TOPIC)",),
    ("from shareq.trace import raster; raster(cluster, GROUP, TOPIC)",),
)
PICTURES = 5
WIDE = 500
"""A picture has at least this width, px: it is neither an icon nor a broken image."""
NO_PICTURE = ("Error displaying widget", "Loading widget", "Cannot display an untrusted SVG", "model not found", "<svg")
PLACE = "node => node.parentElement.getBoundingClientRect().width + 1"
DRAWN = "node => node.decode().then(() => node.naturalWidth)"


@pytest.fixture(scope="module")
def notebook() -> Any:
    """A notebook with views, a race, a room and a plot, stored as the project stores its own."""
    cells = [nbformat.v4.new_code_cell(source, metadata={"tags": tags}) for source, *tags in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    run(made, Path(__file__).parents[2])
    return made


def expect_pictures(page: Page, shown: Locator, kinds: list[str]) -> None:
    """The outputs are pictures of these kinds, and none of them is an error."""
    expect(shown).to_have_count(len(kinds))
    for place, kind in enumerate(kinds):
        picture = shown.nth(place)
        picture.scroll_into_view_if_needed()
        assert str(picture.get_attribute("src")).startswith(f"data:image/{kind}")
        assert picture.evaluate(DRAWN)
        assert WIDE <= picture.evaluate("node => node.offsetWidth") <= picture.evaluate(PLACE)
    text = "\n".join(page.locator("body").all_inner_texts())
    assert [words for words in NO_PICTURE if words in text] == []


def kinds_of(notebook: Any, first: str) -> list[str]:
    """The kind of picture of each output for a reader that prefers one of the two."""
    found = [output.data for cell in notebook.cells for output in cell.outputs if "data" in output]
    return [first if f"image/{first}" in data else "png" for data in found]


def save_picture(page: Page, name: str) -> None:
    folder = os.environ.get("SHAREQ_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


# ---- exported pages --------------------------------------------------------------------------------------------------


@pytest.fixture
def offline_page(browser: Browser) -> Iterator[Page]:
    """A page without a network."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("template", ["lab", "classic"])
def test_an_exported_page_shows_the_pictures_offline(
    offline_page: Page, notebook: Any, tmp_path: Path, template: str
) -> None:
    """`jupyter nbconvert --to html`, "Save and Export" of JupyterLab, and what nbviewer and GitHub begin with."""
    path = tmp_path / "exported.html"
    path.write_text(HTMLExporter(template_name=template).from_notebook_node(notebook)[0])
    offline_page.goto(path.as_uri())
    expect_pictures(offline_page, offline_page.locator("img"), kinds_of(notebook, "svg+xml"))
    save_picture(offline_page, f"exported-{template}")


def test_a_page_that_sanitizes_html_shows_the_pictures(offline_page: Page, notebook: Any, tmp_path: Path) -> None:
    """As for an untrusted notebook on a server."""
    path = tmp_path / "sanitized.html"
    path.write_text(HTMLExporter(sanitize_html=True).from_notebook_node(notebook)[0])
    offline_page.goto(path.as_uri())
    expect_pictures(offline_page, offline_page.locator("img"), kinds_of(notebook, "svg+xml"))


# ---- before the first run --------------------------------------------------------------------------------------------


@pytest.fixture
def reader_page(browser: Browser) -> Iterator[Page]:
    """A page in which no script of the project runs; Notebook 7 has errors of its own in the console."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def write_copy(notebook: Any, path: Path) -> None:
    """Write a notebook with a title of its own. Jupyter keeps the trust by content: a notebook that equals one that a
    test before has trusted and saved is trusted, too."""
    copy = deepcopy(notebook)
    copy.metadata.title = path.stem
    nbformat.write(copy, path)


@pytest.mark.parametrize("place", ["lab/tree", "notebooks"])
def test_a_notebook_from_elsewhere_shows_the_pictures(
    *, reader_page: Page, jupyterlab: str, jupyterlab_folder: Path, notebook: Any, place: str
) -> None:
    """JupyterLab and Notebook 7 do not trust it, and show no SVG."""
    name = f"untrusted-{place[:3]}.ipynb"
    write_copy(notebook, jupyterlab_folder / name)
    reader_page.goto(f"{jupyterlab}{place}/{name}?reset")
    shown = reader_page.locator(".jp-OutputArea-output img")
    expect_pictures(reader_page, shown, ["png"] * PICTURES)
    save_picture(reader_page, name)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_trusted_notebook_shows_the_pictures_in_the_readers_theme(
    *, reader_page: Page, jupyterlab: str, jupyterlab_folder: Path, notebook: Any, theme: str
) -> None:
    """The SVG pictures follow the theme: their corner has its ground."""
    name = f"trusted-{theme}.ipynb"
    write_copy(notebook, jupyterlab_folder / name)
    reader_page.goto(f"{jupyterlab}lab/tree/{name}?reset")
    reader_page.locator(".jp-OutputArea-output img").first.wait_for()
    with themed(reader_page, theme):
        reader_page.evaluate("() => { window.jupyterapp.commands.execute('notebook:trust'); }")
        reader_page.get_by_role("button", name="Confirm Trusting this notebook").click()
        reader_page.wait_for_function("document.querySelectorAll('.jp-RenderedSVG img').length")
        shown = reader_page.locator(".jp-OutputArea-output img")
        kinds = kinds_of(notebook, "svg+xml")
        expect_pictures(reader_page, shown, kinds)
        for place in [place for place, kind in enumerate(kinds) if kind != "png"]:
            assert is_dark(shown.nth(place)) == (theme == "dark")
        save_picture(reader_page, name)


def is_dark(picture: Locator) -> bool:
    """True if the corner of a picture is dark, as it is on the screen."""
    picture.scroll_into_view_if_needed()
    seen = Image.open(BytesIO(picture.screenshot())).convert("L")
    corner = seen.getpixel((4, 4))
    assert isinstance(corner, int)
    return corner < 128
