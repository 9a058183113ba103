"""The heartbeat of consumer groups: scripted lives with every answer and record, and every refusal."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.other.consumer.member import MemberState
from shareq.coordinator.other.consumer.state import ConsumerGroupState
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped, MemberJoined, MemberLeft, MemberReconciled
from tests.coordinator.other.consumer_world import REBALANCE_TIMEOUT_MS, ConsumerWorld

# ---- lives -----------------------------------------------------------------------------------------------------------


def test_a_member_joins_and_stays() -> None:
    world = ConsumerWorld(t1=2)
    assert world.join("A") == "2 {t1:0,1}"
    assert world.written() == [
        "R5(A [t1])", "R3(2)", "R7(A {t1:0,1})", "R6(2)", "R8(A 2<0 STABLE {t1:0,1})",
    ]  # fmt: skip
    assert world.told.heartbeat_interval_ms == 5000
    assert world.stay("A", 2) == "2 null"
    assert world.stay("A", 2, owns="t1:0,1") == "2 null"
    assert world.written() == []


def test_a_second_member_gets_what_the_first_has_given_up_and_not_before() -> None:
    world = ConsumerWorld(t1=4)
    world.join("A")
    world.written()
    assert world.join("B") == "3 {}"
    assert world.written() == [
        "R5(B [t1])", "R3(3)", "R7(A {t1:0,1})", "R7(B {t1:2,3})", "R6(3)", "R8(B 3<0 UNRELEASED_PARTITIONS {})",
    ]  # fmt: skip
    assert world.group().state is ConsumerGroupState.RECONCILING
    assert world.stay("A", 2) == "2 {t1:0,1}"
    assert world.written() == ["R8(A 2<2 UNREVOKED_PARTITIONS {t1:0,1} -{t1:2,3})"]
    assert world.stay("B", 3) == "3 null"
    assert world.stay("A", 2, owns="t1:0,1,2,3") == "2 null"
    assert world.stay("A", 2, owns="t1:0,1,2") == "2 null", "part of it is not all of it"
    assert world.stay("B", 3) == "3 null"
    assert world.stay("A", 2, owns="t1:0,1") == "3 null"
    world.written()
    assert world.stay("B", 3) == "3 {t1:2,3}"
    assert world.written() == ["R8(B 3<3 STABLE {t1:2,3})"]
    assert world.group().state is ConsumerGroupState.STABLE


def test_what_one_gives_up_can_be_taken_while_the_other_parts_are_still_held() -> None:
    world = ConsumerWorld(t1=3, t2=3)
    world.join("A", ["t1"])
    world.join("B", ["t2"])
    assert world.join("C", ["t1", "t2"]) == "4 {}"
    world.stay("A", 2, owns="t1:0,1,2")
    assert world.stay("A", 2, owns="t1:0,1") == "4 null"
    assert world.stay("C", 4) == "4 {t1:2}"
    world.stay("B", 3, owns="t2:0,1,2")
    assert world.stay("B", 3, owns="t2:0,1") == "4 null"
    assert world.stay("C", 4) == "4 {t1:2 t2:2}"


def test_a_member_leaves() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.join("B")
    world.written()
    assert world.stay("A", -1) == "-1 null"
    assert (world.told.member_id, world.told.heartbeat_interval_ms) == ("A", 0)
    assert world.written() == ["R8T(A)", "R7T(A)", "R5T(A)", "R3(4)"]
    assert world.stay("B", 3) == "4 {t1:0,1}"
    assert world.stay("B", -1) == "-1 null"
    assert world.group().state is ConsumerGroupState.EMPTY
    assert world.stay("B", -1) == "UNKNOWN_MEMBER_ID"


def test_who_joins_within_the_interval_waits_for_the_next_assignment() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    request = world.request("B", 0, ["t1"], "", rebalance_timeout_ms=1)
    assert world.tell(request) == "2 {}", "the epoch of the last assignment, which knows nothing of it"
    assert world.group().state is ConsumerGroupState.ASSIGNING
    world.wait(1000)
    assert world.tell(world.request("B", 2)) == "3 null"
    assert world.group().targets["B"] == {world.image.topics["t1"].topic_id: (1,)}


@pytest.mark.parametrize("interval_ms", [pytest.param(0, id="none: at once"), pytest.param(500, id="shorter")])
def test_the_assignment_interval_of_the_group(interval_ms: int) -> None:
    world = ConsumerWorld(t1=2)
    world.configure_group(consumer_assignment_interval_ms=interval_ms)
    world.join("A")
    world.wait(interval_ms)
    assert world.tell(world.request("B", 0, ["t1"], "", rebalance_timeout_ms=1)) == "3 {}"


def test_a_member_changes_its_topics() -> None:
    world = ConsumerWorld(t1=1, t2=1)
    world.join("A", ["t1"])
    world.written()
    assert world.stay("A", 2, ["t2"]) == "2 {}", "what it does not subscribe to goes first"
    assert world.written() == [
        "R5(A [t2])", "R3(3)", "R7(A {t2:0})", "R6(3)", "R8(A 2<2 UNREVOKED_PARTITIONS {} -{t1:0})",
    ]  # fmt: skip
    assert world.stay("A", 2, owns="") == "3 {t2:0}"
    assert world.stay("A", 3, ["t2"]) == "3 null", "the same topics are no change"


def test_topics_that_go_go_at_once_though_the_assignment_has_to_wait() -> None:
    world = ConsumerWorld(t1=1, t2=1)
    world.join("A", ["t1", "t2"])
    assert world.tell(world.request("A", 2, ["t2"])) == "2 {t2:0}"


NOT_BUMPING = [
    pytest.param({"rack_id": "r1"}, id="a rack"),
    pytest.param({"rebalance_timeout_ms": 5}, id="a rebalance time-out"),
    pytest.param({"server_assignor": "range"}, id="an assignor"),
]


@pytest.mark.parametrize("fields", NOT_BUMPING)
def test_other_changes_are_recorded_and_make_no_rebalance(fields: dict[str, Any]) -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.written()
    assert world.stay("A", 2, **fields) == "2 null"
    assert world.written() == ["R5(A [t1])"]


def test_another_client_is_recorded() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.written()
    world.tell(world.request("A", 2), ClientContext("another", "/10.0.0.1"))
    assert world.written() == ["R5(A [t1])"]
    assert world.group().members["A"].client_host == "/10.0.0.1"


ASSIGNMENT_TOLD = [
    pytest.param({}, False, id="nothing said"),
    pytest.param({"owns": "t1:0,1"}, False, id="partitions alone"),
    pytest.param({"topics": ["t1"], "owns": "t1:0,1"}, False, id="all but the time-out"),
    pytest.param({"topics": ["t1"], "owns": "t1:0,1", "rebalance_timeout_ms": 1}, True, id="a full report"),
]


@pytest.mark.parametrize(("said", "told"), ASSIGNMENT_TOLD)
def test_an_assignment_that_has_not_changed_is_told_to_who_tells_everything(said: dict[str, Any], told: bool) -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    assert world.stay("A", 2, **said) == ("2 {t1:0,1}" if told else "2 null")


def test_who_joins_again_is_told_everything_and_makes_no_rebalance() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.written()
    assert world.join("A") == "2 {t1:0,1}"
    assert world.written() == []


def test_most_votes_choose_the_assignor() -> None:
    world = ConsumerWorld(t1=3)
    world.join("A", server_assignor="range")
    world.join("B", server_assignor="range")
    world.join("C", server_assignor="uniform")
    assert world.described().assignor_name == "range"
    assert [world.in_short(world.group().targets[member]) for member in "ABC"] == ["{t1:0}", "{t1:1}", "{t1:2}"]


def test_who_subscribes_to_nothing_is_a_member_all_the_same() -> None:
    world = ConsumerWorld(t1=1)
    assert world.join("A", []) == "1 {}"
    assert world.group().state is ConsumerGroupState.STABLE


# ---- topics ----------------------------------------------------------------------------------------------------------


def test_a_topic_grows() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A")
    world.written()
    world.grow_topic("t1", 3)
    assert world.stay("A", 2) == "3 {t1:0,1,2}"
    assert world.written() == ["R3(3)", "R7(A {t1:0,1,2})", "R6(3)", "R8(A 3<2 STABLE {t1:0,1,2})"]


def test_a_topic_that_is_subscribed_to_comes() -> None:
    world = ConsumerWorld()
    assert world.join("A", ["t1"]) == "2 {}"
    world.create_topic("t1", 2)
    assert world.stay("A", 2) == "3 {t1:0,1}"


def test_a_topic_goes_and_another_one_of_its_name_comes() -> None:
    world = ConsumerWorld(t1=1, t2=1)
    world.join("A", ["t1", "t2"])
    world.delete_topic("t1")
    assert world.stay("A", 2, owns="t2:0") == "3 {t2:0}"
    world.create_topic("t1", 2)
    assert world.stay("A", 3, owns="t2:0") == "4 {t1:0,1 t2:0}"


def test_topics_that_nobody_subscribes_to_change_nothing() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A")
    world.written()
    world.create_topic("t2", 1)
    assert world.stay("A", 2) == "2 null"
    assert world.written() == []


# ---- static members --------------------------------------------------------------------------------------------------


def test_a_static_member_comes_back_in_time_and_nobody_notices() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A", instance_id="i")
    world.join("B")
    world.stay("A", 2, owns="t1:0")
    world.stay("B", 3)
    world.written()
    assert world.stay("A", -2, instance_id="i") == "-2 null"
    assert world.written() == ["R8(A -2<2 STABLE {t1:0})"]
    assert world.stay("B", 3) == "3 null", "nobody gets its partitions"
    assert world.join("A2", instance_id="i") == "3 {t1:0}"
    assert world.written() == [
        "R8T(A)", "R7T(A)", "R5T(A)", "R5(A2 [t1])", "R7(A2 {t1:0})", "R8(A2 0<0 STABLE {t1:0})",
        "R8(A2 3<0 STABLE {t1:0})",
    ]  # fmt: skip
    assert world.group().static_members == {"i": "A2"}
    assert world.stay("B", 3) == "3 null"


def test_a_static_member_that_comes_back_with_other_topics_makes_a_rebalance() -> None:
    world = ConsumerWorld(t1=1, t2=1)
    world.join("A", instance_id="i")
    world.stay("A", -2, instance_id="i")
    assert world.join("A2", ["t2"], instance_id="i") == "3 {t2:0}"
    assert set(world.group().members) == {"A2"}


def test_a_static_member_that_does_not_come_back_is_gone_after_its_session() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A", instance_id="i")
    world.stay("A", -2, instance_id="i")
    world.wait(45_000)
    assert world.group().members == {}


# ---- time ------------------------------------------------------------------------------------------------------------


def test_who_is_silent_for_a_session_is_removed() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A")
    world.wait(44_999)
    assert "A" in world.group().members
    world.written()
    world.wait(1)
    assert world.written() == ["R8T(A)", "R7T(A)", "R5T(A)", "R3(3)"]
    assert world.stay("A", 2) == "UNKNOWN_MEMBER_ID"


def test_an_expiry_that_could_not_be_written_is_tried_again() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A")
    world.append_error = Errors.NOT_ENOUGH_REPLICAS
    world.wait(45_000)
    assert "A" in world.group().members
    world.append_error = Errors.NONE
    world.wait(500)
    assert world.group().members == {}


def test_who_does_not_give_up_in_time_is_removed_however_often_it_is_heard_of() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.join("B")
    world.stay("A", 2)
    for _ in range(REBALANCE_TIMEOUT_MS // 1000 - 1):
        world.stay("A", 2, owns="t1:0,1")
        world.tell(world.request("B", 3))
    assert "A" in world.group().members
    world.wait(1000)
    assert "A" not in world.group().members
    assert world.stay("B", 3) == "4 {t1:0,1}"


def test_who_gives_up_in_time_stays() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.join("B")
    world.stay("A", 2)
    world.stay("A", 2, owns="t1:0")
    for _ in range(3):
        world.wait(30_000)
        world.tell(world.request("A", 3))
    assert "A" in world.group().members


def test_sessions_begin_anew_on_another_coordinator_and_everything_else_is_as_it_was() -> None:
    world = ConsumerWorld(t1=4)
    world.join("A", instance_id="i")
    world.join("B", None, subscribed_topic_regex="t.*")
    world.stay("A", 2)
    before = world.group()
    world.wait(40_000)
    world.fail_over()
    after = world.group()
    assert after is not before
    soft = {"refresh_at_ms", "topics_are_new"}
    for slot in set(after.__slots__) - soft:
        assert getattr(after, slot) == getattr(before, slot), slot
    world.wait(44_999)
    assert set(world.group().members) == {"A", "B"}
    world.wait(1)
    assert world.group().members == {}


def test_a_rebalance_that_was_under_way_gets_its_full_time_again() -> None:
    world = ConsumerWorld(t1=2)
    world.configure(group_consumer_session_timeout_ms=60_000)
    world.join("A", rebalance_timeout_ms=50_000)
    world.join("B")
    world.stay("A", 2)
    world.fail_over()
    world.wait(49_999)
    assert world.group().members["A"].state is MemberState.UNREVOKED_PARTITIONS
    world.wait(1)
    assert "A" not in world.group().members


# ---- refusals --------------------------------------------------------------------------------------------------------

JOINING = {"rebalance_timeout_ms": 1}

INVALID = [
    pytest.param(("", 0, ["t1"], ""), JOINING, "MemberId can't be empty.", id="no member id"),
    pytest.param((" ", 1), {}, "MemberId can't be empty.", id="a blank member id"),
    pytest.param(("A", 0, ["t1"], ""), JOINING | {"group_id": " "}, "GroupId can't be empty.", id="no group"),
    pytest.param(("A", 0, ["t1"], ""), JOINING | {"instance_id": ""}, "InstanceId can't be empty.", id="no instance"),
    pytest.param(("A", 0, ["t1"], ""), JOINING | {"rack_id": ""}, "RackId can't be empty.", id="no rack"),
    pytest.param(("A", 0, ["t1"], ""), {}, "RebalanceTimeoutMs must be provided in first request.", id="no time-out"),
    pytest.param(("A", 0, ["t1"]), JOINING, "TopicPartitions must be empty when (re-)joining.", id="null partitions"),
    pytest.param(("A", 0, ["t1"], "t1:0"), JOINING, "TopicPartitions must be empty when (re-)joining.", id="some"),
    pytest.param(
        ("A", 0, None, ""), JOINING,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.", id="no subscription",
    ),
    pytest.param(("A", -2), {}, "InstanceId can't be null.", id="a static leave without an instance"),
    pytest.param(("A", -3), {}, "MemberEpoch is invalid.", id="epoch -3"),
]  # fmt: skip


@pytest.mark.parametrize(("request_of", "fields", "message"), INVALID)
def test_requests_that_are_invalid(request_of: tuple[Any, ...], fields: dict[str, Any], message: str) -> None:
    world = ConsumerWorld(t1=1)
    assert world.tell(world.request(*request_of, **fields)) == "INVALID_REQUEST"
    assert world.told.error_message == message
    assert (world.told.member_id, world.written()) == (None, [])


def test_before_version_1_the_coordinator_makes_the_member_id() -> None:
    world = ConsumerWorld(t1=1)
    old = ClientContext("c", "/h", api_version=0)
    assert world.tell(world.request("", 0, ["t1"], "", **JOINING), old) == "2 {t1:0}"
    assert world.told.member_id is not None
    assert world.told.member_id in world.group().members
    assert world.tell(world.request("", 2), old) == "INVALID_REQUEST"


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_assignors_that_are_known(name: str) -> None:
    assert ConsumerWorld(t1=1).join("A", server_assignor=name) == "2 {t1:0}"


def test_an_assignor_that_is_unknown() -> None:
    world = ConsumerWorld(t1=1)
    assert world.join("A", server_assignor="sticky") == "UNSUPPORTED_ASSIGNOR"
    assert world.told.error_message == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."


EPOCHS = [
    # epoch, owned; the member is at 3 before 2 with t1:0 assigned
    pytest.param(3, None, "3 null", id="its own"),
    pytest.param(2, "t1:0", "3 null", id="the one before, with what is assigned"),
    pytest.param(2, "", "3 null", id="the one before, with nothing"),
    pytest.param(2, "t1:0,1", "FENCED_MEMBER_EPOCH", id="the one before, with more than is assigned"),
    pytest.param(2, None, "FENCED_MEMBER_EPOCH", id="the one before, with nothing said"),
    pytest.param(1, "t1:0", "FENCED_MEMBER_EPOCH", id="an older one"),
    pytest.param(4, "t1:0", "FENCED_MEMBER_EPOCH", id="a newer one"),
]


@pytest.mark.parametrize(("epoch", "owned", "answer"), EPOCHS)
def test_epochs(epoch: int, owned: str | None, answer: str) -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.join("B")
    world.stay("A", 2, owns="t1:0")
    assert world.group().members["A"][9:11] == (3, 2)
    assert world.stay("A", epoch, owns=owned) == answer
    if answer == "FENCED_MEMBER_EPOCH":
        assert world.told.error_message is not None
        assert ("greater" if epoch > 3 else "smaller") in world.told.error_message


def test_a_member_in_a_state_of_the_future_is_fenced_until_it_has_given_up_everything() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A")
    group = world.group()
    group.members["A"] = group.members["A"]._replace(state=MemberState.UNKNOWN)
    assert world.stay("A", 2) == "FENCED_MEMBER_EPOCH"
    assert world.stay("A", 2, owns="t1:0") == "FENCED_MEMBER_EPOCH"
    assert world.stay("A", 2, owns="") == "2 null"
    assert group.members["A"].state is MemberState.STABLE


UNKNOWN = [
    pytest.param(("A", 1), {}, "GROUP_ID_NOT_FOUND", False, id="no group, a heartbeat"),
    pytest.param(("A", -1), {}, "GROUP_ID_NOT_FOUND", False, id="no group, a leave"),
    pytest.param(("X", 1), {}, "UNKNOWN_MEMBER_ID", True, id="no member, a heartbeat"),
    pytest.param(("X", -1), {}, "UNKNOWN_MEMBER_ID", True, id="no member, a leave"),
    pytest.param(("A", 2), {"instance_id": "x"}, "UNKNOWN_MEMBER_ID", True, id="no instance, a heartbeat"),
    pytest.param(("A", -1), {"instance_id": "x"}, "UNKNOWN_MEMBER_ID", True, id="no instance, a leave"),
    pytest.param(("A", -2), {"instance_id": "x"}, "UNKNOWN_MEMBER_ID", True, id="no instance, a static leave"),
    pytest.param(("X", 2), {"instance_id": "i"}, "FENCED_INSTANCE_ID", True, id="another's instance, a heartbeat"),
    pytest.param(("X", -1), {"instance_id": "i"}, "FENCED_INSTANCE_ID", True, id="another's instance, a leave"),
    pytest.param(("X", -2), {"instance_id": "i"}, "FENCED_INSTANCE_ID", True, id="another's instance, a static leave"),
    pytest.param(
        ("X", 0, ["t1"], ""), {"instance_id": "i", **JOINING}, "UNRELEASED_INSTANCE_ID", True, id="another's, a join",
    ),
    pytest.param(
        ("A", 0, ["t1"], ""), {"instance_id": "i", **JOINING}, "UNRELEASED_INSTANCE_ID", True, id="its own, a join",
    ),
    pytest.param(("A", 9), {"instance_id": "i"}, "FENCED_MEMBER_EPOCH", True, id="its own instance, a wrong epoch"),
]  # fmt: skip


@pytest.mark.parametrize(("request_of", "fields", "answer", "exists"), UNKNOWN)
def test_who_is_not_who_it_says_it_is(
    request_of: tuple[Any, ...], fields: dict[str, Any], answer: str, exists: bool
) -> None:
    world = ConsumerWorld(t1=1)
    if exists:
        world.join("A", instance_id="i")
    world.written()
    assert world.stay(*request_of, **fields) == answer
    assert world.written() == []


def test_a_static_member_that_has_left_is_fenced_until_it_joins() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A", instance_id="i")
    world.stay("A", -2, instance_id="i")
    assert world.stay("A", 2, owns="t1:0", instance_id="i") == "FENCED_MEMBER_EPOCH"
    assert world.join("A", instance_id="i") == "2 {t1:0}"


def test_a_group_has_a_largest_size() -> None:
    world = ConsumerWorld(t1=2)
    world.configure(group_consumer_max_size=1)
    world.join("A")
    assert world.join("B") == "GROUP_MAX_SIZE_REACHED"
    assert world.stay("B", 5) == "GROUP_MAX_SIZE_REACHED", "whatever its epoch"
    assert world.stay("B", -1) == "UNKNOWN_MEMBER_ID"
    assert world.join("A") == "2 {t1:0,1}"


def test_a_share_groups_id_is_taken() -> None:
    world = ConsumerWorld(t1=1)
    world.heartbeat("S", 0, ["t1"])
    for request in (world.request("A", 0, ["t1"], "", **JOINING), world.request("A", 1), world.request("A", -1)):
        assert world.tell(request) == "GROUP_ID_NOT_FOUND"
    assert world.told.error_message == "Group g is not a consumer group."


@pytest.mark.parametrize(("error", "answer"), [
    pytest.param(Errors.NOT_ENOUGH_REPLICAS, "COORDINATOR_NOT_AVAILABLE", id="too few replicas"),
    pytest.param(Errors.NOT_LEADER_OR_FOLLOWER, "NOT_COORDINATOR", id="led elsewhere"),
])  # fmt: skip
def test_a_heartbeat_that_could_not_be_written_changes_nothing(error: Errors, answer: str) -> None:
    world = ConsumerWorld(t1=1)
    world.append_error = error
    assert world.join("A") == answer
    world.append_error = Errors.NONE
    assert world.join("A") == "2 {t1:0}"


# ---- what is told of it ----------------------------------------------------------------------------------------------


def test_what_happens_is_told() -> None:
    world = ConsumerWorld(t1=2)
    world.events.clear()
    world.join("A")
    world.stay("A", -1)
    told = [e for e in world.events if isinstance(e, MemberJoined | GroupEpochBumped | MemberReconciled | MemberLeft)]
    assert told == [
        MemberJoined("g", "A", "", ("t1",)),
        GroupEpochBumped("g", 2, "member joined"),
        MemberReconciled("g", "A", 2, (("t1", (0, 1)),)),
        MemberLeft("g", "A", "left"),
        GroupEpochBumped("g", 3, "member left"),
    ]


def test_nothing_is_told_where_nobody_listens() -> None:
    world = ConsumerWorld(t1=2, traced=False)
    world.join("A")
    assert world.events == []


def test_describe() -> None:
    world = ConsumerWorld(t1=4)
    world.join("A", instance_id="i", rack_id="r")
    world.join("B")
    world.stay("A", 2)
    group = world.described()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    first, second = sorted(group.members, key=lambda member: member.member_id)
    assert (first.instance_id, first.rack_id, first.member_epoch, first.member_type) == ("i", "r", 2, 1)
    assert [t.partitions for t in first.assignment.topic_partitions] == [(0, 1, 2, 3)], "also what it has to give up"
    assert [(t.topic_name, t.partitions) for t in first.target_assignment.topic_partitions] == [("t1", (0, 1))]
    assert [t.partitions for t in second.assignment.topic_partitions] == []
    assert [t.partitions for t in second.target_assignment.topic_partitions] == [(2, 3)]


@pytest.mark.parametrize(("group_id", "error"), [
    pytest.param("", Errors.INVALID_GROUP_ID, id="no name"),
    pytest.param("nobody", Errors.GROUP_ID_NOT_FOUND, id="unknown"),
    pytest.param("g", Errors.GROUP_ID_NOT_FOUND, id="a share group"),
])  # fmt: skip
def test_groups_that_cannot_be_described(group_id: str, error: Errors) -> None:
    world = ConsumerWorld(t1=1)
    world.heartbeat("S", 0, ["t1"])
    assert world.described(group_id).error_code is error
