"""Classic groups line by line: joining, rebalances and their deadlines, assignments, leaving, failover, admin."""

from typing import Any

import pytest

from shareq.coordinator.other.classic.protocol import assigned_partitions
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
from tests.coordinator.other.classic_world import ClassicWorld
from tests.coordinator.other.members import RANGE, WAITING, protocols, subscription
from tests.coordinator.share_group.world import GROUP

REBALANCING = "REBALANCE_IN_PROGRESS"
UNKNOWN = "UNKNOWN_MEMBER_ID"


def stable(*who: str) -> ClassicWorld:
    world = ClassicWorld(t1=2)
    world.stable(*who)
    world.written()
    return world


# ---- what is wrong with a request by itself --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"group": ""}, "INVALID_GROUP_ID", id="no group"),
        pytest.param({"session_ms": 5_999}, "INVALID_SESSION_TIMEOUT", id="a session too short"),
        pytest.param({"session_ms": 1_800_001}, "INVALID_SESSION_TIMEOUT", id="a session too long"),
        pytest.param({"given": ()}, "INCONSISTENT_GROUP_PROTOCOL", id="no protocols"),
        pytest.param({"protocol_type": ""}, "INCONSISTENT_GROUP_PROTOCOL", id="no protocol type"),
        pytest.param({"member_id": "x"}, UNKNOWN, id="a member id that nobody gave"),
        pytest.param({"instance": "i", "member_id": "x"}, UNKNOWN, id="the same of a static member"),
    ],
)
def test_a_join_that_cannot_be_leaves_nothing_behind(changes: dict[str, object], expected: str) -> None:
    world = ClassicWorld(t1=1)
    assert world.join("A", **changes) == expected  # type: ignore[arg-type]    # rows of keywords
    assert (world.state(), world.written()) == ("absent", [])


def test_session_time_outs_have_bounds_of_their_own() -> None:
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
def test_sync_names_the_protocol(version: int, names: tuple[str | None, str | None], expected: str) -> None:
    world = stable("A", "B")
    assert world.sync("B", names=names, version=version) == expected


def test_requests_without_a_group() -> None:
    world = ClassicWorld(t1=1)
    assert world.tell("A", HeartbeatRequest(group_id="", generation_id=1, member_id="a")) == "INVALID_GROUP_ID"
    assert world.tell("A", SyncGroupRequest(group_id="", generation_id=1, member_id="a")) == "INVALID_GROUP_ID"
    assert world.tell("A", LeaveGroupRequest(group_id="")) == "INVALID_GROUP_ID"


def test_without_the_offsets_topic_no_coordinator_is_available() -> None:
    world = ClassicWorld(t1=1)
    world.change_image(topics={}, topics_by_id={})
    assert world.join("A") == "COORDINATOR_NOT_AVAILABLE"
    assert world.alive("A", 1) == "COORDINATOR_NOT_AVAILABLE"
    assert world.sync("A", generation=1) == "COORDINATOR_NOT_AVAILABLE"
    assert world.leave("A") == "COORDINATOR_NOT_AVAILABLE"
    world.image = ClusterImage()
    assert world.describe_classic().error_code is Errors.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(("version", "expected"), [(6, ""), (7, None)])
def test_a_refusal_names_no_protocol_as_its_version_can(version: int, expected: str | None) -> None:
    world = ClassicWorld(t1=1)
    world.join("A", member_id="x", version=version)
    (answer,) = world.responses[world.last["A"]]
    assert isinstance(answer, JoinGroupResponse)
    assert (answer.protocol_name, answer.member_id) == (expected, "x")


# ---- joining ---------------------------------------------------------------------------------------------------------


def test_the_first_member_leads_and_alone_learns_of_the_others() -> None:
    world = ClassicWorld(t1=2)
    assert world.join("A") == "MEMBER_ID_REQUIRED"
    assert world.ids["A"].startswith("a-")
    assert world.join("A") == WAITING
    assert world.enter("B") == WAITING
    world.wait(0)
    assert (world.said("A"), world.said("B")) == ("1 range leads A,B", "1 range follows A")
    assert world.sync("B") == WAITING
    assert world.sync("A", {"A": "a", "B": "b"}) == "a"
    assert world.said("B") == "b"
    assert world.written() == ["Empty 0", "Stable 1 A,B"]


