"""Cost of a journal of a million events: opening it, seeking in it with every view, and following it live.

Figures are seconds of one processor: the drawing in the browser is not part of them, other programs do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.trace import Journal
from shareq_widgets import control_room, views
from shareq_widgets.group_picture import GroupPicture
from shareq_widgets.partition_strip import strip
from shareq_widgets.player import Player
from tests.bench.long_journals import GROUP, LOCK_MS, ORIGIN_MS, TOPIC, long_entries, long_journal
from tests.bench.reported import REPORTED

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(timer=time.process_time)]

EVENTS = 1_000_000
PLACE: Any = {"group": GROUP, "topic": TOPIC}

VIEWS: dict[str, Callable[[Any], Player]] = {
    "strip": lambda source: strip(source, **PLACE),
    "locks": lambda source: views.locks(source, group=GROUP),
    "states": lambda source: views.states(source, group=GROUP),
    "group": lambda source: views.group(source, group=GROUP),
    "cluster": lambda source: views.cluster(source, group=GROUP),
    "messages": lambda source: views.messages(source, group=GROUP),
    "raster": lambda source: views.raster(source, **PLACE),
    "charts": lambda source: views.charts(source, group=GROUP),
    "record": lambda source: views.record(source, **PLACE, offset=EVENTS // 10),
    "state_topic": lambda source: views.state_topic(source, **PLACE),
}


@cache
def opened() -> Journal:
    """A journal that views have read already."""
    return long_journal(EVENTS)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("journals") / "long.parquet"
    long_journal(EVENTS).to_parquet(path)
    return path


@pytest.mark.parametrize("view", ["strip", "control room"])
@pytest.mark.parametrize("form", ["memory", "parquet"])
def test_the_first_picture(benchmark: BenchmarkFixture, file: Path, form: str, view: str) -> None:
    """Goal: below 3 s."""
    show: Any = strip if view == "strip" else control_room

    def first_picture() -> Any:
        return show(long_journal(EVENTS) if form == "memory" else Journal.from_parquet(file), **PLACE)

    made = benchmark.pedantic(first_picture, rounds=2)
    shown = made if view == "strip" else made.screen.strip
    assert shown.total > EVENTS / 3


@pytest.mark.parametrize("name", VIEWS)
def test_a_seek_at_random(benchmark: BenchmarkFixture, name: str) -> None:
    """Goal: below 100 ms, the worst one, too."""
    view, draw = VIEWS[name](opened()), Random(1)
    benchmark.pedantic(lambda: view.seek(draw.randrange(view.total)), rounds=30, warmup_rounds=1)
    view.close()


def test_a_click_that_moves_six_linked_views(benchmark: BenchmarkFixture) -> None:
    """Goal: below 100 ms."""
    room, draw = control_room(opened(), **PLACE), Random(1)
    timeline = room.screen.timeline
    benchmark.pedantic(lambda: timeline.seek(draw.randrange(timeline.total)), rounds=20, warmup_rounds=1)
    assert {view.snapshot["now_ms"] for view in (timeline, room.screen.strip)} == {timeline.snapshot["now_ms"]}
    room.close()


@pytest.mark.parametrize("name", VIEWS)
def test_the_first_use_of_a_view(benchmark: BenchmarkFixture, name: str) -> None:
    """Beside a strip that shows the journal already."""

    def beside() -> tuple[tuple[Journal, Player], dict[str, Any]]:
        journal = long_journal(EVENTS)
        return (journal, strip(journal, **PLACE)), {}

    benchmark.pedantic(lambda journal, _: VIEWS[name](journal), setup=beside, rounds=1)


class Running:
    """A cluster on a wall clock whose journal grows by 1,000 events a second."""

    clock, closed, scheduler = "wall", False, None

    def __init__(self, begin: int) -> None:
        self.journal = Journal(ORIGIN_MS)
        self._entries = iter(long_entries(EVENTS))
        self.now_ms = ORIGIN_MS
        self.grow(begin)

    def grow(self, count: int) -> None:
        for _ in range(count):
            _, self.now_ms, broker_id, event = next(self._entries)
            self.journal.record(self.now_ms, broker_id, event)


@pytest.mark.benchmark(timer=REPORTED)
def test_the_share_of_a_core_at_1000_events_a_second(
    benchmark: BenchmarkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven linked views that tick ten times a second. Seconds of the processor for each second of the cluster; goal:
    below 0.2. `drawings`: the number for each view in a second; goal: at least 1."""
    source, clock, ticks = Running(300_000), Clock(), 100
    made = {name: VIEWS[name](source) for name in ("strip", "locks", "states", "group", "cluster", "raster", "charts")}
    drawings = dict.fromkeys(made, 0)
    for name, view in made.items():
        monkeypatch.setattr(view, "_clock_ms", clock)
        monkeypatch.setattr(view, "_ticked_ms", 0.0)
        if isinstance(view, GroupPicture):
            monkeypatch.setattr(view, "_drawn_ms", 0.0)
            monkeypatch.setattr(view, "_drawing", counted(view, name, drawings))

    def ten_seconds() -> None:
        begun = time.process_time()
        for _ in range(ticks):
            source.grow(100)
            clock.go_on(100)
            for view in made.values():
                view.tick()
        REPORTED.now += (time.process_time() - begun) / (ticks / 10)

    benchmark.pedantic(ten_seconds, rounds=2)
    benchmark.extra_info["drawings"] = {name: count / 20 for name, count in drawings.items()}
    assert min(view.snapshot["now_ms"] for view in made.values()) > ORIGIN_MS + LOCK_MS


class Clock:
    """A real time of its own: it goes on by the ticks, and within one by the time of the processor."""

    def __init__(self) -> None:
        self._ms, self._begun = 0.0, time.process_time()

    def __call__(self) -> float:
        return self._ms + (time.process_time() - self._begun) * 1000

    def go_on(self, ms: float) -> None:
        self._ms, self._begun = self._ms + ms, time.process_time()


def counted(view: GroupPicture, name: str, drawings: dict[str, int]) -> Callable[..., Any]:
    draw = view._drawing

    def drawing(*arguments: Any) -> Any:
        drawings[name] += 1
        return draw(*arguments)

    return drawing
