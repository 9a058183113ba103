"""Classic groups: join, rebalance and its timeouts, assignment, leave, failover, admin requests."""

from typing import Any

import pytest

from shareq.coordinator.classic_group.protocol import assigned_partitions
from shareq.model.actor import ClientContext, ShardElected
from shareq.model.errors import Errors
from shareq.model.events import (
    Event,
    GroupDeleted,
    GroupEpochBumped,
    HeartbeatReceived,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
)
from shareq.model.image import ClusterImage
from shareq.model.messages.classic_group import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
)
from tests.coordinator.groups.members import RANGE, WAITING, protocols, subscription
from tests.coordinator.groups.stage import ClassicStage
from tests.coordinator.share_group.stage import GROUP

REBALANCING = "REBALANCE_IN_PROGRESS"
UNKNOWN = "UNKNOWN_MEMBER_ID"


def stable_group(*name: str) -> ClassicStage:
    stage = ClassicStage(t1=2)
    stage.form_group(*name)
    stage.written()
    return stage


# ---- checks without the group ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"group": ""}, "INVALID_GROUP_ID", id="no group"),
        pytest.param({"session_ms": 5_999}, "INVALID_SESSION_TIMEOUT", id="session timeout below the minimum"),
        pytest.param({"session_ms": 1_800_001}, "INVALID_SESSION_TIMEOUT", id="session timeout above the maximum"),
        pytest.param({"given": ()}, "INCONSISTENT_GROUP_PROTOCOL", id="no protocols"),
        pytest.param({"protocol_type": ""}, "INCONSISTENT_GROUP_PROTOCOL", id="no protocol type"),
        pytest.param({"member_id": "x"}, UNKNOWN, id="unknown member id"),
        pytest.param({"instance": "i", "member_id": "x"}, UNKNOWN, id="unknown member id of a static member"),
    ],
)
def test_invalid_join_creates_no_group(changes: dict[str, object], expected: str) -> None:
    """BEHAVIOUR.md 1, 2."""
    stage = ClassicStage(t1=1)
    assert stage.join("A", **changes) == expected  # type: ignore[arg-type]    # rows of keywords
    assert (stage.state(), stage.written()) == ("absent", [])


def test_session_timeout_bounds_are_broker_configs() -> None:
    """BEHAVIOUR.md 1."""
    stage = ClassicStage(t1=1, configs={"group.min.session.timeout.ms": 100, "group.max.session.timeout.ms": 200})
    assert stage.join("A", session_ms=99) == "INVALID_SESSION_TIMEOUT"
    assert stage.join("A", session_ms=200) == "MEMBER_ID_REQUIRED"


@pytest.mark.parametrize(
    ("version", "names", "expected"),
    [
        pytest.param(5, ("consumer", None), "INCONSISTENT_GROUP_PROTOCOL", id="v5 without a name"),
        pytest.param(5, (None, "range"), "INCONSISTENT_GROUP_PROTOCOL", id="v5 without a type"),
        pytest.param(5, ("connect", "range"), "INCONSISTENT_GROUP_PROTOCOL", id="v5 with another type"),
        pytest.param(4, ("consumer", "sticky"), "INCONSISTENT_GROUP_PROTOCOL", id="v4 with another name"),
        pytest.param(4, (None, None), "B", id="v4 with neither"),
    ],
)
def test_sync_checks_protocol_type_and_name(version: int, names: tuple[str | None, str | None], expected: str) -> None:
    """BEHAVIOUR.md 10."""
    stage = stable_group("A", "B")
    assert stage.sync("B", names=names, version=version) == expected


def test_empty_group_id_is_refused() -> None:
    """As BEHAVIOUR.md 1 for JoinGroup."""
    stage = ClassicStage(t1=1)
    assert stage.exchange("A", HeartbeatRequest(group_id="", generation_id=1, member_id="a")) == "INVALID_GROUP_ID"
    assert stage.exchange("A", SyncGroupRequest(group_id="", generation_id=1, member_id="a")) == "INVALID_GROUP_ID"
    assert stage.exchange("A", LeaveGroupRequest(group_id="")) == "INVALID_GROUP_ID"


def test_coordinator_is_not_available_without_offsets_topic() -> None:
    """BEHAVIOUR.md 1."""
    stage = ClassicStage(t1=1)
    stage.change_image(topics={}, topics_by_id={})
    assert stage.join("A") == "COORDINATOR_NOT_AVAILABLE"
    assert stage.classic_heartbeat("A", 1) == "COORDINATOR_NOT_AVAILABLE"
    assert stage.sync("A", generation=1) == "COORDINATOR_NOT_AVAILABLE"
    assert stage.leave("A") == "COORDINATOR_NOT_AVAILABLE"
    stage.image = ClusterImage()
    assert stage.describe_classic().error_code is Errors.COORDINATOR_NOT_AVAILABLE