def test_whom_the_leader_forgets_is_assigned_nothing() -> None:
    world = ClassicWorld(t1=2)
    world.enter("A")
    world.enter("B")
    world.wait(0)
    world.said("A")
    assert world.sync("A", {"A": "a"}) == "a"
    assert world.sync("B") == "nothing"


def test_a_member_that_comes_later_makes_everybody_join_anew() -> None:
    world = stable("A", "B")
    assert world.enter("C") == WAITING
    assert (world.alive("A"), world.alive("B")) == (REBALANCING, REBALANCING)
    assert world.join("B") == WAITING
    assert world.join("A") == "2 range leads A,B,C"
    assert (world.said("B"), world.said("C")) == ("2 range follows A", "2 range follows A")
    world.settle("A", "B", "C")
    assert world.written() == ["Stable 2 A,B,C"]


def test_who_waits_for_an_assignment_when_the_next_rebalance_begins_joins_anew() -> None:
    world = ClassicWorld(t1=2)
    world.enter("A")
    world.enter("B")
    world.wait(0)
    world.said("A")
    assert world.sync("B") == WAITING
    assert world.enter("C") == WAITING
    assert world.said("B") == REBALANCING
    assert world.group.pending_sync == {world.ids["A"]}


def test_a_rebalance_waits_for_who_was_given_an_id() -> None:
    world = stable("A")
    world.join("B")
    world.enter("C")
    assert world.join("A") == WAITING
    assert world.join("B") == "2 range follows A"


@pytest.mark.parametrize(
    ("ask_again", "first"),
    [
        pytest.param(lambda world: world.join("A"), REBALANCING, id="a join"),
        pytest.param(lambda world: world.leave("A"), UNKNOWN, id="a leave"),
    ],
)
def test_a_request_that_waits_is_answered_when_another_takes_its_place(ask_again: object, first: str) -> None:
    world = ClassicWorld(t1=1)
    world.enter("A")
    waiting = world.last["A"]
    ask_again(world)  # type: ignore[operator]    # one of the two above
    (answer,) = world.responses[waiting]
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code.name == first


def test_a_sync_that_waits_is_answered_when_another_takes_its_place() -> None:
    world = ClassicWorld(t1=1)
    world.enter("A")
    world.enter("B")
    world.wait(0)
    world.said("A")
    world.sync("B")
    waiting = world.last["B"]
    assert world.sync("B") == WAITING
    world.last["B"] = waiting
    assert world.said("B") == REBALANCING


# ---- which protocol --------------------------------------------------------------------------------------------------

BOTH = protocols(sticky=["t1"], range=["t1"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([RANGE, BOTH], "range", id="the one that all know"),
        pytest.param([BOTH, BOTH[::-1], BOTH[::-1]], "range", id="the one that most like best"),
        pytest.param([BOTH, BOTH[::-1]], "sticky", id="the first one among equals"),
    ],
)
def test_members_vote_for_the_protocol(given: list[tuple[JoinGroupRequest.Protocol, ...]], expected: str) -> None:
    world = ClassicWorld(t1=1)
    for number, known in enumerate(given):
        world.enter(f"M{number}", given=known)
    world.wait(0)
    assert world.said("M0").startswith(f"1 {expected} leads")


# ---- the initial delay -----------------------------------------------------------------------------------------------


def test_an_empty_group_waits_for_more_members_as_long_as_they_come() -> None:
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.join("A", rebalance_ms=8000)
    world.join("A", rebalance_ms=8000)
    world.wait(2900)
    world.enter("B")
    world.wait(200)
    assert world.said("A") == WAITING, "B came, so the wait goes on"
    world.wait(2700)
    world.enter("C")
    world.wait(200)
    assert world.said("A") == WAITING, "C came, and 2 s are left"
    world.enter("D")
    world.wait(2000)
    assert world.said("A") == "1 range leads A,B,C,D", "8 s have passed"


def test_an_empty_group_waits_no_longer_when_nobody_comes() -> None:
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.enter("A")
    world.wait(2999)
    assert world.said("A") == WAITING
    world.wait(1)
    assert world.said("A") == "1 range leads A"


