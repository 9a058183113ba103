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
from tests.coordinator.groups.classic_world import ClassicWorld
from tests.coordinator.groups.members import RANGE, WAITING, protocols, subscription
from tests.coordinator.share_group.world import GROUP

REBALANCING = "REBALANCE_IN_PROGRESS"
UNKNOWN = "UNKNOWN_MEMBER_ID"


def stable_group(*name: str) -> ClassicWorld:
    world = ClassicWorld(t1=2)
    world.form_group(*name)
    world.written()
    return world


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
    world = ClassicWorld(t1=1)
    assert world.join("A", **changes) == expected  # type: ignore[arg-type]    # rows of keywords
    assert (world.state(), world.written()) == ("absent", [])


def test_session_timeout_bounds_are_broker_configs() -> None:
    """BEHAVIOUR.md 1."""
    world = ClassicWorld(t1=1, configs={"group.min.session.timeout.ms": 100, "group.max.session.timeout.ms": 200})
    assert world.join("A", session_ms=99) == "INVALID_SESSION_TIMEOUT"
    assert world.join("A", session_ms=200) == "MEMBER_ID_REQUIRED"


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
    world = stable_group("A", "B")
    assert world.sync("B", names=names, version=version) == expected


def test_empty_group_id_is_refused() -> None:
    """As BEHAVIOUR.md 1 for JoinGroup."""
    world = ClassicWorld(t1=1)
    assert world.exchange("A", HeartbeatRequest(group_id="", generation_id=1, member_id="a")) == "INVALID_GROUP_ID"
    assert world.exchange("A", SyncGroupRequest(group_id="", generation_id=1, member_id="a")) == "INVALID_GROUP_ID"
    assert world.exchange("A", LeaveGroupRequest(group_id="")) == "INVALID_GROUP_ID"


def test_coordinator_is_not_available_without_offsets_topic() -> None:
    """BEHAVIOUR.md 1."""
    world = ClassicWorld(t1=1)
    world.change_image(topics={}, topics_by_id={})
    assert world.join("A") == "COORDINATOR_NOT_AVAILABLE"
    assert world.classic_heartbeat("A", 1) == "COORDINATOR_NOT_AVAILABLE"
    assert world.sync("A", generation=1) == "COORDINATOR_NOT_AVAILABLE"
    assert world.leave("A") == "COORDINATOR_NOT_AVAILABLE"
    world.image = ClusterImage()
    assert world.describe_classic().error_code is Errors.COORDINATOR_NOT_AVAILABLE


# ---- joining ---------------------------------------------------------------------------------------------------------


def test_first_member_leads_and_only_its_response_lists_members() -> None:
    """BEHAVIOUR.md 4, 8, 11."""
    world = ClassicWorld(t1=2)
    assert world.join("A") == "MEMBER_ID_REQUIRED"
    assert world.ids["A"].startswith("a-")
    assert world.join("A") == WAITING
    assert world.join_as_new("B") == WAITING
    world.wait(0)
    assert (world.response_to("A"), world.response_to("B")) == ("1 range leads A,B", "1 range follows A")
    assert world.sync("B") == WAITING
    assert world.sync("A", {"A": "a", "B": "b"}) == "a"
    assert world.response_to("B") == "b"
    assert world.written() == ["Empty 0", "Stable 1 A,B"]


def test_member_missing_in_the_leaders_assignment_gets_empty_assignment() -> None:
    world = ClassicWorld(t1=2)
    world.join_as_new("A")
    world.join_as_new("B")
    world.wait(0)
    world.response_to("A")
    assert world.sync("A", {"A": "a"}) == "a"
    assert world.sync("B") == "nothing"


