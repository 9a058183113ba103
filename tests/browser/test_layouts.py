"""The pictures of all views at all widths and sizes, in the letters of a real browser: no label leaves its picture, no
two touch. The elements are those of the live pictures; `gallery.py` shows the live ones.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.busy import VIEWS
from tests.browser.crews import crew, shown

pytestmark = pytest.mark.browser

NAMES = ("strip", *(name for name in VIEWS if name != "timeline"))
SIZES = [(5, 3), (500, 3), (500, 200), (10_000, 200)]
"""Records and members."""
MOMENTS = (0.35, 0.7, 1.0)
"""Parts of the journal."""
FAULTS = """() => [...document.querySelectorAll("body > div")].flatMap(place => {
    const picture = place.querySelector("svg").getBoundingClientRect(), apart = [], found = [];
    for (const text of place.querySelectorAll("svg text")) {
        const words = [...text.childNodes].find(node => node instanceof Text), range = document.createRange();
        if (!words?.nodeValue.trim()) continue;
        range.selectNodeContents(words);
        const {left, right, top, bottom} = range.getBoundingClientRect(), inner = 0.18 * (bottom - top);
        const label = {text: words.nodeValue, left, right, top: top + inner, bottom: bottom - inner};
        const across = label.left < picture.left - 1 || label.right > picture.right + 1;
        if (across || label.top < picture.top || label.bottom > picture.bottom)
            found.push(`${place.className}: ${label.text} is outside`);
        for (const other of apart)
            if (label.left < other.right - 1 && other.left < label.right - 1
                && label.top < other.bottom && other.top < label.bottom)
                found.push(`${place.className}: ${label.text} / ${other.text}`);
        apart.push(label);
    }
    return found;
})"""
"""The labels that are outside of their pictures, and the pairs that touch: without the room of a font above and below
its letters."""


def pictures(views: dict[str, Any], width: int) -> str:
    """All of them, one below the other, at each moment."""
    made = []
    for moment in MOMENTS:
        views["strip"].seek(round(moment * views["strip"].total))
        made += [
            f'<div class="{name} at {moment:.0%}">{view.to_svg(width=width)}</div>' for name, view in views.items()
        ]
    return f"<body>{''.join(made)}"


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: f"{size[0]} records, {size[1]} members")
def views(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The linked views of a group by their names."""
    cluster = crew(*request.param)
    return {name: shown(cluster, name) for name in NAMES}


@pytest.mark.parametrize("width", [480, 760, 1_400, 2_200])
def test_labels_are_inside_and_apart(browser_page: Page, views: dict[str, Any], width: int) -> None:
    browser_page.set_viewport_size({"width": width + 40, "height": 900})
    browser_page.set_content(pictures(views, width))
    assert browser_page.locator("svg text").count() > 100
    assert browser_page.evaluate(FAULTS) == []


def test_faults_are_found(browser_page: Page) -> None:
    texts = "".join(f'<text x="{x}" y="20">label</text>' for x in (10, 30, 90))
    browser_page.set_content(f'<body><div class="one"><svg width="100" height="40">{texts}</svg></div>')
    assert browser_page.evaluate(FAULTS) == ["one: label / label", "one: label is outside"]
