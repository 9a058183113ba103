"""The views in a real browser: frames a second in play, a click, the first picture, the kernel's part of a core, and a
journal of a million events: the first picture, and a seek.

    make bench ARGS='-k browser'

A headless Chromium draws without a graphics card, on the cores that also run the kernel. So each figure has a floor
beside it, measured in the same run: the frames of a page that only moves a rectangle, the time of a cell and of a click
whose answer is a plain widget, the cores that the cluster takes without views. `extra_info` has both.

A click and a seek begin on a page at rest, as a person finds it: the motion of the last one has ended. `hurried_ms`:
each begins when the picture of the last one is drawn, in the midst of its motion.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from tests.bench.long_journals import GROUP as LONG_GROUP
from tests.bench.long_journals import TOPIC as LONG_TOPIC
from tests.bench.long_journals import long_journal
from tests.bench.reported import REPORTED
from tests.browser.crews import GROUP, SIX, TOPIC
from tests.browser.pages import (
    READY_MS,
    UNDRAWN,
    click_ms,
    execute,
    kernel_value,
    new_page,
    notebook,
    run_all,
    seek_ms,
    wait_for_pictures,
)

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(timer=REPORTED), pytest.mark.timeout(600)]

VIEWS = ("strip", "locks", "states", "group", "cluster", "messages", "raster", "charts", "record", "state_topic")
PLAY_MS = 4_000
CLICKS = 15
REST_MS = 500
"""A motion takes 200 ms, and JupyterLab's own after a message from the kernel about as long."""
LIVE_S = 10.0
EVENTS = 1_000_000
HEIGHT = 1_400

SETUP = """
import ipywidgets
from IPython.display import display
from tests.browser.crews import crew, running, shown
place = ipywidgets.Box(layout={"display": "grid", "grid_template_columns": "repeat(2, minmax(0, 1fr))"})
"""


class Frames(NamedTuple):
    """Frames a second, the 95th percentile of a frame (ms), and the work of the page's main thread for a frame (ms)."""

    per_second: float
    p95_ms: float
    work_ms: float


@contextmanager
def opened(browser: Browser, jupyterlab: str, folder: Path, name: str, *cells: str) -> Iterator[Page]:
    """A page of its own with a notebook that has run its cells."""
    notebook(folder, f"{name}.ipynb", SETUP, *cells)
    with new_page(browser) as page:
        page.set_viewport_size({"width": 1400, "height": HEIGHT})
        run_all(page, f"{jupyterlab}lab/tree/{name}.ipynb?reset")
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        yield page
        page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")