def test_a_group_whose_members_all_go_away_while_it_waits_is_empty_again() -> None:
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.enter("A")
    assert world.leave("A") == "NONE"
    assert (world.said("A"), world.state()) == (UNKNOWN, "PreparingRebalance")
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
def test_a_group_whose_only_member_left_while_it_waits_takes_anyone(joining: dict[str, Any]) -> None:
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.enter("A")
    world.leave("A")
    assert world.join("B", **joining) == "MEMBER_ID_REQUIRED"
    assert world.join("B", **joining) == WAITING
    world.wait(6000)
    assert world.said("B").endswith("leads B")


def test_a_member_whose_protocols_do_not_fit_those_of_the_others_is_refused_while_the_group_waits() -> None:
    world = ClassicWorld(t1=1, delay_ms=3000)
    world.enter("A")
    assert world.join("B", given=protocols(sticky=["t1"])) == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.join("B", protocol_type="connect") == "INCONSISTENT_GROUP_PROTOCOL"


# ---- deadlines -------------------------------------------------------------------------------------------------------


def test_who_does_not_join_anew_in_time_is_dropped() -> None:
    world = stable("A", "B")
    world.enter("C")
    for _ in range(9):
        world.wait(6000)
        assert (world.alive("A"), world.alive("B")) == (REBALANCING, REBALANCING)
    world.join("B")
    world.wait(6000)
    assert world.said("B") == "2 range leads B,C", "the leader was late: the first one there takes over"
    assert world.alive("A", 1) == UNKNOWN


def test_a_rebalance_that_nobody_has_joined_is_put_off_until_sessions_end() -> None:
    world = stable("A", "B")
    world.leave("B")
    assert world.state() == "PreparingRebalance"
    world.wait(10_000)
    assert (world.state(), world.group.generation_id) == ("Empty", 2)


def test_static_members_may_be_late_for_a_rebalance() -> None:
    world = ClassicWorld(t1=1)
    world.join("S", instance="i", session_ms=200_000)
    world.wait(0)
    world.said("S")
    world.settle("S")
    world.enter("B", session_ms=200_000)
    world.wait(60_000)
    assert world.said("B") == "2 range leads B,S"
    assert world.sync("B", {"B": "b", "S": "s"}) == "b"
    assert world.sync("S", generation=2, instance="i") == "s"


def test_static_members_that_alone_are_late_are_waited_for() -> None:
    world = ClassicWorld(t1=1)
    for name in "ST":
        world.join(name, instance=name, session_ms=200_000)
    world.wait(0)
    world.said("S")
    world.settle("S", "T")
    world.leave("S")
    world.wait(60_000)
    assert world.state() == "PreparingRebalance", "T has not joined: once more as long"
    world.join("T", member_id="", instance="T", session_ms=200_000)
    assert world.said("T") == "2 range leads T"


def test_who_never_asks_for_its_assignment_is_dropped() -> None:
    world = ClassicWorld(t1=1)
    world.enter("A")
    world.enter("B")
    world.wait(0)
    world.said("A")
    world.sync("A", {"A": "a", "B": "b"})
    for _ in range(9):
        world.wait(6000)
        assert (world.alive("A"), world.alive("B")) == ("NONE", "NONE")
    world.wait(6000)
    assert (world.alive("A"), world.alive("B", 1)) == (REBALANCING, UNKNOWN)
    assert world.join("A") == "2 range leads A"


def test_a_leader_that_never_assigns_is_dropped_and_those_who_wait_join_anew() -> None:
    world = ClassicWorld(t1=1)
    world.enter("A")
    world.enter("B")
    world.wait(0)
    world.said("A")
    world.sync("B")
    for _ in range(9):
        world.wait(6000)
        world.alive("A")
    world.wait(6000)
    assert world.said("B") == REBALANCING
    assert world.join("B") == "2 range leads B"


def test_members_that_are_silent_are_removed() -> None:
    world = stable("A", "B")
    world.wait(6000)
    world.alive("A")
    world.wait(4000)
    assert world.alive("A") == REBALANCING
    assert world.alive("B", 1) == UNKNOWN
    assert world.join("A") == "2 range leads A"


def test_members_that_wait_for_an_answer_are_not_silent() -> None:
    world = stable("A", "B")
    world.enter("C", session_ms=30_000)
    world.join("A")
    world.wait(20_000)
    assert world.said("A") == "2 range leads A,C", "B was silent, A waited"


