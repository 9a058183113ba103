"""What a click in the control room shows at once: a waiting member, the clock, the running story, a named record."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from shareq import Cluster
from shareq_widgets import ControlRoom, control_room
from shareq_widgets.panel import Panel
from shareq_widgets.room import RoomState
from shareq_widgets.screen import MESSAGES, MOST_MESSAGES, SLOTS, Slot
from tests.browser.busy import GROUP, TOPIC, busy
from tests.widgets.fakes import Clock
from tests.widgets.pictures.layout import check_layout


@pytest.fixture
def room() -> Iterator[ControlRoom]:
    """The room of an empty group on a virtual clock."""
    cluster = Cluster(brokers=1, seed=3)
    cluster.create_topic("jobs")
    made = control_room(cluster, group="crew", topic="jobs", animate=False)
    yield made
    made.close()


def panel_of(room: ControlRoom) -> Panel:
    assert room.panel is not None
    return room.panel


def use(panel: Panel, name: str, value: object = None) -> None:
    panel.act(panel.steering[name], value)


def group_text(room: ControlRoom) -> str:
    return repr(room.screen.shown["right"])


def clock(panel: Panel) -> str:
    return str(panel._clock.value)


def hint(panel: Panel) -> str:
    return str(panel._hint.value)


ADD: tuple[str, object] = ("add consumer", "accept")
PRODUCE: tuple[str, object] = ("produce", 10)
EARLIEST: tuple[str, object] = ("share.auto.offset.reset of crew", "earliest")
LATEST = "share.auto.offset.reset is latest."
LOCKS: tuple[str, object] = ("share.partition.max.record.locks of crew", 100)
SLOW_A: list[tuple[str, object]] = [("work time of A", 20_000), ("work time of B", 0)]
SECOND: tuple[str, object] = ("advance", 1_000)


WAITS = "Advance it to see what follows."


def test_an_added_consumer_is_seen_before_it_has_joined(room: ControlRoom) -> None:
    panel, journal = panel_of(room), panel_of(room).steering.cluster.journal
    before = journal.total
    use(panel, "add consumer", "accept")
    assert "A joins when the clock moves" in group_text(room)
    use(panel, "add consumer", "accept")
    assert "A, B join when the clock moves" in group_text(room)
    assert (journal.total, panel.steering.members()) == (before, [])
    room.screen.timeline.seek(0)
    assert "join" not in group_text(room)
    room.screen.timeline.last()
    use(panel, "advance", 1_000)
    room.screen.timeline.tick()
    assert panel.steering.members() == ["A", "B"]
    assert "when the clock moves" not in group_text(room)
    assert panel.steering.joining() == []


def test_waiting_consumers_stay_while_what_happened_is_played() -> None:
    """The journal is played up to its end; at an earlier moment of it the consumers wait just as well."""
    cluster = Cluster(brokers=1, seed=3)
    cluster.create_topic("jobs")
    room = control_room(cluster, group="crew", topic="jobs")
    panel, playback = panel_of(room), room.screen.timeline._playback
    clock = Clock()
    for view in room.screen.shown.values():
        view._clock_ms = clock
    for name, value in (ADD, ADD, PRODUCE, SECOND):
        use(panel, name, value)
    room.screen.timeline.tick()
    seen = []
    while playback.moving:
        seen.append(group_text(room))
        clock.ms += 50
        room.screen.timeline.tick()
    assert "A, B join when the clock moves" in seen[0]
    assert not any("no members" in text and "join" not in text for text in seen)
    assert "when the clock moves" not in group_text(room)
    room.close()


def test_the_panel_shows_the_time_of_the_clock_and_moves_it(room: ControlRoom) -> None:
    panel = panel_of(room)
    use(panel, "share.auto.offset.reset of crew", "earliest")
    use(panel, "add consumer", "accept")
    use(panel, "advance", 6_000)
    assert "The clock stands at 00:06.000." in clock(panel)
    assert hint(panel) == ""
    use(panel, "produce", 3)
    assert hint(panel) == WAITS
    panel._advance.click()
    assert panel.steering.log[-2:] == ["feed.send(3)", "cluster.advance(1000)"]
    assert "The clock stands at 00:07.000." in clock(panel)
    assert hint(panel) == ""
    panel.steering.cluster.advance(500)
    room.screen.timeline.tick()
    assert "The clock stands at 00:07.500." in clock(panel)


def test_the_panel_is_not_ahead_of_views_that_play_what_happened() -> None:
    """In a page the clock goes to the present with the views, and what follows is shown when they have arrived."""
    cluster = Cluster(brokers=1, seed=3)
    cluster.create_topic("jobs")
    room = control_room(cluster, group="crew", topic="jobs")
    panel, timeline, real = panel_of(room), room.screen.timeline, Clock()
    for view in room.screen.shown.values():
        view._clock_ms = real
        view.set_visible(True, "copy")
    for name, value in (ADD, PRODUCE, SECOND):
        use(panel, name, value)
    seen = []
    for _ in range(100):
        seen.append((timeline.arriving, clock(panel), hint(panel)))
        real.ms += 50
        timeline.tick(drawn=timeline.moment[1])
        if not timeline.arriving:
            break
    assert set(seen) == {(True, "The clock goes to 00:01.000.", "")}
    assert len(seen) > 3
    assert clock(panel) == "The clock stands at 00:01.000."
    assert hint(panel).startswith("A receives its partitions with its next heartbeat")
    timeline.animate = False
    use(panel, *SECOND)
    timeline.tick()
    assert not timeline._playback.behind
    assert clock(panel) == "The clock goes to 00:02.000."  # the page has not drawn it yet
    timeline.tick(drawn=timeline.moment[1])
    assert clock(panel) == "The clock stands at 00:02.000."
    timeline.first()
    use(panel, *SECOND)
    assert clock(panel) == "The clock stands at 00:03.000."  # the views are in the past, and stay there
    room.close()


@pytest.mark.parametrize(("uses", "expected"), [
    pytest.param([], "Add a consumer, produce records, and advance the clock; or choose a story.", id="nothing done"),
    pytest.param([("rate", 0)], "The group has no consumer: add one.", id="no consumer"),
    pytest.param([ADD], "A joins when the clock moves.", id="joining"),
    pytest.param([ADD, SECOND], "A receives its partitions with its next heartbeat, at 00:05.115.", id="joined"),
    pytest.param([PRODUCE, SECOND],
                 f"The group has no consumer: add one. The group will begin behind the 10 records of jobs-0: {LATEST}",
                 id="records to skip"),
    pytest.param([PRODUCE, ADD, *[SECOND] * 6],
                 f"The group began at 10 of jobs-0, its end then: {LATEST} Produce more records.", id="skipped"),
    pytest.param([PRODUCE, ADD, *[SECOND] * 6, PRODUCE, SECOND], "", id="records accepted"),
    pytest.param([EARLIEST, PRODUCE], "The group has no consumer: add one.", id="nothing to skip"),
    pytest.param([EARLIEST, PRODUCE, ADD, *[SECOND] * 6], "", id="from the beginning"),
    pytest.param([LOCKS, ADD, ADD, *[SECOND] * 6, *SLOW_A, ("produce", 200), *[SECOND] * 8],
                 "jobs-0: the window is full, and a member holds its first unfinished record.", id="window full"),
])  # fmt: skip
def test_the_panel_names_what_the_group_waits_for(
    room: ControlRoom, uses: list[tuple[str, object]], expected: str
) -> None:
    for name, value in uses:
        use(panel_of(room), name, value)
    assert hint(panel_of(room)) == expected


def test_the_running_story_and_its_progress_are_marked(room: ControlRoom) -> None:
    story = room.begin_story("poison")
    panel = panel_of(room)
    chosen = panel._stories["poison"]
    marked = [name for name, button in panel._stories.items() if "sq-on" in button._dom_classes]
    assert marked == ["poison"]
    assert chosen.description == f"1 poison: 0 of {story.count}"
    assert "yours waits, and is shown again at its end" in panel._step.value
    panel.next()
    assert "yours waits" not in panel._step.value
    assert chosen.description == f"1 poison: 1 of {story.count}"
    assert "●" + "○" * (story.count - 1) in panel._step.value
    assert (panel._next.layout.display, panel._leave.button_style) == (None, "")
    while not story.done:
        panel.next()
    assert (panel._next.layout.display, panel._leave.button_style) == ("none", "primary")
    assert "Ending the story shows your cluster again." in panel._step.value
    room.leave()
    assert not any("sq-on" in button._dom_classes for button in panel_of(room)._stories.values())


def test_a_new_picture_has_the_width_of_the_one_before(room: ControlRoom) -> None:
    """Drawn for another one, it would be seen small until the page has measured it."""
    for number, slot in enumerate(room.screen.slots.values()):
        slot.width = 400 + number
    room.screen.slots["left"].shown = "record"
    assert room.screen.slots["left"].views["record"].width == 400
    room.begin_story("poison")
    widths = [slot.views[slot.shown].width for slot in room.screen.slots.values()]
    assert widths == [400, 401, 402, 403, 404]


def test_more_messages_are_shown_beside_a_higher_view() -> None:
    """What if is higher than the offsets over time; its place beside the messages would be empty."""
    room = control_room(busy(), group=GROUP, topic=TOPIC, animate=False)
    wide, messages = room.screen.slots["wide"], room.screen.slots["narrow"].views["messages"]

    def shown() -> int:
        return sum(key.startswith("arrow") and key.endswith("request") for key in messages.drawing["keys"])

    assert shown() == MESSAGES
    wide.shown = "what_if"
    beside = shown()
    assert MESSAGES < beside <= MOST_MESSAGES
    wide.views["what_if"].width = 1_000  # its charts are in one row
    assert MESSAGES <= shown() < beside
    wide.shown = "raster"
    assert shown() == MESSAGES
    room.close()


def titles(slot: Slot) -> list[str]:
    return [title for title, _ in slot._tabs.options]


@pytest.mark.parametrize("shown", SLOTS["left"])
def test_a_selected_record_is_named_on_its_tab_and_no_view_is_changed(shown: str) -> None:
    room = control_room(busy(), group=GROUP, topic=TOPIC, animate=False)
    slot = room.screen.slots["left"]
    slot.shown = shown
    room.screen.strip.select(f"record:{TOPIC}-0:1234")
    assert titles(slot) == ["Locks", "Record 1,234 ▸"]
    assert (slot.shown, slot._tabs.value) == (shown, shown)
    slot._tabs.value = "record"
    assert slot.shown == "record"
    slot._tabs.value = shown
    room.screen.strip.select("")
    assert titles(slot) == ["Locks", "Record"]
    assert (slot.shown, slot._tabs.value) == (shown, shown)
    room.close()


def test_a_selected_message_leaves_the_record_that_was_selected_last() -> None:
    """The biography, the raster and the state topic stay with it, until it is selected no more."""
    room = control_room(busy(), group=GROUP, topic=TOPIC, animate=False)
    chosen, strip = f"record:{TOPIC}-1:3", room.screen.strip
    for slot, name in (("left", "record"), ("middle", "state_topic")):
        room.screen.slots[slot].shown = name
    views = [room.screen.shown[slot] for slot in ("left", "middle", "wide")]
    strip.select(chosen)
    before = [view.drawing["text"] for view in views]
    for subject in ("message:7", "", "broker:0"):
        strip.select(subject)
        assert [view.drawing["text"] for view in views] == before
        assert titles(room.screen.slots["left"]) == ["Locks", "Record 3 ▸"]
    strip.select(chosen)
    strip.select("")
    assert titles(room.screen.slots["left"]) == ["Locks", "Record"]
    assert [view.drawing["text"] for view in views] != before
    room.close()


def test_without_a_selected_record_an_empty_window_has_words(room: ControlRoom) -> None:
    room.screen.slots["left"].shown = "record"
    panel, shown = panel_of(room), room.screen.shown["left"]
    assert "jobs-0 · no record is selected" in repr(shown)
    assert "its log is empty" in repr(shown)
    for name, value in (EARLIEST, ADD, PRODUCE, *[SECOND] * 20):
        use(panel, name, value)
    room.screen.timeline.tick()
    assert "its window is empty at SPSO 10, the end of the log" in repr(shown)
    for width in (250, 374, 760):
        shown.width = width
        check_layout(shown._drawn)
    room.screen.strip.select("record:jobs-0:4")
    assert "jobs-0 offset 4: acknowledged" in repr(shown)


def test_a_state_has_the_record_beside_a_selected_message() -> None:
    room = control_room(busy(), group=GROUP, topic=TOPIC, animate=False)
    empty: RoomState = {"time_ms": None, "selection": "", "views": {}}
    room.screen.strip.select(f"record:{TOPIC}-0:3")
    assert "record" not in room.state
    room.screen.strip.select("message:7")
    state = json.loads(json.dumps(room.state))
    assert (state["selection"], state["record"]) == ("message:7", f"record:{TOPIC}-0:3")
    room.screen.strip.select("")
    room.state = empty
    assert titles(room.screen.slots["left"]) == ["Locks", "Record"]
    assert "record" not in room.state
    room.state = state
    assert room.state == state
    assert titles(room.screen.slots["left"]) == ["Locks", "Record 3 ▸"]
    room.close()


def test_the_whole_recording_is_that_of_the_story_with_the_worst_failure(room: ControlRoom) -> None:
    calm = room.picture(whole=True)
    for name in ("poison", "leader failover", "window full"):
        story = room.begin_story(name)
        while not story.done:
            story.next()
    assert "Story: Failover of the share-partition leader" in room.picture(whole=True)
    room.leave()
    picture = room.picture(whole=True)
    assert "Story: Failover of the share-partition leader" in picture
    assert "broker 0 was killed" in picture.split("All views at")[1].split("</text>")[0]
    assert room.picture() == calm
    panel_of(room).steering.cluster.kill_broker(0)
    assert "Story" not in room.picture(whole=True)


def test_a_state_has_the_zoom_and_the_filter_and_restores_them() -> None:
    cluster = busy()
    room = control_room(cluster, group="crew", topic="jobs", animate=False)
    timeline = room.screen.timeline
    end_ms = timeline.axis["last_ms"]
    timeline.seek_time(end_ms - 500)
    timeline.zoom(end_ms - 1_000, end_ms)
    room.screen.slots["narrow"].views["messages"].without = ("heartbeats",)
    state = json.loads(json.dumps(room.state))
    assert (state["span"], state["without"]) == ([end_ms - 1_000, end_ms], ["heartbeats"])
    room.state = {"time_ms": None, "selection": "", "views": {}}
    assert not {"span", "without"} & room.state.keys()
    room.state = state
    assert room.state == state
    assert timeline.axis["start_ms"] == end_ms - 1_000
    room.close()