def test_new_member_makes_all_members_rejoin() -> None:
    """BEHAVIOUR.md 6, 7."""
    world = stable_group("A", "B")
    assert world.join_as_new("C") == WAITING
    assert (world.classic_heartbeat("A"), world.classic_heartbeat("B")) == (REBALANCING, REBALANCING)
    assert world.join("B") == WAITING
    assert world.join("A") == "2 range leads A,B,C"
    assert (world.response_to("B"), world.response_to("C")) == ("2 range follows A", "2 range follows A")
    world.sync_all("A", "B", "C")
    assert world.written() == ["Stable 2 A,B,C"]


def test_next_rebalance_answers_waiting_syncs_with_rebalance_in_progress() -> None:
    """BEHAVIOUR.md 6, 10."""
    world = ClassicWorld(t1=2)
    world.join_as_new("A")
    world.join_as_new("B")
    world.wait(0)
    world.response_to("A")
    assert world.sync("B") == WAITING
    assert world.join_as_new("C") == WAITING
    assert world.response_to("B") == REBALANCING
    assert world.group.pending_sync == {world.ids["A"]}


def test_join_phase_waits_for_pending_member_ids() -> None:
    """BEHAVIOUR.md 4, 7."""
    world = stable_group("A")
    world.join("B")
    world.join_as_new("C")
    assert world.join("A") == WAITING
    assert world.join("B") == "2 range follows A"


@pytest.mark.parametrize(
    ("send_again", "first"),
    [
        pytest.param(lambda world: world.join("A"), REBALANCING, id="a join"),
        pytest.param(lambda world: world.leave("A"), UNKNOWN, id="a leave"),
    ],
)
def test_waiting_join_is_answered_when_another_request_replaces_it(send_again: object, first: str) -> None:
    world = ClassicWorld(t1=1)
    world.join_as_new("A")
    waiting = world.last["A"]
    send_again(world)  # type: ignore[operator]    # one of the two above
    (answer,) = world.responses[waiting]
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code.name == first


def test_waiting_sync_is_answered_when_another_sync_replaces_it() -> None:
    world = ClassicWorld(t1=1)
    world.join_as_new("A")
    world.join_as_new("B")
    world.wait(0)
    world.response_to("A")
    world.sync("B")
    waiting = world.last["B"]
    assert world.sync("B") == WAITING
    world.last["B"] = waiting
    assert world.response_to("B") == REBALANCING


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
    world = ClassicWorld(t1=1)
    for number, known in enumerate(given):
        world.join_as_new(f"M{number}", given=known)
    world.wait(0)
    assert world.response_to("M0").startswith(f"1 {expected} leads")


# ---- the initial delay -----------------------------------------------------------------------------------------------


def test_initial_delay_is_extended_while_members_join() -> None:
    """BEHAVIOUR.md 7."""
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.join("A", rebalance_ms=8000)
    world.join("A", rebalance_ms=8000)
    world.wait(2900)
    world.join_as_new("B")
    world.wait(200)
    assert world.response_to("A") == WAITING, "B joined, so the delay is extended"
    world.wait(2700)
    world.join_as_new("C")
    world.wait(200)
    assert world.response_to("A") == WAITING, "C joined, and 2 s of the rebalance timeout remain"
    world.join_as_new("D")
    world.wait(2000)
    assert world.response_to("A") == "1 range leads A,B,C,D", "the rebalance timeout of 8 s has passed"


def test_initial_delay_ends_if_no_member_joins() -> None:
    """BEHAVIOUR.md 7."""
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.join_as_new("A")
    world.wait(2999)
    assert world.response_to("A") == WAITING
    world.wait(1)
    assert world.response_to("A") == "1 range leads A"


def test_group_is_empty_after_all_members_left_in_the_initial_delay() -> None:
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.join_as_new("A")
    assert world.leave("A") == "NONE"
    assert (world.response_to("A"), world.state()) == (UNKNOWN, "PreparingRebalance")
    world.wait(3000)
    assert (world.state(), world.group.generation_id) == ("Empty", 1)
    assert world.written() == ["Empty 0", "Empty 1"]


