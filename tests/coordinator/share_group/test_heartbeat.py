"""The heartbeat: validation, epochs, a group step by step, the assignment interval, leave and expiry."""

from dataclasses import replace

import pytest

from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from tests.coordinator.share_group.world import World

LONG = "m" * 37


@pytest.mark.parametrize(
    ("member", "epoch", "topics", "expected"),
    [
        pytest.param("", 0, ["t1"], "INVALID_REQUEST", id="2: an empty member id"),
        pytest.param(LONG, 0, ["t1"], "INVALID_REQUEST", id="2: a member id of 37 characters"),
        pytest.param(LONG[:36], 0, ["t1"], "2 {}", id="2: a member id of 36 characters"),
        pytest.param("  ", 0, ["t1"], "INVALID_REQUEST", id="3: a blank member id"),
        pytest.param("A", 0, None, "INVALID_REQUEST", id="4: joining without topics"),
        pytest.param("A", 0, [], "INVALID_REQUEST", id="4: joining with an empty list of topics"),
        pytest.param("A", -2, None, "INVALID_REQUEST", id="4: an epoch below -1"),
        pytest.param("A", 1, ["t1"], "UNKNOWN_MEMBER_ID", id="7: a member of an absent group joins again"),
        pytest.param("A", -1, None, "GROUP_ID_NOT_FOUND", id="7: leaving an absent group"),
    ],
)
def test_invalid_requests_are_refused(member: str, epoch: int, topics: list[str] | None, expected: str) -> None:
    """BEHAVIOUR.md 2, 3, 4, 7."""
    assert World(t1=2).heartbeat(member, epoch, topics) == expected


@pytest.mark.parametrize(
    ("group", "rack", "expected"),
    [
        pytest.param("g", None, "2 {}", id="no rack id"),
        pytest.param("g", "r1", "2 {}", id="a rack id"),
        pytest.param("g", " ", "INVALID_REQUEST", id="a blank rack id"),
        pytest.param("", None, "INVALID_REQUEST", id="an empty group id"),
        pytest.param(" ", None, "INVALID_REQUEST", id="a blank group id"),
    ],
)
def test_blank_group_and_rack_ids_are_refused(group: str, rack: str | None, expected: str) -> None:
    """BEHAVIOUR.md 3."""
    assert World(t1=2).heartbeat("A", 0, ["t1"], rack=rack, group=group) == expected


def test_share_version_0_is_checked_first() -> None:
    """BEHAVIOUR.md 1."""
    world = World(t1=1)
    world.change_image(share_version=0)
    assert world.heartbeat("", 0) == "UNSUPPORTED_VERSION"


def test_missing_group_metadata_topic_is_not_available() -> None:
    """BEHAVIOUR.md 5."""
    world = World(t1=1)
    world.delete_topic("__consumer_offsets")
    assert world.heartbeat("A", 0, ["t1"]) == "COORDINATOR_NOT_AVAILABLE"
    assert world.heartbeat(" ", 0, ["t1"]) == "INVALID_REQUEST"


def test_another_broker_is_the_coordinator() -> None:
    """BEHAVIOUR.md 6."""
    world = World(t1=1)
    world.resign()
    assert world.heartbeat("A", 0, ["t1"]) == "NOT_COORDINATOR"


def grown_world() -> World:
    """A and B share t1. The group is in epoch 4, which only A knows; B joined in epoch 3."""
    world = World(t1=2)
    for member, epoch, topics in (("A", 0, ["t1"]), ("A", 2, None), ("B", 0, ["t1"])):
        world.beat(member, epoch, topics)
    world.written()
    return world


