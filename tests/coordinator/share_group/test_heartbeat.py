"""The heartbeat: validation, epochs, a group step by step, the assignment interval, leave and expiry."""

from dataclasses import replace

import pytest

from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from tests.coordinator.share_group.stage import Stage

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
    assert Stage(t1=2).heartbeat(member, epoch, topics) == expected


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
    assert Stage(t1=2).heartbeat("A", 0, ["t1"], rack=rack, group=group) == expected


def test_share_version_0_is_checked_first() -> None:
    """BEHAVIOUR.md 1."""
    stage = Stage(t1=1)
    stage.change_image(share_version=0)
    assert stage.heartbeat("", 0) == "UNSUPPORTED_VERSION"


def test_missing_group_metadata_topic_is_not_available() -> None:
    """BEHAVIOUR.md 5."""
    stage = Stage(t1=1)
    stage.delete_topic("__consumer_offsets")
    assert stage.heartbeat("A", 0, ["t1"]) == "COORDINATOR_NOT_AVAILABLE"
    assert stage.heartbeat(" ", 0, ["t1"]) == "INVALID_REQUEST"


def test_another_broker_is_the_coordinator() -> None:
    """BEHAVIOUR.md 6."""
    stage = Stage(t1=1)
    stage.resign()
    assert stage.heartbeat("A", 0, ["t1"]) == "NOT_COORDINATOR"


def grown_stage() -> Stage:
    """A and B share t1. The group is in epoch 4, which only A knows; B joined in epoch 3."""
    stage = Stage(t1=2)
    for member, epoch, topics in (("A", 0, ["t1"]), ("A", 2, None), ("B", 0, ["t1"])):
        stage.beat(member, epoch, topics)
    stage.written()
    return stage


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
    stage = grown_stage()
    stage.configure(group_share_max_size=size)
    stage.wait(1000)
    assert stage.heartbeat(member, epoch, ["t1"] if epoch == 0 else None) == expected


def test_unknown_member_with_an_epoch_is_refused_by_a_full_group() -> None:
    """BEHAVIOUR.md 8."""
    stage = Stage(t1=1, configs={"group.share.max.size": 1})
    stage.heartbeat("A", 0, ["t1"])
    assert stage.heartbeat("B", 5) == "GROUP_MAX_SIZE_REACHED"


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
    stage = Stage(t1=1)
    stage.append_error = append_error
    assert stage.heartbeat("A", 0, ["t1"]) == expected
    assert stage.describe().error_code is Errors.GROUP_ID_NOT_FOUND
    assert stage.persisted == []


def test_error_responses_have_code_and_message_only() -> None:
    """BEHAVIOUR.md 10."""
    stage = grown_stage()
    stage.heartbeat("A", 9)
    answer = stage.heartbeat_answer
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
    stage = Stage(t1=2)
    for step, (member, epoch, topics, answer, records) in enumerate(HEARTBEATS):
        assert (stage.beat(member, epoch, topics), stage.written()) == (answer, records), f"step {step}"
        if step == 0:
            assert stage.initialized() == ["t1:0@-1 t1:1@-1 epoch 2"]
        if failing_over:
            before = stage.describe()
            stage.fail_over()
            assert stage.describe() == before


def test_response_waits_for_the_commit_and_not_for_the_persister() -> None:
    """BEHAVIOUR.md 11."""
    stage = Stage(t1=2)
    stage.persisting = False
    assert stage.heartbeat("A", 0, ["t1"]) == "2 {}"
    assert stage.written()[-1] == "R15(initializing {t1:0,1})"
    stage.release()
    assert stage.written() == ["R15(initialized {t1:0,1})"]