@pytest.mark.parametrize(
    "joining",
    [
        pytest.param({"given": RANGE}, id="with the protocols of the member that left"),
        pytest.param({"given": protocols(sticky=["t1"])}, id="with other protocols"),
        pytest.param({"protocol_type": "connect"}, id="with another type"),
    ],
)
def test_group_without_members_accepts_any_protocol_in_the_initial_delay(joining: dict[str, Any]) -> None:
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.join_as_new("A")
    world.leave("A")
    assert world.join("B", **joining) == "MEMBER_ID_REQUIRED"
    assert world.join("B", **joining) == WAITING
    world.wait(6000)
    assert world.response_to("B").endswith("leads B")


def test_inconsistent_protocols_are_refused_in_the_initial_delay() -> None:
    """BEHAVIOUR.md 2."""
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.join_as_new("A")
    assert world.join("B", given=protocols(sticky=["t1"])) == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.join("B", protocol_type="connect") == "INCONSISTENT_GROUP_PROTOCOL"


# ---- deadlines -------------------------------------------------------------------------------------------------------


def test_member_that_does_not_rejoin_in_time_is_removed() -> None:
    """BEHAVIOUR.md 7, 8."""
    world = stable_group("A", "B")
    world.join_as_new("C")
    for _ in range(9):
        world.wait(6000)
        assert (world.classic_heartbeat("A"), world.classic_heartbeat("B")) == (REBALANCING, REBALANCING)
    world.join("B")
    world.wait(6000)
    assert world.response_to("B") == "2 range leads B,C", "the leader has not rejoined: the first joined member leads"
    assert world.classic_heartbeat("A", 1) == UNKNOWN


def test_group_is_empty_after_the_sessions_of_members_that_do_not_rejoin() -> None:
    world = stable_group("A", "B")
    world.leave("B")
    assert world.state() == "PreparingRebalance"
    world.wait(10_000)
    assert (world.state(), world.group.generation_id) == ("Empty", 2)


def test_static_member_that_does_not_rejoin_in_time_stays() -> None:
    """BEHAVIOUR.md 7."""
    world = ClassicWorld(t1=1)
    world.join("S", instance="i", session_ms=200_000)
    world.wait(0)
    world.response_to("S")
    world.sync_all("S")
    world.join_as_new("B", session_ms=200_000)
    world.wait(60_000)
    assert world.response_to("B") == "2 range leads B,S"
    assert world.sync("B", {"B": "b", "S": "s"}) == "b"
    assert world.sync("S", generation=2, instance="i") == "s"


def test_join_phase_is_extended_if_only_static_members_remain() -> None:
    """BEHAVIOUR.md 7."""
    world = ClassicWorld(t1=1)
    for name in "ST":
        world.join(name, instance=name, session_ms=200_000)
    world.wait(0)
    world.response_to("S")
    world.sync_all("S", "T")
    world.leave("S")
    world.wait(60_000)
    assert world.state() == "PreparingRebalance", "T has not joined: the phase is extended"
    world.join("T", member_id="", instance="T", session_ms=200_000)
    assert world.response_to("T") == "2 range leads T"


def test_member_that_does_not_sync_in_time_is_removed() -> None:
    """BEHAVIOUR.md 11."""
    world = ClassicWorld(t1=1)
    world.join_as_new("A")
    world.join_as_new("B")
    world.wait(0)
    world.response_to("A")
    world.sync("A", {"A": "a", "B": "b"})
    for _ in range(9):
        world.wait(6000)
        assert (world.classic_heartbeat("A"), world.classic_heartbeat("B")) == ("NONE", "NONE")
    world.wait(6000)
    assert (world.classic_heartbeat("A"), world.classic_heartbeat("B", 1)) == (REBALANCING, UNKNOWN)
    assert world.join("A") == "2 range leads A"


def test_leader_that_does_not_sync_in_time_is_removed() -> None:
    """BEHAVIOUR.md 11."""
    world = ClassicWorld(t1=1)
    world.join_as_new("A")
    world.join_as_new("B")
    world.wait(0)
    world.response_to("A")
    world.sync("B")
    for _ in range(9):
        world.wait(6000)
        world.classic_heartbeat("A")
    world.wait(6000)
    assert world.response_to("B") == REBALANCING
    assert world.join("B") == "2 range leads B"