# ---- joining ---------------------------------------------------------------------------------------------------------


def test_first_member_leads_and_only_its_response_lists_members() -> None:
    """BEHAVIOUR.md 4, 8, 11."""
    stage = ClassicStage(t1=2)
    assert stage.join("A") == "MEMBER_ID_REQUIRED"
    assert stage.ids["A"].startswith("a-")
    assert stage.join("A") == WAITING
    assert stage.join_as_new("B") == WAITING
    stage.wait(0)
    assert (stage.response_to("A"), stage.response_to("B")) == ("1 range leads A,B", "1 range follows A")
    assert stage.sync("B") == WAITING
    assert stage.sync("A", {"A": "a", "B": "b"}) == "a"
    assert stage.response_to("B") == "b"
    assert stage.written() == ["Empty 0", "Stable 1 A,B"]


def test_member_missing_in_the_leaders_assignment_gets_empty_assignment() -> None:
    stage = ClassicStage(t1=2)
    stage.join_as_new("A")
    stage.join_as_new("B")
    stage.wait(0)
    stage.response_to("A")
    assert stage.sync("A", {"A": "a"}) == "a"
    assert stage.sync("B") == "nothing"


def test_new_member_makes_all_members_rejoin() -> None:
    """BEHAVIOUR.md 6, 7."""
    stage = stable_group("A", "B")
    assert stage.join_as_new("C") == WAITING
    assert (stage.classic_heartbeat("A"), stage.classic_heartbeat("B")) == (REBALANCING, REBALANCING)
    assert stage.join("B") == WAITING
    assert stage.join("A") == "2 range leads A,B,C"
    assert (stage.response_to("B"), stage.response_to("C")) == ("2 range follows A", "2 range follows A")
    stage.sync_all("A", "B", "C")
    assert stage.written() == ["Stable 2 A,B,C"]


def test_next_rebalance_answers_waiting_syncs_with_rebalance_in_progress() -> None:
    """BEHAVIOUR.md 6, 10."""
    stage = ClassicStage(t1=2)
    stage.join_as_new("A")
    stage.join_as_new("B")
    stage.wait(0)
    stage.response_to("A")
    assert stage.sync("B") == WAITING
    assert stage.join_as_new("C") == WAITING
    assert stage.response_to("B") == REBALANCING
    assert stage.group.pending_sync == {stage.ids["A"]}


def test_join_phase_waits_for_pending_member_ids() -> None:
    """BEHAVIOUR.md 4, 7."""
    stage = stable_group("A")
    stage.join("B")
    stage.join_as_new("C")
    assert stage.join("A") == WAITING
    assert stage.join("B") == "2 range follows A"


@pytest.mark.parametrize(
    ("send_again", "first"),
    [
        pytest.param(lambda stage: stage.join("A"), REBALANCING, id="a join"),
        pytest.param(lambda stage: stage.leave("A"), UNKNOWN, id="a leave"),
    ],
)
def test_waiting_join_is_answered_when_another_request_replaces_it(send_again: object, first: str) -> None:
    stage = ClassicStage(t1=1)
    stage.join_as_new("A")
    waiting = stage.last["A"]
    send_again(stage)  # type: ignore[operator]    # one of the two above
    answer = stage.answers[waiting]
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code.name == first


def test_waiting_sync_is_answered_when_another_sync_replaces_it() -> None:
    stage = ClassicStage(t1=1)
    stage.join_as_new("A")
    stage.join_as_new("B")
    stage.wait(0)
    stage.response_to("A")
    stage.sync("B")
    waiting = stage.last["B"]
    assert stage.sync("B") == WAITING
    stage.last["B"] = waiting
    assert stage.response_to("B") == REBALANCING


# ---- choice of the protocol ------------------------------------------------------------------------------------------

BOTH = protocols(sticky=["t1"], range=["t1"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([RANGE, BOTH], "range", id="the one that all members support"),
        pytest.param([BOTH, BOTH[::-1], BOTH[::-1]], "range", id="the first choice of most members"),
        pytest.param([BOTH, BOTH[::-1]], "sticky", id="the first one in a tie"),
    ],
)
def test_protocol_with_most_votes_is_chosen(given: list[tuple[JoinGroupRequest.Protocol, ...]], expected: str) -> None:
    stage = ClassicStage(t1=1)
    for number, known in enumerate(given):
        stage.join_as_new(f"M{number}", given=known)
    stage.wait(0)
    assert stage.response_to("M0").startswith(f"1 {expected} leads")