def test_initialized_partitions_are_assigned_after_the_assignment_interval() -> None:
    """BEHAVIOUR.md 19, example 2."""
    stage = Stage(t1=2)
    stage.heartbeat("A", 0, ["t1"])
    stage.written()
    stage.wait(999)
    assert (stage.heartbeat("A", 2), stage.written()) == ("2 null", ["R11(3)"])
    assert (stage.heartbeat("A", 2), stage.written()) == ("2 null", [])
    stage.wait(1)
    records = ["R13(A {t1:0,1})", "R12(3)", "R14(A 3<2 {t1:0,1})"]
    assert (stage.heartbeat("A", 2), stage.written()) == ("3 {t1:0,1}", records)
    assert (stage.beat("A", 3), stage.written()) == ("3 null", [])


# ---- bumps and responses ---------------------------------------------------------------------------------------------


def test_rack_or_client_change_of_a_member_is_recorded_and_does_not_bump() -> None:
    """BEHAVIOUR.md 14."""
    stage = grown_stage()
    stage.beat("A", 3)
    stage.written()
    assert stage.heartbeat("A", 4, rack="r2") == "4 null"
    assert stage.heartbeat("A", 4, client=ClientContext("app", "/10.0.0.1")) == "4 null"
    assert stage.written() == ["R10(A [t1])", "R10(A [t1])"]
    member = next(member for member in stage.describe().members if member.member_id == "A")
    assert (member.rack_id, member.client_id, member.client_host) == ("r2", "app", "/10.0.0.1")


def test_subscribed_topics_are_a_set() -> None:
    """BEHAVIOUR.md 14."""
    stage = Stage(t1=1, t2=1)
    stage.heartbeat("A", 0, ["t2", "t1", "t2"])
    assert stage.written()[0] == "R10(A [t1,t2])"
    stage.beat("A", 2)
    stage.written()
    assert stage.heartbeat("A", 3, ["t1", "t2", "t1"]) == "3 {t1:0 t2:0}"
    assert stage.written() == []


def test_absent_topic_may_be_subscribed() -> None:
    """BEHAVIOUR.md 17, 34."""
    stage = Stage()
    assert stage.heartbeat("A", 0, ["later"]) == "2 {}"
    assert stage.written() == ["R10(A [later])", "R11(2)", "R13(A {})", "R12(2)", "R14(A 2<0 {})"]
    stage.create_topic("later", 1)
    assert stage.beat("A", 2) == "3 null"
    assert stage.initialized() == ["later:0@-1 epoch 3"]
    assert stage.beat("A", 3) == "4 {later:0}"


def test_unsubscribed_topic_is_hidden_before_a_new_assignment() -> None:
    """BEHAVIOUR.md 21."""
    stage = Stage(t1=1, t2=1)
    stage.heartbeat("A", 0, ["t1", "t2"])
    assert stage.beat("A", 2) == "3 {t1:0 t2:0}"
    stage.written()
    assert stage.heartbeat("A", 3, ["t2"]) == "3 {t2:0}"
    assert stage.written() == ["R10(A [t2])", "R11(4)", "R14(A 3<2 {t2:0})"]
    assert stage.beat("A", 3) == "4 null"


def test_leader_change_refreshes_and_does_not_bump() -> None:
    """BEHAVIOUR.md 17."""
    stage = grown_stage()
    stage.beat("A", 3)
    stage.written()
    stage.grow_topic("t1", 2)
    assert (stage.beat("A", 4), stage.written()) == ("4 null", [])


def test_rack_change_of_a_broker_bumps_the_group_epoch() -> None:
    """BEHAVIOUR.md 17, 18."""
    stage = Stage(t1=2)
    stage.beat("A", 0, ["t1"])
    stage.beat("A", 2)
    stage.written()
    brokers = dict(stage.image.brokers)
    stage.change_image(brokers={**brokers, 1: replace(brokers[1], alive=False)})
    assert (stage.beat("A", 3), stage.written()) == ("3 null", [])
    stage.change_image(brokers={**brokers, 1: replace(brokers[1], rack="elsewhere")})
    assert stage.beat("A", 3) == "4 null"


