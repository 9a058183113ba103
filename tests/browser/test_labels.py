"""The labels of the control room at the widths of a notebook and of a screen: no two overlap, none leaves its picture,
and each has the meanings of its terms as a tooltip.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from shareq_widgets.terms import meanings, terms_in
from tests.browser.pages import execute, tall_page
from tests.browser.test_control_room import OUTSIDE
from tests.browser.test_views import until_equal

pytestmark = pytest.mark.browser

CELLS = (
    """
import ipywidgets
from shareq_widgets import control_room
from shareq_widgets.screen import SLOTS
from tests.browser.busy import GROUP, TOPIC, busy
from tests.browser.crews import running

cluster, (wall, feed) = busy(), running()
feed.send(60)
wall.advance(2_000)
sources = {"inside": cluster, "outside": wall.bootstrap_servers}
rooms = {name: control_room(source, group=GROUP, topic=TOPIC) for name, source in sources.items()}
place = ipywidgets.VBox(layout={"width": "100%"})
""",
    "place",
)
SHOW = """
room = rooms[{source!r}]
place.children = (room,)
tabs = {{slot: views[min({tab}, len(views) - 1)] for slot, views in SLOTS.items()}}
room.state = {{'time_ms': None, 'selection': '', 'views': tabs}}
"""
ROOMS = {
    "first tabs": ("inside", 0),
    "second tabs": ("inside", 1),
    "a crashed member": ("inside", 0),
    "from outside": ("outside", 0),
}
"""The source of a room, and which tab of each slot is shown."""
TALL = 3_600
SHOWN = """places => [...document.querySelectorAll(places)].flatMap((node) => {
    const words = node.firstChild instanceof Text ? node.firstChild : null;
    if (!words?.nodeValue.trim() || node.closest(".sq-cell")) return [];
    const range = document.createRange(), view = node.closest(".sq-view").ariaLabel;
    range.selectNodeContents(words);
    const { left, right, top, bottom } = range.getBoundingClientRect(), inner = 0.18 * (bottom - top);
    if (right <= left) return [];
    const title = node.querySelector("title")?.textContent ?? "";
    return [{ view, text: words.nodeValue, title, left, right, top: top + inner, bottom: bottom - inner }];
})"""
"""The texts at some places, with their tooltips and boxes, without the room of a font above and below its letters."""
PICTURES, TIMELINES = ".sq-view .sq-plot svg text", ".sq-view .sq-ticks span, .sq-view .sq-marks span"
OVERLAPPING = f"""() => {{
    const shown = ({SHOWN})("{PICTURES}, {TIMELINES}"), found = [];
    for (const [place, one] of shown.entries())
        for (const other of shown.slice(place + 1)) {{
            const across = one.left < other.right - 1 && other.left < one.right - 1;
            if (one.view === other.view && across && one.top < other.bottom && other.top < one.bottom)
                found.push(`${{one.view}}: ${{one.text}} / ${{other.text}}`);
        }}
    return found;
}}"""


@pytest.fixture(scope="module")
def lab_page(lab: Page, jupyterlab_folder: Path) -> Iterator[Page]:
    with tall_page(lab, jupyterlab_folder, TALL, *CELLS) as page:
        page.emulate_media(reduced_motion="reduce")
        yield page


def show(page: Page, room: str) -> None:
    source, tab = ROOMS[room]
    execute(page, SHOW.format(source=source, tab=tab))
    if room == "a crashed member":
        execute(page, "cluster.advance(18_400)")


@pytest.mark.parametrize("width", [1_150, 1_600, 2_400])
@pytest.mark.parametrize("room", ROOMS)
def test_no_label_touches_another(lab_page: Page, room: str, width: int) -> None:
    lab_page.set_viewport_size({"width": width, "height": TALL})
    show(lab_page, room)
    if room != "from outside":  # whose messages are not known: their place is empty
        until_equal(lambda: lab_page.evaluate(OUTSIDE), list)
    until_equal(lambda: lab_page.evaluate(OVERLAPPING), list)


@pytest.mark.parametrize("room", ROOMS)
def test_the_texts_of_a_page_explain_their_terms(lab_page: Page, room: str) -> None:
    show(lab_page, room)
    until_equal(lambda: any(terms_in(one["text"]) for one in lab_page.evaluate(SHOWN, PICTURES)), lambda: True)
    shown = lab_page.evaluate(SHOWN, PICTURES)
    assert [one for one in shown for name in terms_in(one["text"]) if meanings(name) not in one["title"]] == []


def test_the_words_around_the_pictures_explain_their_terms(lab_page: Page) -> None:
    show(lab_page, "first tabs")
    execute(lab_page, "room.panel._hint.value = 'its records have locks'")
    for place, text, name in (
        (".sq-chip", "lag ", "lag"),
        (".sq-legend span", "archived", "archived"),
        (".sq-strip .sq-head .sq-soft", "leader", "share-partition leader"),
        (".sq-hint", "locks", "acquisition lock"),
    ):
        expect(lab_page.locator(place, has_text=text).first).to_have_attribute("title", meanings(name))


def test_labels_that_touch_are_found(lab_page: Page) -> None:
    show(lab_page, "first tabs")
    until_equal(lambda: lab_page.evaluate(OVERLAPPING), list)
    first, second = lab_page.locator(".sq-area-middle svg text").all()[1:3]
    place = str(first.get_attribute("style"))
    second.evaluate("(node, place) => node.setAttribute('style', place)", place)
    assert len(lab_page.evaluate(OVERLAPPING)) == 1