@pytest.mark.parametrize(
    ("member", "epoch", "size", "expected"),
    [
        pytest.param("C", 5, 200, "UNKNOWN_MEMBER_ID", id="9: an unknown member with an epoch"),
        pytest.param("C", -1, 200, "UNKNOWN_MEMBER_ID", id="9: an unknown member leaves"),
        pytest.param("C", 5, 2, "GROUP_MAX_SIZE_REACHED", id="8 comes before 9"),
        pytest.param("C", 0, 2, "GROUP_MAX_SIZE_REACHED", id="8: an unknown member joins a full group"),
        pytest.param("C", -1, 2, "UNKNOWN_MEMBER_ID", id="8 is skipped by a leave"),
        pytest.param("A", 0, 2, "4 {t1:1}", id="8: a member joins a full group again"),
        pytest.param("A", 3, 200, "4 {t1:1}", id="10: the current epoch"),
        pytest.param("A", 2, 200, "4 {t1:1}", id="10: the previous epoch"),
        pytest.param("A", 1, 200, "FENCED_MEMBER_EPOCH", id="10: an older epoch"),
        pytest.param("A", 4, 200, "FENCED_MEMBER_EPOCH", id="10: a later epoch"),
        pytest.param("A", -1, 2, "-1 null", id="10: leaving needs no epoch"),
    ],
)
def test_members_and_epochs_are_checked(member: str, epoch: int, size: int, expected: str) -> None:
    """BEHAVIOUR.md 8, 9, 10."""
    world = grown_world()
    world.configure(group_share_max_size=size)
    world.wait(1000)
    assert world.heartbeat(member, epoch, ["t1"] if epoch == 0 else None) == expected


def test_unknown_member_with_an_epoch_is_refused_by_a_full_group() -> None:
    """BEHAVIOUR.md 8."""
    world = World(t1=1, configs={"group.share.max.size": 1})
    world.heartbeat("A", 0, ["t1"])
    assert world.heartbeat("B", 5) == "GROUP_MAX_SIZE_REACHED"