# ---- the initial delay -----------------------------------------------------------------------------------------------


def test_initial_delay_is_extended_while_members_join() -> None:
    """BEHAVIOUR.md 7."""
    stage = ClassicStage(t1=1, delay_ms=3000)
    stage.join("A", rebalance_ms=8000)
    stage.join("A", rebalance_ms=8000)
    stage.wait(2900)
    stage.join_as_new("B")
    stage.wait(200)
    assert stage.response_to("A") == WAITING, "B joined, so the delay is extended"
    stage.wait(2700)
    stage.join_as_new("C")
    stage.wait(200)
    assert stage.response_to("A") == WAITING, "C joined, and 2 s of the rebalance timeout remain"
    stage.join_as_new("D")
    stage.wait(2000)
    assert stage.response_to("A") == "1 range leads A,B,C,D", "the rebalance timeout of 8 s has passed"


def test_initial_delay_ends_if_no_member_joins() -> None:
    """BEHAVIOUR.md 7."""
    stage = ClassicStage(t1=1, delay_ms=3000)
    stage.join_as_new("A")
    stage.wait(2999)
    assert stage.response_to("A") == WAITING
    stage.wait(1)
    assert stage.response_to("A") == "1 range leads A"


def test_group_is_empty_after_all_members_left_in_the_initial_delay() -> None:
    stage = ClassicStage(t1=1, delay_ms=3000)
    stage.join_as_new("A")
    assert stage.leave("A") == "NONE"
    assert (stage.response_to("A"), stage.state()) == (UNKNOWN, "PreparingRebalance")
    stage.wait(3000)
    assert (stage.state(), stage.group.generation_id) == ("Empty", 1)
    assert stage.written() == ["Empty 0", "Empty 1"]


@pytest.mark.parametrize(
    "joining",
    [
        pytest.param({"given": RANGE}, id="with the protocols of the member that left"),
        pytest.param({"given": protocols(sticky=["t1"])}, id="with other protocols"),
        pytest.param({"protocol_type": "connect"}, id="with another type"),
    ],
)
def test_group_without_members_accepts_any_protocol_in_the_initial_delay(joining: dict[str, Any]) -> None:
    stage = ClassicStage(t1=1, delay_ms=3000)
    stage.join_as_new("A")
    stage.leave("A")
    assert stage.join("B", **joining) == "MEMBER_ID_REQUIRED"
    assert stage.join("B", **joining) == WAITING
    stage.wait(6000)
    assert stage.response_to("B").endswith("leads B")


def test_inconsistent_protocols_are_refused_in_the_initial_delay() -> None:
    """BEHAVIOUR.md 2."""
    stage = ClassicStage(t1=1, delay_ms=3000)
    stage.join_as_new("A")
    assert stage.join("B", given=protocols(sticky=["t1"])) == "INCONSISTENT_GROUP_PROTOCOL"
    assert stage.join("B", protocol_type="connect") == "INCONSISTENT_GROUP_PROTOCOL"


# ---- deadlines -------------------------------------------------------------------------------------------------------


def test_member_that_does_not_rejoin_in_time_is_removed() -> None:
    """BEHAVIOUR.md 7, 8."""
    stage = stable_group("A", "B")
    stage.join_as_new("C")
    for _ in range(9):
        stage.wait(6000)
        assert (stage.classic_heartbeat("A"), stage.classic_heartbeat("B")) == (REBALANCING, REBALANCING)
    stage.join("B")
    stage.wait(6000)
    assert stage.response_to("B") == "2 range leads B,C", "the leader has not rejoined: the first joined member leads"
    assert stage.classic_heartbeat("A", 1) == UNKNOWN


def test_group_is_empty_after_the_sessions_of_members_that_do_not_rejoin() -> None:
    stage = stable_group("A", "B")
    stage.leave("B")
    assert stage.state() == "PreparingRebalance"
    stage.wait(10_000)
    assert (stage.state(), stage.group.generation_id) == ("Empty", 2)


def test_static_member_that_does_not_rejoin_in_time_stays() -> None:
    """BEHAVIOUR.md 7."""
    stage = ClassicStage(t1=1)
    stage.join("S", instance="i", session_ms=200_000)
    stage.wait(0)
    stage.response_to("S")
    stage.sync_all("S")
    stage.join_as_new("B", session_ms=200_000)
    stage.wait(60_000)
    assert stage.response_to("B") == "2 range leads B,S"
    assert stage.sync("B", {"B": "b", "S": "s"}) == "b"
    assert stage.sync("S", generation=2, instance="i") == "s"