def test_expired_session_removes_the_member() -> None:
    """BEHAVIOUR.md 13."""
    world = stable_group("A", "B")
    world.wait(6000)
    world.classic_heartbeat("A")
    world.wait(4000)
    assert world.classic_heartbeat("A") == REBALANCING
    assert world.classic_heartbeat("B", 1) == UNKNOWN
    assert world.join("A") == "2 range leads A"


def test_session_of_a_member_with_a_waiting_request_does_not_expire() -> None:
    """BEHAVIOUR.md 13."""
    world = stable_group("A", "B")
    world.join_as_new("C", session_ms=30_000)
    world.join("A")
    world.wait(20_000)
    assert world.response_to("A") == "2 range leads A,C", "B's session expired, A's did not"


def test_session_restarts_with_the_join_response() -> None:
    """BEHAVIOUR.md 13."""
    world = stable_group("A", "B")
    world.join_as_new("C", session_ms=100_000)
    world.join("A")
    for _ in range(5):
        world.wait(9000)
        assert world.classic_heartbeat("B") == REBALANCING
    world.join("B")
    assert world.response_to("A") == "2 range leads A,B,C", "45 s later, with a session of 10 s"
    world.wait(9999)
    assert world.classic_heartbeat("A") == "NONE"


def test_new_member_that_waits_is_removed_after_five_minutes() -> None:
    """BEHAVIOUR.md 13."""
    world = stable_group("A")
    world.join("B", rebalance_ms=600_000)
    world.join("B", rebalance_ms=600_000)
    for _ in range(33):
        world.wait(9000)
        world.classic_heartbeat("A")
    assert world.response_to("B") == WAITING
    world.wait(3000)
    assert world.response_to("B") == UNKNOWN
    assert world.join("A") == "2 range leads A"


def test_pending_member_id_expires_after_its_session_timeout() -> None:
    """BEHAVIOUR.md 4."""
    world = stable_group("A")
    world.join("B", session_ms=6000)
    assert world.join("A") == WAITING
    world.wait(6000)
    assert world.response_to("A") == "2 range leads A"
    assert world.join("B") == UNKNOWN


def test_expired_pending_member_id_causes_no_rebalance() -> None:
    world = stable_group("A")
    world.join("B", session_ms=6000)
    world.wait(6000)
    assert (world.classic_heartbeat("A"), world.state(), world.group.pending) == ("NONE", "Stable", frozenset())


def test_heartbeat_restarts_the_session() -> None:
    """BEHAVIOUR.md 13."""
    world = stable_group("A")
    for _ in range(5):
        world.wait(9_999)
        assert world.classic_heartbeat("A") == "NONE"


# ---- static members --------------------------------------------------------------------------------------------------


def static_world() -> ClassicWorld:
    world = ClassicWorld(t1=1)
    world.join("L", instance="l")
    world.join("F", instance="f")
    world.wait(0)
    assert (world.response_to("L"), world.response_to("F")) == ("1 range leads F,L", "1 range follows L")
    world.sync_all("L", "F")
    world.written()
    return world


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
    world = static_world()
    old = world.ids["old"] = world.ids[name]
    assert world.join(name, member_id="", instance=name.lower(), version=version) == expected
    assert world.ids[name] != old
    assert world.ids[name].startswith(name.lower())
    assert world.state() == "Stable"
    names = "F,L" if name == "L" else "L,F"
    assert world.written() == [f"Stable 1 {names}"]
    assert world.sync(name, instance=name.lower()) == name
    assert world.classic_heartbeat("old", 1, name.lower()) == "FENCED_INSTANCE_ID"
    assert world.sync("old", instance=name.lower()) == "FENCED_INSTANCE_ID"
    assert world.join("old", instance=name.lower()) == "FENCED_INSTANCE_ID"
    assert world.classic_heartbeat("old", 1) == UNKNOWN


