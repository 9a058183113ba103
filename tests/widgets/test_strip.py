"""The widget: its traits, the browser's commands, and the forms for readers without widgets."""

from __future__ import annotations

import re
from typing import Any

import pytest
import traitlets

from shareq.trace import Journal
from shareq.trace.analysis.time_axis import FOLDED_MS
from shareq.trace.views.themed_svg import themed
from shareq_widgets import PartitionStrip, strip
from shareq_widgets.playback import Playback
from shareq_widgets.position import present_of
from shareq_widgets.storyboard import storyboard
from tests.browser.crews import GROUP, TOPIC, crew
from tests.widgets.fakes import ORIGIN_MS, Clock, FakeCluster, FakeView, payments

END = len(payments().snapshots) - 1
NAMES: dict[str, Any] = {"group": "payments", "topic": "orders"}


def make(shown: int = 5, clock: str | float = "virtual") -> tuple[PartitionStrip, FakeCluster]:
    source = FakeCluster(payments(), shown, clock)
    return strip(source, view=source.view, **NAMES), source


def answers(widget: PartitionStrip, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    sent: list[Any] = []
    monkeypatch.setattr(widget, "send", sent.append)
    return sent


def test_shows_the_live_end_at_first() -> None:
    widget, source = make()
    assert (widget.order, widget.total, widget.live, widget.playing, widget.speed) == (5, 5, True, False, 1.0)
    assert widget.snapshot["runs"] == source.view.snapshot()["runs"]
    assert widget.palette.keys() == {"light", "dark"}
    assert widget.words["legend"] == ["available", "acquired", "acknowledged", "archived"]


COMMANDS = [
    pytest.param({"do": "step"}, {"order": 5, "live": True}, id="step"),
    pytest.param({"do": "back"}, {"order": 4, "live": False}, id="back"),
    pytest.param({"do": "first"}, {"order": 0, "live": False}, id="first"),
    pytest.param({"do": "last"}, {"order": 5, "live": True}, id="last"),
    pytest.param({"do": "seek", "value": 3}, {"order": 3, "live": False}, id="seek"),
    pytest.param({"do": "seek_event", "value": 3}, {"order": 3, "live": False}, id="seek an event"),
    pytest.param({"do": "seek_time", "value": ORIGIN_MS}, {"order": 0, "live": False}, id="seek a time"),
    pytest.param({"do": "internals", "value": True}, {"internals": True}, id="internals"),
    pytest.param({"do": "animate", "value": False}, {"animate": False}, id="animate"),
    pytest.param({"do": "run_on"}, {"running_on": True, "playing": True, "drivable": True}, id="run on"),
    pytest.param({"do": "live", "value": False}, {"order": 5, "live": False}, id="live off"),
    pytest.param({"do": "speed", "value": 5}, {"speed": 5.0}, id="speed"),
    pytest.param({"do": "play"}, {"playing": True}, id="play"),
    pytest.param({"do": "pause"}, {"playing": False}, id="pause"),
    pytest.param({"do": "tick"}, {"order": 5}, id="tick"),
]


@pytest.mark.parametrize(("content", "traits"), COMMANDS)
def test_commands_of_the_browser(
    content: dict[str, Any], traits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    widget, _ = make()
    sent = answers(widget, monkeypatch)
    widget._on_message(widget, content, [])
    assert {name: getattr(widget, name) for name in traits} == traits
    assert [answer.keys() for answer in sent] == [{"next_ms"}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param({"do": "explode"}, "unknown command 'explode'", id="unknown command"),
        pytest.param({}, "unknown command None", id="no command"),
        pytest.param({"do": "seek", "value": 99}, "order must be a whole number", id="seek past the end"),
        pytest.param({"do": "speed", "value": -1}, "speed must be from 0.25 to 10", id="negative speed"),
        pytest.param({"do": "_mirror"}, "unknown command '_mirror'", id="a private method"),
        pytest.param({"do": "nearer"}, "unknown command 'nearer'", id="a command of the page"),
    ],
)
def test_bad_commands_have_an_error_and_a_response(
    content: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget, _ = make()
    sent = answers(widget, monkeypatch)
    with pytest.raises(ValueError, match=re.escape(message)):
        widget._on_message(widget, content, [])
    assert message in widget.error
    assert message in "".join(widget.words["sentence"][:3])
    assert len(sent) == 1
    widget.back()
    assert widget.error == ""


def test_a_failing_view_stops_the_play_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    widget, source = make()
    monkeypatch.setattr(source, "step", lambda: 1 // 0)
    sent = answers(widget, monkeypatch)
    with pytest.raises(ZeroDivisionError):
        widget._on_message(widget, {"do": "run_on"}, [])
    assert widget.playing is False
    assert widget.error.startswith("ZeroDivisionError")
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("name", "value", "traits"),
    [
        pytest.param("order", 2, {"order": 2, "live": False}, id="order"),
        pytest.param("playing", True, {"playing": True}, id="playing"),
        pytest.param("speed", 2.0, {"speed": 2.0}, id="speed"),
        pytest.param("live", False, {"live": False, "order": 5}, id="live"),
        pytest.param("internals", True, {"internals": True}, id="internals"),
        pytest.param("animate", False, {"animate": False}, id="animate"),
    ],
)
def test_traits_can_be_set(name: str, value: Any, traits: dict[str, Any]) -> None:
    widget, _ = make()
    setattr(widget, name, value)
    assert {name: getattr(widget, name) for name in traits} == traits
    assert widget.snapshot["order"] == widget.order


@pytest.mark.parametrize(
    ("name", "value", "kept"), [("order", 77, 5), ("order", -1, 5), ("speed", 0.0, 1.0), ("speed", -2.0, 1.0)]
)
def test_refused_traits_are_restored(name: str, value: Any, kept: Any) -> None:
    widget, _ = make()
    with pytest.raises(ValueError, match=f"{name} must be"):
        setattr(widget, name, value)
    assert getattr(widget, name) == kept


@pytest.mark.parametrize(
    "name", ["snapshot", "total", "words", "clock", "message", "error", "palette", "look", "axis", "running_on"]
)
def test_display_traits_cannot_be_set(name: str) -> None:
    widget, _ = make()
    with pytest.raises(traitlets.TraitError):
        setattr(widget, name, getattr(widget, name))


def test_ticks_follow_real_time_and_a_blocked_kernel_pauses() -> None:
    clock = Clock()
    widget = PartitionStrip(Playback(FakeView(payments().snapshots)), clock_ms=clock)
    widget.seek(1)
    clock.ms = 5_000
    widget.play()
    clock.ms = 5_100
    widget.tick()
    assert widget.order == 1
    clock.ms = 5_400
    widget.tick()
    assert widget.order == 1  # 350 of the 400 ms: 300 since the last tick count for 250
    clock.ms = 5_450
    widget.tick()
    assert widget.order == 2


def test_seek_time_goes_to_the_moment() -> None:
    widget, source = make(END)
    time_ms = source.view.snapshots[4]["now_ms"] + 1
    widget.seek_time(time_ms)
    assert (widget.order, widget.snapshot["now_ms"]) == (4, time_ms)


def test_the_axis_is_that_of_the_view() -> None:
    widget, source = make(END)
    end_ms = source.view.snapshots[END]["now_ms"]
    whole = {"first_ms": ORIGIN_MS, "last_ms": end_ms, "origin_ms": ORIGIN_MS}
    shown = {"start_ms": ORIGIN_MS, "end_ms": end_ms, "folds": (), "folded_ms": FOLDED_MS}
    assert widget.axis == shown | whole | {"present": "now"}


def test_the_end_of_the_axis_has_a_name() -> None:
    """The label at the end shows the distance from now; the end of a running clock moves on."""
    widget, source = make()
    assert widget.axis["present"] == "now"
    assert make(clock="wall")[0].axis["present"] == ""
    source.closed = True
    widget.back()
    assert widget.axis["present"] == "the end"
    assert present_of(Journal()) == "the end"


def test_only_an_open_virtual_cluster_can_be_run_on() -> None:
    assert make()[0].drivable
    assert not make(clock="wall")[0].drivable
    widget, source = make()
    source.closed = True
    widget.run_on()
    assert (widget.drivable, widget.running_on, widget.message) == (False, False, "This is the end of the journal.")


def test_one_message_carries_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    widget, _ = make()
    sent: list[set[str]] = []
    monkeypatch.setattr(widget, "send_state", lambda key=None: sent.append(set(key)))
    widget.back()
    assert len(sent) == 1
    assert {"snapshot", "live", "order", "words"} <= sent[0]


def test_an_idle_tick_sends_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    widget, _ = make()
    sent: list[Any] = []
    monkeypatch.setattr(widget, "send_state", sent.append)
    widget.tick()
    assert not any(sent)


def test_text_form_and_picture_for_readers_without_widgets() -> None:
    widget, _ = make(END)
    data, _ = widget._repr_mimebundle_()
    assert data["text/plain"] == repr(widget) == payments().snapshots[END]["text"]
    assert data["image/svg+xml"] == themed(str(storyboard(widget)))
    widget.seek(END - 1)
    assert widget.to_svg() == widget.to_svg("light")
    assert widget._repr_mimebundle_()[0]["image/svg+xml"] == themed(widget.to_svg())
    assert "application/vnd.jupyter.widget-view+json" in data
    assert widget.to_svg("dark") != widget.to_svg("light")


BAD = [
    pytest.param({"group": ""}, "group must be a non-empty name, not ''", id="empty group"),
    pytest.param({"group": None}, "group must be a non-empty name, not None", id="no group"),
    pytest.param({"topic": 3}, "topic must be a non-empty name, not 3", id="topic is no name"),
    pytest.param({"partition": -1}, "partition must be a whole number from 0, not -1", id="negative partition"),
    pytest.param({"partition": True}, "partition must be a whole number from 0, not True", id="bool partition"),
    pytest.param({"partition": 1.0}, "partition must be a whole number from 0, not 1.0", id="float partition"),
    pytest.param({"theme": "pink"}, "theme must be one of auto, light, dark, not 'pink'", id="theme"),
    pytest.param({"speed": -1}, "speed must be from 0.25 to 10, not -1", id="negative speed"),
    pytest.param({"animate": 1}, "animate must be True or False, not 1", id="animation is no bool"),
    pytest.param({"speed": 11}, "speed must be from 0.25 to 10, not 11", id="too fast"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_strip_refuses(arguments: dict[str, Any], message: str) -> None:
    source = FakeCluster(payments(), 5)
    with pytest.raises(ValueError, match=re.escape(message)):
        strip(source, **{**NAMES, "view": source.view, **arguments})


@pytest.mark.parametrize(
    ("clock", "rate"),
    [
        pytest.param("virtual", 0.0, id="virtual stops between steps"),
        pytest.param("wall", 1.0, id="wall runs in real time"),
        pytest.param(10.0, 10.0, id="scaled runs faster"),
    ],
)
def test_remaining_lock_time_follows_the_clock(clock: str | float, rate: float) -> None:
    widget, _ = make(clock=clock)
    assert widget.clock == {"rate": rate, "until_ms": None}


def test_a_journal_has_no_clock() -> None:
    widget = strip(object(), view=FakeView(payments().snapshots), **NAMES)
    assert widget.clock["rate"] == 0.0
    widget.step()
    assert widget.message == "This is the end of the journal."


def test_holders_in_view_have_lanes_before_others() -> None:
    """With more members than lanes. The page reports the offsets that it shows."""
    widget = strip(crew(400, 40), group=GROUP, topic=TOPIC, animate=False)
    holders = {member["id"]: member["letter"] for member in widget.snapshot["members"] if member["held"]}
    runs = [run for run in widget.snapshot["runs"] if run[4]]
    whole = [lane["id"] for lane in widget.words["lanes"]]
    first, end, *_ = next(run for run in runs if run[4] not in whole)
    in_view = {run[4] for run in runs if run[0] < end and run[1] > first}
    widget._on_message(widget, {"do": "look", "value": [first, end]}, [])
    shown = [lane["id"] for lane in widget.words["lanes"]]
    assert set(shown[: len(in_view)]) == in_view
    assert len(shown) == len(whole) < len(holders)
    widget._on_message(widget, {"do": "look", "value": None}, [])
    assert [lane["id"] for lane in widget.words["lanes"]] == whole


@pytest.mark.parametrize("offsets", [[3, 1], [-1, 4], [0.5, 4], ["0", 4], [1], "all", {}, 7])
def test_offsets_in_view_must_be_a_range(offsets: object) -> None:
    widget, _ = make()
    with pytest.raises(ValueError, match="offsets must be a range"):
        widget._on_message(widget, {"do": "look", "value": offsets}, [])
    assert "offsets must be a range" in widget.error
