"""The keyboard and screen readers, for all views at once: each is reached by Tab, and all that is in it has a name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests.browser.pages import execute, tall_page
from tests.browser.test_every_control import unfold
from tests.browser.test_views import until_equal

pytestmark = pytest.mark.browser

CODE = "from tests.browser.busy import everything; all_views = everything(); all_views.page"
HEIGHT = 6_000
NAMED = {"button", "slider", "combobox", "spinbutton", "image", "textbox", "checkbox"}
"""The roles whose elements must have a name."""


@pytest.fixture(scope="module")
def page(lab: Page, jupyterlab_folder: Path) -> Iterator[Page]:
    """The page with each view alone, and the control room with all folds open."""
    with tall_page(lab, jupyterlab_folder, HEIGHT, CODE) as page:
        expect(page.locator(".sq-room .sq-view")).to_have_count(7)
        execute(page, "all_views.room.panel.steering.do('add consumer', 'accept'); all_views.room.panel.refresh()")
        expect(page.locator(".sq-panel").get_by_text("consumer D")).to_be_visible()
        unfold(page)
        expect(page.get_by_role("button", name="crash D")).to_be_visible()
        yield page


def elements(session: CDPSession, selector: str) -> list[dict[str, Any]]:
    """Role and name, as a screen reader has them, of what is in the elements of a selector."""
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    nodes = session.send("DOM.querySelectorAll", {"nodeId": root, "selector": selector})["nodeIds"]
    trees = [session.send("Accessibility.queryAXTree", {"nodeId": node})["nodes"] for node in nodes]
    return [
        {"role": one["role"]["value"], "name": one.get("name", {}).get("value", "")}
        for tree in trees
        for one in tree
        if not one.get("ignored")
    ]


@pytest.mark.parametrize("place", [".sq-view", ".sq-panel", ".sq-race", ".sq-choice"])
def test_everything_has_a_name(page: Page, place: str) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Accessibility.enable")
    assert {one["role"] for one in elements(session, place)} & NAMED
    until_equal(lambda: [one for one in elements(session, place) if one["role"] in NAMED and not one["name"]], list)
    session.detach()


CUT = """() => {
    const fields = [...document.querySelectorAll(".sq-exact input")];
    const found = fields.filter(field => field.scrollWidth > field.clientWidth && field.value.length <= 10)
        .map(field => field.value);
    const texts = document.querySelectorAll(".sq-control > .widget-html, .sq-code"), range = document.createRange();
    for (const text of texts) {
        const nodes = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
        while (nodes.nextNode()) for (const {0: word, index} of nodes.currentNode.nodeValue.matchAll(/\\S+/g)) {
            range.setStart(nodes.currentNode, index);
            range.setEnd(nodes.currentNode, index + word.length);
            if (range.getClientRects().length > 1) found.push(word);
        }
    }
    return found;
}"""
"""The numbers that are wider than their fields, and the words of names and code that are broken. Numbers of more than
ten digits stand for no limit, and end in an ellipsis."""
WIDEST = "2147483647"


def test_numbers_and_words_of_the_panel_are_whole(page: Page) -> None:
    execute(page, """all_views.room.panel._show_code("cluster.crash(team['A'].consumer)")""")
    expect(page.locator(".sq-code").first).to_have_text("cluster.crash(team['A'].consumer)")
    page.locator(".sq-exact[style*='10ch'] input").last.evaluate(f"field => {{ field.value = '{WIDEST}'; }}")
    assert page.evaluate(CUT) == []


VIEWS = """() => [...document.querySelectorAll(".sq-view")].filter(view => view.checkVisibility())"""
LAST = f"""place => {{
    const within = "button:not([tabindex='-1']), select, input, [tabindex='0']";
    const inside = [...({VIEWS})()[place].querySelectorAll(within)].filter(one => one.checkVisibility());
    inside.at(-1)?.focus();
    return Boolean(inside.length);
}}"""
HAS_FOCUS = f"""place => document.activeElement === ({VIEWS})()[place]"""


def test_tab_goes_from_view_to_view(page: Page) -> None:
    """From the last element of a view, Shift+Tab and Tab keep the order; from the one before a view, Tab reaches it."""
    count = page.evaluate(f"({VIEWS})().length")
    assert count == 11 + 7
    for place in range(count):
        page.evaluate(f"place => ({VIEWS})()[place].focus()", place)
        page.keyboard.press("Shift+Tab")
        assert not page.evaluate(HAS_FOCUS, place)
        page.keyboard.press("Tab")
        assert page.evaluate(HAS_FOCUS, place), page.evaluate(f"place => ({VIEWS})()[place].ariaLabel", place)
        page.keyboard.press("Tab")
        inside = f"place => ({VIEWS})()[place].contains(document.activeElement)"
        controls = page.evaluate(f"place => ({VIEWS})()[place].querySelector('.sq-bar').checkVisibility()", place)
        assert page.evaluate(inside, place) or not controls


def test_the_picture_of_each_view_has_a_text(page: Page) -> None:
    texts = page.evaluate(
        f"({VIEWS})().map(view => [...view.querySelectorAll('svg[role=img]')]"
        ".filter(svg => svg.checkVisibility()).map(svg => svg.ariaLabel))"
    )
    assert [len(found) for found in texts].count(1) == 16  # a timeline has no picture
    assert all(text.strip() for found in texts for text in found)