@pytest.mark.parametrize(
    ("append_error", "expected"),
    [
        (Errors.REQUEST_TIMED_OUT, "COORDINATOR_NOT_AVAILABLE"),
        (Errors.NOT_ENOUGH_REPLICAS, "COORDINATOR_NOT_AVAILABLE"),
        (Errors.NOT_LEADER_OR_FOLLOWER, "NOT_COORDINATOR"),
        (Errors.KAFKA_STORAGE_ERROR, "NOT_COORDINATOR"),
        (Errors.MESSAGE_TOO_LARGE, "UNKNOWN_SERVER_ERROR"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_failed_append_changes_nothing(append_error: Errors, expected: str) -> None:
    """BEHAVIOUR.md 11."""
    world = World(t1=1)
    world.append_error = append_error
    assert world.heartbeat("A", 0, ["t1"]) == expected
    assert world.describe().error_code is Errors.GROUP_ID_NOT_FOUND
    assert world.persisted == []


def test_error_responses_have_code_and_message_only() -> None:
    """BEHAVIOUR.md 10."""
    world = grown_world()
    world.heartbeat("A", 9)
    answer = world.heartbeat_answer
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (None, 0, 0)
    assert "greater member epoch (9)" in str(answer.error_message)


# ---- a group step by step --------------------------------------------------------------------------------------------

HEARTBEATS = [
    ("A", 0, ["t1"], "2 {}", ["R10(A [t1])", "R11(2)", "R13(A {})", "R12(2)", "R14(A 2<0 {})",
                              "R15(initializing {t1:0,1})", "R15(initialized {t1:0,1})"]),
    ("A", 2, None, "3 {t1:0,1}", ["R11(3)", "R13(A {t1:0,1})", "R12(3)", "R14(A 3<2 {t1:0,1})"]),
    ("A", 2, None, "3 null", []),
    ("A", 2, ["t1"], "3 {t1:0,1}", []),
    ("A", 3, ["t1"], "3 {t1:0,1}", []),
    ("A", 1, None, "FENCED_MEMBER_EPOCH", []),
    ("A", 4, None, "FENCED_MEMBER_EPOCH", []),
    ("A", 0, ["t1"], "3 {t1:0,1}", []),
    ("B", 0, ["t1"], "4 {t1:0}", ["R10(B [t1])", "R11(4)", "R13(A {t1:1})", "R13(B {t1:0})", "R12(4)",
                                  "R14(B 4<0 {t1:0})"]),
    ("A", 3, None, "4 {t1:1}", ["R14(A 4<3 {t1:1})"]),
    ("A", 4, [], "5 {}", ["R10(A [])", "R11(5)", "R13(A {t1:})", "R13(B {t1:0,1})", "R12(5)", "R14(A 5<4 {})"]),
    ("B", -1, None, "-1 null", ["R14T(B)", "R13T(B)", "R10T(B)", "R11(6)"]),
    ("A", -1, None, "-1 null", ["R14T(A)", "R13T(A)", "R10T(A)", "R11(7)", "R12(7)"]),
]  # fmt: skip


@pytest.mark.parametrize("failing_over", [False, True], ids=["one coordinator", "failover between all steps"])
def test_heartbeats_and_records_of_a_group_step_by_step(failing_over: bool) -> None:
    """BEHAVIOUR.md example 1."""
    world = World(t1=2)
    for step, (member, epoch, topics, answer, records) in enumerate(HEARTBEATS):
        assert (world.beat(member, epoch, topics), world.written()) == (answer, records), f"step {step}"
        if step == 0:
            assert world.initialized() == ["t1:0@-1 t1:1@-1 epoch 2"]
        if failing_over:
            before = world.describe()
            world.fail_over()
            assert world.describe() == before


def test_response_waits_for_the_commit_and_not_for_the_persister() -> None:
    """BEHAVIOUR.md 11."""
    world = World(t1=2)
    world.persisting = False
    assert world.heartbeat("A", 0, ["t1"]) == "2 {}"
    assert world.written()[-1] == "R15(initializing {t1:0,1})"
    world.release()
    assert world.written() == ["R15(initialized {t1:0,1})"]


def test_initialized_partitions_are_assigned_after_the_assignment_interval() -> None:
    """BEHAVIOUR.md 19, example 2."""
    world = World(t1=2)
    world.heartbeat("A", 0, ["t1"])
    world.written()
    world.wait(999)
    assert (world.heartbeat("A", 2), world.written()) == ("2 null", ["R11(3)"])
    assert (world.heartbeat("A", 2), world.written()) == ("2 null", [])
    world.wait(1)
    records = ["R13(A {t1:0,1})", "R12(3)", "R14(A 3<2 {t1:0,1})"]
    assert (world.heartbeat("A", 2), world.written()) == ("3 {t1:0,1}", records)
    assert (world.beat("A", 3), world.written()) == ("3 null", [])


# ---- bumps and responses ---------------------------------------------------------------------------------------------


def test_rack_or_client_change_of_a_member_is_recorded_and_does_not_bump() -> None:
    """BEHAVIOUR.md 14."""
    world = grown_world()
    world.beat("A", 3)
    world.written()
    assert world.heartbeat("A", 4, rack="r2") == "4 null"
    assert world.heartbeat("A", 4, client=ClientContext("app", "/10.0.0.1")) == "4 null"
    assert world.written() == ["R10(A [t1])", "R10(A [t1])"]
    member = next(member for member in world.describe().members if member.member_id == "A")
    assert (member.rack_id, member.client_id, member.client_host) == ("r2", "app", "/10.0.0.1")


def test_subscribed_topics_are_a_set() -> None:
    """BEHAVIOUR.md 14."""
    world = World(t1=1, t2=1)
    world.heartbeat("A", 0, ["t2", "t1", "t2"])
    assert world.written()[0] == "R10(A [t1,t2])"
    world.beat("A", 2)
    world.written()
    assert world.heartbeat("A", 3, ["t1", "t2", "t1"]) == "3 {t1:0 t2:0}"
    assert world.written() == []


def test_absent_topic_may_be_subscribed() -> None:
    """BEHAVIOUR.md 17, 34."""
    world = World()
    assert world.heartbeat("A", 0, ["later"]) == "2 {}"
    assert world.written() == ["R10(A [later])", "R11(2)", "R13(A {})", "R12(2)", "R14(A 2<0 {})"]
    world.create_topic("later", 1)
    assert world.beat("A", 2) == "3 null"
    assert world.initialized() == ["later:0@-1 epoch 3"]
    assert world.beat("A", 3) == "4 {later:0}"


def test_unsubscribed_topic_is_hidden_before_a_new_assignment() -> None:
    """BEHAVIOUR.md 21."""
    world = World(t1=1, t2=1)
    world.heartbeat("A", 0, ["t1", "t2"])
    assert world.beat("A", 2) == "3 {t1:0 t2:0}"
    world.written()
    assert world.heartbeat("A", 3, ["t2"]) == "3 {t2:0}"
    assert world.written() == ["R10(A [t2])", "R11(4)", "R14(A 3<2 {t2:0})"]
    assert world.beat("A", 3) == "4 null"


def test_leader_change_refreshes_and_does_not_bump() -> None:
    """BEHAVIOUR.md 17."""
    world = grown_world()
    world.beat("A", 3)
    world.written()
    world.grow_topic("t1", 2)
    assert (world.beat("A", 4), world.written()) == ("4 null", [])


def test_rack_change_of_a_broker_bumps_the_group_epoch() -> None:
    """BEHAVIOUR.md 17, 18."""
    world = World(t1=2)
    world.beat("A", 0, ["t1"])
    world.beat("A", 2)
    world.written()
    brokers = dict(world.image.brokers)
    world.change_image(brokers={**brokers, 1: replace(brokers[1], alive=False)})
    assert (world.beat("A", 3), world.written()) == ("3 null", [])
    world.change_image(brokers={**brokers, 1: replace(brokers[1], rack="elsewhere")})
    assert world.beat("A", 3) == "4 null"


def test_heartbeat_without_change_writes_no_record_and_computes_no_hash() -> None:
    """BEHAVIOUR.md 23."""
    world = grown_world()
    world.beat("A", 3)
    world.written()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.coordinator._context, "metadata_hash", None)
        assert (world.heartbeat("A", 4), world.written()) == ("4 null", [])


def test_topics_changed_before_the_commit_of_a_heartbeat_bump_the_next_epoch() -> None:
    """BEHAVIOUR.md 17. The heartbeat was computed with the former topics, so its commit does not cover the changed
    ones."""
    world = World(t1=1)
    world.beat("A", 0, ["t1"])
    world.beat("A", 2)
    world.written()
    world.appending = False
    world.wait(1000)
    request = ShareGroupHeartbeatRequest(group_id="g", member_id="B", member_epoch=0, subscribed_topic_names=("t1",))
    world.send(request)
    world.grow_topic("t1", 2)
    world.release()
    assert world.written()[:2] == ["R10(B [t1])", "R11(4)"]
    world.beat("A", 3)
    assert world.written()[0] == "R11(5)"


# ---- the assignment interval -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval_ms", "wait_ms", "expected"),
    [
        pytest.param(1000, 0, "3 {}", id="at once: the old epoch, no partitions"),
        pytest.param(1000, 999, "3 {}", id="within the interval"),
        pytest.param(1000, 1000, "4 {t1:0}", id="after the interval"),
        pytest.param(0, 0, "4 {t1:0}", id="no interval"),
        pytest.param(15000, 14999, "3 {}", id="within a long interval"),
        pytest.param(15000, 15000, "4 {t1:0}", id="after a long interval"),
    ],
)
def test_assignment_waits_for_the_interval(interval_ms: int, wait_ms: int, expected: str) -> None:
    """BEHAVIOUR.md 19."""
    world = World(t1=2)
    world.beat("A", 0, ["t1"])
    world.beat("A", 2)
    world.configure_group(share_assignment_interval_ms=interval_ms)
    world.wait(wait_ms)
    assert world.heartbeat("B", 0, ["t1"]) == expected


def test_first_heartbeat_of_any_member_after_the_interval_computes_the_assignment() -> None:
    """BEHAVIOUR.md 19."""
    world = World(t1=2)
    world.beat("A", 0, ["t1"])
    world.beat("A", 2)
    assert world.heartbeat("B", 0, ["t1"]) == "3 {}"
    world.written()
    assert world.beat("A", 3) == "4 {t1:1}"
    assert world.written() == ["R13(A {t1:1})", "R13(B {t1:0})", "R12(4)", "R14(A 4<3 {t1:1})"]
    assert world.heartbeat("B", 3) == "4 {t1:0}"


def test_next_member_of_an_emptied_group_gets_an_assignment_at_once() -> None:
    """BEHAVIOUR.md 25."""
    world = World(t1=1)
    world.beat("A", 0, ["t1"])
    world.beat("A", 2)
    world.heartbeat("A", -1)
    assert world.heartbeat("B", 0, ["t1"]) == "5 {t1:0}"


# ---- leave and expiry ------------------------------------------------------------------------------------------------


def test_hash_after_a_leave_covers_the_topics_of_the_remaining_members() -> None:
    """BEHAVIOUR.md 25. Otherwise the next coordinator would find another hash than the recorded one, and bump the epoch
    without need."""
    world = World(t1=1, t2=1)
    world.beat("A", 0, ["t1"])
    world.beat("B", 0, ["t1", "t2"])
    world.heartbeat("B", -1)
    assert "R11(4)" in world.written()
    world.fail_over()
    assert world.beat("A", 2) == "4 {t1:0}"
    assert not [record for record in world.written() if record.startswith("R11")]


def test_leave_is_answered_with_member_id_and_epoch_only() -> None:
    """BEHAVIOUR.md 25, 26."""
    world = grown_world()
    world.heartbeat("B", -1)
    answer = world.heartbeat_answer
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("B", -1, 0)
    assert world.written() == ["R14T(B)", "R13T(B)", "R10T(B)", "R11(5)"]


def test_member_without_heartbeats_expires() -> None:
    """BEHAVIOUR.md 27."""
    world = grown_world()
    world.heartbeat("A", 2)
    world.wait(44_999)
    assert len(world.describe().members) == 2
    assert world.heartbeat("A", 3) == "4 null"
    world.written()
    world.wait(1)
    assert world.written() == ["R14T(B)", "R13T(B)", "R10T(B)", "R11(5)"]
    assert world.heartbeat("B", 4) == "UNKNOWN_MEMBER_ID"
    assert world.heartbeat("A", 4) == "5 {t1:0,1}"


def test_rejected_heartbeat_does_not_extend_the_session() -> None:
    """BEHAVIOUR.md 27."""
    world = grown_world()
    world.wait(44_000)
    assert world.heartbeat("B", 99) == "FENCED_MEMBER_EPOCH"
    world.wait(1000)
    assert [member.member_id for member in world.describe().members] == []


@pytest.mark.parametrize("error", [Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR], ids=lambda e: e.name)
def test_expiry_is_repeated_500_ms_after_a_failed_append(error: Errors) -> None:
    """BEHAVIOUR.md 27."""
    world = grown_world()
    world.append_error = error
    world.wait(45_000)
    world.append_error = Errors.NONE
    assert len(world.describe().members) == 2
    world.wait(499)
    assert len(world.describe().members) == 2
    world.wait(1)
    assert len(world.describe().members) == 0


def test_heartbeat_keeps_a_member_after_a_failed_append_of_its_expiry() -> None:
    """BEHAVIOUR.md 27."""
    world = grown_world()
    world.append_error = Errors.NOT_ENOUGH_REPLICAS
    world.wait(45_000)
    world.append_error = Errors.NONE
    world.heartbeat("A", 3)
    world.wait(500)
    assert [member.member_id for member in world.describe().members] == ["A"]


def test_heartbeat_that_waits_for_its_commit_keeps_the_member() -> None:
    """BEHAVIOUR.md 27."""
    world = grown_world()
    world.heartbeat("A", 3)
    world.wait(44_000)
    world.appending = False
    for member in "BA":
        world.send(heartbeat_of(member, "t1", "t2"))
    world.wait(1000)
    world.release()
    assert [member.member_id for member in world.describe().members] == ["A", "B"]


def heartbeat_of(member: str, *topics: str) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=4, subscribed_topic_names=topics or None
    )