def test_join_phase_is_extended_if_only_static_members_remain() -> None:
    """BEHAVIOUR.md 7."""
    stage = ClassicStage(t1=1)
    for name in "ST":
        stage.join(name, instance=name, session_ms=200_000)
    stage.wait(0)
    stage.response_to("S")
    stage.sync_all("S", "T")
    stage.leave("S")
    stage.wait(60_000)
    assert stage.state() == "PreparingRebalance", "T has not joined: the phase is extended"
    stage.join("T", member_id="", instance="T", session_ms=200_000)
    assert stage.response_to("T") == "2 range leads T"


def test_member_that_does_not_sync_in_time_is_removed() -> None:
    """BEHAVIOUR.md 11."""
    stage = ClassicStage(t1=1)
    stage.join_as_new("A")
    stage.join_as_new("B")
    stage.wait(0)
    stage.response_to("A")
    stage.sync("A", {"A": "a", "B": "b"})
    for _ in range(9):
        stage.wait(6000)
        assert (stage.classic_heartbeat("A"), stage.classic_heartbeat("B")) == ("NONE", "NONE")
    stage.wait(6000)
    assert (stage.classic_heartbeat("A"), stage.classic_heartbeat("B", 1)) == (REBALANCING, UNKNOWN)
    assert stage.join("A") == "2 range leads A"


def test_leader_that_does_not_sync_in_time_is_removed() -> None:
    """BEHAVIOUR.md 11."""
    stage = ClassicStage(t1=1)
    stage.join_as_new("A")
    stage.join_as_new("B")
    stage.wait(0)
    stage.response_to("A")
    stage.sync("B")
    for _ in range(9):
        stage.wait(6000)
        stage.classic_heartbeat("A")
    stage.wait(6000)
    assert stage.response_to("B") == REBALANCING
    assert stage.join("B") == "2 range leads B"


def test_expired_session_removes_the_member() -> None:
    """BEHAVIOUR.md 13."""
    stage = stable_group("A", "B")
    stage.wait(6000)
    stage.classic_heartbeat("A")
    stage.wait(4000)
    assert stage.classic_heartbeat("A") == REBALANCING
    assert stage.classic_heartbeat("B", 1) == UNKNOWN
    assert stage.join("A") == "2 range leads A"


def test_session_of_a_member_with_a_waiting_request_does_not_expire() -> None:
    """BEHAVIOUR.md 13."""
    stage = stable_group("A", "B")
    stage.join_as_new("C", session_ms=30_000)
    stage.join("A")
    stage.wait(20_000)
    assert stage.response_to("A") == "2 range leads A,C", "B's session expired, A's did not"


def test_session_restarts_with_the_join_response() -> None:
    """BEHAVIOUR.md 13."""
    stage = stable_group("A", "B")
    stage.join_as_new("C", session_ms=100_000)
    stage.join("A")
    for _ in range(5):
        stage.wait(9000)
        assert stage.classic_heartbeat("B") == REBALANCING
    stage.join("B")
    assert stage.response_to("A") == "2 range leads A,B,C", "45 s later, with a session of 10 s"
    stage.wait(9999)
    assert stage.classic_heartbeat("A") == "NONE"


def test_new_member_that_waits_is_removed_after_five_minutes() -> None:
    """BEHAVIOUR.md 13."""
    stage = stable_group("A")
    stage.join("B", rebalance_ms=600_000)
    stage.join("B", rebalance_ms=600_000)
    for _ in range(33):
        stage.wait(9000)
        stage.classic_heartbeat("A")
    assert stage.response_to("B") == WAITING
    stage.wait(3000)
    assert stage.response_to("B") == UNKNOWN
    assert stage.join("A") == "2 range leads A"


def test_pending_member_id_expires_after_its_session_timeout() -> None:
    """BEHAVIOUR.md 4."""
    stage = stable_group("A")
    stage.join("B", session_ms=6000)
    assert stage.join("A") == WAITING
    stage.wait(6000)
    assert stage.response_to("A") == "2 range leads A"
    assert stage.join("B") == UNKNOWN


def test_expired_pending_member_id_causes_no_rebalance() -> None:
    stage = stable_group("A")
    stage.join("B", session_ms=6000)
    stage.wait(6000)
    assert (stage.classic_heartbeat("A"), stage.state(), stage.group.pending) == ("NONE", "Stable", frozenset())


def test_heartbeat_restarts_the_session() -> None:
    """BEHAVIOUR.md 13."""
    stage = stable_group("A")
    for _ in range(5):
        stage.wait(9_999)
        assert stage.classic_heartbeat("A") == "NONE"


# ---- static members --------------------------------------------------------------------------------------------------