def test_heartbeat_checks_the_instance_id() -> None:
    """BEHAVIOUR.md 3, 10."""
    world = static_world()
    assert world.classic_heartbeat("F", 1, "unknown") == UNKNOWN
    assert world.classic_heartbeat("F", 1, "l") == "FENCED_INSTANCE_ID"
    assert world.classic_heartbeat("F", 1, "f") == "NONE"
    assert world.classic_heartbeat("F", 1) == "NONE"


def test_static_member_that_rejoins_with_another_protocol_causes_a_rebalance() -> None:
    """BEHAVIOUR.md 9."""
    world = ClassicWorld(t1=1)
    world.join("S", instance="s", given=BOTH)
    world.wait(0)
    assert world.response_to("S") == "1 sticky leads S"
    world.sync("S", {"S": "s"}, names=("consumer", "sticky"))
    assert world.join("S", member_id="", instance="s", given=BOTH[::-1]) == "2 range leads S"


def test_static_member_that_rejoins_before_the_assignment_causes_a_rebalance() -> None:
    """BEHAVIOUR.md 9."""
    world = ClassicWorld(t1=1)
    world.join("L", instance="l")
    world.join("F", instance="f")
    world.wait(0)
    world.response_to("L")
    waiting = world.ids["old"] = world.ids["F"]
    world.sync("old", instance="f")
    assert world.join("F", member_id="", instance="f") == WAITING
    assert world.response_to("old") == "FENCED_INSTANCE_ID"
    assert waiting not in world.group.members
    assert world.state() == "PreparingRebalance"
    assert world.join("L", instance="l").startswith("2 range leads")


def test_static_member_that_rejoins_in_the_join_phase_replaces_its_request() -> None:
    """BEHAVIOUR.md 9."""
    world = static_world()
    world.join_as_new("N")
    world.ids["old"] = world.ids["F"]
    assert world.join("old", instance="f") == WAITING
    assert world.join("F", member_id="", instance="f") == WAITING
    assert world.response_to("old") == "FENCED_INSTANCE_ID"
    assert world.join("L", instance="l") == "2 range leads F,L,N"


def test_pending_member_id_cannot_be_used_with_an_instance_id() -> None:
    world = stable_group("A")
    world.join("B")
    assert world.join("B", instance="i") == UNKNOWN


# ---- leaving ---------------------------------------------------------------------------------------------------------


def test_each_leaving_member_has_its_own_result() -> None:
    """BEHAVIOUR.md 12."""
    world = static_world()
    world.join_as_new("N")
    identity = LeaveGroupRequest.MemberIdentity
    request = LeaveGroupRequest(
        group_id=GROUP,
        members=(
            identity(group_instance_id="f"),
            identity(group_instance_id="unknown"),
            identity(member_id="x"),
            identity(member_id=world.ids["F"], group_instance_id="l"),
            identity(member_id=world.ids["N"]),
        ),
    )
    assert world.exchange("admin", request) == f"NONE {UNKNOWN} {UNKNOWN} FENCED_INSTANCE_ID NONE"
    assert world.response_to("N") == UNKNOWN
    assert world.names(world.group.members) == "L"
    assert world.join("L", instance="l") == "2 range leads L"


def test_leave_response_contains_the_identities_of_the_request() -> None:
    """BEHAVIOUR.md 12."""
    world = static_world()
    identity = LeaveGroupRequest.MemberIdentity(group_instance_id="f", reason="tired")
    answer = world.ask(LeaveGroupRequest(group_id=GROUP, members=(identity,)), LeaveGroupResponse)
    assert answer.members == (LeaveGroupResponse.MemberResponse(member_id="", group_instance_id="f"),)