def test_leave_ends_the_session_timer() -> None:
    """BEHAVIOUR.md 26."""
    world = grown_world()
    world.heartbeat("B", -1)
    assert not world.coordinator._context.deadlines.is_over(
        DeadlineKey(DeadlineKind.SHARE_SESSION, "g", "B"), world.now_ms + 100_000
    )


def test_changed_timeout_and_interval_apply_from_the_next_heartbeat() -> None:
    """BEHAVIOUR.md 28."""
    world = grown_world()
    world.configure_group(share_session_timeout_ms=60_000, share_heartbeat_interval_ms=7000)
    world.heartbeat("A", 3)
    assert world.heartbeat_answer.heartbeat_interval_ms == 7000
    world.wait(45_000)
    assert [member.member_id for member in world.describe().members] == ["A"]
    world.configure_group(share_session_timeout_ms=45_000)
    world.wait(14_999)
    assert len(world.describe().members) == 1
    world.wait(1)
    assert len(world.describe().members) == 0


def test_shorter_session_timeout_applies_from_the_next_heartbeat() -> None:
    """BEHAVIOUR.md 28."""
    world = World(t1=1)
    world.configure_group(share_session_timeout_ms=60_000)
    world.heartbeat("A", 0, ["t1"])
    world.configure_group(share_session_timeout_ms=45_000)
    world.heartbeat("A", 2)
    world.wait(45_000)
    assert world.describe().members == ()


def test_all_to_all_assigns_every_partition_to_every_member() -> None:
    """BEHAVIOUR.md 32."""
    world = World(t1=2, configs={"group.share.assignors": "all_to_all"})
    world.beat("A", 0, ["t1"])
    world.beat("B", 0, ["t1"])
    assert world.beat("A", 2) == "3 {t1:0,1}"
    assert world.beat("B", 3, ["t1"]) == "3 {t1:0,1}"
    assert world.describe().assignor_name == "all_to_all"
