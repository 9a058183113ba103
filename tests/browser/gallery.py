"""Screenshots of every view, to look at: themes, widths, records and members. Run by hand, not by `make test`.

    python -m tests.browser.gallery FOLDER [--only NAME ...] [--theme THEME ...] [--width PX ...] [--size R-M ...]

For each size, such as 500-3 (records and members), a notebook shows one view after the other in each theme and width.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page

from tests.browser.chromium import installed
from tests.browser.conftest import jupyterlab_server, launched
from tests.browser.pages import change_theme, execute, notebook, run_all

VIEWS: Final = (
    *("strip", "locks", "states", "group", "cluster", "messages"),
    *("raster", "charts", "record", "state_topic", "timeline", "race", "room", "room2"),
)
THEMES: Final = ("light", "dark")
WIDTHS: Final = (480, 760, 1_400, 2_200)
SIZES: Final = ("5-3", "500-3", "500-200", "10000-200")

SETUP: Final = """
import ipywidgets
from tests.browser.crews import crew, shown
cluster, views = crew({}, {}), {{}}
place = ipywidgets.VBox(layout={{"width": "100%"}})
def show(name):
    if name not in views:
        views[name] = shown(cluster, name)
    place.children = (views[name],)
place
"""
READY: Final = """() => {
    const views = [...document.querySelectorAll(".sq-view")], races = document.querySelectorAll(".sq-race");
    return races.length + views.length && views.every(view => {
        const svg = view.querySelector("svg"), plot = view.querySelector(".sq-plot");
        if (view.dataset.mode) return true;
        return svg.hasAttribute("hidden") || Math.abs(svg.viewBox.baseVal.width - plot.clientWidth) < 2;
    });
}"""
"""True if every view is drawn for the width that it has."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=VIEWS, default=VIEWS)
    parser.add_argument("--theme", nargs="+", choices=THEMES, default=THEMES)
    parser.add_argument("--width", nargs="+", type=int, default=WIDTHS)
    parser.add_argument("--size", nargs="+", default=SIZES)
    wishes = parser.parse_args(arguments)
    wishes.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, launched(str(installed())) as browser:
        folder, home = Path(name, "notebooks"), Path(name, "home")
        for path in (folder, home):
            path.mkdir()
        with jupyterlab_server(folder, home) as address:
            for size in wishes.size:
                for page in opened(browser, address, folder, size):
                    for path in pictures(page, size, wishes):
                        print(path)


def opened(browser: Browser, address: str, folder: Path, size: str) -> Iterator[Page]:
    """A page with a notebook that shows one view at a time."""
    records, members = map(int, size.split("-"))
    notebook(folder, f"{size}.ipynb", SETUP.format(records, members))
    context = browser.new_context(viewport={"width": 1400, "height": 1200}, reduced_motion="reduce")
    context.set_default_timeout(120_000)
    page = context.new_page()
    run_all(page, f"{address}lab/tree/{size}.ipynb?reset")
    page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
    yield page
    page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")
    context.close()


def pictures(page: Page, size: str, wishes: argparse.Namespace) -> Iterator[Path]:
    """Take the pictures of all views in all themes and widths."""
    for theme in wishes.theme:
        change_theme(page, theme)
        for width in wishes.width:
            for name in wishes.only:
                height = 2_400 if name.startswith("room") else 1_300
                page.set_viewport_size({"width": width, "height": height * (1 + (width < 800))})
                execute(page, f"show({name!r})")
                page.wait_for_function(READY)
                page.wait_for_timeout(300)
                path = wishes.folder / f"{name} {size} {width} {theme}.png"
                page.locator(".sq-room, .sq-race, .sq-view").first.screenshot(path=path)
                yield path


if __name__ == "__main__":
    main()
