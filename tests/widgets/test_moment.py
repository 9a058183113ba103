"""Linked views: one moment and one selection, whichever of them moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.trace.views.group_timeline import GroupTimeline
from shareq_widgets import control_room, strip, views
from shareq_widgets.drawing import Drawing
from shareq_widgets.group_picture import Frame, GroupPicture
from shareq_widgets.playback import Playback
from shareq_widgets.player import Player
from shareq_widgets.selection import member
from shareq_widgets.views import group_picture
from tests.trace.test_group_history import busy_cluster
from tests.widgets.fakes import Clock


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


def test_the_most_expensive_view_is_drawn_first() -> None:
    cluster, clock = busy_cluster(), Clock()
    drawn: list[float] = []

    def costing(cost_ms: float) -> GroupPicture:
        def draw_slowly(frame: Frame) -> Drawing:
            clock.ms += cost_ms
            drawn.append(cost_ms)
            return draw(frame)

        timeline = GroupTimeline(cluster, "g")
        return GroupPicture(timeline, Playback(timeline, cluster), draw_slowly, title="In flight", clock_ms=clock)

    mover = strip(cluster, group="g", topic="orders")
    shown = [costing(cost_ms) for cost_ms in (2, 9, 1, 5)]
    drawn.clear()
    mover.first()
    assert drawn == [9, 5, 2, 1]
    assert {view.snapshot["now_ms"] for view in shown} == {mover.snapshot["now_ms"]}


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
    assert picked.drawing["elements"]["in flight"]["title"] == "member:m-a"
    one.selection = ""
    assert picked.selection == ""
    with pytest.raises(ValueError, match="subject must be"):
        one.select("planet:mars")
    with pytest.raises(ValueError, match="subject must be"):
        one.selection = "planet:mars"
    assert one.selection == picked.selection == ""


def test_only_one_view_plays_what_happened() -> None:
    """Two views see new events: the first that ticks plays them, the other shows its moments."""
    cluster, move = moved_cluster()
    one, two = picture(cluster), strip(cluster, group="g", topic="orders")
    clock = Clock()
    one._clock_ms = two._clock_ms = clock
    move()
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


def test_linked_views_receive_the_same_number_with_each_moment() -> None:
    """A page draws a moment when all of its views have the number: it changes if, and only if, the position does."""
    cluster, move = moved_cluster()
    made = [strip(cluster, group="g", topic="orders"), picture(cluster), picture(cluster, joins=True)]
    clock = Clock()
    for view in made:
        view._clock_ms = clock
    numbers: dict[int, Any] = {}

    def received() -> None:
        (mark,) = {view.moment for view in made}
        position = made[0]._moment.position
        assert numbers.setdefault(mark[1], position) == position

    received()
    move()
    made[1].tick()
    while made[1]._playback.moving:
        received()
        clock.ms += 50
        made[1].tick()
    for command in (made[1].tick, made[2].back, made[0].first, made[1].step, made[0].last, lambda: picture(cluster)):
        command()
        received()
    assert len(numbers) > 8
    assert len(set(numbers.values())) == len(numbers) - 1  # the end, twice
    assert strip(cluster, group="g", topic="orders", linked=False).moment[0] != made[0].moment[0]


def test_views_on_a_running_clock_have_the_same_number() -> None:
    """The time has passed when the position of the moving view is read a second time."""
    with Cluster(clock="wall") as cluster:
        cluster.create_topic("orders", 1)
        made = [strip(cluster, group="g", topic="orders"), picture(cluster)]
        for move in (made[0].tick, made[0].first, made[1].last):
            move()
            assert made[0].moment == made[1].moment


def moved_cluster() -> tuple[Cluster, Callable[[], None]]:
    """A cluster with an idle group, and what produces records for it and lets a consumer take them."""
    cluster = Cluster(seed=1)
    cluster.create_topic("orders", 1)
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
    config = {"bootstrap.servers": cluster.bootstrap_servers}

    def move() -> None:
        with Producer(config) as producer, ShareConsumer({**config, "group.id": "g"}) as consumer:
            consumer.subscribe(["orders"])
            for _ in range(20):
                producer.produce("orders", b"x")
            producer.flush()
            while not consumer.poll(1):
                pass

    return cluster, move


def drawn_moment(view: GroupPicture) -> tuple[int, int]:
    """The entries of the journal, and the time, that `draw` has drawn."""
    until, _, now_ms = view.drawing["text"].split(" until ")[1].split()
    return int(until), int(now_ms)


def test_no_picture_is_ahead_of_the_view_that_plays() -> None:
    """The pictures follow a strip that plays what happened: each is drawn from the entries up to its moment."""
    cluster, move = moved_cluster()
    leading, shown = strip(cluster, group="g", topic="orders"), [picture(cluster) for _ in range(2)]
    clock = Clock()
    for view in (leading, *shown):
        view._clock_ms = clock
    before = drawn_moment(shown[0])
    move()
    shown[0].redraw()
    assert drawn_moment(shown[0]) == before
    leading.tick()
    seen = []
    while leading._playback.moving:
        for view in shown:
            view.redraw()
            assert drawn_moment(view) == (leading._playback.position.until, leading.snapshot["now_ms"])
        seen.append(drawn_moment(shown[0])[0])
        clock.ms += 50
        leading.tick()
    assert len(set(seen)) > 3
    assert {drawn_moment(view)[0] for view in shown} == {cluster.journal.total}


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


# ---- a span of time --------------------------------------------------------------------------------------------------


@pytest.fixture
def zoomable() -> tuple[Cluster, dict[str, Player]]:
    """A cluster, and linked views of it."""
    cluster = busy_cluster()
    place: dict[str, Any] = {"group": "g", "topic": "orders"}
    made = {
        "strip": strip(cluster, **place), "raster": views.raster(cluster, **place),
        "charts": views.charts(cluster, group="g"), "messages": views.messages(cluster, group="g"),
    }  # fmt: skip
    return cluster, made


def shown_span(player: Player) -> tuple[int, int]:
    return player.axis["start_ms"], player.axis["end_ms"]


def test_a_zoom_shows_a_span_on_all_time_axes_and_marks_it_in_the_raster(
    zoomable: tuple[Cluster, dict[str, Player]],
) -> None:
    cluster, made = zoomable
    end_ms = cluster.now_ms
    begin_ms = end_ms - (end_ms - cluster.journal.origin_ms) // 2
    made["raster"]._on_message(made["raster"], {"do": "zoom", "value": [begin_ms, end_ms]}, [])
    assert {shown_span(player) for player in made.values()} == {(begin_ms, end_ms)}
    charts, raster = made["charts"], made["raster"]
    assert isinstance(charts, GroupPicture)
    assert isinstance(raster, GroupPicture)
    assert (charts.drawing["brush"]["from_ms"], charts.drawing["brush"]["to_ms"]) == (begin_ms, end_ms)
    assert raster.drawing["brush"]["from_ms"] < begin_ms
    area, band = raster.drawing["brush"], raster.drawing["elements"]["before the span"]["attributes"]
    share = (begin_ms - area["from_ms"]) / (area["to_ms"] - area["from_ms"])
    assert band["width"] == pytest.approx(share * (area["right"] - area["left"]), abs=0.01)
    made["strip"]._on_message(made["strip"], {"do": "zoom", "value": None}, [])
    assert all(player.axis["start_ms"] == player.axis["first_ms"] for player in made.values())
    assert "span" not in raster.drawing["elements"]


def test_a_zoom_ends_when_the_views_move_out_of_it(zoomable: tuple[Cluster, dict[str, Player]]) -> None:
    _, made = zoomable
    strip_, charts = made["strip"], made["charts"]
    last_ms = strip_.axis["last_ms"]
    strip_.zoom(last_ms - 1_000, last_ms)
    strip_.seek_time(last_ms - 500)
    assert shown_span(charts) == (last_ms - 1_000, last_ms)
    strip_.first()
    assert shown_span(charts) == shown_span(strip_) == (charts.axis["first_ms"], last_ms)


@pytest.mark.parametrize("span", [(5, 5), (6, 5), (1, None), (1.5, 7)])
def test_a_span_that_is_none_is_refused(span: Any, zoomable: tuple[Cluster, dict[str, Player]]) -> None:
    _, made = zoomable
    with pytest.raises(ValueError, match="the span must be two whole numbers"):
        made["strip"].zoom(*span)
    assert made["strip"].axis["start_ms"] == made["strip"].axis["first_ms"]


def test_a_zoom_of_the_live_end_moves_with_it(zoomable: tuple[Cluster, dict[str, Player]]) -> None:
    cluster, made = zoomable
    last_ms = made["strip"].axis["last_ms"]
    made["strip"].zoom(last_ms - 1_000, last_ms)
    cluster.advance(20_000)
    made["charts"].last()
    now_ms = made["charts"].snapshot["now_ms"]
    assert now_ms > last_ms
    assert {shown_span(player) for player in made.values()} == {(now_ms - 1_000, now_ms)}
