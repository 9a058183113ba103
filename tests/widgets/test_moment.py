"""Linked views: one moment and one selection, whichever of them moves."""

from __future__ import annotations

from typing import Any

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq_widgets import control_room, strip
from shareq_widgets.drawing import Drawing
from shareq_widgets.group_picture import Frame, GroupPicture
from shareq_widgets.selection import member
from shareq_widgets.views import group_picture
from tests.trace.test_group_history import busy_cluster


class Clock:
    """Real time that tests set."""

    def __init__(self) -> None:
        self.ms = 0.0

    def __call__(self) -> float:
        return self.ms


def draw(frame: Frame) -> Drawing:
    """A picture that shows its moment: the number of records in flight."""
    instant = frame.instant
    in_flight = sum(
        instant.history.share_partition(*found, instant.until).in_flight
        for found in instant.history.share_partitions(instant.until)
    )
    drawing = Drawing(frame.width, 40, text=f"{in_flight} in flight until {instant.until} at {instant.now_ms}")
    drawing.label("in flight", 10, 20, str(in_flight), title=frame.selection)
    return drawing


def picture(source: Any, **options: Any) -> GroupPicture:
    return group_picture(source, "g", draw, "In flight", options)  # type: ignore[arg-type]


def test_a_step_of_one_view_moves_the_others() -> None:
    cluster = busy_cluster()
    one, two = (strip(cluster, group="g", topic="orders", partition=partition) for partition in (0, 1))
    picked = picture(cluster)
    one.seek(8)
    entry = one._playback.view.entry(8)  # type: ignore[attr-defined]
    assert picked.drawing["text"].endswith(f"until {entry.order + 1} at {entry.time_ms}")
    assert not picked.live
    assert two.snapshot["order"] == two._playback.view.at_moment(entry.order + 1)
    assert two.snapshot["now_ms"] == entry.time_ms
    picked.back()
    assert one.snapshot["now_ms"] == picked.drawing["now_ms"] <= entry.time_ms
    assert one.order <= 8


def test_a_time_between_two_events_is_the_same_in_all_views() -> None:
    cluster = busy_cluster()
    one, picked = strip(cluster, group="g", topic="orders"), picture(cluster)
    times = [entry.time_ms for entry in cluster.journal]
    middle = (times[0] + times[-1]) // 2
    one.seek_time(middle)
    until = sum(time <= middle for time in times)
    assert picked.drawing["text"].endswith(f"until {until} at {middle}")
    picked.last()
    assert one.live
    assert one.order == one.total


def test_views_that_are_not_linked_stay() -> None:
    cluster = busy_cluster()
    alone, one = strip(cluster, group="g", topic="orders", linked=False), strip(cluster, group="g", topic="orders")
    one.seek(3)
    assert (alone.live, alone.order) == (True, alone.total)


def test_a_new_view_brings_the_others_to_the_end() -> None:
    cluster = busy_cluster()
    one = strip(cluster, group="g", topic="orders")
    one.seek(3)
    picture(cluster)
    assert one.live


def test_a_view_that_joins_shows_the_moment_of_the_others() -> None:
    cluster = busy_cluster()
    one = strip(cluster, group="g", topic="orders")
    one.seek(3)
    picked = picture(cluster, joins=True)
    assert (one.order, one.live) == (3, False)
    assert (picked.live, picked.drawing["now_ms"]) == (False, one.snapshot["now_ms"])


def test_a_new_tab_of_a_control_room_keeps_the_moment() -> None:
    cluster = busy_cluster()
    room = control_room(cluster, group="g", topic="orders")
    room.screen.timeline.seek(5)
    room.screen.slots["left"].shown = "record"
    assert (room.screen.timeline.order, room.screen.timeline.live) == (5, False)
    assert room.screen.slots["left"].views["record"].snapshot["now_ms"] == room.screen.timeline.snapshot["now_ms"]
    room.close()


def test_a_selection_is_marked_in_all_views() -> None:
    cluster = busy_cluster()
    one, picked = strip(cluster, group="g", topic="orders"), picture(cluster)
    picked.select(member("m-a"))
    assert one.selection == "member:m-a"
    assert picked.drawing["elements"][0]["title"] == "member:m-a"
    one.selection = ""
    assert picked.selection == ""
    with pytest.raises(ValueError, match="subject must be"):
        one.select("planet:mars")
    with pytest.raises(ValueError, match="subject must be"):
        one.selection = "planet:mars"
    assert one.selection == picked.selection == ""


def test_only_one_view_plays_what_happened() -> None:
    """Two views see new events: the first that ticks plays them, the other shows its moments."""
    cluster = Cluster(seed=1)
    cluster.create_topic("orders", 1)
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    one, two = picture(cluster), strip(cluster, group="g", topic="orders")
    clock = Clock()
    one._clock_ms = two._clock_ms = clock
    with Producer(config) as producer, ShareConsumer({**config, "group.id": "g"}) as consumer:
        consumer.subscribe(["orders"])
        for _ in range(20):
            producer.produce("orders", b"x")
        producer.flush()
        while not consumer.poll(1):
            pass
    one.tick()
    assert one._playback.moving
    seen = []
    for _ in range(200):
        clock.ms += 50
        two.tick()
        one.tick()
        assert two.snapshot["now_ms"] == one.drawing["now_ms"]
        assert not two._playback.moving
        seen.append(two.snapshot["now_ms"])
        if not one._playback.moving:
            break
    assert len(set(seen)) > 3
    assert one.live
    assert (two.order, two.live) == (two.total, True)


def test_a_view_that_stops_ticking_loses_the_role() -> None:
    cluster = busy_cluster()
    one, two = strip(cluster, group="g", topic="orders"), strip(cluster, group="g", topic="orders")
    clock = Clock()
    one._clock_ms = two._clock_ms = clock
    one.first()
    one.play()
    clock.ms += 200
    one.tick()
    at = two.order
    clock.ms += 900
    assert not two._moment.may_move(two, clock.ms)
    clock.ms += 200
    assert two._moment.may_move(two, clock.ms)
    two.tick()
    assert two.order == at
    two.step()
    assert not one.playing


def test_a_hidden_view_shows_the_moment_when_it_is_visible_again() -> None:
    cluster = busy_cluster()
    one, two = strip(cluster, group="g", topic="orders"), strip(cluster, group="g", topic="orders")
    two._on_message(two, {"do": "visible", "value": False}, [])
    one.seek(3)
    assert two.order == two.total
    two._on_message(two, {"do": "visible", "value": True}, [])
    assert two.order == 3
