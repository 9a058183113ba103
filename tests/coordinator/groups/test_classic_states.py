"""All requests and all events in all states of a classic group."""

import pytest

from shareq.coordinator.classic_group.state import (
    TRANSITIONS,
    ClassicGroup,
    ClassicGroupEvent,
    ClassicGroupState,
)
from tests.coordinator.groups.classic_table import COMPLETING, PREPARING, STABLE, STATES, TABLE
from tests.coordinator.groups.classic_world import ClassicWorld


def make(state: str) -> ClassicWorld:
    """A group in this state, in generation 1 (2 if Empty)."""
    world = ClassicWorld(t1=2)
    if state == "absent":
        world.ids = {"A": "a-1", "B": "b-1", "C": "c-1"}
        world.generation = 1
        return world
    if state == "CompletingRebalance":
        world.join_as_new("A")
        world.join_as_new("B")
        world.wait(0)
        assert (world.response_to("A"), world.response_to("B")) == ("1 range leads A,B", "1 range follows A")
    else:
        world.form_group("A", "B")
    if state == "PreparingRebalance":
        world.join_as_new("D")
    if state == "Empty":
        world.leave("A", "B")
    world.join("C")
    assert world.state() == state
    world.written()
    return world


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("request_name", TABLE)
def test_response_and_next_state_of_each_request(request_name: str, state: str) -> None:
    """BEHAVIOUR.md 2 to 4, 6, 10 to 12, 23, 26."""
    send, expected = TABLE[request_name]
    answer, _, next_state = expected[STATES.index(state)].partition(" > ")
    world = make(state)
    generation = f"{world.generation} " if answer.startswith("range") else ""
    assert (send(world), world.state()) == (generation + answer, next_state or state)


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