def test_a_session_begins_anew_with_the_answer() -> None:
    world = stable("A", "B")
    world.enter("C", session_ms=100_000)
    world.join("A")
    for _ in range(5):
        world.wait(9000)
        assert world.alive("B") == REBALANCING
    world.join("B")
    assert world.said("A") == "2 range leads A,B,C", "45 s later, with a session of 10 s"
    world.wait(9999)
    assert world.alive("A") == "NONE"


def test_new_members_that_wait_may_be_gone_for_good() -> None:
    """Five minutes without an answer, then a new member has to show that it is still there."""
    world = stable("A")
    world.join("B", rebalance_ms=600_000)
    world.join("B", rebalance_ms=600_000)
    for _ in range(33):
        world.wait(9000)
        world.alive("A")
    assert world.said("B") == WAITING
    world.wait(3000)
    assert world.said("B") == UNKNOWN
    assert world.join("A") == "2 range leads A"


def test_ids_that_were_given_away_expire() -> None:
    world = stable("A")
    world.join("B", session_ms=6000)
    assert world.join("A") == WAITING
    world.wait(6000)
    assert world.said("A") == "2 range leads A"
    assert world.join("B") == UNKNOWN


def test_ids_that_expire_disturb_no_members() -> None:
    world = stable("A")
    world.join("B", session_ms=6000)
    world.wait(6000)
    assert (world.alive("A"), world.state(), world.group.pending) == ("NONE", "Stable", frozenset())


def test_a_heartbeat_counts_from_its_commit_on() -> None:
    world = stable("A")
    for _ in range(5):
        world.wait(9_999)
        assert world.alive("A") == "NONE"


# ---- static members --------------------------------------------------------------------------------------------------


def static_world() -> ClassicWorld:
    world = ClassicWorld(t1=1)
    world.join("L", instance="l")
    world.join("F", instance="f")
    world.wait(0)
    assert (world.said("L"), world.said("F")) == ("1 range leads F,L", "1 range follows L")
    world.settle("L", "F")
    world.written()
    return world


@pytest.mark.parametrize(
    ("who", "version", "expected"),
    [
        pytest.param("F", 9, "1 range follows L", id="a follower"),
        pytest.param("L", 9, "1 range leads F,L, skip", id="the leader may skip the assignment"),
        pytest.param("L", 8, "1 range follows old", id="the leader of old must not assign anew"),
    ],
)
def test_a_static_member_that_comes_back_unchanged_disturbs_nobody(who: str, version: int, expected: str) -> None:
    world = static_world()
    old = world.ids["old"] = world.ids[who]
    assert world.join(who, member_id="", instance=who.lower(), version=version) == expected
    assert world.ids[who] != old
    assert world.ids[who].startswith(who.lower())
    assert world.state() == "Stable"
    names = "F,L" if who == "L" else "L,F"
    assert world.written() == [f"Stable 1 {names}"]
    assert world.sync(who, instance=who.lower()) == who
    assert world.alive("old", 1, who.lower()) == "FENCED_INSTANCE_ID"
    assert world.sync("old", instance=who.lower()) == "FENCED_INSTANCE_ID"
    assert world.join("old", instance=who.lower()) == "FENCED_INSTANCE_ID"
    assert world.alive("old", 1) == UNKNOWN


def test_the_place_of_a_static_member_is_its_own() -> None:
    world = static_world()
    assert world.alive("F", 1, "nobody") == UNKNOWN
    assert world.alive("F", 1, "l") == "FENCED_INSTANCE_ID"
    assert world.alive("F", 1, "f") == "NONE"
    assert world.alive("F", 1) == "NONE"


def test_a_static_member_with_another_protocol_makes_everybody_join_anew() -> None:
    world = ClassicWorld(t1=1)
    world.join("S", instance="s", given=BOTH)
    world.wait(0)
    assert world.said("S") == "1 sticky leads S"
    world.sync("S", {"S": "s"}, names=("consumer", "sticky"))
    assert world.join("S", member_id="", instance="s", given=BOTH[::-1]) == "2 range leads S"


