"""The moves of a playback: in a finished journal, with a virtual cluster, after a running one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.trace import view
from shareq_widgets.catch_up import SCENES, catch_up
from shareq_widgets.driving import QUIET_MS, STEPS_AT_ONCE
from shareq_widgets.ending import end_message
from shareq_widgets.playback import EVENT_MAX_MS, EVENT_MIN_MS, Playback
from tests.budgets import cases
from tests.trace.random_clusters import GROUP, random_cluster
from tests.widgets.fakes import ORIGIN_MS, FakeCluster, FakeView, History, payments

END = len(payments().snapshots) - 1


def journal() -> Playback:
    return Playback(FakeView(payments().snapshots))


def cluster(shown: int = 5, clock: str | float = "virtual", scale: float = 0.0) -> tuple[Playback, FakeCluster]:
    source = FakeCluster(payments(), shown, clock)
    return Playback(source.view, source, time_scale=scale), source


Move = Callable[[Playback], Any]
MOVES = [
    pytest.param(3, lambda p: p.step(), 4, False, id="step shows the next event"),
    pytest.param(END - 1, lambda p: p.step(), END, True, id="step onto the end follows it"),
    pytest.param(END, lambda p: p.step(), END, True, id="step at the end stays"),
    pytest.param(3, lambda p: p.back(), 2, False, id="back shows the previous event"),
    pytest.param(0, lambda p: p.back(), 0, False, id="back at the beginning stays"),
    pytest.param(END, lambda p: p.back(), END - 1, False, id="back leaves the live end"),
    pytest.param(7, lambda p: p.seek(0), 0, False, id="to the beginning"),
    pytest.param(7, lambda p: p.seek(END), END, True, id="seek to the end follows it"),
    pytest.param(7, lambda p: p.set_live(True), END, True, id="live goes to the end"),
    pytest.param(END, lambda p: p.set_live(False), END, False, id="live off stays where it is"),
    pytest.param(7, lambda p: p.play(), 7, False, id="play starts from here"),
    pytest.param(END, lambda p: p.play(), 0, False, id="play at the end of a journal starts again"),
    pytest.param(7, lambda p: p.pause(), 7, False, id="pause keeps the event"),
]


@pytest.mark.parametrize(("start", "move", "order", "live"), MOVES)
def test_moves(start: int, move: Move, order: int, live: bool) -> None:
    playback = journal()
    playback.seek(start)
    move(playback)
    assert (playback.order, playback.live) == (order, live)
    assert playback.snapshot["order"] == order


@pytest.mark.parametrize(
    ("order", "shown"),
    [
        pytest.param(-1, "-1", id="before the beginning"),
        pytest.param(END + 1, str(END + 1), id="past the end"),
        pytest.param(2.5, "2.5", id="between two events"),
        pytest.param(True, "True", id="a bool is no order"),
        pytest.param("3", "'3'", id="text"),
    ],
)
def test_seek_outside_is_refused_and_moves_nothing(order: object, shown: str) -> None:
    playback = journal()
    playback.seek(4)
    with pytest.raises(ValueError, match=rf"order must be a whole number from 0 to {END}, not {shown}"):
        playback.seek(order)
    assert playback.order == 4


@pytest.mark.parametrize("speed", [0, -1, 0.2, 10.5, float("nan"), "2", True, None])
def test_speed_outside_is_refused(speed: object) -> None:
    playback = journal()
    with pytest.raises(ValueError, match=r"speed must be from 0\.25 to 10, not"):
        playback.set_speed(speed)
    assert playback.speed == 1.0


def run(playback: Playback, ticks: int = 20) -> None:
    for _ in range(ticks):
        playback.tick(100)


@pytest.mark.parametrize("move", [Playback.step, Playback.play], ids=["step", "play"])
def test_only_run_on_drives_a_cluster(move: Move) -> None:
    playback, source = cluster(shown=5)
    playback.seek(3)
    move(playback)
    run(playback)
    playback.step()
    playback.step()
    assert (playback.order, source.steps) == (5, 0)
    assert playback.message == "This is the end of the recording: run on lets the cluster run."


def test_run_on_drives_a_cluster_from_the_end_until_an_instant_is_over() -> None:
    """Two events of one instant are one step, and no half of it is shown."""
    story = History().acquire("m-a", 100, 103).acquire("m-b", 103, 106).acquire("m-c", 106, 107, after_ms=0)
    story.settle(100, 101, "acknowledged", after_ms=500)
    source = FakeCluster(story, 1)
    source.view._steps = [0, 1, 3, 4]
    playback = Playback(source.view, source)
    playback.seek(0)
    playback.run_on()
    assert (playback.order, playback.live, playback.running_on, source.view.total()) == (1, True, True, 4)
    playback.tick(400)
    assert playback.order == 3


def test_run_on_ends_where_nothing_can_happen() -> None:
    playback, source = cluster(shown=END)
    playback.run_on()
    assert (playback.order, source.steps, playback.playing, playback.running_on) == (END, 1, False, False)
    assert playback.message.startswith("Nothing more happens here but heartbeats")


@pytest.mark.parametrize(
    ("snapshot", "end"),
    [
        pytest.param(
            {"waits": "log end"}, "acknowledges: all records that the group may read are delivered.", id="known"
        ),
        pytest.param({"waits": None}, "acknowledges.", id="not known"),
        pytest.param({}, "acknowledges.", id="a view of several share-partitions"),
    ],
)
def test_the_end_of_a_run_names_what_the_share_partition_waits_for(snapshot: dict[str, Any], end: str) -> None:
    playback, _ = cluster(shown=END)
    shown: Any = {key: value for key, value in playback.snapshot.items() if key != "waits"}
    shown.update(snapshot)
    playback.running_on, playback.snapshot = True, shown
    assert end_message(playback).endswith(end)


def test_run_on_stops_after_a_bound_if_only_other_partitions_have_events() -> None:
    source = FakeCluster(payments(), 5, others=STEPS_AT_ONCE * 2)
    playback = Playback(source.view, source)
    playback.run_on()
    assert (playback.order, source.steps) == (5, STEPS_AT_ONCE)
    assert playback.message.startswith("Nothing more happens")


class Quiet(FakeCluster):
    """A cluster in which only heartbeats are left, one every five seconds."""

    def step(self) -> bool:
        self.steps += 1
        self.now_ms += 5_000
        return True


def test_run_on_ends_when_only_heartbeats_are_to_come() -> None:
    source = Quiet(payments(), END)
    begun_ms = source.now_ms
    playback = Playback(source.view, source)
    playback.run_on()
    assert (source.now_ms - begun_ms, playback.playing, playback.running_on) == (QUIET_MS, False, False)
    assert playback.message.startswith("Nothing more happens here but heartbeats")


def test_run_on_goes_on_while_something_is_awaited() -> None:
    source = Quiet(payments(), END)
    until_ms = source.now_ms + 45_000
    playback = Playback(source.view, source, awaits=lambda now_ms: now_ms < until_ms)
    playback.run_on()
    assert source.now_ms == until_ms


def test_a_stopped_run_stays_where_the_cluster_is() -> None:
    playback, source = cluster(shown=5)
    playback.run_on()
    assert source.view.total() > playback.order == 5
    playback.pause()
    run(playback)
    assert (playback.order, playback.live, playback.moving) == (source.view.total(), True, False)


def test_a_pause_ends_a_run() -> None:
    playback, source = cluster(shown=5)
    playback.run_on()
    playback.pause()
    steps = source.steps
    run(playback)
    assert (playback.running_on, playback.playing, source.steps) == (False, False, steps)


# ---- moments, steps and their events ---------------------------------------------------------------------------------


def test_a_moment_between_two_events_has_its_own_time() -> None:
    """Locks have run down to it."""
    playback = journal()
    first, second = (snapshot["now_ms"] for snapshot in payments().snapshots[1:3])
    for time_ms, order in [(first - 1, 0), (first, 1), (first + 1, 1), (second - 1, 1), (second, 2)]:
        playback.seek_time(time_ms)
        assert (playback.order, playback.time_ms, playback.live) == (order, time_ms, False)
    playback.step()
    assert playback.order == 3


def test_random_times_are_shown_to_the_millisecond(seed: int) -> None:
    for number in range(4):
        draw = Random(f"{seed}/{number}")
        watched = view(random_cluster(draw.randrange(10**6)), GROUP, "orders")
        playback, axis = Playback(watched), watched.axis()
        times_ms = [watched.snapshot(order)["now_ms"] for order in range(watched.total() + 1)]
        for _ in range(cases(20, 250)):
            time_ms = draw.choice((*times_ms, draw.randrange(axis.start_ms, axis.end_ms)))
            playback.seek_time(time_ms)
            before = sum(1 for event_ms in times_ms[1:] if event_ms <= time_ms)
            assert playback.snapshot == {**watched.snapshot(before), "now_ms": time_ms}


def test_back_from_between_two_events_goes_to_the_earlier_one() -> None:
    playback = journal()
    playback.seek_time(payments().snapshots[4]["now_ms"] + 1)
    playback.back()
    assert (playback.order, playback.time_ms) == (4, payments().snapshots[4]["now_ms"])
    playback.back()
    assert playback.order == 3


def test_the_last_moment_is_the_live_end() -> None:
    playback, source = cluster(shown=5)
    playback.seek(2)
    playback.seek_time(source.view.axis().end_ms)
    assert (playback.order, playback.live) == (5, True)


@pytest.mark.parametrize("time_ms", [ORIGIN_MS - 1, ORIGIN_MS + 10**9, 0, True, 2.5, "now", None])
def test_a_time_outside_the_axis_is_refused_and_moves_nothing(time_ms: object) -> None:
    playback = journal()
    playback.seek(4)
    with pytest.raises(ValueError, match=rf"time_ms must be a whole number from {ORIGIN_MS} to \d+, not "):
        playback.seek_time(time_ms)
    assert playback.order == 4


def in_steps() -> Playback:
    """Steps that end at 0, 3, 4, 9 and the end."""
    return Playback(FakeView(payments().snapshots, [0, 3, 4, 9, END]))


@pytest.mark.parametrize(
    ("start", "move", "order", "internal"),
    [
        pytest.param(0, lambda p: p.step(), 3, 1, id="from one step to the next"),
        pytest.param(5, lambda p: p.step(), 9, 6, id="from inside a step to its end"),
        pytest.param(9, lambda p: p.back(), 4, 8, id="back by a step"),
        pytest.param(6, lambda p: p.back(), 4, 5, id="back from inside a step"),
        pytest.param(0, lambda p: p.seek_event(5), 9, 5, id="to the step of an event"),
        pytest.param(7, lambda p: p.seek_event(0), 0, 0, id="to the beginning"),
    ],
)
def test_moves_by_causes_and_by_events(start: int, move: Move, order: int, internal: int) -> None:
    for internals, expected in ((False, order), (True, internal)):
        playback = in_steps()
        playback.set_internals(internals)
        playback.seek(start)
        move(playback)
        assert playback.order == expected


def test_internals_change_a_play_under_way() -> None:
    playback = in_steps()
    playback.seek(0)
    playback.play()
    playback.set_internals(True)
    playback.tick(400)
    assert playback.order == 1


@pytest.mark.parametrize("internals", [1, "yes", None])
def test_internals_are_on_or_off(internals: object) -> None:
    with pytest.raises(ValueError, match="internals must be True or False, not"):
        journal().set_internals(internals)


@pytest.mark.parametrize(
    ("shown", "scale", "message"),
    [
        pytest.param(END, 1.0, "Nothing new yet: the cluster is running, the strip follows it.", id="wall clock"),
        pytest.param(END, 0.0, "This is the end of the journal.", id="journal"),
    ],
)
def test_step_at_an_end_that_cannot_be_driven(shown: int, scale: float, message: str) -> None:
    playback = Playback(FakeView(payments().snapshots), time_scale=scale)
    playback.step()
    assert playback.message == message


def test_back_at_the_beginning_sets_a_message() -> None:
    playback = journal()
    playback.seek(0)
    playback.back()
    assert playback.message == "This is the beginning of the journal."


@pytest.mark.parametrize(
    ("gap_ms", "speed", "wait_ms", "rate"),
    [
        pytest.param(0, 1, EVENT_MIN_MS, 0.0, id="a burst at one instant stays readable"),
        pytest.param(600, 1, 600, 1.0, id="within bounds, journal time is real time"),
        pytest.param(600, 2, 300, 2.0, id="twice the speed"),
        pytest.param(600, 0.25, 2400, 0.25, id="a quarter of the speed"),
        pytest.param(30_000, 1, EVENT_MAX_MS, 20.0, id="a long gap is shortened, and the clock runs faster"),
    ],
)
def test_how_long_an_event_is_shown(gap_ms: int, speed: float, wait_ms: float, rate: float) -> None:
    story = History().acquire("m-a", 100, 106, after_ms=400)
    story.acquire("m-b", 106, 110, after_ms=gap_ms)
    playback = Playback(FakeView(story.snapshots))
    playback.seek(1)
    playback.set_speed(speed)
    playback.play()
    assert (playback.rate, playback.until_ms) == (rate, story.snapshots[2]["now_ms"])
    playback.tick(wait_ms - 1)
    assert playback.order == 1
    playback.tick(1)
    assert playback.order == 2


def test_play_stops_at_the_end_of_a_journal() -> None:
    playback = journal()
    playback.seek(END - 2)
    playback.play()
    for _ in range(20):
        playback.tick(250)
    assert (playback.order, playback.playing, playback.rate) == (END, False, 0.0)
    assert playback.message == "This is the end of the journal."
    assert playback.next_tick_ms() is None


def test_run_on_drives_a_virtual_cluster_to_its_end() -> None:
    playback, source = cluster(shown=5)
    playback.set_speed(10)
    playback.run_on()
    for _ in range(40 * END):
        playback.tick(100)
    assert (playback.order, playback.playing, source.coming) == (END, False, [])
    assert playback.message.startswith("Nothing more happens")


def test_play_at_the_end_of_a_running_cluster_follows_it() -> None:
    playback, source = cluster(shown=5, clock=10.0, scale=10.0)
    playback.play()
    assert (playback.playing, playback.live, playback.rate) == (True, True, 10.0)
    source.arrive()
    for _ in range(20):
        playback.tick(100)
    assert (playback.order, playback.playing, playback.live) == (6, True, True)
    assert source.steps == 0


def test_one_late_tick_shows_a_bounded_number_of_events() -> None:
    story = History(locks=500)
    for offset in range(100, 300):
        story.acquire("m-a", offset, offset + 1, after_ms=0)
    playback = Playback(FakeView(story.snapshots))
    playback.seek(0)
    playback.play()
    playback.tick(10_000_000)
    assert playback.order == 50
    playback.tick(EVENT_MIN_MS)
    assert playback.order == 51


def test_a_changed_speed_applies_to_the_rest_of_the_wait() -> None:
    story = History().acquire("m-a", 100, 106).acquire("m-b", 106, 110, after_ms=1000)
    playback = Playback(FakeView(story.snapshots))
    playback.seek(1)
    playback.play()
    playback.tick(500)
    playback.set_speed(5)
    playback.tick(99)
    assert playback.order == 1
    playback.tick(1)
    assert playback.order == 2


@pytest.mark.parametrize(
    ("live", "arrived", "order"),
    [
        pytest.param(True, 2, 7, id="live shows what arrived"),
        pytest.param(True, 0, 5, id="live with nothing new stays"),
        pytest.param(False, 2, 5, id="not live stays while the journal grows"),
    ],
)
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_following(live: bool, arrived: int, order: int, scale: float) -> None:
    playback, source = cluster(shown=5, scale=scale)
    playback.set_animate(False)
    playback.set_live(live)
    for _ in range(arrived):
        source.arrive()
    playback.tick(100)
    assert (playback.order, playback.live) == (order, live)


def test_live_shows_a_virtual_clock_that_moved_without_an_event() -> None:
    playback, source = cluster(shown=5)
    playback.set_animate(False)
    before = playback.snapshot["now_ms"]
    source.now_ms = before + 7_000
    playback.tick(100)
    assert playback.snapshot["now_ms"] == before + 7_000


# ---- what just happened ----------------------------------------------------------------------------------------------


def story(events: int, gap_ms: int) -> History:
    made = History(locks=events + 1)
    for offset in range(100, 100 + events):
        made.acquire("m-a", offset, offset + 1, after_ms=gap_ms)
    return made


@pytest.mark.parametrize(
    ("events", "gap_ms", "least", "most", "scenes"),
    [
        pytest.param(1, 400, 1000, 1000, 1, id="one event"),
        pytest.param(10, 400, 1500, 1500, 10, id="some events"),
        pytest.param(200, 0, 3000, 3000, SCENES, id="a burst is summarized"),
        pytest.param(200, 30_000, 3000, 3000, SCENES, id="hours of it, too"),
    ],
)
def test_scenes_take_one_to_three_seconds(events: int, gap_ms: int, least: float, most: float, scenes: int) -> None:
    made = story(events, gap_ms)
    view, first = FakeView(made.snapshots), made.snapshots[0]
    found = catch_up(view, first, view.snapshot())
    assert least - 1e-6 <= sum(scene.wait_ms for scene in found) <= most + 1e-6
    assert scenes <= len(found) <= scenes + 1
    orders = [scene.snapshot["order"] for scene in found]
    assert (orders, orders[-1]) == (sorted(set(orders)), events)


def test_a_wait_is_a_sweep_of_the_clock() -> None:
    """The longer wait takes longer, and the shown clock runs to its end."""
    made = History().acquire("m-a", 100, 106, after_ms=100).settle(100, 101, "available", "lock_timeout", 30_000)
    source = FakeCluster(made, 0)
    playback = Playback(source.view, source)
    source.arrive()
    source.arrive()
    playback.tick(0)
    assert (playback.order, playback.until_ms) == (0, made.snapshots[1]["now_ms"])
    short_ms = playback._wait_ms
    playback.tick(short_ms)
    assert (playback.order, playback.until_ms) == (1, made.snapshots[2]["now_ms"])
    assert playback.rate == pytest.approx(30_000 / playback._wait_ms)
    assert playback._wait_ms > 2 * short_ms
    playback.tick(playback._wait_ms)
    assert (playback.order, playback.live, playback.rate, playback.until_ms) == (2, True, 0.0, None)


def test_scenes_end_at_the_present() -> None:
    playback, source = cluster(shown=5)
    source.arrive()
    source.now_ms += 20_000
    run(playback, 12)
    assert (playback.order, playback.time_ms, playback.live) == (6, source.now_ms, True)


def test_scenes_show_whole_steps() -> None:
    source = FakeCluster(payments(), 0)
    source.view._steps = [0, 3, 4, 9]
    playback = Playback(source.view, source)
    for _ in range(9):
        source.arrive()
    seen = set()
    for _ in range(40):
        playback.tick(100)
        seen.add(playback.order)
    assert seen == {0, 3, 4, 9}


@pytest.mark.parametrize(
    ("move", "order"),
    [
        pytest.param(lambda p: p.seek(2), 2, id="a seek"),
        pytest.param(lambda p: p.pause(), 5, id="a pause"),
        pytest.param(lambda p: p.set_live(True), 8, id="live shows the end"),
        pytest.param(lambda p: p.set_animate(False), 8, id="without animation the end is shown"),
    ],
)
def test_a_command_ends_the_scenes(move: Move, order: int) -> None:
    playback, source = cluster(shown=5)
    for _ in range(3):
        source.arrive()
    playback.tick(100)
    assert playback.order == 5
    move(playback)
    run(playback)
    assert playback.order == order


def test_a_wall_clock_has_no_scenes() -> None:
    playback, source = cluster(shown=5, clock="wall", scale=1.0)
    source.arrive()
    playback.tick(100)
    assert playback.order == 6


@pytest.mark.parametrize("animate", [0, "no", None])
def test_animation_is_on_or_off(animate: object) -> None:
    with pytest.raises(ValueError, match="animate must be True or False, not"):
        journal().set_animate(animate)


@pytest.mark.parametrize(("scale", "playing"), [(0.0, False), (1.0, True)], ids=["virtual", "wall"])
def test_live_while_playing_jumps_to_the_end(scale: float, playing: bool) -> None:
    """There a recording ends; a cluster that runs by itself is followed."""
    playback, _ = cluster(shown=8, scale=scale)
    playback.seek(1)
    playback.play()
    playback.set_live(True)
    assert (playback.order, playback.playing, playback.live) == (8, playing, True)


def test_live_while_running_on_runs_on() -> None:
    playback, _ = cluster(shown=8)
    playback.run_on()
    playback.set_live(True)
    run(playback, 40)
    assert (playback.running_on, playback.order > 8) == (True, True)


def test_live_off_while_playing_stops_at_the_shown_event() -> None:
    playback, source = cluster(shown=8)
    playback.seek(1)
    playback.play()
    playback.set_live(False)
    assert (playback.order, playback.playing, playback.live) == (1, False, False)
    for _ in range(20):
        playback.tick(100)
    assert (playback.order, playback.next_tick_ms(), source.steps) == (1, None, 0)


def test_play_after_a_pause_shows_the_event_for_its_whole_time() -> None:
    story = History().acquire("m-a", 100, 106).acquire("m-b", 106, 110, after_ms=1000)
    playback = Playback(FakeView(story.snapshots))
    playback.seek(1)
    playback.play()
    playback.tick(900)
    playback.pause()
    playback.play()
    playback.tick(999)
    assert playback.order == 1
    playback.tick(1)
    assert playback.order == 2


def test_a_running_clock_does_not_replace_the_snapshot_between_events() -> None:
    """The browser moves the shown time itself."""
    playback, source = cluster(shown=5, clock="wall", scale=1.0)
    before = playback.snapshot
    source.now_ms = before["now_ms"] + 7_000
    playback.tick(100)
    assert playback.snapshot is before


@pytest.mark.parametrize(
    ("source", "live", "playing", "scale", "wanted"),
    [
        pytest.param(False, True, False, 0.0, None, id="a journal at its end needs no tick"),
        pytest.param(True, True, False, 0.0, 500, id="other cells may move a virtual cluster"),
        pytest.param(True, True, False, 1.0, 100, id="a running cluster is followed"),
        pytest.param(True, False, False, 1.0, None, id="nothing follows when not live"),
        pytest.param(False, False, True, 0.0, 20, id="playing: the next event is due"),
    ],
)
def test_the_time_until_the_next_tick(
    source: bool, live: bool, playing: bool, scale: float, wanted: int | None
) -> None:
    playback, owner = cluster(shown=5, scale=scale)
    playback.source = owner if source else None
    playback.set_live(live)
    if playing:
        playback.seek(2)
        playback.play()
        playback.tick(EVENT_MAX_MS - 1)
    got = playback.next_tick_ms()
    assert got == wanted if not playing else got is not None and 20 <= got <= 100


@pytest.mark.parametrize("scale", [pytest.param(0.0, id="virtual"), pytest.param(1.0, id="wall")])
def test_a_closed_cluster_plays_like_a_journal(scale: float) -> None:
    playback, source = cluster(shown=5, scale=scale)
    source.closed = True
    playback.step()
    assert (playback.order, source.steps, playback.message) == (5, 0, "This is the end of the journal.")
    assert (playback.rate, playback.next_tick_ms()) == (0.0, None)
    playback.back()
    assert playback.order == 4


MOVE_NAMES = ["step", "back", "play", "run on", "pause", "tick", "follow", "unfollow", "first", "arrive", "internals"]


@given(st.lists(st.sampled_from(MOVE_NAMES), max_size=60), st.sampled_from([0.0, 1.0]))
def test_any_moves_keep_the_position_within_the_journal(moves: list[str], scale: float) -> None:
    playback, source = cluster(shown=5, scale=scale)
    actions: dict[str, Callable[[], Any]] = {
        "step": playback.step, "back": playback.back, "play": playback.play, "pause": playback.pause,
        "tick": lambda: playback.tick(250), "follow": lambda: playback.set_live(True),
        "unfollow": lambda: playback.set_live(False), "first": lambda: playback.seek(0),
        "arrive": source.arrive, "run on": playback.run_on, "internals": lambda: playback.set_internals(True),
    }  # fmt: skip
    for name in moves:
        actions[name]()
        assert 0 <= playback.order <= source.view.total()
        assert playback.rate >= 0
        assert playback.playing or playback.live or playback.until_ms is None  # live: scenes of what just happened
        scenes = playback.until_ms is not None
        if playback.live and not playback.playing and not scenes and name in ("step", "tick", "follow"):
            assert playback.order == source.view.total()
    if playback.live and not playback.playing:
        run(playback, 60)
        assert (playback.order, playback.until_ms) == (source.view.total(), None)