@pytest.mark.parametrize(("member", "expected"), [("A", Errors.NONE), ("x", Errors.UNKNOWN_MEMBER_ID)])
def test_leave_before_version_3_has_one_member_and_one_error(member: str, expected: Errors) -> None:
    """BEHAVIOUR.md 12."""
    world = stable_group("A")
    request = LeaveGroupRequest(group_id=GROUP, member_id=world.ids.get(member, member))
    answer = world.ask(request, LeaveGroupResponse, ClientContext(api_version=2))
    assert answer == LeaveGroupResponse(error_code=expected)


def test_leave_of_an_absent_group_is_unknown_member_id() -> None:
    assert ClassicWorld(t1=1).leave("x", "y") == f"{UNKNOWN} {UNKNOWN}"


def test_group_is_empty_after_the_last_member_left() -> None:
    world = stable_group("A")
    assert world.leave("A") == "NONE"
    assert (world.state(), world.group.generation_id, world.group.leader_id) == ("Empty", 2, None)
    assert world.written() == ["Empty 2"]
    assert world.group.protocol_type == "consumer"
    assert world.join_as_new("B") == WAITING
    world.wait(0)
    assert world.response_to("B") == "3 range leads B"


# ---- maximum size ----------------------------------------------------------------------------------------------------


def test_full_group_refuses_new_members() -> None:
    """BEHAVIOUR.md 5."""
    world = ClassicWorld(t1=1, configs={"group.max.size": 2})
    world.form_group("A", "B")
    assert world.join("C") == "GROUP_MAX_SIZE_REACHED"
    assert world.join("A") == WAITING
    assert world.join("B") == "2 range follows A"


def test_first_members_to_join_stay_in_a_full_group() -> None:
    """BEHAVIOUR.md 5."""
    world = ClassicWorld(t1=1, configs={"group.max.size": 2})
    for name in "ABC":
        world.join(name)
    assert [world.join(name) for name in "ABC"] == [WAITING, WAITING, "GROUP_MAX_SIZE_REACHED"]


def test_group_above_the_maximum_size_keeps_the_first_members_to_rejoin() -> None:
    """BEHAVIOUR.md 5."""
    world = ClassicWorld(t1=1)
    world.form_group("A", "B", "C")
    world.configure(group_max_size=2)
    world.fail_over()
    assert world.classic_heartbeat("A") == REBALANCING
    assert [world.join("C"), world.join("B")] == [WAITING, WAITING]
    assert world.join("A") == "GROUP_MAX_SIZE_REACHED"
    assert (world.response_to("B"), world.response_to("C")) == ("2 range leads B,C", "2 range follows B")


# ---- failover --------------------------------------------------------------------------------------------------------


def test_stable_group_survives_a_failover() -> None:
    world = stable_group("A", "B")
    world.fail_over()
    assert (world.classic_heartbeat("A"), world.sync("B"), world.state()) == ("NONE", "B", "Stable")
    world.wait(9_999)
    assert world.classic_heartbeat("A") == "NONE"
    world.wait(1)
    assert world.classic_heartbeat("A") == REBALANCING, "B's session began anew at the failover"


def test_failover_during_a_rebalance_restores_the_recorded_generation() -> None:
    world = stable_group("A")
    world.join_as_new("B")
    world.fail_over()
    assert world.response_to("B") == "NOT_COORDINATOR"
    assert (world.state(), world.classic_heartbeat("A", 1), world.join("B")) == ("Stable", "NONE", UNKNOWN)


def test_resignation_answers_waiting_syncs_with_not_coordinator() -> None:
    world = ClassicWorld(t1=1)
    world.join_as_new("A")
    world.join_as_new("B")
    world.wait(0)
    world.response_to("A")
    world.sync("B")
    world.resign()
    assert world.response_to("B") == "NOT_COORDINATOR"
    assert world.classic_heartbeat("A") == "NOT_COORDINATOR"
    world.wait(600_000)
    assert world.coordinator.wake_at_ms is None