def static_stage() -> ClassicStage:
    stage = ClassicStage(t1=1)
    stage.join("L", instance="l")
    stage.join("F", instance="f")
    stage.wait(0)
    assert (stage.response_to("L"), stage.response_to("F")) == ("1 range leads F,L", "1 range follows L")
    stage.sync_all("L", "F")
    stage.written()
    return stage


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        pytest.param("F", 9, "1 range follows L", id="a follower"),
        pytest.param("L", 9, "1 range leads F,L, skip", id="the leader may skip the assignment"),
        pytest.param("L", 8, "1 range follows old", id="the leader without skip_assignment is shown as a follower"),
    ],
)
def test_static_member_that_rejoins_unchanged_causes_no_rebalance(name: str, version: int, expected: str) -> None:
    """BEHAVIOUR.md 9."""
    stage = static_stage()
    old = stage.ids["old"] = stage.ids[name]
    assert stage.join(name, member_id="", instance=name.lower(), version=version) == expected
    assert stage.ids[name] != old
    assert stage.ids[name].startswith(name.lower())
    assert stage.state() == "Stable"
    names = "F,L" if name == "L" else "L,F"
    assert stage.written() == [f"Stable 1 {names}"]
    assert stage.sync(name, instance=name.lower()) == name
    assert stage.classic_heartbeat("old", 1, name.lower()) == "FENCED_INSTANCE_ID"
    assert stage.sync("old", instance=name.lower()) == "FENCED_INSTANCE_ID"
    assert stage.join("old", instance=name.lower()) == "FENCED_INSTANCE_ID"
    assert stage.classic_heartbeat("old", 1) == UNKNOWN


def test_heartbeat_checks_the_instance_id() -> None:
    """BEHAVIOUR.md 3, 10."""
    stage = static_stage()
    assert stage.classic_heartbeat("F", 1, "unknown") == UNKNOWN
    assert stage.classic_heartbeat("F", 1, "l") == "FENCED_INSTANCE_ID"
    assert stage.classic_heartbeat("F", 1, "f") == "NONE"
    assert stage.classic_heartbeat("F", 1) == "NONE"


def test_static_member_that_rejoins_with_another_protocol_causes_a_rebalance() -> None:
    """BEHAVIOUR.md 9."""
    stage = ClassicStage(t1=1)
    stage.join("S", instance="s", given=BOTH)
    stage.wait(0)
    assert stage.response_to("S") == "1 sticky leads S"
    stage.sync("S", {"S": "s"}, names=("consumer", "sticky"))
    assert stage.join("S", member_id="", instance="s", given=BOTH[::-1]) == "2 range leads S"


def test_static_member_that_rejoins_before_the_assignment_causes_a_rebalance() -> None:
    """BEHAVIOUR.md 9."""
    stage = ClassicStage(t1=1)
    stage.join("L", instance="l")
    stage.join("F", instance="f")
    stage.wait(0)
    stage.response_to("L")
    waiting = stage.ids["old"] = stage.ids["F"]
    stage.sync("old", instance="f")
    assert stage.join("F", member_id="", instance="f") == WAITING
    assert stage.response_to("old") == "FENCED_INSTANCE_ID"
    assert waiting not in stage.group.members
    assert stage.state() == "PreparingRebalance"
    assert stage.join("L", instance="l").startswith("2 range leads")


def test_static_member_that_rejoins_in_the_join_phase_replaces_its_request() -> None:
    """BEHAVIOUR.md 9."""
    stage = static_stage()
    stage.join_as_new("N")
    stage.ids["old"] = stage.ids["F"]
    assert stage.join("old", instance="f") == WAITING
    assert stage.join("F", member_id="", instance="f") == WAITING
    assert stage.response_to("old") == "FENCED_INSTANCE_ID"
    assert stage.join("L", instance="l") == "2 range leads F,L,N"


def test_pending_member_id_cannot_be_used_with_an_instance_id() -> None:
    stage = stable_group("A")
    stage.join("B")
    assert stage.join("B", instance="i") == UNKNOWN


# ---- leaving ---------------------------------------------------------------------------------------------------------


def test_each_leaving_member_has_its_own_result() -> None:
    """BEHAVIOUR.md 12."""
    stage = static_stage()
    stage.join_as_new("N")
    identity = LeaveGroupRequest.MemberIdentity
    request = LeaveGroupRequest(
        group_id=GROUP,
        members=(
            identity(group_instance_id="f"),
            identity(group_instance_id="unknown"),
            identity(member_id="x"),
            identity(member_id=stage.ids["F"], group_instance_id="l"),
            identity(member_id=stage.ids["N"]),
        ),
    )
    assert stage.exchange("admin", request) == f"NONE {UNKNOWN} {UNKNOWN} FENCED_INSTANCE_ID NONE"
    assert stage.response_to("N") == UNKNOWN
    assert stage.names(stage.group.members) == "L"
    assert stage.join("L", instance="l") == "2 range leads L"


