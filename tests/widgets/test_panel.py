"""The rows of the panel: numbers typed beside a slider are exact, and refused with a reason."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pytest

from shareq import Cluster
from shareq_widgets import control_room
from shareq_widgets.idle import Idle
from shareq_widgets.panel import Panel
from shareq_widgets.panel_row import Row
from shareq_widgets.steering import Steering

LOCK = "share.record.lock.duration.ms of crew"


@pytest.fixture
def panel() -> Panel:
    cluster = Cluster(brokers=1, seed=3)
    cluster.create_topic("jobs")
    return Panel(Steering(cluster, "crew", ["jobs"]))


def row(panel: Panel, name: str) -> tuple[Row, Any, Any]:
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


def test_a_refused_number_gives_way_to_the_value_in_force(panel: Panel) -> None:
    _, slider, field = row(panel, LOCK)
    before = panel.steering[LOCK].value
    field.value = -1
    assert "share.record.lock.duration.ms=-1: must be" in code(panel)
    assert (panel.steering[LOCK].value, field.value, round(slider.value)) == (before, before, before)


def test_a_proposal_that_a_person_has_changed_stays(panel: Panel) -> None:
    found, _, field = row(panel, "produce")
    assert field.value == panel.steering["produce"].value
    field.value = 7
    panel.refresh()
    assert (field.value, panel.steering.log) == (7, [])
    found._button.click()
    assert panel.steering.log == ["feed.send(7)"]
