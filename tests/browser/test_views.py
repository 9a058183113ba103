"""All views of one recorded cluster in a real JupyterLab: what is seen is what the kernel describes, in every move."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from shareq.trace.views.palette import DARK, LIGHT
from tests.browser.busy import VIEWS
from tests.browser.pages import READY_MS, execute, kernel_value, tall_page, themed

pytestmark = pytest.mark.browser

CELLS = (
    "from tests.browser.busy import busy, described, shown; cluster = busy(); views = shown(cluster)",
    "import ipywidgets; columns = 'repeat(auto-fit, minmax(min(440px, 100%), 1fr))'",
    "ipywidgets.GridBox(list(views.values()), layout={'grid_template_columns': columns, 'width': '100%'})",
)
TALL = 4_000
"""Height of the page, px: all views are in it, because a view that is not visible does not follow the others."""


@pytest.fixture(scope="module")
def lab_page(lab: Page, jupyterlab_folder: Path) -> Iterator[Page]:
    """The page with all views. An error in its scripts fails the tests."""
    with tall_page(lab, jupyterlab_folder, TALL, *CELLS) as page:
        expect(page.locator(".sq-picture")).to_have_count(len(VIEWS))
        yield page


@pytest.fixture
def page(lab_page: Page) -> Page:
    """The page at the end of the recording, without a selection."""
    execute(lab_page, "views['locks'].select(''); views['locks'].last()")
    expect_agreement(lab_page)
    return lab_page


SEEN = """views => Object.fromEntries([...document.querySelectorAll(".sq-picture")].map((view, place) => {
    const drawn = [...view.querySelectorAll(".sq-plot [data-key]")];
    return [views[place], {
        now: view.dataset.now, order: view.dataset.order, words: view.querySelector(".sq-text").textContent,
        keys: drawn.map(node => node.dataset.key),
        texts: Object.fromEntries(drawn.filter(node => node.tagName === "text").map(
            node => [node.dataset.key, node.firstChild?.nodeValue ?? ""])),
        selected: drawn.filter(node => node.classList.contains("sq-selected")).map(node => node.dataset.key).sort(),
    }];
}))"""


def until_equal(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """Wait until both give the same value, and return it."""
    deadline = time.monotonic() + READY_MS / 1000
    while (found := first()) != (wanted := second()):
        if time.monotonic() > deadline:
            assert found == wanted
    return found


def expect_agreement(page: Page) -> Any:
    """All views show what the kernel describes, at one moment; returns it."""
    found = until_equal(lambda: page.evaluate(SEEN, list(VIEWS)), lambda: kernel_value(page, "described(views)"))
    assert len({(seen["now"], seen["order"]) for seen in found.values()}) == 1
    return found


def view(page: Page, name: str) -> Locator:
    return page.locator(".sq-picture").nth(VIEWS.index(name))


def moment(page: Page) -> str:
    """Where the views of the page are."""
    return str(expect_agreement(page)["locks"]["order"])


MOVES: dict[str, Callable[[Locator], object]] = {
    "back": lambda of: of.get_by_text("◀ step").click(),
    "beginning": lambda of: of.get_by_title("to the beginning").click(),
    "slider": lambda of: of.locator("input[type=range]").fill("9000"),
    "mark": lambda of: of.locator(".sq-marks button").nth(1).click(),
    "key": lambda of: of.press("ArrowLeft"),
}


def test_every_picture_has_elements(page: Page) -> None:
    found = expect_agreement(page)
    assert [name for name in VIEWS if not found[name]["keys"]] == ["timeline"]


@pytest.mark.parametrize("move", MOVES)
def test_a_move_in_one_view_moves_all(page: Page, move: str) -> None:
    before = moment(page)
    mover = view(page, VIEWS[list(MOVES).index(move)])
    MOVES[move](mover)
    expect(mover).not_to_have_attribute("data-order", before)
    assert moment(page) != before
    mover.get_by_text("step ▶").click()
    expect_agreement(page)


def first_about(page: Page, name: str, kind: str) -> Locator:
    return view(page, name).locator(f"[data-about^='{kind}:'][tabindex='0']").first


@pytest.mark.parametrize(
    ("where", "kind", "marked"),
    [
        ("group", "member", {"group", "cluster"}),
        ("locks", "record", {"locks", "record"}),
        ("messages", "message", {"messages"}),
        ("cluster", "broker", {"cluster"}),
        ("group", "partition", {"group", "cluster"}),
    ],
)
def test_a_click_selects_in_all_views(page: Page, where: str, kind: str, marked: set[str]) -> None:
    before = expect_agreement(page)
    target = first_about(page, where, kind)
    subject = (target.get_attribute("data-about") or "").split("\n")[0]
    target.dispatch_event("click")
    until_equal(lambda: kernel_value(page, "[v.selection for v in views.values()]"), lambda: [subject] * len(VIEWS))
    after = expect_agreement(page)
    assert marked <= {name for name in VIEWS if after[name]["selected"]}
    followers = {"record": "record", "message": "messages"}
    if kind in followers:
        assert after[followers[kind]]["texts"] != before[followers[kind]]["texts"]


def test_enter_selects_and_deselects_the_focused_element(page: Page) -> None:
    target = first_about(page, "group", "member")
    target.focus()
    for selected in (target.get_attribute("data-about"), ""):
        page.keyboard.press("Enter")
        wanted = (selected or "").split("\n")[0]
        until_equal(lambda: kernel_value(page, "views['group'].selection"), partial(str, wanted))


def test_views_have_roles_and_names_for_screen_readers(page: Page) -> None:
    words = expect_agreement(page)
    for name in VIEWS:
        shown = view(page, name)
        expect(shown).to_have_attribute("role", "group")
        expect(shown).to_have_attribute("aria-label", f"{shown.locator('.sq-head > b').inner_text()}, group crew")
        expect(shown.locator("svg[role=img]")).to_have_attribute("aria-label", words[name]["words"])
        expect(shown.locator("input[type=range]")).to_have_attribute("aria-label", "time in the journal")
        names = shown.locator(".sq-plot [role=button]").evaluate_all("all => all.map(one => one.ariaLabel)")
        assert all(names), name


def test_a_drag_over_the_raster_seeks(page: Page) -> None:
    shown = view(page, "raster")
    plot, drawing = shown.locator(".sq-plot"), kernel_value(page, "views['raster'].drawing['brush']")
    box = plot.bounding_box()
    assert box is not None
    scale = box["width"] / kernel_value(page, "views['raster'].drawing['width']")
    left, right, y = drawing["left"], drawing["right"], box["y"] + scale * (drawing["top"] + drawing["bottom"]) / 2
    to = round(box["x"] + scale * (left + 0.4 * (right - left)))
    page.mouse.move(box["x"] + scale * (left + 0.1 * (right - left)), y)
    page.mouse.down()
    page.mouse.move(to - 40, y)
    until_equal(lambda: kernel_value(page, "views['locks'].live"), lambda: False)
    expect_agreement(page)  # the picture of that moment has another axis
    page.mouse.move(to, y)
    page.mouse.up()
    share = ((to - box["x"]) / scale - left) / (right - left)
    wanted = round(drawing["from_ms"] + share * (drawing["to_ms"] - drawing["from_ms"]))
    until_equal(lambda: kernel_value(page, "views['locks'].snapshot['now_ms']"), lambda: wanted)
    assert expect_agreement(page)["raster"]["now"] == str(wanted)


PAINTED = """names => [...document.querySelectorAll(".sq-picture")].flatMap(view => {
    const known = names.map(name => [name, view.style.getPropertyValue(`--sq-${name}`)]);
    return [["bg", getComputedStyle(view).backgroundColor], ...known];
})"""


def test_all_views_follow_the_theme(page: Page, tmp_path: Path) -> None:
    for theme, palette in [("dark", DARK), ("light", LIGHT)]:
        colours = {name: colour for name, colour in palette.items() if isinstance(colour, str)}
        ground = f"rgb{tuple(bytes.fromhex(palette['bg'][1:]))}"
        with themed(page, theme):
            for place in range(len(VIEWS)):
                expect(page.locator(".sq-picture").nth(place)).to_have_css("background-color", ground)
            painted = page.evaluate(PAINTED, list(colours))
        wrong = [(name, shown) for name, shown in painted if shown.startswith("#") and shown != colours[name]]
        assert wrong == []


def test_reduced_motion_moves_nothing(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    expect(page.locator(".sq-moving")).to_have_count(0)
    for button in ("to the beginning", "one step on", "one step on", "one step on"):
        view(page, "states").get_by_title(button).click()
        expect_agreement(page)
        moving = (
            "[...document.querySelectorAll('.sq-plot *')].reduce((sum, one) => sum + one.getAnimations().length, 0)"
        )
        assert page.evaluate(moving) == 0
    page.emulate_media(reduced_motion="no-preference")
    expect(page.locator(".sq-moving")).to_have_count(len(VIEWS))


OUTSIDE = """views => [...document.querySelectorAll(".sq-picture")].flatMap((view, place) => {
    const plot = view.querySelector(".sq-plot").getBoundingClientRect();
    const far = ({width, left, right, bottom}) =>
        width && (left < plot.left - 2 || right > plot.right + 2 || bottom > plot.bottom + 2);
    const nodes = [...view.querySelectorAll("[data-key]")].filter(node => far(node.getBoundingClientRect()));
    const wide = view.scrollWidth > view.clientWidth + 1 ? [`${views[place]} is wider than its place`] : [];
    return [...wide, ...nodes.map(node => `${views[place]}: ${node.dataset.key}: ${node.firstChild?.nodeValue}`)];
})"""


LAID_OUT = """() => [...document.querySelectorAll(".sq-picture")].every(view => {
    const {width} = view.querySelector("svg").viewBox.baseVal;
    return Math.abs(width - view.querySelector(".sq-plot").clientWidth) < 2;
})"""
"""True if every picture is drawn for the width that it has."""


@pytest.mark.parametrize("width", [480, 760, 1_400, 2_200])
def test_nothing_is_outside_its_view(page: Page, width: int, tmp_path: Path) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": TALL if width > 760 else TALL + 3_000})
    page.wait_for_function(LAID_OUT)
    expect_agreement(page)
    page.screenshot(path=tmp_path / f"views {width}.png")
    assert page.evaluate(OUTSIDE, list(VIEWS)) == []
