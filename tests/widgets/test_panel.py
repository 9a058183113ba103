"""The rows of the panel: numbers typed beside a slider are exact, and refused with a reason."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pytest

from shareq import Cluster
from shareq.model.errors import ConfigException
from shareq_widgets import control_room
from shareq_widgets.idle import Idle
from shareq_widgets.panel import Panel
from shareq_widgets.panel_row import PanelRow
from shareq_widgets.steering import STORIES, Steering

LOCK = "share.record.lock.duration.ms of crew"


@pytest.fixture
def panel() -> Panel:
    cluster = Cluster(brokers=1, seed=3)
    cluster.create_topic("jobs")
    return Panel(Steering(cluster, "crew", ["jobs"]))


def row(panel: Panel, name: str) -> tuple[PanelRow, Any, Any]:
    """The row of a control with its slider and its field. Its fold is opened."""
    panel._folds[panel.steering[name].area].selected_index = 0
    found = panel._rows[name]
    _, slider, field, *_ = found.widget.children
    assert isinstance(field, ipywidgets.IntText)
    return found, slider, field


@pytest.mark.parametrize("asked_by", ["page", "program"])
def test_a_room_makes_its_panel_when_its_page_is_idle_or_a_program_asks(asked_by: str) -> None:
    """The views stay the same widgets, so that a page does not make them anew."""
    cluster = Cluster(brokers=1, seed=3)
    cluster.create_topic("jobs")
    room = control_room(cluster, group="crew", topic="jobs")
    *shown, place = room.screen.children
    assert isinstance(place, Idle)
    if asked_by == "page":
        place._handle_custom_msg({"do": "idle", "value": None}, [])
        place._handle_custom_msg({"do": "idle", "value": None}, [])
    panel = room.panel
    assert isinstance(panel, Panel)
    assert room.screen.children == (*shown, panel)
    assert room.panel is panel
    room.close()


def test_rows_are_made_when_their_fold_is_opened(panel: Panel) -> None:
    assert LOCK not in panel._rows
    fold = panel._folds["group configurations"]
    panel.steering.do(LOCK, 20_000)
    fold.selected_index = 0
    _, slider, field = row(panel, LOCK)
    assert (field.value, round(slider.value)) == (20_000, 20_000)
    fold.selected_index = None
    panel.steering.do("add consumer", "accept")
    panel.refresh()
    assert "crash A" not in panel._rows
    panel._folds["consumer A"].selected_index = 0
    assert panel._rows["crash A"].widget.description == "crash A"
    fold.selected_index = 0
    assert row(panel, LOCK)[1] is slider


def test_all_folds_opened_at_once_send_less_than_the_queues_of_a_kernel_hold(
    panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZeroMQ drops what is above 1,000 messages: a change that follows would never be seen."""
    sent: list[str] = []

    def count(name: str) -> None:
        call = getattr(ipywidgets.Widget, name)

        def counted(*given: Any, **more: Any) -> None:
            sent.append(name)
            call(*given, **more)

        monkeypatch.setattr(ipywidgets.Widget, name, counted)

    count("open")
    count("send_state")
    while closed := [fold for fold in panel._folds.values() if fold.selected_index is None]:
        for fold in closed:
            fold.selected_index = 0
    assert len(panel._rows) > 80
    assert 300 < len(sent) < 1_000


def test_a_virtual_clock_shows_no_other_speed_than_its_own(panel: Panel) -> None:
    slider = panel._rows["speed"].widget.children[1]
    assert (slider.value, slider.disabled) == (1, True)


def test_a_new_consumer_leaves_the_other_folds_as_they_are(panel: Panel) -> None:
    """A fold that is shown anew drops what a person is typing in it."""
    before = {title: fold.children for title, fold in panel._folds.items()}
    panel.steering.do("add consumer", "accept")
    panel.refresh()
    after = {title: fold.children for title, fold in panel._folds.items()}
    assert {title for title in after if before.get(title) != after[title]} == {"consumers", "consumer A"}


def code(panel: Panel) -> str:
    return str(panel._code.value)


def test_a_typed_number_is_used_exactly_and_moves_the_slider(panel: Panel) -> None:
    _, slider, field = row(panel, LOCK)
    field.value = 17_123
    assert "17123" in code(panel)
    assert panel.steering[LOCK].value == 17_123
    assert round(slider.value) == 17_123


def test_a_moved_slider_shows_its_number(panel: Panel) -> None:
    _, slider, field = row(panel, LOCK)
    slider.value = 20_000
    assert (field.value, panel.steering[LOCK].value) == (20_000, 20_000)


def answer(found: PanelRow) -> str:
    """What stands below the field of a row."""
    return str(found.widget.children[-1].value)


def test_a_refused_number_is_answered_at_its_field_and_stays_to_be_corrected(panel: Panel) -> None:
    found, slider, field = row(panel, LOCK)
    before = panel.steering[LOCK].value
    field.value = -1
    assert "-1: must be" in answer(found)
    assert "must be" not in code(panel)
    panel.refresh()
    assert (panel.steering[LOCK].value, field.value, round(slider.value)) == (before, -1, before)
    field.value = 20_000
    assert (panel.steering[LOCK].value, field.value, answer(found)) == (20_000, 20_000, "")


