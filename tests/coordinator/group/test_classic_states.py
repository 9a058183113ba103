"""Every request in every state of a classic group: what is answered, and where the group goes.

Members A (the leader) and B are in, or were; N is new; C has been given an id and has not come back.
"""

from collections.abc import Callable

import pytest

from shareq.coordinator.group.classic.state import (
    TRANSITIONS,
    ClassicGroup,
    ClassicGroupEvent,
    ClassicGroupState,
)
from shareq.model.actor import ClientContext
from shareq.model.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from tests.coordinator.group.classic_world import WAITING, ClassicWorld, protocols
from tests.coordinator.group.world import GROUP

STATES = ("absent", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
MORE = protocols(range=["t1", "t2"])
OTHER = protocols(sticky=["t1"])


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


def commit(member: str, generation: int) -> Callable[[ClassicWorld], str]:
    def send(world: ClassicWorld) -> str:
        partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=generation,
            member_id=world.ids.get(member, member),
            topics=(OffsetCommitRequest.Topic(name="t1", partitions=(partition,)),),
        )
        answer = world.ask(request, OffsetCommitResponse, ClientContext(api_version=9))
        return answer.topics[0].partitions[0].error_code.name

    return send


def delete_offset(world: ClassicWorld) -> str:
    partition = OffsetDeleteRequest.Partition(partition_index=0)
    request = OffsetDeleteRequest(
        group_id=GROUP, topics=(OffsetDeleteRequest.Topic(name="t1", partitions=(partition,)),)
    )
    answer = world.ask(request, OffsetDeleteResponse)
    return (answer.error_code or answer.topics[0].partitions[0].error_code).name


REFUSED = "UNKNOWN_MEMBER_ID"
GENERATION = "ILLEGAL_GENERATION"
REBALANCING = "REBALANCE_IN_PROGRESS"
PREPARING, COMPLETING, STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"

Send = Callable[[ClassicWorld], str]


def row(send: Send, *answers: str) -> tuple[Send, tuple[str, ...]]:
    assert len(answers) == len(STATES)
    return send, answers


# What is answered in each state, in the order of STATES; "answer > state" where the group goes somewhere else.
TABLE = {
    "join: the leader": row(
        lambda w: w.join("A"), REFUSED, REFUSED, WAITING, "1 range leads A,B", f"{WAITING} > {PREPARING}",
    ),
    "join: a follower, unchanged": row(
        lambda w: w.join("B"), REFUSED, REFUSED, WAITING, "1 range follows A", "1 range follows A",
    ),
    "join: a follower with another subscription": row(
        lambda w: w.join("B", given=MORE),
        REFUSED, REFUSED, WAITING, f"{WAITING} > {PREPARING}", f"{WAITING} > {PREPARING}",
    ),
    "join: somebody who was given an id": row(
        lambda w: w.join("C"),
        REFUSED, f"{WAITING} > {PREPARING}", WAITING, f"{WAITING} > {PREPARING}", f"{WAITING} > {PREPARING}",
    ),
    "join: an id that was never given": row(
        lambda w: w.join("N", member_id="n-1"), REFUSED, REFUSED, REFUSED, REFUSED, REFUSED,
    ),
    "join: somebody new": row(
        lambda w: w.join("N"), "MEMBER_ID_REQUIRED > Empty", *["MEMBER_ID_REQUIRED"] * 4,
    ),
    "join: a new static member": row(
        lambda w: w.join("N", instance="i"),
        f"{WAITING} > {PREPARING}", f"{WAITING} > {PREPARING}", WAITING,
        f"{WAITING} > {PREPARING}", f"{WAITING} > {PREPARING}",
    ),
    "join: no common protocol": row(
        lambda w: w.join("N", given=OTHER),
        "MEMBER_ID_REQUIRED > Empty", "MEMBER_ID_REQUIRED", *["INCONSISTENT_GROUP_PROTOCOL"] * 3,
    ),
    "join: another protocol type": row(
        lambda w: w.join("N", protocol_type="connect"),
        "MEMBER_ID_REQUIRED > Empty", "MEMBER_ID_REQUIRED", *["INCONSISTENT_GROUP_PROTOCOL"] * 3,
    ),
    "join: no protocols": row(
        lambda w: w.join("N", given=()), *["INCONSISTENT_GROUP_PROTOCOL"] * 5,
    ),
    "sync: the leader": row(
        lambda w: w.sync("A", {"A": "a", "B": "b"}), REFUSED, REFUSED, REBALANCING, f"a > {STABLE}", "A",
    ),
    "sync: a follower": row(
        lambda w: w.sync("B"), REFUSED, REFUSED, REBALANCING, WAITING, "B",
    ),
    "sync: another generation": row(
        lambda w: w.sync("B", generation=7), REFUSED, REFUSED, *[GENERATION] * 3,
    ),
    "sync: another protocol": row(
        lambda w: w.sync("B", names=("consumer", "sticky")), REFUSED, REFUSED, *["INCONSISTENT_GROUP_PROTOCOL"] * 3,
    ),
    "sync: a stranger": row(
        lambda w: w.sync("N"), *[REFUSED] * 5,
    ),
    "heartbeat: a member": row(
        lambda w: w.alive("B", 1), REFUSED, REFUSED, REBALANCING, "NONE", "NONE",
    ),
    "heartbeat: another generation": row(
        lambda w: w.alive("B", 7), REFUSED, REFUSED, *[GENERATION] * 3,
    ),
    "heartbeat: a stranger": row(
        lambda w: w.alive("N", 1), *[REFUSED] * 5,
    ),
    "leave: a member": row(
        lambda w: w.leave("B"), REFUSED, REFUSED, "NONE", f"NONE > {PREPARING}", f"NONE > {PREPARING}",
    ),
    "leave: a stranger": row(
        lambda w: w.leave("N"), *[REFUSED] * 5,
    ),
    "leave: somebody who was given an id": row(
        lambda w: w.leave("C"), REFUSED, "NONE", "NONE", f"NONE > {PREPARING}", f"NONE > {PREPARING}",
    ),
    "commit: a member": row(
        commit("B", 1), "GROUP_ID_NOT_FOUND", REFUSED, "NONE", REBALANCING, "NONE",
    ),
    "commit: another generation": row(
        commit("B", 7), "GROUP_ID_NOT_FOUND", REFUSED, *[GENERATION] * 3,
    ),
    "commit: a stranger": row(
        commit("N", 1), "GROUP_ID_NOT_FOUND", *[REFUSED] * 4,
    ),
    "commit: nobody in particular": row(
        commit("", -1), "NONE > Empty", "NONE", *[REFUSED] * 3,
    ),
    "commit: no member, but a generation": row(
        commit("", 1), "GROUP_ID_NOT_FOUND", *[REFUSED] * 4,
    ),
    "delete the group": row(
        lambda w: w.delete_group(), "GROUP_ID_NOT_FOUND", "NONE > absent", *["NON_EMPTY_GROUP"] * 3,
    ),
    "delete offsets": row(
        delete_offset, "GROUP_ID_NOT_FOUND", "NONE", *["GROUP_SUBSCRIBED_TO_TOPIC"] * 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("request_name", TABLE)
def test_every_request_in_every_state(request_name: str, state: str) -> None:
    send, expected = TABLE[request_name]
    answer, _, goes_to = expected[STATES.index(state)].partition(" > ")
    world = make(state)
    assert (send(world), world.state()) == (answer, goes_to or state)


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
