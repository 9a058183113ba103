"""The heartbeat of consumer groups: scenarios with all responses and records, and all refusals."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.consumer_group.member import MemberState
from shareq.coordinator.consumer_group.state import ConsumerGroupState
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped, MemberJoined, MemberLeft, MemberReconciled
from tests.coordinator.groups.stage import REBALANCE_TIMEOUT_MS, ConsumerStage

# ---- scenarios -------------------------------------------------------------------------------------------------------


def test_first_member_gets_all_partitions() -> None:
    """BEHAVIOUR.md 18, 19, 21."""
    stage = ConsumerStage(t1=2)
    assert stage.join("A") == "2 {t1:0,1}"
    assert stage.written() == [
        "R5(A [t1])", "R3(2)", "R7(A {t1:0,1})", "R6(2)", "R8(A 2<0 STABLE {t1:0,1})",
    ]  # fmt: skip
    assert stage.last_response.heartbeat_interval_ms == 5000
    assert stage.next_heartbeat("A", 2) == "2 null"
    assert stage.next_heartbeat("A", 2, owns="t1:0,1") == "2 null"
    assert stage.written() == []


def test_second_member_gets_partitions_after_the_first_has_revoked_them() -> None:
    """BEHAVIOUR.md 19."""
    stage = ConsumerStage(t1=4)
    stage.join("A")
    stage.written()
    assert stage.join("B") == "3 {}"
    assert stage.written() == [
        "R5(B [t1])", "R3(3)", "R7(A {t1:0,1})", "R7(B {t1:2,3})", "R6(3)", "R8(B 3<0 UNRELEASED_PARTITIONS {})",
    ]  # fmt: skip
    assert stage.group().state is ConsumerGroupState.RECONCILING
    assert stage.next_heartbeat("A", 2) == "2 {t1:0,1}"
    assert stage.written() == ["R8(A 2<2 UNREVOKED_PARTITIONS {t1:0,1} -{t1:2,3})"]
    assert stage.next_heartbeat("B", 3) == "3 null"
    assert stage.next_heartbeat("A", 2, owns="t1:0,1,2,3") == "2 null"
    assert stage.next_heartbeat("A", 2, owns="t1:0,1,2") == "2 null", "2 is not revoked yet"
    assert stage.next_heartbeat("B", 3) == "3 null"
    assert stage.next_heartbeat("A", 2, owns="t1:0,1") == "3 null"
    stage.written()
    assert stage.next_heartbeat("B", 3) == "3 {t1:2,3}"
    assert stage.written() == ["R8(B 3<3 STABLE {t1:2,3})"]
    assert stage.group().state is ConsumerGroupState.STABLE


def test_revoked_partition_is_assigned_while_others_are_not_revoked_yet() -> None:
    """BEHAVIOUR.md 19."""
    stage = ConsumerStage(t1=3, t2=3)
    stage.join("A", ["t1"])
    stage.join("B", ["t2"])
    assert stage.join("C", ["t1", "t2"]) == "4 {}"
    stage.next_heartbeat("A", 2, owns="t1:0,1,2")
    assert stage.next_heartbeat("A", 2, owns="t1:0,1") == "4 null"
    assert stage.next_heartbeat("C", 4) == "4 {t1:2}"
    stage.next_heartbeat("B", 3, owns="t2:0,1,2")
    assert stage.next_heartbeat("B", 3, owns="t2:0,1") == "4 null"
    assert stage.next_heartbeat("C", 4) == "4 {t1:2 t2:2}"


def test_leaving_member_is_removed_and_the_epoch_raised() -> None:
    """BEHAVIOUR.md 18."""
    stage = ConsumerStage(t1=2)
    stage.join("A")
    stage.join("B")
    stage.written()
    assert stage.next_heartbeat("A", -1) == "-1 null"
    assert (stage.last_response.member_id, stage.last_response.heartbeat_interval_ms) == ("A", 0)
    assert stage.written() == ["R8T(A)", "R7T(A)", "R5T(A)", "R3(4)"]
    assert stage.next_heartbeat("B", 3) == "4 {t1:0,1}"
    assert stage.next_heartbeat("B", -1) == "-1 null"
    assert stage.group().state is ConsumerGroupState.EMPTY
    assert stage.next_heartbeat("B", -1) == "UNKNOWN_MEMBER_ID"


def test_member_that_joins_within_the_assignment_interval_waits_for_the_next_assignment() -> None:
    """BEHAVIOUR.md 18."""
    stage = ConsumerStage(t1=2)
    stage.join("A")
    request = stage.request("B", 0, ["t1"], "", rebalance_timeout_ms=1)
    assert stage.exchange(request) == "2 {}", "the epoch of the last assignment, which does not contain B"
    assert stage.group().state is ConsumerGroupState.ASSIGNING
    stage.wait(1000)
    assert stage.exchange(stage.request("B", 2)) == "3 null"
    assert stage.group().targets["B"] == {stage.image.topics["t1"].topic_id: (1,)}


@pytest.mark.parametrize("interval_ms", [pytest.param(0, id="0"), pytest.param(500, id="shorter")])
def test_assignment_interval_is_a_group_config(interval_ms: int) -> None:
    """BEHAVIOUR.md 18."""
    stage = ConsumerStage(t1=2)
    stage.configure_group(consumer_assignment_interval_ms=interval_ms)
    stage.join("A")
    stage.wait(interval_ms)
    assert stage.exchange(stage.request("B", 0, ["t1"], "", rebalance_timeout_ms=1)) == "3 {}"


def test_changed_topics_bump_the_epoch() -> None:
    """BEHAVIOUR.md 18, 20."""
    stage = ConsumerStage(t1=1, t2=1)
    stage.join("A", ["t1"])
    stage.written()
    assert stage.next_heartbeat("A", 2, ["t2"]) == "2 {}", "unsubscribed topics are revoked first"
    assert stage.written() == [
        "R5(A [t2])", "R3(3)", "R7(A {t2:0})", "R6(3)", "R8(A 2<2 UNREVOKED_PARTITIONS {} -{t1:0})",
    ]  # fmt: skip
    assert stage.next_heartbeat("A", 2, owns="") == "3 {t2:0}"
    assert stage.next_heartbeat("A", 3, ["t2"]) == "3 null", "the same topics are no change"


def test_unsubscribed_topics_are_revoked_before_a_new_target() -> None:
    """BEHAVIOUR.md 20."""
    stage = ConsumerStage(t1=1, t2=1)
    stage.join("A", ["t1", "t2"])
    assert stage.exchange(stage.request("A", 2, ["t2"])) == "2 {t2:0}"


NOT_BUMPING = [
    pytest.param({"rack_id": "r1"}, id="a rack"),
    pytest.param({"rebalance_timeout_ms": 5}, id="a rebalance timeout"),
    pytest.param({"server_assignor": "range"}, id="an assignor"),
]


@pytest.mark.parametrize("fields", NOT_BUMPING)
def test_other_changed_fields_are_recorded_without_a_rebalance(fields: dict[str, Any]) -> None:
    """BEHAVIOUR.md 18."""
    stage = ConsumerStage(t1=2)
    stage.join("A")
    stage.written()
    assert stage.next_heartbeat("A", 2, **fields) == "2 null"
    assert stage.written() == ["R5(A [t1])"]


def test_changed_client_is_recorded() -> None:
    stage = ConsumerStage(t1=2)
    stage.join("A")
    stage.written()
    stage.exchange(stage.request("A", 2), ClientContext("another", "/10.0.0.1"))
    assert stage.written() == ["R5(A [t1])"]
    assert stage.group().members["A"].client_host == "/10.0.0.1"


FULL_AND_OTHER_REQUESTS = [
    pytest.param({}, False, id="all fields null"),
    pytest.param({"owns": "t1:0,1"}, False, id="partitions only"),
    pytest.param({"topics": ["t1"], "owns": "t1:0,1"}, False, id="all but the rebalance timeout"),
    pytest.param({"topics": ["t1"], "owns": "t1:0,1", "rebalance_timeout_ms": 1}, True, id="full"),
]


@pytest.mark.parametrize(("fields", "returned"), FULL_AND_OTHER_REQUESTS)
def test_unchanged_assignment_is_returned_to_full_requests_only(fields: dict[str, Any], returned: bool) -> None:
    """BEHAVIOUR.md 21."""
    stage = ConsumerStage(t1=2)
    stage.join("A")
    assert stage.next_heartbeat("A", 2, **fields) == ("2 {t1:0,1}" if returned else "2 null")


def test_rejoin_with_epoch_0_returns_the_assignment_without_a_rebalance() -> None:
    """BEHAVIOUR.md 17, 21."""
    stage = ConsumerStage(t1=2)
    stage.join("A")
    stage.written()
    assert stage.join("A") == "2 {t1:0,1}"
    assert stage.written() == []


def test_assignor_with_most_votes_is_used() -> None:
    stage = ConsumerStage(t1=3)
    stage.join("A", server_assignor="range")
    stage.join("B", server_assignor="range")
    stage.join("C", server_assignor="uniform")
    assert stage.described().assignor_name == "range"
    assert [stage.short_assignment(stage.group().targets[member]) for member in "ABC"] == ["{t1:0}", "{t1:1}", "{t1:2}"]


def test_member_without_topics_is_stable() -> None:
    stage = ConsumerStage(t1=1)
    assert stage.join("A", []) == "1 {}"
    assert stage.group().state is ConsumerGroupState.STABLE


# ---- topics ----------------------------------------------------------------------------------------------------------


def test_added_partitions_bump_the_epoch() -> None:
    """BEHAVIOUR.md 18."""
    stage = ConsumerStage(t1=1)
    stage.join("A")
    stage.written()
    stage.grow_topic("t1", 3)
    assert stage.next_heartbeat("A", 2) == "3 {t1:0,1,2}"
    assert stage.written() == ["R3(3)", "R7(A {t1:0,1,2})", "R6(3)", "R8(A 3<2 STABLE {t1:0,1,2})"]


def test_created_topic_of_a_subscription_bumps_the_epoch() -> None:
    """BEHAVIOUR.md 18."""
    stage = ConsumerStage()
    assert stage.join("A", ["t1"]) == "2 {}"
    stage.create_topic("t1", 2)
    assert stage.next_heartbeat("A", 2) == "3 {t1:0,1}"


def test_deleted_and_recreated_topic_bumps_the_epoch_twice() -> None:
    """BEHAVIOUR.md 18."""
    stage = ConsumerStage(t1=1, t2=1)
    stage.join("A", ["t1", "t2"])
    stage.delete_topic("t1")
    assert stage.next_heartbeat("A", 2, owns="t2:0") == "3 {t2:0}"
    stage.create_topic("t1", 2)
    assert stage.next_heartbeat("A", 3, owns="t2:0") == "4 {t1:0,1 t2:0}"


def test_created_topic_without_subscription_changes_nothing() -> None:
    stage = ConsumerStage(t1=1)
    stage.join("A")
    stage.written()
    stage.create_topic("t2", 1)
    assert stage.next_heartbeat("A", 2) == "2 null"
    assert stage.written() == []


# ---- static members --------------------------------------------------------------------------------------------------


def test_static_member_that_rejoins_causes_no_rebalance() -> None:
    """BEHAVIOUR.md 16."""
    stage = ConsumerStage(t1=2)
    stage.join("A", instance_id="i")
    stage.join("B")
    stage.next_heartbeat("A", 2, owns="t1:0")
    stage.next_heartbeat("B", 3)
    stage.written()
    assert stage.next_heartbeat("A", -2, instance_id="i") == "-2 null"
    assert stage.written() == ["R8(A -2<2 STABLE {t1:0})"]
    assert stage.next_heartbeat("B", 3) == "3 null", "the partitions of A are not reassigned"
    assert stage.join("A2", instance_id="i") == "3 {t1:0}"
    assert stage.written() == [
        "R8T(A)", "R7T(A)", "R5T(A)", "R5(A2 [t1])", "R7(A2 {t1:0})", "R8(A2 0<0 STABLE {t1:0})",
        "R8(A2 3<0 STABLE {t1:0})",
    ]  # fmt: skip
    assert stage.group().static_members == {"i": "A2"}
    assert stage.next_heartbeat("B", 3) == "3 null"


def test_static_member_that_rejoins_with_other_topics_bumps_the_epoch() -> None:
    """BEHAVIOUR.md 18."""
    stage = ConsumerStage(t1=1, t2=1)
    stage.join("A", instance_id="i")
    stage.next_heartbeat("A", -2, instance_id="i")
    assert stage.join("A2", ["t2"], instance_id="i") == "3 {t2:0}"
    assert set(stage.group().members) == {"A2"}


def test_static_member_that_does_not_rejoin_is_removed_after_its_session() -> None:
    stage = ConsumerStage(t1=1)
    stage.join("A", instance_id="i")
    stage.next_heartbeat("A", -2, instance_id="i")
    stage.wait(45_000)
    assert stage.group().members == {}


# ---- timeouts --------------------------------------------------------------------------------------------------------


def test_expired_session_removes_the_member() -> None:
    stage = ConsumerStage(t1=1)
    stage.join("A")
    stage.wait(44_999)
    assert "A" in stage.group().members
    stage.written()
    stage.wait(1)
    assert stage.written() == ["R8T(A)", "R7T(A)", "R5T(A)", "R3(3)"]
    assert stage.next_heartbeat("A", 2) == "UNKNOWN_MEMBER_ID"


def test_expiry_of_a_session_is_repeated_after_a_failed_append() -> None:
    stage = ConsumerStage(t1=1)
    stage.join("A")
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.wait(45_000)
    assert "A" in stage.group().members
    stage.append_error = Errors.NONE
    stage.wait(500)
    assert stage.group().members == {}


def test_member_that_does_not_revoke_in_time_is_removed_despite_heartbeats() -> None:
    stage = ConsumerStage(t1=2)
    stage.join("A")
    stage.join("B")
    stage.next_heartbeat("A", 2)
    for _ in range(REBALANCE_TIMEOUT_MS // 1000 - 1):
        stage.next_heartbeat("A", 2, owns="t1:0,1")
        stage.exchange(stage.request("B", 3))
    assert "A" in stage.group().members
    stage.wait(1000)
    assert "A" not in stage.group().members
    assert stage.next_heartbeat("B", 3) == "4 {t1:0,1}"


def test_member_that_revokes_in_time_stays() -> None:
    stage = ConsumerStage(t1=2)
    stage.join("A")
    stage.join("B")
    stage.next_heartbeat("A", 2)
    stage.next_heartbeat("A", 2, owns="t1:0")
    for _ in range(3):
        stage.wait(30_000)
        stage.exchange(stage.request("A", 3))
    assert "A" in stage.group().members


def test_failover_restores_the_group_and_restarts_sessions() -> None:
    stage = ConsumerStage(t1=4)
    stage.join("A", instance_id="i")
    stage.join("B", None, subscribed_topic_regex="t.*")
    stage.next_heartbeat("A", 2)
    before = stage.group()
    stage.wait(40_000)
    stage.fail_over()
    after = stage.group()
    assert after is not before
    soft = {"refresh_at_ms", "topics_are_new"}
    for slot in set(after.__slots__) - soft:
        assert getattr(after, slot) == getattr(before, slot), slot
    stage.wait(44_999)
    assert set(stage.group().members) == {"A", "B"}
    stage.wait(1)
    assert stage.group().members == {}


def test_failover_restarts_the_rebalance_timeout() -> None:
    stage = ConsumerStage(t1=2)
    stage.configure(group_consumer_session_timeout_ms=60_000)
    stage.join("A", rebalance_timeout_ms=50_000)
    stage.join("B")
    stage.next_heartbeat("A", 2)
    stage.fail_over()
    stage.wait(49_999)
    assert stage.group().members["A"].state is MemberState.UNREVOKED_PARTITIONS
    stage.wait(1)
    assert "A" not in stage.group().members


# ---- refusals --------------------------------------------------------------------------------------------------------

JOINING = {"rebalance_timeout_ms": 1}

INVALID = [
    pytest.param(("", 0, ["t1"], ""), JOINING, "MemberId can't be empty.", id="no member id"),
    pytest.param((" ", 1), {}, "MemberId can't be empty.", id="a blank member id"),
    pytest.param(("A", 0, ["t1"], ""), JOINING | {"group_id": " "}, "GroupId can't be empty.", id="no group"),
    pytest.param(("A", 0, ["t1"], ""), JOINING | {"instance_id": ""}, "InstanceId can't be empty.", id="no instance"),
    pytest.param(("A", 0, ["t1"], ""), JOINING | {"rack_id": ""}, "RackId can't be empty.", id="no rack"),
    pytest.param(("A", 0, ["t1"], ""), {}, "RebalanceTimeoutMs must be provided in first request.", id="no timeout"),
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
def test_invalid_requests_are_refused(request_of: tuple[Any, ...], fields: dict[str, Any], message: str) -> None:
    """BEHAVIOUR.md 15."""
    stage = ConsumerStage(t1=1)
    assert stage.exchange(stage.request(*request_of, **fields)) == "INVALID_REQUEST"
    assert stage.last_response.error_message == message
    assert (stage.last_response.member_id, stage.written()) == (None, [])


def test_coordinator_creates_the_member_id_before_version_1() -> None:
    """BEHAVIOUR.md 15."""
    stage = ConsumerStage(t1=1)
    old = ClientContext("c", "/h", api_version=0)
    assert stage.exchange(stage.request("", 0, ["t1"], "", **JOINING), old) == "2 {t1:0}"
    assert stage.last_response.member_id is not None
    assert stage.last_response.member_id in stage.group().members
    assert stage.exchange(stage.request("", 2), old) == "INVALID_REQUEST"


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_known_assignors_are_accepted(name: str) -> None:
    assert ConsumerStage(t1=1).join("A", server_assignor=name) == "2 {t1:0}"


def test_unknown_assignor_is_refused() -> None:
    """BEHAVIOUR.md 15."""
    stage = ConsumerStage(t1=1)
    assert stage.join("A", server_assignor="sticky") == "UNSUPPORTED_ASSIGNOR"
    assert (
        stage.last_response.error_message
        == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    )


EPOCHS = [
    # epoch, owned; the member has epoch 3, previous epoch 2 and t1:0 assigned
    pytest.param(3, None, "3 null", id="present epoch"),
    pytest.param(2, "t1:0", "3 null", id="previous epoch, assigned partitions"),
    pytest.param(2, "", "3 null", id="previous epoch, no partitions"),
    pytest.param(2, "t1:0,1", "FENCED_MEMBER_EPOCH", id="previous epoch, more than the assigned partitions"),
    pytest.param(2, None, "FENCED_MEMBER_EPOCH", id="previous epoch, null partitions"),
    pytest.param(1, "t1:0", "FENCED_MEMBER_EPOCH", id="older epoch"),
    pytest.param(4, "t1:0", "FENCED_MEMBER_EPOCH", id="newer epoch"),
]


@pytest.mark.parametrize(("epoch", "owned", "answer"), EPOCHS)
def test_accepted_and_fenced_epochs(epoch: int, owned: str | None, answer: str) -> None:
    """BEHAVIOUR.md 16, 17."""
    stage = ConsumerStage(t1=2)
    stage.join("A")
    stage.join("B")
    stage.next_heartbeat("A", 2, owns="t1:0")
    assert stage.group().members["A"][9:11] == (3, 2)
    assert stage.next_heartbeat("A", epoch, owns=owned) == answer
    if answer == "FENCED_MEMBER_EPOCH":
        assert stage.last_response.error_message is not None
        assert ("greater" if epoch > 3 else "smaller") in stage.last_response.error_message


def test_member_in_an_unknown_state_is_fenced_until_it_owns_nothing() -> None:
    stage = ConsumerStage(t1=1)
    stage.join("A")
    group = stage.group()
    group.members["A"] = group.members["A"]._replace(state=MemberState.UNKNOWN)
    assert stage.next_heartbeat("A", 2) == "FENCED_MEMBER_EPOCH"
    assert stage.next_heartbeat("A", 2, owns="t1:0") == "FENCED_MEMBER_EPOCH"
    assert stage.next_heartbeat("A", 2, owns="") == "2 null"
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
def test_member_and_instance_ids_are_checked(
    request_of: tuple[Any, ...], fields: dict[str, Any], answer: str, exists: bool
) -> None:
    """BEHAVIOUR.md 16."""
    stage = ConsumerStage(t1=1)
    if exists:
        stage.join("A", instance_id="i")
    stage.written()
    assert stage.next_heartbeat(*request_of, **fields) == answer
    assert stage.written() == []


def test_static_member_that_has_left_is_fenced_until_it_rejoins() -> None:
    stage = ConsumerStage(t1=1)
    stage.join("A", instance_id="i")
    stage.next_heartbeat("A", -2, instance_id="i")
    assert stage.next_heartbeat("A", 2, owns="t1:0", instance_id="i") == "FENCED_MEMBER_EPOCH"
    assert stage.join("A", instance_id="i") == "2 {t1:0}"


def test_full_group_refuses_new_members() -> None:
    """BEHAVIOUR.md 16."""
    stage = ConsumerStage(t1=2)
    stage.configure(group_consumer_max_size=1)
    stage.join("A")
    assert stage.join("B") == "GROUP_MAX_SIZE_REACHED"
    assert stage.next_heartbeat("B", 5) == "GROUP_MAX_SIZE_REACHED", (
        "the group's size is checked before the member's epoch"
    )
    assert stage.next_heartbeat("B", -1) == "UNKNOWN_MEMBER_ID"
    assert stage.join("A") == "2 {t1:0,1}"


def test_consumer_heartbeats_on_a_share_group_are_refused() -> None:
    """BEHAVIOUR.md 16."""
    stage = ConsumerStage(t1=1)
    stage.heartbeat("S", 0, ["t1"])
    for request in (stage.request("A", 0, ["t1"], "", **JOINING), stage.request("A", 1), stage.request("A", -1)):
        assert stage.exchange(request) == "GROUP_ID_NOT_FOUND"
    assert stage.last_response.error_message == "Group g is not a consumer group."


@pytest.mark.parametrize(("error", "answer"), [
    pytest.param(Errors.NOT_ENOUGH_REPLICAS, "COORDINATOR_NOT_AVAILABLE", id="too few replicas"),
    pytest.param(Errors.NOT_LEADER_OR_FOLLOWER, "NOT_COORDINATOR", id="led elsewhere"),
])  # fmt: skip
def test_failed_append_of_a_heartbeat_changes_nothing(error: Errors, answer: str) -> None:
    stage = ConsumerStage(t1=1)
    stage.append_error = error
    assert stage.join("A") == answer
    stage.append_error = Errors.NONE
    assert stage.join("A") == "2 {t1:0}"


# ---- journal and description -----------------------------------------------------------------------------------------


def test_journal_has_the_events_of_a_member() -> None:
    stage = ConsumerStage(t1=2)
    stage.events.clear()
    stage.join("A")
    stage.next_heartbeat("A", -1)
    kinds = MemberJoined | GroupEpochBumped | MemberReconciled | MemberLeft
    assert [event for event in stage.events if isinstance(event, kinds)] == [
        MemberJoined("g", "A", "", ("t1",), "consumer"),
        GroupEpochBumped("g", 2, "member joined"),
        MemberReconciled("g", "A", 2, (("t1", (0, 1)),)),
        MemberLeft("g", "A", "left"),
        GroupEpochBumped("g", 3, "member left"),
    ]


def test_untraced_coordinator_emits_no_events() -> None:
    stage = ConsumerStage(t1=2, traced=False)
    stage.join("A")
    assert stage.events == []


def test_described_group_has_members_and_targets() -> None:
    stage = ConsumerStage(t1=4)
    stage.join("A", instance_id="i", rack_id="r")
    stage.join("B")
    stage.next_heartbeat("A", 2)
    group = stage.described()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    first, second = sorted(group.members, key=lambda member: member.member_id)
    assert (first.instance_id, first.rack_id, first.member_epoch, first.member_type) == ("i", "r", 2, 1)
    assert [t.partitions for t in first.assignment.topic_partitions] == [(0, 1, 2, 3)], "including those to revoke"
    assert [(t.topic_name, t.partitions) for t in first.target_assignment.topic_partitions] == [("t1", (0, 1))]
    assert [t.partitions for t in second.assignment.topic_partitions] == []
    assert [t.partitions for t in second.target_assignment.topic_partitions] == [(2, 3)]


@pytest.mark.parametrize(("group_id", "error"), [
    pytest.param("", Errors.INVALID_GROUP_ID, id="empty id"),
    pytest.param("unknown", Errors.GROUP_ID_NOT_FOUND, id="absent"),
    pytest.param("g", Errors.GROUP_ID_NOT_FOUND, id="a share group"),
])  # fmt: skip
def test_describe_refuses_absent_groups_and_other_types(group_id: str, error: Errors) -> None:
    stage = ConsumerStage(t1=1)
    stage.heartbeat("S", 0, ["t1"])
    assert stage.described(group_id).error_code is error