def test_leave_response_contains_the_identities_of_the_request() -> None:
    """BEHAVIOUR.md 12."""
    stage = static_stage()
    identity = LeaveGroupRequest.MemberIdentity(group_instance_id="f", reason="tired")
    answer = stage.ask(LeaveGroupRequest(group_id=GROUP, members=(identity,)), LeaveGroupResponse)
    assert answer.members == (LeaveGroupResponse.MemberResponse(member_id="", group_instance_id="f"),)


@pytest.mark.parametrize(("member", "expected"), [("A", Errors.NONE), ("x", Errors.UNKNOWN_MEMBER_ID)])
def test_leave_before_version_3_has_one_member_and_one_error(member: str, expected: Errors) -> None:
    """BEHAVIOUR.md 12."""
    stage = stable_group("A")
    request = LeaveGroupRequest(group_id=GROUP, member_id=stage.ids.get(member, member))
    answer = stage.ask(request, LeaveGroupResponse, ClientContext(api_version=2))
    assert answer == LeaveGroupResponse(error_code=expected)


def test_leave_of_an_absent_group_is_unknown_member_id() -> None:
    assert ClassicStage(t1=1).leave("x", "y") == f"{UNKNOWN} {UNKNOWN}"


def test_group_is_empty_after_the_last_member_left() -> None:
    stage = stable_group("A")
    assert stage.leave("A") == "NONE"
    assert (stage.state(), stage.group.generation_id, stage.group.leader_id) == ("Empty", 2, None)
    assert stage.written() == ["Empty 2"]
    assert stage.group.protocol_type == "consumer"
    assert stage.join_as_new("B") == WAITING
    stage.wait(0)
    assert stage.response_to("B") == "3 range leads B"


# ---- maximum size ----------------------------------------------------------------------------------------------------


def test_full_group_refuses_new_members() -> None:
    """BEHAVIOUR.md 5."""
    stage = ClassicStage(t1=1, configs={"group.max.size": 2})
    stage.form_group("A", "B")
    assert stage.join("C") == "GROUP_MAX_SIZE_REACHED"
    assert stage.join("A") == WAITING
    assert stage.join("B") == "2 range follows A"


def test_first_members_to_join_stay_in_a_full_group() -> None:
    """BEHAVIOUR.md 5."""
    stage = ClassicStage(t1=1, configs={"group.max.size": 2})
    for name in "ABC":
        stage.join(name)
    assert [stage.join(name) for name in "ABC"] == [WAITING, WAITING, "GROUP_MAX_SIZE_REACHED"]


def test_group_above_the_maximum_size_keeps_the_first_members_to_rejoin() -> None:
    """BEHAVIOUR.md 5."""
    stage = ClassicStage(t1=1)
    stage.form_group("A", "B", "C")
    stage.configure(group_max_size=2)
    stage.fail_over()
    assert stage.classic_heartbeat("A") == REBALANCING
    assert [stage.join("C"), stage.join("B")] == [WAITING, WAITING]
    assert stage.join("A") == "GROUP_MAX_SIZE_REACHED"
    assert (stage.response_to("B"), stage.response_to("C")) == ("2 range leads B,C", "2 range follows B")


# ---- failover --------------------------------------------------------------------------------------------------------


def test_stable_group_survives_a_failover() -> None:
    stage = stable_group("A", "B")
    stage.fail_over()
    assert (stage.classic_heartbeat("A"), stage.sync("B"), stage.state()) == ("NONE", "B", "Stable")
    stage.wait(9_999)
    assert stage.classic_heartbeat("A") == "NONE"
    stage.wait(1)
    assert stage.classic_heartbeat("A") == REBALANCING, "B's session began anew at the failover"


def test_failover_during_a_rebalance_restores_the_recorded_generation() -> None:
    stage = stable_group("A")
    stage.join_as_new("B")
    stage.fail_over()
    assert stage.response_to("B") == "NOT_COORDINATOR"
    assert (stage.state(), stage.classic_heartbeat("A", 1), stage.join("B")) == ("Stable", "NONE", UNKNOWN)


def test_resignation_answers_waiting_syncs_with_not_coordinator() -> None:
    stage = ClassicStage(t1=1)
    stage.join_as_new("A")
    stage.join_as_new("B")
    stage.wait(0)
    stage.response_to("A")
    stage.sync("B")
    stage.resign()
    assert stage.response_to("B") == "NOT_COORDINATOR"
    assert stage.classic_heartbeat("A") == "NOT_COORDINATOR"
    stage.wait(600_000)
    assert stage.coordinator.wake_at_ms is None


