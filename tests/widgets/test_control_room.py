"""What a click in the control room shows at once: a waiting member, the clock, the running story, a named record."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq import Cluster
from shareq_widgets import ControlRoom, control_room
from shareq_widgets.panel import Panel
from shareq_widgets.screen import SLOTS, Slot
from tests.browser.busy import GROUP, TOPIC, busy


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


def test_the_panel_says_where_the_clock_stands_and_moves_it(room: ControlRoom) -> None:
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


ADD: tuple[str, object] = ("add consumer", "accept")
PRODUCE: tuple[str, object] = ("produce", 10)
EARLIEST: tuple[str, object] = ("share.auto.offset.reset of crew", "earliest")
LATEST = "share.auto.offset.reset is latest."
SECOND: tuple[str, object] = ("advance", 1_000)


@pytest.mark.parametrize(("uses", "said"), [
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
])  # fmt: skip
def test_the_panel_says_what_the_group_waits_for(room: ControlRoom, uses: list[tuple[str, object]], said: str) -> None:
    for name, value in uses:
        use(panel_of(room), name, value)
    assert hint(panel_of(room)) == said


def test_the_running_story_and_its_progress_are_marked(room: ControlRoom) -> None:
    story = room.tell("poison")
    panel = panel_of(room)
    chosen = panel._stories["poison"]
    marked = [name for name, button in panel._stories.items() if "sq-on" in button._dom_classes]
    assert marked == ["poison"]
    assert chosen.description == f"{story.preset.title}: 0 of {story.count}"
    panel.next()
    assert chosen.description == f"{story.preset.title}: 1 of {story.count}"
    assert "●" + "○" * (story.count - 1) in panel._telling.value
    room.leave()
    assert not any("sq-on" in button._dom_classes for button in panel_of(room)._stories.values())


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


def test_the_whole_recording_is_that_of_the_story_with_the_worst_failure(room: ControlRoom) -> None:
    calm = room.picture(whole=True)
    for name in ("poison", "leader failover", "window full"):
        story = room.tell(name)
        while not story.done:
            story.next()
    assert "Story: Failover of the share-partition leader" in room.picture(whole=True)
    room.leave()
    told = room.picture(whole=True)
    assert "Story: Failover of the share-partition leader" in told
    assert "broker 0 was killed" in told.split("All views at")[1].split("</text>")[0]
    assert room.picture() == calm
    panel_of(room).steering.cluster.kill_broker(0)
    assert "Story" not in room.picture(whole=True)
