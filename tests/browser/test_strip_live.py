"""The partition strip on a running cluster, in a real JupyterLab: a step in the page lets the cluster go on.

With SHAREQ_PICTURES=FOLDER the pictures of the README are written there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from shareq.trace import view
from tests.browser.pages import cells, notebook, open_strip
from tests.browser.story import payments

pytestmark = pytest.mark.browser

SOURCE = "from tests.browser.story import payments; cluster = payments()"
SHOW = "from shareq_widgets import strip; strip(cluster, group='payments', topic='orders', theme='THEME')"
UNDER_WAY = (119, 120)
"""What consumer-1 has accepted when the story ends, and what is not durable yet."""


def picture(tmp_path: Path, name: str) -> Path:
    return Path(os.environ.get("SHAREQ_PICTURES", tmp_path)) / name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_stepping_beyond_the_end_lets_the_cluster_go_on(
    browser_page: Page, jupyterlab: str, jupyterlab_folder: Path, tmp_path: Path, theme: str
) -> None:
    browser_page.set_viewport_size({"width": 1500, "height": 1000})
    notebook(jupyterlab_folder, f"live-{theme}.ipynb", SOURCE, SHOW.replace("THEME", theme))
    strip = open_strip(browser_page, jupyterlab, f"live-{theme}.ipynb")
    end = view(payments(), "payments", "orders", 0).total()
    expect(strip).to_have_attribute("data-order", str(end))
    assert [cells(strip)[offset] for offset in UNDER_WAY] == [("acquired", 1), ("acquired", 1)]
    strip.screenshot(path=picture(tmp_path, f"strip-{theme}.png"))
    for order in range(end + 1, end + 3):  # the write is durable, then the records are done with
        strip.get_by_text("step ▶").click()
        expect(strip).to_have_attribute("data-order", str(order))
    assert [cells(strip)[offset] for offset in UNDER_WAY] == [("acknowledged", 1), ("acknowledged", 1)]
    strip.get_by_text("◀ step").click()
    expect(strip).to_have_attribute("data-order", str(end + 1))
    assert [cells(strip)[offset] for offset in UNDER_WAY] == [("acquired", 1), ("acquired", 1)]
    browser_page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")
