"""The drawings of views at the end of a running cluster: how often they are made, and for what."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.model.events import RecordsAppended, TopicCreated
from shareq.trace import Journal
from shareq.trace.views.group_timeline import GroupTimeline
from shareq_widgets.drawing import Drawing
from shareq_widgets.group_picture import AGED_MS, LIVE_MS, LIVE_SHARE, SLOW_SHARE, Frame, GroupPicture
from shareq_widgets.playback import Playback

COST_MS = 10


class Running:
    """A source on a wall clock whose journal grows when a test wants it."""

    closed = False

    def __init__(self) -> None:
        self.journal = Journal()
        self.now_ms = 0
        self.journal.record(0, 0, TopicCreated("t", "id", 1))

    def grow(self) -> None:
        self.now_ms += 1
        self.journal.record(self.now_ms, 0, RecordsAppended("t", 0, self.now_ms, self.now_ms + 1))


class PictureStage:
    """A view with a real time of its own; a drawing takes `cost_ms` of it."""

    def __init__(self, time_scale: float = 1.0, cost_ms: int = COST_MS) -> None:
        self.source, self.real_ms, self.cost_ms = Running(), 0.0, cost_ms
        self.frames: list[Frame] = []
        timeline = GroupTimeline(self.source, "g")
        playback = Playback(timeline, self.source, time_scale=time_scale)
        self.view = GroupPicture(timeline, playback, self.draw, title="Test", clock_ms=lambda: self.real_ms)

    def draw(self, frame: Frame) -> Drawing:
        self.frames.append(frame)
        self.real_ms += self.cost_ms
        return Drawing(frame.width)

    def drawn(self, action: Any, *arguments: Any) -> int:
        """The number of drawings that an action makes."""
        before = len(self.frames)
        action(*arguments)
        return len(self.frames) - before

    def grow_and_tick(self, after_ms: float) -> int:
        self.source.grow()
        self.real_ms += after_ms
        return self.drawn(self.view.tick)


def test_a_moment_is_drawn_once_however_often_it_ticks() -> None:
    stage = PictureStage()
    stage.real_ms += 10_000
    assert len(stage.frames) == 1
    assert [stage.drawn(stage.view.tick) for _ in range(3)] == [0, 0, 0]
    assert [stage.grow_and_tick(10_000), stage.drawn(stage.view.tick)] == [1, 0]
    assert stage.frames[-1].instant.until == stage.source.journal.total


def test_a_running_cluster_in_which_nothing_happens_is_drawn_at_its_time() -> None:
    """Events that a view does not count, such as heartbeats, and no events at all."""
    stage = PictureStage()
    stage.real_ms += 10_000
    stage.source.now_ms += 400
    assert stage.drawn(stage.view.tick) == 0
    stage.source.now_ms += AGED_MS
    assert stage.drawn(stage.view.tick) == 1
    assert stage.frames[-1].instant.now_ms == stage.source.now_ms


def test_a_live_view_draws_as_often_as_its_cost_allows() -> None:
    stage = PictureStage()
    every = [stage.grow_and_tick(COST_MS) for _ in range(3 * LIVE_SHARE)]
    assert sum(every) == 3
    assert every[LIVE_SHARE - 1] == 1


@pytest.mark.parametrize(
    ("cost_ms", "wait_ms"),
    [
        pytest.param(10, 300, id="a fast drawing"),
        pytest.param(30, LIVE_MS, id="a slow one is drawn once a second"),
        pytest.param(40, LIVE_MS, id="the slowest that is"),
        pytest.param(90, 90 * SLOW_SHARE, id="a slower one keeps its share"),
    ],
)
def test_the_wait_between_two_drawings(cost_ms: int, wait_ms: int) -> None:
    stage = PictureStage(cost_ms=cost_ms)
    assert stage.grow_and_tick(wait_ms - 1) == 0
    assert stage.grow_and_tick(1) == 1


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda view: view.seek(0), id="a seek"),
        pytest.param(lambda view: view.select("member:m"), id="a selection"),
        pytest.param(lambda view: view.set_trait("width", 500), id="another width"),
    ],
)
def test_what_a_person_does_is_drawn_at_once(act: Any) -> None:
    stage = PictureStage()
    assert stage.grow_and_tick(0) == 0
    assert stage.drawn(act, stage.view) == 1


def test_a_cluster_that_has_closed_is_drawn_to_its_end() -> None:
    stage = PictureStage()
    assert stage.grow_and_tick(0) == 0
    stage.source.closed = True
    assert stage.drawn(stage.view.tick) == 1
    assert stage.frames[-1].instant.until == stage.source.journal.total


def test_a_hidden_live_view_draws_nothing_until_it_is_visible() -> None:
    stage = PictureStage()
    stage.view.set_visible(False)
    assert [stage.grow_and_tick(10_000) for _ in range(3)] == [0, 0, 0]
    stage.view.set_visible(True)
    assert stage.grow_and_tick(10_000) == 1