@pytest.mark.parametrize("joined", [False, True], ids=["joining", "joined"])
def test_reelected_coordinator_has_no_deadlines_of_earlier_rebalances(joined: bool) -> None:
    stage = stable_group("A")
    stage.join_as_new("B")
    if joined:
        assert stage.join("A") == "2 range leads A,B"
    stage.resign()
    stage.elect()
    for _ in range(7):
        stage.wait(9999)
        assert (stage.classic_heartbeat("A", 1), stage.state()) == ("NONE", "Stable")


def test_heartbeat_succeeds_while_the_group_is_loading() -> None:
    """BEHAVIOUR.md 10."""
    stage = stable_group("A")
    stage.resign()
    stage.epoch += 1
    stage.coordinator.handle(ShardElected(stage.shard_of(), stage.epoch), stage.now_ms)
    assert stage.classic_heartbeat("A") == "NONE"
    assert stage.sync("A") == "COORDINATOR_LOAD_IN_PROGRESS"


# ---- failed appends --------------------------------------------------------------------------------------------------


def test_failed_append_of_a_new_group_creates_no_group() -> None:
    stage = ClassicStage(t1=1)
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    assert stage.join("A") == "COORDINATOR_NOT_AVAILABLE"
    assert stage.state() == "absent"


def test_failed_append_of_an_assignment_fails_the_leaders_sync_only() -> None:
    """Kafka ends the generation; here only the leader gets the error, and the other members continue to wait."""
    stage = ClassicStage(t1=1)
    stage.join_as_new("A")
    stage.join_as_new("B")
    stage.wait(0)
    stage.response_to("A")
    stage.sync("B")
    stage.append_error = Errors.NOT_LEADER_OR_FOLLOWER
    assert stage.sync("A", {"A": "a", "B": "b"}) == "NOT_COORDINATOR"
    assert (stage.response_to("B"), stage.state()) == (WAITING, "CompletingRebalance")
    stage.append_error = Errors.NONE
    assert stage.sync("A", {"A": "a", "B": "b"}) == "a"
    assert stage.response_to("B") == "b"


def test_failed_append_of_a_static_rejoin_keeps_the_former_member_id() -> None:
    stage = static_stage()
    old = stage.ids["F"]
    stage.append_error = Errors.KAFKA_STORAGE_ERROR
    assert stage.join("F", member_id="", instance="f") == "NOT_COORDINATOR"
    stage.append_error = Errors.NONE
    assert old in stage.group.members
    stage.ids["F"] = old
    assert stage.classic_heartbeat("F", 1, "f") == "NONE"


def test_expiry_of_a_session_is_repeated_after_a_failed_append() -> None:
    """BEHAVIOUR.md 13."""
    stage = stable_group("A")
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.wait(10_400)
    assert stage.state() == "Stable"
    stage.append_error = Errors.NONE
    stage.wait(100)
    assert stage.state() == "Empty"


def test_append_after_the_request_timed_out_takes_effect() -> None:
    stage = ClassicStage(t1=1)
    stage.join_as_new("A")
    stage.wait(0)
    stage.response_to("A")
    stage.appending = False
    assert stage.sync("A", {"A": "a"}) == WAITING
    stage.wait(5000)
    assert stage.response_to("A") == "COORDINATOR_NOT_AVAILABLE"
    stage.release()
    assert (stage.state(), stage.sync("A")) == ("Stable", "a")


# ---- admin -----------------------------------------------------------------------------------------------------------


def test_stable_group_is_described_with_assignments() -> None:
    """BEHAVIOUR.md 14."""
    stage = stable_group("A")
    described = stage.describe_classic()
    member = DescribeGroupsResponse.Member(
        member_id=stage.ids["A"],
        client_id="a",
        client_host="/127.0.0.1",
        member_metadata=subscription("t1"),
        member_assignment=b"A",
    )
    assert described == DescribeGroupsResponse.DescribedGroup(
        group_id=GROUP,
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=(member,),
        authorized_operations=3400,
    )


def test_rebalancing_group_is_described_without_assignments() -> None:
    """BEHAVIOUR.md 14."""
    stage = stable_group("A")
    stage.join_as_new("B")
    described = stage.describe_classic()
    assert (described.group_state, described.protocol_type) == ("PreparingRebalance", "consumer")
    assert described.protocol_data == ""
    assert [member.member_metadata + member.member_assignment for member in described.members] == [b"", b""]


def test_authorized_operations_are_omitted_by_default() -> None:
    stage = stable_group("A")
    answer = stage.ask(DescribeGroupsRequest(groups=(GROUP,)), DescribeGroupsResponse)
    assert answer.groups[0].authorized_operations == -(1 << 31)