def test_heartbeat_without_change_writes_no_record_and_computes_no_hash() -> None:
    """BEHAVIOUR.md 23."""
    stage = grown_stage()
    stage.beat("A", 3)
    stage.written()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage.coordinator._context, "metadata_hash", None)
        assert (stage.heartbeat("A", 4), stage.written()) == ("4 null", [])


def test_topics_changed_before_the_commit_of_a_heartbeat_bump_the_next_epoch() -> None:
    """BEHAVIOUR.md 17. The heartbeat was computed with the former topics, so its commit does not cover the changed
    ones."""
    stage = Stage(t1=1)
    stage.beat("A", 0, ["t1"])
    stage.beat("A", 2)
    stage.written()
    stage.appending = False
    stage.wait(1000)
    request = ShareGroupHeartbeatRequest(group_id="g", member_id="B", member_epoch=0, subscribed_topic_names=("t1",))
    stage.send(request)
    stage.grow_topic("t1", 2)
    stage.release()
    assert stage.written()[:2] == ["R10(B [t1])", "R11(4)"]
    stage.beat("A", 3)
    assert stage.written()[0] == "R11(5)"


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
    stage = Stage(t1=2)
    stage.beat("A", 0, ["t1"])
    stage.beat("A", 2)
    stage.configure_group(share_assignment_interval_ms=interval_ms)
    stage.wait(wait_ms)
    assert stage.heartbeat("B", 0, ["t1"]) == expected


def test_first_heartbeat_of_any_member_after_the_interval_computes_the_assignment() -> None:
    """BEHAVIOUR.md 19."""
    stage = Stage(t1=2)
    stage.beat("A", 0, ["t1"])
    stage.beat("A", 2)
    assert stage.heartbeat("B", 0, ["t1"]) == "3 {}"
    stage.written()
    assert stage.beat("A", 3) == "4 {t1:1}"
    assert stage.written() == ["R13(A {t1:1})", "R13(B {t1:0})", "R12(4)", "R14(A 4<3 {t1:1})"]
    assert stage.heartbeat("B", 3) == "4 {t1:0}"


def test_next_member_of_an_emptied_group_gets_an_assignment_at_once() -> None:
    """BEHAVIOUR.md 25."""
    stage = Stage(t1=1)
    stage.beat("A", 0, ["t1"])
    stage.beat("A", 2)
    stage.heartbeat("A", -1)
    assert stage.heartbeat("B", 0, ["t1"]) == "5 {t1:0}"


# ---- leave and expiry ------------------------------------------------------------------------------------------------


def test_hash_after_a_leave_covers_the_topics_of_the_remaining_members() -> None:
    """BEHAVIOUR.md 25. Otherwise the next coordinator would find another hash than the recorded one, and bump the epoch
    without need."""
    stage = Stage(t1=1, t2=1)
    stage.beat("A", 0, ["t1"])
    stage.beat("B", 0, ["t1", "t2"])
    stage.heartbeat("B", -1)
    assert "R11(4)" in stage.written()
    stage.fail_over()
    assert stage.beat("A", 2) == "4 {t1:0}"
    assert not [record for record in stage.written() if record.startswith("R11")]


def test_leave_is_answered_with_member_id_and_epoch_only() -> None:
    """BEHAVIOUR.md 25, 26."""
    stage = grown_stage()
    stage.heartbeat("B", -1)
    answer = stage.heartbeat_answer
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("B", -1, 0)
    assert stage.written() == ["R14T(B)", "R13T(B)", "R10T(B)", "R11(5)"]


def test_member_without_heartbeats_expires() -> None:
    """BEHAVIOUR.md 27."""
    stage = grown_stage()
    stage.heartbeat("A", 2)
    stage.wait(44_999)
    assert len(stage.describe().members) == 2
    assert stage.heartbeat("A", 3) == "4 null"
    stage.written()
    stage.wait(1)
    assert stage.written() == ["R14T(B)", "R13T(B)", "R10T(B)", "R11(5)"]
    assert stage.heartbeat("B", 4) == "UNKNOWN_MEMBER_ID"
    assert stage.heartbeat("A", 4) == "5 {t1:0,1}"


