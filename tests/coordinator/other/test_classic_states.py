"""Every request in every state of a classic group, and every event."""

import pytest

from shareq.coordinator.other.classic.state import (
    TRANSITIONS,
    ClassicGroup,
    ClassicGroupEvent,
    ClassicGroupState,
)
from tests.coordinator.other.classic_table import COMPLETING, PREPARING, STABLE, STATES, TABLE
from tests.coordinator.other.classic_world import ClassicWorld


def make(state: str) -> ClassicWorld:
    """A group in this state, with generation 1 (2 where it is Empty)."""
    world = ClassicWorld(t1=2)
    if state == "absent":
        world.ids = {"A": "a-1", "B": "b-1", "C": "c-1"}
        world.generation = 1
        return world
    if state == "CompletingRebalance":
        world.enter("A")
        world.enter("B")
        world.wait(0)
        assert (world.said("A"), world.said("B")) == ("1 range leads A,B", "1 range follows A")
    else:
        world.stable("A", "B")
    if state == "PreparingRebalance":
        world.enter("D")
    if state == "Empty":
        world.leave("A", "B")
    world.join("C")
    assert world.state() == state
    world.written()
    return world


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("request_name", TABLE)
def test_every_request_in_every_state(request_name: str, state: str) -> None:
    send, expected = TABLE[request_name]
    answer, _, goes_to = expected[STATES.index(state)].partition(" > ")
    world = make(state)
    generation = f"{world.generation} " if answer.startswith("range") else ""
    assert (send(world), world.state()) == (generation + answer, goes_to or state)


@pytest.mark.parametrize("event", ClassicGroupEvent)
@pytest.mark.parametrize("state", ClassicGroupState)
def test_every_event_in_every_state(state: ClassicGroupState, event: ClassicGroupEvent) -> None:
    group = ClassicGroup("g")
    group.state = state
    goes_to = {
        ("Empty", "rebalance"): PREPARING,
        ("PreparingRebalance", "joined"): COMPLETING,
        ("PreparingRebalance", "emptied"): "Empty",
        ("CompletingRebalance", "assigned"): STABLE,
        ("CompletingRebalance", "rebalance"): PREPARING,
        ("Stable", "rebalance"): PREPARING,
    }.get((state, event))
    if goes_to is None:
        assert (state, event) not in TRANSITIONS
        return
    group.step(event, 5)
    assert (group.state, group.state_since_ms) == (goes_to, 5)