@pytest.mark.parametrize("joined", [False, True], ids=["joining", "joined"])
def test_reelected_coordinator_has_no_deadlines_of_earlier_rebalances(joined: bool) -> None:
    world = stable_group("A")
    world.join_as_new("B")
    if joined:
        assert world.join("A") == "2 range leads A,B"
    world.resign()
    world.elect()
    for _ in range(7):
        world.wait(9999)
        assert (world.classic_heartbeat("A", 1), world.state()) == ("NONE", "Stable")


def test_heartbeat_succeeds_while_the_group_is_loading() -> None:
    """BEHAVIOUR.md 10."""
    world = stable_group("A")
    world.resign()
    world.epoch += 1
    world.coordinator.handle(ShardElected(world.shard_of(), world.epoch), world.now_ms)
    assert world.classic_heartbeat("A") == "NONE"
    assert world.sync("A") == "COORDINATOR_LOAD_IN_PROGRESS"


# ---- failed appends --------------------------------------------------------------------------------------------------


def test_failed_append_of_a_new_group_creates_no_group() -> None:
    world = ClassicWorld(t1=1)
    world.append_error = Errors.NOT_ENOUGH_REPLICAS
    assert world.join("A") == "COORDINATOR_NOT_AVAILABLE"
    assert world.state() == "absent"


def test_failed_append_of_an_assignment_fails_the_leaders_sync_only() -> None:
    """Kafka ends the generation; here only the leader gets the error, and the other members continue to wait."""
    world = ClassicWorld(t1=1)
    world.join_as_new("A")
    world.join_as_new("B")
    world.wait(0)
    world.response_to("A")
    world.sync("B")
    world.append_error = Errors.NOT_LEADER_OR_FOLLOWER
    assert world.sync("A", {"A": "a", "B": "b"}) == "NOT_COORDINATOR"
    assert (world.response_to("B"), world.state()) == (WAITING, "CompletingRebalance")
    world.append_error = Errors.NONE
    assert world.sync("A", {"A": "a", "B": "b"}) == "a"
    assert world.response_to("B") == "b"


def test_failed_append_of_a_static_rejoin_keeps_the_former_member_id() -> None:
    world = static_world()
    old = world.ids["F"]
    world.append_error = Errors.KAFKA_STORAGE_ERROR
    assert world.join("F", member_id="", instance="f") == "NOT_COORDINATOR"
    world.append_error = Errors.NONE
    assert old in world.group.members
    world.ids["F"] = old
    assert world.classic_heartbeat("F", 1, "f") == "NONE"


def test_expiry_of_a_session_is_repeated_after_a_failed_append() -> None:
    """BEHAVIOUR.md 13."""
    world = stable_group("A")
    world.append_error = Errors.NOT_ENOUGH_REPLICAS
    world.wait(10_400)
    assert world.state() == "Stable"
    world.append_error = Errors.NONE
    world.wait(100)
    assert world.state() == "Empty"


def test_append_after_the_request_timed_out_takes_effect() -> None:
    world = ClassicWorld(t1=1)
    world.join_as_new("A")
    world.wait(0)
    world.response_to("A")
    world.appending = False
    assert world.sync("A", {"A": "a"}) == WAITING
    world.wait(5000)
    assert world.response_to("A") == "COORDINATOR_NOT_AVAILABLE"
    world.release()
    assert (world.state(), world.sync("A")) == ("Stable", "a")


# ---- admin -----------------------------------------------------------------------------------------------------------