def test_rejected_heartbeat_does_not_extend_the_session() -> None:
    """BEHAVIOUR.md 27."""
    stage = grown_stage()
    stage.wait(44_000)
    assert stage.heartbeat("B", 99) == "FENCED_MEMBER_EPOCH"
    stage.wait(1000)
    assert [member.member_id for member in stage.describe().members] == []


@pytest.mark.parametrize("error", [Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR], ids=lambda e: e.name)
def test_expiry_is_repeated_500_ms_after_a_failed_append(error: Errors) -> None:
    """BEHAVIOUR.md 27."""
    stage = grown_stage()
    stage.append_error = error
    stage.wait(45_000)
    stage.append_error = Errors.NONE
    assert len(stage.describe().members) == 2
    stage.wait(499)
    assert len(stage.describe().members) == 2
    stage.wait(1)
    assert len(stage.describe().members) == 0


def test_heartbeat_keeps_a_member_after_a_failed_append_of_its_expiry() -> None:
    """BEHAVIOUR.md 27."""
    stage = grown_stage()
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.wait(45_000)
    stage.append_error = Errors.NONE
    stage.heartbeat("A", 3)
    stage.wait(500)
    assert [member.member_id for member in stage.describe().members] == ["A"]


def test_heartbeat_that_waits_for_its_commit_keeps_the_member() -> None:
    """BEHAVIOUR.md 27."""
    stage = grown_stage()
    stage.heartbeat("A", 3)
    stage.wait(44_000)
    stage.appending = False
    for member in "BA":
        stage.send(heartbeat_of(member, "t1", "t2"))
    stage.wait(1000)
    stage.release()
    assert [member.member_id for member in stage.describe().members] == ["A", "B"]


def heartbeat_of(member: str, *topics: str) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=4, subscribed_topic_names=topics or None
    )


def test_leave_ends_the_session_timer() -> None:
    """BEHAVIOUR.md 26."""
    stage = grown_stage()
    stage.heartbeat("B", -1)
    assert not stage.coordinator._context.deadlines.is_over(
        DeadlineKey(DeadlineKind.SHARE_SESSION, "g", "B"), stage.now_ms + 100_000
    )


def test_changed_timeout_and_interval_apply_from_the_next_heartbeat() -> None:
    """BEHAVIOUR.md 28."""
    stage = grown_stage()
    stage.configure_group(share_session_timeout_ms=60_000, share_heartbeat_interval_ms=7000)
    stage.heartbeat("A", 3)
    assert stage.heartbeat_answer.heartbeat_interval_ms == 7000
    stage.wait(45_000)
    assert [member.member_id for member in stage.describe().members] == ["A"]
    stage.configure_group(share_session_timeout_ms=45_000)
    stage.wait(14_999)
    assert len(stage.describe().members) == 1
    stage.wait(1)
    assert len(stage.describe().members) == 0


def test_shorter_session_timeout_applies_from_the_next_heartbeat() -> None:
    """BEHAVIOUR.md 28."""
    stage = Stage(t1=1)
    stage.configure_group(share_session_timeout_ms=60_000)
    stage.heartbeat("A", 0, ["t1"])
    stage.configure_group(share_session_timeout_ms=45_000)
    stage.heartbeat("A", 2)
    stage.wait(45_000)
    assert stage.describe().members == ()


def test_all_to_all_assigns_every_partition_to_every_member() -> None:
    """BEHAVIOUR.md 32."""
    stage = Stage(t1=2, configs={"group.share.assignors": "all_to_all"})
    stage.beat("A", 0, ["t1"])
    stage.beat("B", 0, ["t1"])
    assert stage.beat("A", 2) == "3 {t1:0,1}"
    assert stage.beat("B", 3, ["t1"]) == "3 {t1:0,1}"
    assert stage.describe().assignor_name == "all_to_all"