def test_a_refusal_ends_when_the_value_is_set_elsewhere(panel: Panel) -> None:
    found, _, field = row(panel, LOCK)
    field.value = -1
    panel.steering.do(LOCK, 20_000)
    panel.refresh()
    assert (field.value, answer(found)) == (20_000, "")


def test_a_refused_proposal_is_answered_at_its_field(panel: Panel) -> None:
    found, _, field = row(panel, "produce")
    field.value = -5
    found._button.click()
    assert "-5: must be" in answer(found)
    field.value = 5
    found._button.click()
    assert answer(found) == ""


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("rate", "/s"),
        ("produce", "records"),
        ("batch", "rec."),
        ("poison every", "rec."),
        ("fail state writes", "writes"),
        ("delete records of jobs-0", "offset"),
        ("advance", "ms"),
        ("speed", "×"),
        (LOCK, "ms"),
        ("share.delivery.count.limit of crew", "deliveries"),
        ("share.partition.max.record.locks of crew", "records"),
    ],
)
def test_a_field_has_its_unit(panel: Panel, name: str, unit: str) -> None:
    panel._folds[panel.steering[name].area].selected_index = 0
    shown = [child.value for child in panel._rows[name].widget.children if isinstance(child, ipywidgets.HTML)]
    assert f'<span class="sq-unit">{unit}</span>' in shown


def test_fields_have_room_for_five_digits(panel: Panel) -> None:
    _, _, field = row(panel, "batch")
    assert field.layout.width == "calc(5ch + 16px)"


def test_the_assignor_of_a_group_is_a_choice_while_experiments_are_on() -> None:
    """That of the brokers, the empty text, has a label, too."""
    cluster = Cluster(brokers=1, seed=3, config={"shareq.experiments.enable": True})
    cluster.create_topic("jobs")
    panel = Panel(Steering(cluster, "crew", ["jobs"]))
    panel._folds["group configurations"].selected_index = 0
    name = "shareq.assignor of crew"
    choice = next(child for child in panel._rows[name].widget.children if isinstance(child, ipywidgets.Dropdown))
    assert [label for label, _ in choice.options] == ['""', "simple", "all_to_all", "cut"]
    assert choice.value == ""
    choice.value = "cut"
    assert panel.steering[name].value == "cut"
    choice.value = ""
    assert panel.steering[name].value == ""
    assert panel.steering.log[-1] == "admin.alter_group_configs('crew', {'shareq.assignor': ''})"


def test_a_time_to_live_can_be_switched_off_beside_its_range() -> None:
    cluster = Cluster(brokers=1, seed=3, config={"shareq.experiments.enable": True})
    cluster.create_topic("jobs")
    control = Steering(cluster, "crew", ["jobs"])["shareq.record.ttl.ms of crew"]
    assert control.value == -1
    control.do(60_000)
    assert control.value == 60_000
    with pytest.raises(ConfigException, match="must be -1 or >= 1000"):
        control.do(999)
    control.do(-1)
    assert control.value == -1


def test_a_group_is_paused_and_resumed() -> None:
    cluster = Cluster(brokers=1, seed=3, config={"shareq.experiments.enable": True})
    cluster.create_topic("jobs")
    control = Steering(cluster, "crew", ["jobs"])["shareq.delivery.enable of crew"]
    control.do(False)
    assert not control.value
    control.do(True)
    assert control.value


def test_a_proposal_that_a_person_has_changed_stays(panel: Panel) -> None:
    found, _, field = row(panel, "produce")
    assert field.value == panel.steering["produce"].value
    field.value = 7
    panel.refresh()
    assert (field.value, panel.steering.log) == (7, [])
    found._button.click()
    assert panel.steering.log == ["feed.send(7)"]


def test_the_first_story_is_marked_and_all_have_short_numbered_names() -> None:
    """A new user sees where to begin, and all of them at once."""
    cluster = Cluster(brokers=1, seed=3)
    cluster.create_topic("jobs")
    buttons = Panel(Steering(cluster, "crew", ["jobs"]), begin=print)._stories
    assert [button.description for button in buttons.values()][:2] == ["1 poison", "2 crashed consumer"]
    assert max(len(button.description) for button in buttons.values()) < 20
    assert [name for name, button in buttons.items() if "sq-first" in button._dom_classes] == ["poison"]
    assert buttons["window full"].tooltip.startswith(STORIES["window full"].title)


def test_the_buttons_of_a_broker_are_in_one_line_that_is_open_at_first(panel: Panel) -> None:
    assert panel._folds["brokers"].selected_index == 0
    box = panel._folds["brokers"].children[0]
    broker, elect = box.children
    assert [part.value for part in broker.children[:1]] == ["broker 0"]
    assert [button.description for button in broker.children[1:]] == ["kill", "stop", "start"]
    assert elect.description == "elect preferred leaders"
    broker.children[1].click()
    assert panel.steering.log == ["cluster.kill_broker(0)"]
    assert [button.disabled for button in broker.children[1:]] == [True, True, False]
