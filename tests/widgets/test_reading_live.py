"""A program reads a live view, also within one cell, in which no front end ticks: it gets what has happened so far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shareq.broker import Cluster
from shareq.consumer import ShareConsumer
from shareq.producer import Producer
from shareq_widgets import charts, control_room, locks, strip

GROUP, TOPIC = "g", "t"
VIEWS: dict[str, Callable[..., Any]] = {
    "strip": lambda cluster, **more: strip(cluster, group=GROUP, topic=TOPIC, **more),
    "locks": lambda cluster, **more: locks(cluster, group=GROUP, **more),
    "charts": lambda cluster, **more: charts(cluster, group=GROUP, **more),
}


class Stage:
    """A cluster with ten records, and a consumer."""

    def __init__(self) -> None:
        self.cluster = Cluster(brokers=1)
        self.cluster.create_topic(TOPIC)
        self.cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
        address = {"bootstrap.servers": self.cluster.bootstrap_servers}
        with Producer(address) as producer:
            for number in range(10):
                producer.produce(TOPIC, str(number))
        self.consumer = ShareConsumer({**address, "group.id": GROUP, "max.poll.records": 4})
        self.consumer.subscribe([TOPIC])

    def poll(self) -> None:
        while not self.consumer.poll(6):
            pass


@pytest.fixture
def stage() -> Stage:
    return Stage()


def image(view: Any) -> str:
    made: str = view.to_svg()
    return made


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("read", [repr, image, lambda view: view.snapshot], ids=["text", "picture", "snapshot"])
def test_a_live_view_shows_what_has_happened(stage: Stage, name: str, read: Callable[[Any], object]) -> None:
    view = VIEWS[name](stage.cluster)
    stage.poll()
    assert read(view) == read(VIEWS[name](stage.cluster, linked=False))
    assert view.live
    before = read(view)
    stage.consumer.commit_sync()
    assert before != read(view) == read(VIEWS[name](stage.cluster, linked=False))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_the_past_stays_there(stage: Stage, name: str) -> None:
    view = VIEWS[name](stage.cluster)
    stage.poll()
    view.seek(1)
    before = repr(view), image(view), view.snapshot
    stage.consumer.commit_sync()
    assert (repr(view), image(view), view.snapshot) == before
    view.last()
    assert repr(view) != before[0]


def test_linked_views_catch_up_together(stage: Stage) -> None:
    first, second = VIEWS["strip"](stage.cluster), VIEWS["charts"](stage.cluster)
    stage.poll()
    repr(second)
    assert first._playback.position == second._playback.position


def test_what_a_front_end_plays_is_not_skipped_by_a_look(stage: Stage) -> None:
    """While new events are played, all linked views have the played moment; afterwards that of now."""
    view, linked = VIEWS["strip"](stage.cluster), VIEWS["charts"](stage.cluster)
    for each in (view, linked):
        each._clock_ms = lambda: 0.0
    stage.poll()
    view.tick()
    played = view._playback.snapshot
    repr(view), repr(linked), image(view)
    assert view.snapshot == played
    assert view._playback.moving
    assert linked.snapshot["now_ms"] == played["now_ms"]
    view.pause()
    view.last()
    assert repr(view) == repr(VIEWS["strip"](stage.cluster, linked=False))


@pytest.mark.parametrize("asked", [0, 1], ids=["itself", "a linked view"])
def test_a_play_that_was_scrolled_away_is_not_waited_for(stage: Stage, asked: int) -> None:
    """No page ticks for it: a notebook that is saved then has the pictures of now."""
    pair = VIEWS["strip"](stage.cluster), VIEWS["charts"](stage.cluster)
    for each in pair:
        each._clock_ms = lambda: 0.0
        each.set_visible(True, "copy")
    stage.poll()
    pair[0].tick()
    assert pair[0]._playback.moving
    for each in pair:
        each.set_visible(False, "copy")
    repr(pair[asked])
    ends = VIEWS["strip"](stage.cluster, linked=False), VIEWS["charts"](stage.cluster, linked=False)
    assert [repr(each) for each in pair] == [repr(each) for each in ends]
    assert not pair[0]._playback.moving


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_a_file_has_what_has_happened(stage: Stage, tmp_path: Path, suffix: str) -> None:
    live = [VIEWS["strip"](stage.cluster), control_room(stage.cluster, group=GROUP, topic=TOPIC)]
    stage.poll()
    for number, view in enumerate(live):
        made = view.save(tmp_path / f"live-{number}.{suffix}").read_text()
        other = VIEWS["strip"](stage.cluster) if number == 0 else control_room(stage.cluster, group=GROUP, topic=TOPIC)
        assert made == other.save(tmp_path / f"new-{number}.{suffix}").read_text()