def test_stable_group_is_described_with_assignments() -> None:
    """BEHAVIOUR.md 14."""
    world = stable_group("A")
    described = world.describe_classic()
    member = DescribeGroupsResponse.Member(
        member_id=world.ids["A"],
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
    world = stable_group("A")
    world.join_as_new("B")
    described = world.describe_classic()
    assert (described.group_state, described.protocol_type) == ("PreparingRebalance", "consumer")
    assert described.protocol_data == ""
    assert [member.member_metadata + member.member_assignment for member in described.members] == [b"", b""]


def test_authorized_operations_are_omitted_by_default() -> None:
    world = stable_group("A")
    answer = world.ask(DescribeGroupsRequest(groups=(GROUP,)), DescribeGroupsResponse)
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
    world = ClassicWorld(t1=1)
    if kind != "not found":
        world.heartbeat("A", 0, ["t1"])
    described = world.describe_classic(version=version)
    assert (described.group_state, described.error_code) == ("Dead", error)
    assert described.error_message == (message and message.format(kind))


def test_list_groups_filters_by_state_and_type() -> None:
    world = stable_group("A")
    world.heartbeat("S", 0, ["t1"], group="share")
    both = ["g classic consumer Stable", "share share share Stable"]
    assert world.listed() == both
    assert world.listed(states=(" sTABLE",)) == both
    assert world.listed(states=("empty",)) == []
    assert world.listed(types=("Classic",)) == both[:1]
    assert world.listed(types=("SHARE", "consumer")) == both[1:]
    assert world.listed(types=("nonsense",)) == []


def test_only_an_empty_group_can_be_deleted() -> None:
    world = stable_group("A")
    assert world.delete_group() == "NON_EMPTY_GROUP"
    world.leave("A")
    world.written()
    assert world.delete_group() == "NONE"
    assert (world.written(), world.state(), world.listed()) == (["groupT"], "absent", [])
    assert world.delete_group() == "GROUP_ID_NOT_FOUND"
    world.fail_over()
    assert world.state() == "absent"


# ---- other types -----------------------------------------------------------------------------------------------------


def test_classic_requests_on_a_share_group_are_refused() -> None:
    """BEHAVIOUR.md 2; share_group/BEHAVIOUR.md 57."""
    world = ClassicWorld(t1=1)
    world.heartbeat("S", 0, ["t1"])
    world.ids["S"] = "S"
    assert world.join("A") == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.join("S") == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.sync("S", generation=1) == UNKNOWN
    assert world.classic_heartbeat("S", 1) == UNKNOWN
    assert world.leave("S") == UNKNOWN
    assert world.describe().group_state == "Stable"


def test_share_heartbeats_on_a_classic_group_are_refused() -> None:
    """share_group/BEHAVIOUR.md 7."""
    world = stable_group("A")
    assert world.heartbeat("S", 0, ["t1"]) == "GROUP_ID_NOT_FOUND"
    assert world.heartbeat("S", -1) == "GROUP_ID_NOT_FOUND"
    described = world.describe()
    assert described.error_code is Errors.GROUP_ID_NOT_FOUND
    assert described.error_message == "Group g is not a share group."
    world.leave("A")
    assert world.heartbeat("S", 0, ["t1"]) == "GROUP_ID_NOT_FOUND", "also if it is empty"


# ---- the journal -----------------------------------------------------------------------------------------------------


def test_journal_has_the_events_of_a_classic_group() -> None:
    world = ClassicWorld(t1=1)
    world.events.clear()
    world.join_as_new("A")
    world.wait(0)
    world.response_to("A")
    a = world.ids["A"]
    world.sync("A", {"A": "\0\0\0\0\0\1\0\2t1\0\0\0\1\0\0\0\1"})
    world.classic_heartbeat("A")
    world.leave("A")
    world.delete_group()
    expected: list[Event] = [
        GroupEpochBumped("g", 1, "members joined"),
        MemberJoined("g", a, "a", ("t1",)),
        MemberReconciled("g", a, 1, (("t1", (1,)),)),
        HeartbeatReceived("g", a, 1, 0),
        MemberLeft("g", a, "left"),
        GroupEpochBumped("g", 2, "no member is left"),
        GroupDeleted("g"),
    ]
    assert world.events == expected


def test_assigned_partitions_of_consumers_are_parsed() -> None:
    assignment = b"\0\3\0\0\0\1\0\2t1\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
    assert assigned_partitions(assignment) == (("t1", (0, 1)),)
    assert assigned_partitions(b"") == ()
    assert assigned_partitions(b"\0\0\0\0\0\7x") == ()
