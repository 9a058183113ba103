"""The table of all requests to a classic group in all states: the response, and the next state.

A (the leader) and B are members, or were; D has sent a JoinGroup; N is new; C has got a member id and has not joined
yet. Tests run the table on the coordinator itself, and over TCP on brokers of shareq and of Apache Kafka.
"""

from collections.abc import Callable

from shareq.model.actor import ClientContext
from shareq.model.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from tests.coordinator.groups.members import WAITING, Members, protocols

Send = Callable[[Members], str]

STATES = ("absent", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
MORE = protocols(range=["t1", "t2"])
OTHER = protocols(sticky=["t1"])


def commit(member: str, generation: int | None = None) -> Send:
    def send(members: Members) -> str:
        partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
        request = OffsetCommitRequest(
            group_id=members.group_id,
            generation_id_or_member_epoch=members.generation if generation is None else generation,
            member_id=members.ids.get(member, member),
            topics=(OffsetCommitRequest.Topic(name="t1", partitions=(partition,)),),
        )
        answer = members.ask(request, OffsetCommitResponse, ClientContext(api_version=9))
        return answer.topics[0].partitions[0].error_code.name

    return send


def delete_offset(members: Members) -> str:
    partition = OffsetDeleteRequest.Partition(partition_index=0)
    request = OffsetDeleteRequest(
        group_id=members.group_id, topics=(OffsetDeleteRequest.Topic(name="t1", partitions=(partition,)),)
    )
    answer = members.ask(request, OffsetDeleteResponse)
    return (answer.error_code or answer.topics[0].partitions[0].error_code).name


REFUSED = "UNKNOWN_MEMBER_ID"
GENERATION = "ILLEGAL_GENERATION"
REBALANCING = "REBALANCE_IN_PROGRESS"
PREPARING, COMPLETING, STABLE = "PreparingRebalance", "CompletingRebalance", "Stable"


def row(send: Send, *answers: str) -> tuple[Send, tuple[str, ...]]:
    assert len(answers) == len(STATES)
    return send, answers


# The response in each state, in the order of STATES; "response > state" if the state changes.
TABLE = {
    "join: the leader": row(
        lambda w: w.join("A"), REFUSED, REFUSED, WAITING, "range leads A,B", f"{WAITING} > {PREPARING}",
    ),
    "join: a follower, unchanged": row(
        lambda w: w.join("B"), REFUSED, REFUSED, WAITING, "range follows A", "range follows A",
    ),
    "join: a follower with another subscription": row(
        lambda w: w.join("B", given=MORE),
        REFUSED, REFUSED, WAITING, f"{WAITING} > {PREPARING}", f"{WAITING} > {PREPARING}",
    ),
    "join: a pending member id": row(
        lambda w: w.join("C"),
        REFUSED, f"{WAITING} > {PREPARING}", WAITING, f"{WAITING} > {PREPARING}", f"{WAITING} > {PREPARING}",
    ),
    "join: an unknown member id": row(
        lambda w: w.join("N", member_id="n-1"), REFUSED, REFUSED, REFUSED, REFUSED, REFUSED,
    ),
    "join: no member id": row(
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
    "sync: an unknown member": row(
        lambda w: w.sync("N"), *[REFUSED] * 5,
    ),
    "heartbeat: a member": row(
        lambda w: w.classic_heartbeat("B"), REFUSED, REFUSED, REBALANCING, "NONE", "NONE",
    ),
    "heartbeat: another generation": row(
        lambda w: w.classic_heartbeat("B", 7), REFUSED, REFUSED, *[GENERATION] * 3,
    ),
    "heartbeat: an unknown member": row(
        lambda w: w.classic_heartbeat("N"), *[REFUSED] * 5,
    ),
    "leave: a member": row(
        lambda w: w.leave("B"), REFUSED, REFUSED, "NONE", f"NONE > {PREPARING}", f"NONE > {PREPARING}",
    ),
    "leave: an unknown member": row(
        lambda w: w.leave("N"), *[REFUSED] * 5,
    ),
    "leave: a pending member id": row(
        lambda w: w.leave("C"), REFUSED, "NONE", "NONE", f"NONE > {PREPARING}", f"NONE > {PREPARING}",
    ),
    "commit: a member": row(
        commit("B"), "GROUP_ID_NOT_FOUND", REFUSED, "NONE", REBALANCING, "NONE",
    ),
    "commit: another generation": row(
        commit("B", 7), "GROUP_ID_NOT_FOUND", REFUSED, *[GENERATION] * 3,
    ),
    "commit: an unknown member": row(
        commit("N"), "GROUP_ID_NOT_FOUND", *[REFUSED] * 4,
    ),
    "commit: no member, no generation": row(
        commit("", -1), "NONE > Empty", "NONE", *[REFUSED] * 3,
    ),
    "commit: no member, but a generation": row(
        commit(""), "GROUP_ID_NOT_FOUND", *[REFUSED] * 4,
    ),
    "delete the group": row(
        lambda w: w.delete_group(), "GROUP_ID_NOT_FOUND", "NONE > absent", *["NON_EMPTY_GROUP"] * 3,
    ),
    "delete offsets": row(
        delete_offset, "GROUP_ID_NOT_FOUND", "NONE", *["GROUP_SUBSCRIBED_TO_TOPIC"] * 3,
    ),
}  # fmt: skip