def test_a_static_member_that_comes_back_before_the_assignment_begins_a_rebalance() -> None:
    world = ClassicWorld(t1=1)
    world.join("L", instance="l")
    world.join("F", instance="f")
    world.wait(0)
    world.said("L")
    waiting = world.ids["old"] = world.ids["F"]
    world.sync("old", instance="f")
    assert world.join("F", member_id="", instance="f") == WAITING
    assert world.said("old") == "FENCED_INSTANCE_ID"
    assert waiting not in world.group.members
    assert world.state() == "PreparingRebalance"
    assert world.join("L", instance="l").startswith("2 range leads")


def test_a_static_member_that_comes_back_while_members_join_takes_over_its_request() -> None:
    world = static_world()
    world.enter("N")
    world.ids["old"] = world.ids["F"]
    assert world.join("old", instance="f") == WAITING
    assert world.join("F", member_id="", instance="f") == WAITING
    assert world.said("old") == "FENCED_INSTANCE_ID"
    assert world.join("L", instance="l") == "2 range leads F,L,N"


def test_an_id_that_was_given_away_is_for_no_static_member() -> None:
    world = stable("A")
    world.join("B")
    assert world.join("B", instance="i") == UNKNOWN


# ---- leaving ---------------------------------------------------------------------------------------------------------


def test_several_members_leave_at_once() -> None:
    world = static_world()
    world.enter("N")
    identity = LeaveGroupRequest.MemberIdentity
    request = LeaveGroupRequest(
        group_id=GROUP,
        members=(
            identity(group_instance_id="f"),
            identity(group_instance_id="nobody"),
            identity(member_id="x"),
            identity(member_id=world.ids["F"], group_instance_id="l"),
            identity(member_id=world.ids["N"]),
        ),
    )
    assert world.tell("admin", request) == f"NONE {UNKNOWN} {UNKNOWN} FENCED_INSTANCE_ID NONE"
    assert world.said("N") == UNKNOWN
    assert world.names(world.group.members) == "L"
    assert world.join("L", instance="l") == "2 range leads L"


def test_the_answer_to_a_leave_names_the_members() -> None:
    world = static_world()
    identity = LeaveGroupRequest.MemberIdentity(group_instance_id="f", reason="tired")
    answer = world.ask(LeaveGroupRequest(group_id=GROUP, members=(identity,)), LeaveGroupResponse)
    assert answer.members == (LeaveGroupResponse.MemberResponse(member_id="", group_instance_id="f"),)


@pytest.mark.parametrize(("member", "expected"), [("A", Errors.NONE), ("x", Errors.UNKNOWN_MEMBER_ID)])
def test_versions_of_old_leave_alone_and_are_answered_so(member: str, expected: Errors) -> None:
    world = stable("A")
    request = LeaveGroupRequest(group_id=GROUP, member_id=world.ids.get(member, member))
    answer = world.ask(request, LeaveGroupResponse, ClientContext(api_version=2))
    assert answer == LeaveGroupResponse(error_code=expected)


def test_nobody_leaves_a_group_that_nobody_knows() -> None:
    assert ClassicWorld(t1=1).leave("x", "y") == f"{UNKNOWN} {UNKNOWN}"


def test_the_last_member_leaves_an_empty_group() -> None:
    world = stable("A")
    assert world.leave("A") == "NONE"
    assert (world.state(), world.group.generation_id, world.group.leader_id) == ("Empty", 2, None)
    assert world.written() == ["Empty 2"]
    assert world.group.protocol_type == "consumer"
    assert world.enter("B") == WAITING
    world.wait(0)
    assert world.said("B") == "3 range leads B"


# ---- room ------------------------------------------------------------------------------------------------------------


def test_a_full_group_takes_nobody_in() -> None:
    world = ClassicWorld(t1=1, configs={"group.max.size": 2})
    world.stable("A", "B")
    assert world.join("C") == "GROUP_MAX_SIZE_REACHED"
    assert world.join("A") == WAITING
    assert world.join("B") == "2 range follows A"


def test_those_who_come_first_get_the_places() -> None:
    world = ClassicWorld(t1=1, configs={"group.max.size": 2})
    for name in "ABC":
        world.join(name)
    assert [world.join(name) for name in "ABC"] == [WAITING, WAITING, "GROUP_MAX_SIZE_REACHED"]