@pytest.mark.parametrize(
    ("version", "error", "message"),
    [
        pytest.param(6, Errors.GROUP_ID_NOT_FOUND, "Group g {}.", id="v6"),
        pytest.param(5, Errors.NONE, None, id="v5"),
    ],
)
@pytest.mark.parametrize("kind", ["not found", "is not a classic group"])
def test_absent_group_and_other_type_are_described_as_dead(
    kind: str, version: int, error: Errors, message: str | None
) -> None:
    """BEHAVIOUR.md 14."""
    stage = ClassicStage(t1=1)
    if kind != "not found":
        stage.heartbeat("A", 0, ["t1"])
    described = stage.describe_classic(version=version)
    assert (described.group_state, described.error_code) == ("Dead", error)
    assert described.error_message == (message and message.format(kind))


def test_list_groups_filters_by_state_and_type() -> None:
    stage = stable_group("A")
    stage.heartbeat("S", 0, ["t1"], group="share")
    both = ["g classic consumer Stable", "share share share Stable"]
    assert stage.listed() == both
    assert stage.listed(states=(" sTABLE",)) == both
    assert stage.listed(states=("empty",)) == []
    assert stage.listed(types=("Classic",)) == both[:1]
    assert stage.listed(types=("SHARE", "consumer")) == both[1:]
    assert stage.listed(types=("nonsense",)) == []


def test_only_an_empty_group_can_be_deleted() -> None:
    stage = stable_group("A")
    assert stage.delete_group() == "NON_EMPTY_GROUP"
    stage.leave("A")
    stage.written()
    assert stage.delete_group() == "NONE"
    assert (stage.written(), stage.state(), stage.listed()) == (["groupT"], "absent", [])
    assert stage.delete_group() == "GROUP_ID_NOT_FOUND"
    stage.fail_over()
    assert stage.state() == "absent"


# ---- other types -----------------------------------------------------------------------------------------------------


def test_classic_requests_on_a_share_group_are_refused() -> None:
    """BEHAVIOUR.md 2; share_group/BEHAVIOUR.md 57."""
    stage = ClassicStage(t1=1)
    stage.heartbeat("S", 0, ["t1"])
    stage.ids["S"] = "S"
    assert stage.join("A") == "INCONSISTENT_GROUP_PROTOCOL"
    assert stage.join("S") == "INCONSISTENT_GROUP_PROTOCOL"
    assert stage.sync("S", generation=1) == UNKNOWN
    assert stage.classic_heartbeat("S", 1) == UNKNOWN
    assert stage.leave("S") == UNKNOWN
    assert stage.describe().group_state == "Stable"


def test_share_heartbeats_on_a_classic_group_are_refused() -> None:
    """share_group/BEHAVIOUR.md 7."""
    stage = stable_group("A")
    assert stage.heartbeat("S", 0, ["t1"]) == "GROUP_ID_NOT_FOUND"
    assert stage.heartbeat("S", -1) == "GROUP_ID_NOT_FOUND"
    described = stage.describe()
    assert described.error_code is Errors.GROUP_ID_NOT_FOUND
    assert described.error_message == "Group g is not a share group."
    stage.leave("A")
    assert stage.heartbeat("S", 0, ["t1"]) == "GROUP_ID_NOT_FOUND", "also if it is empty"


# ---- the journal -----------------------------------------------------------------------------------------------------


def test_journal_has_the_events_of_a_classic_group() -> None:
    stage = ClassicStage(t1=1)
    stage.events.clear()
    stage.join_as_new("A")
    stage.wait(0)
    stage.response_to("A")
    a = stage.ids["A"]
    stage.sync("A", {"A": "\0\0\0\0\0\1\0\2t1\0\0\0\1\0\0\0\1"})
    stage.classic_heartbeat("A")
    stage.leave("A")
    stage.delete_group()
    expected: list[Event] = [
        GroupEpochBumped("g", 1, "members joined"),
        MemberJoined("g", a, "a", ("t1",), "classic"),
        MemberReconciled("g", a, 1, (("t1", (1,)),)),
        HeartbeatReceived("g", a, 1, 0),
        MemberLeft("g", a, "left"),
        GroupEpochBumped("g", 2, "no member is left"),
        GroupDeleted("g"),
    ]
    assert stage.events == expected


def test_assigned_partitions_of_consumers_are_parsed() -> None:
    assignment = b"\0\3\0\0\0\1\0\2t1\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
    assert assigned_partitions(assignment) == (("t1", (0, 1)),)
    assert assigned_partitions(b"") == ()
    assert assigned_partitions(b"\0\0\0\0\0\7x") == ()
