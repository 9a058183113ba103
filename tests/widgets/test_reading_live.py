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


class Scene:
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
def scene() -> Scene:
    return Scene()


def image(view: Any) -> str:
    made: str = view.to_svg()
    return made


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("read", [repr, image, lambda view: view.snapshot], ids=["text", "picture", "snapshot"])
def test_a_live_view_shows_what_has_happened(scene: Scene, name: str, read: Callable[[Any], object]) -> None:
    view = VIEWS[name](scene.cluster)
    scene.poll()
    assert read(view) == read(VIEWS[name](scene.cluster, linked=False))
    assert view.live
    before = read(view)
    scene.consumer.commit_sync()
    assert before != read(view) == read(VIEWS[name](scene.cluster, linked=False))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_the_past_stays_there(scene: Scene, name: str) -> None:
    view = VIEWS[name](scene.cluster)
    scene.poll()
    view.seek(1)
    before = repr(view), image(view), view.snapshot
    scene.consumer.commit_sync()
    assert (repr(view), image(view), view.snapshot) == before
    view.last()
    assert repr(view) != before[0]


def test_linked_views_catch_up_together(scene: Scene) -> None:
    first, second = VIEWS["strip"](scene.cluster), VIEWS["charts"](scene.cluster)
    scene.poll()
    repr(second)
    assert first._playback.position == second._playback.position


def test_what_a_front_end_plays_is_not_skipped_by_a_look(scene: Scene) -> None:
    """While new events are played, all linked views have the played moment; afterwards that of now."""
    view, linked = VIEWS["strip"](scene.cluster), VIEWS["charts"](scene.cluster)
    for each in (view, linked):
        each._clock_ms = lambda: 0.0
    scene.poll()
    view.tick()
    played = view._playback.snapshot
    repr(view), repr(linked), image(view)
    assert view.snapshot == played
    assert view._playback.moving
    assert linked.snapshot["now_ms"] == played["now_ms"]
    view.pause()
    view.last()
    assert repr(view) == repr(VIEWS["strip"](scene.cluster, linked=False))


@pytest.mark.parametrize("asked", [0, 1], ids=["itself", "a linked view"])
def test_a_play_that_was_scrolled_away_is_not_waited_for(scene: Scene, asked: int) -> None:
    """No page ticks for it: a notebook that is saved then has the pictures of now."""
    pair = VIEWS["strip"](scene.cluster), VIEWS["charts"](scene.cluster)
    for each in pair:
        each._clock_ms = lambda: 0.0
        each.set_visible(True, "copy")
    scene.poll()
    pair[0].tick()
    assert pair[0]._playback.moving
    for each in pair:
        each.set_visible(False, "copy")
    repr(pair[asked])
    ends = VIEWS["strip"](scene.cluster, linked=False), VIEWS["charts"](scene.cluster, linked=False)
    assert [repr(each) for each in pair] == [repr(each) for each in ends]
    assert not pair[0]._playback.moving


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_a_file_has_what_has_happened(scene: Scene, tmp_path: Path, suffix: str) -> None:
    live = [VIEWS["strip"](scene.cluster), control_room(scene.cluster, group=GROUP, topic=TOPIC)]
    scene.poll()
    for number, view in enumerate(live):
        made = view.save(tmp_path / f"live-{number}.{suffix}").read_text()
        other = VIEWS["strip"](scene.cluster) if number == 0 else control_room(scene.cluster, group=GROUP, topic=TOPIC)
        assert made == other.save(tmp_path / f"new-{number}.{suffix}").read_text()
