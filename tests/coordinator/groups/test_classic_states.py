"""All requests and all events in all states of a classic group."""

import pytest

from shareq.coordinator.classic_group.state import (
    TRANSITIONS,
    ClassicGroup,
    ClassicGroupEvent,
    ClassicGroupState,
)
from tests.coordinator.groups.classic_table import COMPLETING, PREPARING, STABLE, STATES, TABLE
from tests.coordinator.groups.stage import ClassicStage


def make(state: str) -> ClassicStage:
    """A group in this state, in generation 1 (2 if Empty)."""
    stage = ClassicStage(t1=2)
    if state == "absent":
        stage.ids = {"A": "a-1", "B": "b-1", "C": "c-1"}
        stage.generation = 1
        return stage
    if state == "CompletingRebalance":
        stage.join_as_new("A")
        stage.join_as_new("B")
        stage.wait(0)
        assert (stage.response_to("A"), stage.response_to("B")) == ("1 range leads A,B", "1 range follows A")
    else:
        stage.form_group("A", "B")
    if state == "PreparingRebalance":
        stage.join_as_new("D")
    if state == "Empty":
        stage.leave("A", "B")
    stage.join("C")
    assert stage.state() == state
    stage.written()
    return stage


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("request_name", TABLE)
def test_response_and_next_state_of_each_request(request_name: str, state: str) -> None:
    """BEHAVIOUR.md 2 to 4, 6, 10 to 12, 23, 26."""
    send, expected = TABLE[request_name]
    answer, _, next_state = expected[STATES.index(state)].partition(" > ")
    stage = make(state)
    generation = f"{stage.generation} " if answer.startswith("range") else ""
    assert (send(stage), stage.state()) == (generation + answer, next_state or state)


@pytest.mark.parametrize("event", ClassicGroupEvent)
@pytest.mark.parametrize("state", ClassicGroupState)
def test_next_state_of_each_event(state: ClassicGroupState, event: ClassicGroupEvent) -> None:
    group = ClassicGroup("g")
    group.state = state
    next_state = {
        ("Empty", "rebalance"): PREPARING,
        ("PreparingRebalance", "joined"): COMPLETING,
        ("PreparingRebalance", "emptied"): "Empty",
        ("CompletingRebalance", "assigned"): STABLE,
        ("CompletingRebalance", "rebalance"): PREPARING,
        ("Stable", "rebalance"): PREPARING,
    }.get((state, event))
    if next_state is None:
        assert (state, event) not in TRANSITIONS
        return
    group.step(event, 5)
    assert (group.state, group.state_since_ms) == (next_state, 5)