def test_a_group_that_became_too_large_lets_members_compete_for_places() -> None:
    world = ClassicWorld(t1=1)
    world.stable("A", "B", "C")
    world.configure(group_max_size=2)
    world.fail_over()
    assert world.alive("A") == REBALANCING
    assert [world.join("C"), world.join("B")] == [WAITING, WAITING]
    assert world.join("A") == "GROUP_MAX_SIZE_REACHED"
    assert (world.said("B"), world.said("C")) == ("2 range leads B,C", "2 range follows B")


# ---- failover --------------------------------------------------------------------------------------------------------


def test_a_stable_group_survives_its_coordinator() -> None:
    world = stable("A", "B")
    world.fail_over()
    assert (world.alive("A"), world.sync("B"), world.state()) == ("NONE", "B", "Stable")
    world.wait(9_999)
    assert world.alive("A") == "NONE"
    world.wait(1)
    assert world.alive("A") == REBALANCING, "B had a full session from the failover on"


def test_a_group_between_two_generations_falls_back_to_what_is_recorded() -> None:
    world = stable("A")
    world.enter("B")
    world.fail_over()
    assert world.said("B") == "NOT_COORDINATOR"
    assert (world.state(), world.alive("A", 1), world.join("B")) == ("Stable", "NONE", UNKNOWN)


def test_who_waits_for_an_assignment_is_sent_to_the_new_coordinator() -> None:
    world = ClassicWorld(t1=1)
    world.enter("A")
    world.enter("B")
    world.wait(0)
    world.said("A")
    world.sync("B")
    world.resign()
    assert world.said("B") == "NOT_COORDINATOR"
    assert world.alive("A") == "NOT_COORDINATOR"
    world.wait(600_000)
    assert world.coordinator.wake_at_ms is None


@pytest.mark.parametrize("joined", [False, True], ids=["joining", "joined"])
def test_a_coordinator_that_comes_back_knows_no_rebalances_of_its_former_life(joined: bool) -> None:
    world = stable("A")
    world.enter("B")
    if joined:
        assert world.join("A") == "2 range leads A,B"
    world.resign()
    world.elect()
    for _ in range(7):
        world.wait(9999)
        assert (world.alive("A", 1), world.state()) == ("NONE", "Stable")


def test_heartbeats_to_a_group_that_is_being_loaded_are_fine() -> None:
    world = stable("A")
    world.resign()
    world.epoch += 1
    world.coordinator.handle(ShardElected(world.shard_of(), world.epoch), world.now_ms)
    assert world.alive("A") == "NONE"
    assert world.sync("A") == "COORDINATOR_LOAD_IN_PROGRESS"


# ---- when the log refuses --------------------------------------------------------------------------------------------


def test_a_group_that_cannot_be_recorded_does_not_come_to_be() -> None:
    world = ClassicWorld(t1=1)
    world.append_error = Errors.NOT_ENOUGH_REPLICAS
    assert world.join("A") == "COORDINATOR_NOT_AVAILABLE"
    assert world.state() == "absent"


def test_an_assignment_that_cannot_be_recorded_is_asked_for_again() -> None:
    """Kafka calls the generation off; here the leader alone is told, and everybody else goes on waiting."""
    world = ClassicWorld(t1=1)
    world.enter("A")
    world.enter("B")
    world.wait(0)
    world.said("A")
    world.sync("B")
    world.append_error = Errors.NOT_LEADER_OR_FOLLOWER
    assert world.sync("A", {"A": "a", "B": "b"}) == "NOT_COORDINATOR"
    assert (world.said("B"), world.state()) == (WAITING, "CompletingRebalance")
    world.append_error = Errors.NONE
    assert world.sync("A", {"A": "a", "B": "b"}) == "a"
    assert world.said("B") == "b"


def test_a_static_member_whose_return_cannot_be_recorded_stays_what_it_was() -> None:
    world = static_world()
    old = world.ids["F"]
    world.append_error = Errors.KAFKA_STORAGE_ERROR
    assert world.join("F", member_id="", instance="f") == "NOT_COORDINATOR"
    world.append_error = Errors.NONE
    assert old in world.group.members
    world.ids["F"] = old
    assert world.alive("F", 1, "f") == "NONE"