@pytest.fixture(autouse=True)
def machine(benchmark: Any) -> None:
    """Name the machine in the report."""
    model = next((line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")), "")
    benchmark.extra_info["machine"] = f"{os.cpu_count()} cores, {model or platform.machine()}, {platform.system()}"


def _cpu_lines() -> list[str]:
    info = Path("/proc/cpuinfo")
    return info.read_text().splitlines() if info.exists() else []


def report(benchmark: Any, seconds: list[float], **more: Any) -> None:
    """Report figures that the page has measured."""
    figures = iter(seconds)

    def run() -> None:
        REPORTED.now += next(figures)

    benchmark.pedantic(run, rounds=len(seconds))
    benchmark.extra_info.update(more)
    print(benchmark.name, more)


# ---- frames ----------------------------------------------------------------------------------------------------------

FRAMES = """ms => new Promise(done => {
    const times = [];
    const frame = time => {
        times.push(time);
        if (time - times[0] < ms) requestAnimationFrame(frame); else done(times);
    };
    requestAnimationFrame(frame);
})"""
EMPTY = """<svg width=1200 height=600><rect width=40 height=40></rect></svg><script>
    const frame = time => {
        document.querySelector("rect").setAttribute("x", time / 9 % 1000);
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
</script>"""


def frames(page: Page, session: CDPSession) -> tuple[Frames, list[float]]:
    """The frames of the next seconds, and the duration of each in seconds."""
    before = _main_thread_s(session)
    times = page.evaluate(FRAMES, PLAY_MS)
    work_s = _main_thread_s(session) - before
    lasts = [(after - at) / 1000 for at, after in pairwise(times)]
    p95_ms = 1000 * quantiles(lasts, n=20)[-1]
    return Frames(
        round(1 / (sum(lasts) / len(lasts)), 1), round(p95_ms, 1), round(1000 * work_s / len(lasts), 1)
    ), lasts


def _main_thread_s(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


@pytest.fixture(scope="module")
def floor(browser: Browser) -> Frames:
    """The frames of a page that only moves a rectangle."""
    context = browser.new_context(viewport={"width": 1400, "height": HEIGHT})
    page = context.new_page()
    page.set_content(EMPTY)
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    found, _ = frames(page, session)
    context.close()
    return found


@pytest.fixture(scope="module")
def crew_page(browser: Browser, jupyterlab: str, jupyterlab_folder: Path) -> Iterator[Page]:
    """The group of 200 members with 10,000 records in flight; `show(name, ...)` shows views of it."""
    show = """
    cluster, views = crew(), {}
    def show(*names):
        for name in names:
            if name not in views:
                views[name] = shown(cluster, name)
        place.children = [views[name] for name in names]
        place.layout.grid_template_columns = f"repeat({min(len(names), 2)}, minmax(0, 1fr))"
        (views["room"].screen.timeline if names == ("room",) else views[names[0]]).last()
    """
    with opened(browser, jupyterlab, jupyterlab_folder, "crew", *(show.replace("\n    ", "\n"), "place")) as page:
        yield page


def show(page: Page, *names: str) -> None:
    """Show these views alone, or those of the "room", at the end of the recording, and wait for their pictures."""
    execute(page, f"show(*{names!r})")
    wait_for_pictures(page, 1 + len(SIX) if names == ("room",) else len(names))


@contextmanager
def all_on_screen(page: Page) -> Iterator[None]:
    """A page that is as tall as its views: one outside of the screen follows no other."""
    bottom = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.sq-view')].map(v => v.getBoundingClientRect().bottom))"
    )
    page.set_viewport_size({"width": 1400, "height": round(bottom) + 400})
    yield
    page.set_viewport_size({"width": 1400, "height": HEIGHT})


@pytest.mark.parametrize("name", VIEWS)
def test_frames_in_play(benchmark: Any, crew_page: Page, floor: Frames, name: str) -> None:
    """Aims: 60 frames a second, p95 below 25 ms, with 10,000 records and 200 members."""
    benchmark.group = "browser: a frame in play"
    show(crew_page, name)
    session = crew_page.context.new_cdp_session(crew_page)
    session.send("Performance.enable")
    execute(crew_page, f"view = views[{name!r}]; view.seek(view.total // 2); view.play()")
    found, lasts = frames(crew_page, session)
    assert kernel_value(crew_page, "view.playing and view.order > view.total // 2")
    execute(crew_page, "view.pause()")
    session.detach()
    report(benchmark, lasts, frames=found._asdict(), floor=floor._asdict())


# ---- clicks and the first picture ------------------------------------------------------------------------------------

PLAIN_CLICK = """() => new Promise(done => {
    const label = document.querySelector(".plain-label"), begun = performance.now();
    const watch = new MutationObserver(() => {
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
    });
    watch.observe(label, {childList: true, characterData: true, subtree: true});
    document.querySelector(".plain-button").click();
})"""
PLAIN = """
label, press = ipywidgets.Label("0"), ipywidgets.Button(description="press")
label.add_class("plain-label"); press.add_class("plain-button")
press.on_click(lambda _: setattr(label, "value", str(int(label.value) + 1)))
display(label, press)
"""


class Moves(NamedTuple):
    """The times of moves that begin on a page at rest, ms, and the median of moves without a pause."""

    lasts_ms: list[float]
    hurried_ms: float


def moves(page: Page, count: int, move: Callable[[], float]) -> Moves:
    """Measure moves, after one that is not counted."""
    move()
    lasts_ms = []
    for _ in range(count):
        page.wait_for_timeout(REST_MS)
        lasts_ms.append(move())
    return Moves(lasts_ms, round(median(move() for _ in range(count)), 1))


@pytest.fixture(scope="module")
def plain_click(browser: Browser, jupyterlab: str, jupyterlab_folder: Path) -> dict[str, float]:
    """The time of a click whose answer is a plain widget."""
    with opened(browser, jupyterlab, jupyterlab_folder, "plain", PLAIN) as page:
        expect(page.locator(".plain-button")).to_be_visible()
        found = moves(page, CLICKS, lambda: float(page.evaluate(PLAIN_CLICK)))
        return {"floor_ms": round(median(found.lasts_ms), 1), "hurried_floor_ms": found.hurried_ms}


@pytest.mark.parametrize("names", [("room",), SIX], ids=["room", "grid"])
def test_a_click_moves_six_linked_views(
    benchmark: Any, crew_page: Page, plain_click: dict[str, float], names: tuple[str, ...]
) -> None:
    """Aim: below 100 ms from the click to the picture of the last view, with 10,000 records and 200 members. `room`:
    the control room with its timeline; `grid`: the same views alone, larger, each with a timeline of its own."""
    benchmark.group = "browser: a click"
    show(crew_page, *names)
    with all_on_screen(crew_page):
        found = moves(crew_page, CLICKS, lambda: click_ms(crew_page))
    report(
        benchmark,
        [ms / 1000 for ms in found.lasts_ms],
        click_ms=round(median(found.lasts_ms), 1),
        worst_ms=round(max(found.lasts_ms), 1),
        hurried_ms=found.hurried_ms,
        **plain_click,
    )


RUN_CELL = """([cell, ready, undrawn, limit]) => new Promise((done, fail) => {
    const {content} = window.jupyterapp.shell.currentWidget, isReady = eval(ready), begun = performance.now();
    const look = () => {
        const ms = performance.now() - begun;
        if (isReady()) setTimeout(() => done(performance.now() - begun));
        else if (ms > limit) fail(new Error(`not ready within ${limit} ms; no picture: ${eval(undrawn)().join("; ")}`));
        else requestAnimationFrame(look);
    };
    content.activeCellIndex = cell;
    window.jupyterapp.commands.execute("notebook:run-cell");
    look();
})"""
"""The time from the start of a cell to the frame in which the page is ready, ms."""

ROOM = f"room = control_room(cluster, group={GROUP!r}, topic={TOPIC!r}); room"
IN_PYTHON = f"""
import time
begun = time.perf_counter()
control_room(cluster, group={GROUP!r}, topic={TOPIC!r}).close()
python_s = time.perf_counter() - begun
"""
ROOM_READY = f'() => document.querySelectorAll(".sq-room .sq-view").length === 7 && !({UNDRAWN})().length'
SLIDERS = "ipywidgets.HBox([ipywidgets.IntSlider() for _ in range(8)])"
SLIDERS_READY = '() => document.querySelectorAll(".widget-slider").length === 8'


@pytest.mark.parametrize("source", ["busy", "crew"])
def test_the_first_picture_of_a_room(
    benchmark: Any, browser: Browser, jupyterlab: str, jupyterlab_folder: Path, source: str
) -> None:
    """Aim: below 1 s from the start of the cell until all views have their pictures. `busy`: a group of three members,
    `crew`: 10,000 records and 200 members. The floor is a cell with eight sliders."""
    benchmark.group = "browser: the first picture of a control room"
    imports = f"from shareq_widgets import control_room\nfrom tests.browser.busy import busy\ncluster = {source}()"
    cells = imports, "# the sliders", "# the room"
    with opened(browser, jupyterlab, jupyterlab_folder, f"room-{source}", *cells) as page:
        floor_ms = cell_ms(page, 2, SLIDERS, SLIDERS_READY)
        first_ms = cell_ms(page, 3, ROOM, ROOM_READY)
        execute(page, IN_PYTHON)
        kernel_ms = 1000 * kernel_value(page, "python_s")
    report(
        benchmark,
        [first_ms / 1000],
        first_ms=round(first_ms),
        floor_ms=round(floor_ms),
        made_in_python_ms=round(kernel_ms),
    )


SET_SOURCE = """([cell, code]) => {
    window.jupyterapp.shell.currentWidget.content.widgets[cell].model.sharedModel.setSource(code);
}"""


def cell_ms(page: Page, number: int, code: str, ready: str) -> float:
    """The time of this code in a cell until the page is ready, ms."""
    page.evaluate(SET_SOURCE, [number, code])
    return float(page.evaluate(RUN_CELL, [number, ready, UNDRAWN, READY_MS]))


# ---- a long journal --------------------------------------------------------------------------------------------------

LONG_SETUP = """
import time
from shareq.trace import Journal
from shareq_widgets import control_room, strip
"""
LONG_VIEW = """
begun = time.process_time()
shown = {}(Journal.from_parquet({!r}), group={!r}, topic={!r})
kernel_s = time.process_time() - begun
shown
"""
VIEWS_OF = {"strip": 1, "control_room": 1 + len(SIX)}
SEEKS = 20


@pytest.fixture(scope="module", params=VIEWS_OF)
def long_view(
    request: pytest.FixtureRequest, browser: Browser, jupyterlab: str, jupyterlab_folder: Path
) -> Iterator[tuple[Page, float]]:
    """A page with a view of a file with a journal, and the time from the start of its cell to its pictures, ms."""
    view, file = request.param, jupyterlab_folder / "long.parquet"
    if not file.exists():
        long_journal(EVENTS).to_parquet(file)
    show = LONG_VIEW.format(view, file.name, LONG_GROUP, LONG_TOPIC)
    ready = f'() => document.querySelectorAll(".sq-view").length === {VIEWS_OF[view]} && !({UNDRAWN})().length'
    with opened(browser, jupyterlab, jupyterlab_folder, f"long-{view}", LONG_SETUP, "# the view") as page:
        yield page, cell_ms(page, 2, show, ready)


def test_a_seek_in_a_long_journal(benchmark: Any, long_view: tuple[Page, float], plain_click: dict[str, float]) -> None:
    """Aims, for 1,000,000 events: below 100 ms from a random move of the timeline to the picture of the last view;
    below 3 s (`first_ms`) from the start of the cell that reads the file to the pictures of all views."""
    benchmark.group = "browser: a seek in a journal of a million events"
    (page, first_ms), draw = long_view, Random(1)
    with all_on_screen(page):
        found = moves(page, SEEKS, lambda: seek_ms(page, draw.random()))
    report(
        benchmark,
        [ms / 1000 for ms in found.lasts_ms],
        first_ms=round(first_ms),
        made_in_python_ms=round(1000 * kernel_value(page, "kernel_s")),
        seek_ms=round(median(found.lasts_ms), 1),
        worst_ms=round(max(found.lasts_ms), 1),
        hurried_ms=found.hurried_ms,
        **plain_click,
    )


# ---- the kernel ------------------------------------------------------------------------------------------------------

MEASURE = """
import time
def measured():
    return time.process_time(), time.monotonic(), cluster.journal.total
"""


def test_kernel_with_live_views(benchmark: Any, browser: Browser, jupyterlab: str, jupyterlab_folder: Path) -> None:
    """Aim: six views of a running cluster take less than a fifth of a core at 1,000 events a second. The floor is the
    cluster itself, whose brokers and clients run in the same kernel."""
    benchmark.group = "browser: the kernel's part of a core, in s a s"
    start = "cluster, feed = running(); views = {}\n" + MEASURE
    with opened(browser, jupyterlab, jupyterlab_folder, "live", start, "place") as page:
        execute(page, "feed.rate = 40")
        rate = 40 * 1_000 / max(kernel_part(page)[1], 1)
        execute(page, f"feed.rate = {min(rate, 1_000)}")
        alone, _ = kernel_part(page)
        execute(page, f"views |= {{name: shown(cluster, name) for name in {SIX!r}}}")
        execute(page, "place.children = list(views.values())")
        wait_for_pictures(page, len(SIX))
        watched, events = kernel_part(page)
        execute(page, "feed.close()")
    report(
        benchmark,
        [watched - alone],
        events_per_s=round(events),
        views=f"{watched - alone:.0%}",
        cluster_alone=f"{alone:.0%}",
        kernel=f"{watched:.0%}",
    )


def kernel_part(page: Page) -> tuple[float, float]:
    """The kernel's part of a core over some seconds, and the events a second."""
    cpu_s, at_s, total = kernel_value(page, "measured()")
    page.wait_for_timeout(LIVE_S * 1000)
    later_cpu_s, later_s, later_total = kernel_value(page, "measured()")
    return (later_cpu_s - cpu_s) / (later_s - at_s), (later_total - total) / (later_s - at_s)