def test_an_end_of_session_that_cannot_be_recorded_is_tried_again() -> None:
    world = stable("A")
    world.append_error = Errors.NOT_ENOUGH_REPLICAS
    world.wait(10_400)
    assert world.state() == "Stable"
    world.append_error = Errors.NONE
    world.wait(100)
    assert world.state() == "Empty"


def test_a_commit_that_comes_too_late_counts_though_its_request_was_refused() -> None:
    world = ClassicWorld(t1=1)
    world.enter("A")
    world.wait(0)
    world.said("A")
    world.appending = False
    assert world.sync("A", {"A": "a"}) == WAITING
    world.wait(5000)
    assert world.said("A") == "COORDINATOR_NOT_AVAILABLE"
    world.release()
    assert (world.state(), world.sync("A")) == ("Stable", "a")


# ---- admin -----------------------------------------------------------------------------------------------------------


def test_a_stable_group_is_described_in_full() -> None:
    world = stable("A")
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


def test_of_other_groups_no_assignment_is_shown() -> None:
    world = stable("A")
    world.enter("B")
    described = world.describe_classic()
    assert (described.group_state, described.protocol_type) == ("PreparingRebalance", "consumer")
    assert described.protocol_data == ""
    assert [member.member_metadata + member.member_assignment for member in described.members] == [b"", b""]


def test_authorized_operations_are_told_on_request() -> None:
    world = stable("A")
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
def test_a_group_that_is_none_is_dead(kind: str, version: int, error: Errors, message: str | None) -> None:
    world = ClassicWorld(t1=1)
    if kind != "not found":
        world.heartbeat("A", 0, ["t1"])
    described = world.describe_classic(version=version)
    assert (described.group_state, described.error_code) == ("Dead", error)
    assert described.error_message == (message and message.format(kind))


def test_groups_of_all_types_are_listed_side_by_side() -> None:
    world = stable("A")
    world.heartbeat("S", 0, ["t1"], group="share")
    both = ["g classic consumer Stable", "share share share Stable"]
    assert world.listed() == both
    assert world.listed(states=(" sTABLE",)) == both
    assert world.listed(states=("empty",)) == []
    assert world.listed(types=("Classic",)) == both[:1]
    assert world.listed(types=("SHARE", "consumer")) == both[1:]
    assert world.listed(types=("nonsense",)) == []


def test_an_empty_group_can_be_deleted() -> None:
    world = stable("A")
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
    """share_group/BEHAVIOUR.md 57."""
    world = ClassicWorld(t1=1)
    world.heartbeat("S", 0, ["t1"])
    world.ids["S"] = "S"
    assert world.join("A") == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.join("S") == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.sync("S", generation=1) == UNKNOWN
    assert world.alive("S", 1) == UNKNOWN
    assert world.leave("S") == UNKNOWN
    assert world.describe().group_state == "Stable"


def test_share_heartbeats_on_a_classic_group_are_refused() -> None:
    """share_group/BEHAVIOUR.md 7."""
    world = stable("A")
    assert world.heartbeat("S", 0, ["t1"]) == "GROUP_ID_NOT_FOUND"
    assert world.heartbeat("S", -1) == "GROUP_ID_NOT_FOUND"
    described = world.describe()
    assert described.error_code is Errors.GROUP_ID_NOT_FOUND
    assert described.error_message == "Group g is not a share group."
    world.leave("A")
    assert world.heartbeat("S", 0, ["t1"]) == "GROUP_ID_NOT_FOUND", "even an empty one"


# ---- the journal -----------------------------------------------------------------------------------------------------


def test_the_journal_tells_the_life_of_a_classic_group() -> None:
    world = ClassicWorld(t1=1)
    world.events.clear()
    world.enter("A")
    world.wait(0)
    world.said("A")
    a = world.ids["A"]
    world.sync("A", {"A": "\0\0\0\0\0\1\0\2t1\0\0\0\1\0\0\0\1"})
    world.alive("A")
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


def test_assignments_are_read_as_consumers_write_them() -> None:
    assignment = b"\0\3\0\0\0\1\0\2t1\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
    assert assigned_partitions(assignment) == (("t1", (0, 1)),)
    assert assigned_partitions(b"") == ()
    assert assigned_partitions(b"\0\0\0\0\0\7x") == ()
