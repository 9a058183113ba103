"""Failover of the coordinator: recorded state, soft state, requests under way, events; and the deadlines."""

import pytest

from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind, GroupDeadlines
from shareq.model.actor import ImageChanged, ShardElected
from shareq.model.errors import Errors
from shareq.model.events import (
    CoordinatorLoaded,
    Event,
    GroupDeleted,
    GroupEpochBumped,
    HeartbeatReceived,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    SharePartitionsInitialized,
    TargetAssignmentComputed,
)
from shareq.model.messages.cluster import DeleteGroupsRequest, ListGroupsRequest, ListGroupsResponse, MetadataRequest
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.coordinator.share_group.stage import GROUP, Stage
from tests.coordinator.share_group.test_initialize import settled


def test_members_epochs_and_assignments_survive_a_failover() -> None:
    """BEHAVIOUR.md 43."""
    stage = settled(t1=2)
    stage.heartbeat("B", 0, ["t1"])
    before = stage.describe()
    stage.fail_over()
    assert stage.describe() == before
    assert stage.heartbeat("A", 3) == "3 null"


def test_assignment_interval_survives_a_failover() -> None:
    """BEHAVIOUR.md 43."""
    stage = settled(t1=2)
    stage.heartbeat("B", 0, ["t1"])
    stage.fail_over()
    assert stage.heartbeat("A", 3) == "3 null"
    assert stage.beat("A", 3) == "4 {t1:1}"


def test_loaded_members_have_a_full_new_session() -> None:
    """BEHAVIOUR.md 43."""
    stage = settled(t1=1)
    stage.wait(44_000)
    stage.fail_over()
    stage.wait(44_999)
    assert len(stage.describe().members) == 1
    stage.wait(1)
    assert len(stage.describe().members) == 0


def test_metadata_is_refreshed_after_a_load() -> None:
    """BEHAVIOUR.md 43."""
    stage = settled(t1=1)
    stage.resign()
    stage.grow_topic("t1", 2)
    stage.elect()
    assert stage.beat("A", 3) == "4 null"
    assert stage.initialized() == ["t1:1@0 epoch 4"]


def test_previous_epoch_is_accepted_after_a_response_was_lost_in_a_failover() -> None:
    """BEHAVIOUR.md 10. The heartbeat was committed, but its response was lost."""
    stage = Stage(t1=1)
    stage.heartbeat("A", 0, ["t1"])
    assert stage.beat("A", 2) == "3 {t1:0}"
    stage.fail_over()
    assert stage.heartbeat("A", 2) == "3 null"


def heartbeat(member: str, epoch: int, *topics: str) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id=member, member_epoch=epoch, subscribed_topic_names=topics or None
    )


def test_requests_that_wait_for_a_commit_are_answered_when_the_leader_resigns() -> None:
    """BEHAVIOUR.md 12."""
    stage = settled(t1=1)
    stage.appending = False
    ids = [stage.send(heartbeat(member, 0, "t1")) for member in "BC"]
    stage.resign()
    for request_id in ids:
        answer = stage.answer(request_id, ShareGroupHeartbeatResponse)
        assert answer.error_code is Errors.NOT_COORDINATOR


def test_queued_heartbeats_see_the_commit_before_them() -> None:
    """BEHAVIOUR.md 12."""
    stage = settled(t1=2)
    stage.wait(1000)
    stage.appending = False
    ids = [stage.send(heartbeat(member, 0, "t1")) for member in "BC"]
    stage.release()
    epochs = [stage.answer(i, ShareGroupHeartbeatResponse).member_epoch for i in ids]
    assert epochs == [4, 4]
    assert stage.describe().group_epoch == 5


def test_commit_after_the_write_timeout_takes_effect() -> None:
    """BEHAVIOUR.md 12. The client has got COORDINATOR_NOT_AVAILABLE."""
    stage = Stage(t1=1)
    stage.appending = False
    request_id = stage.send(heartbeat("A", 0, "t1"))
    stage.wait(5000)
    assert stage.answer(request_id, ShareGroupHeartbeatResponse).error_code is Errors.COORDINATOR_NOT_AVAILABLE
    stage.release()
    assert stage.heartbeat("A", 0, ["t1"]) == "3 {t1:0}"
    assert len(stage.describe().members) == 1


def test_requests_during_a_load_are_refused() -> None:
    """BEHAVIOUR.md 6, 48."""
    stage = settled(t1=1)
    stage.resign()
    stage.epoch += 1
    for partition in range(3):  # elected, and the log is never read
        stage.coordinator.handle(ShardElected(partition, stage.epoch), stage.now_ms)
    assert stage.heartbeat("A", 3) == "COORDINATOR_LOAD_IN_PROGRESS"
    listed = stage.ask(ListGroupsRequest(), ListGroupsResponse)
    assert listed.error_code is Errors.COORDINATOR_LOAD_IN_PROGRESS


def test_deletion_lost_in_a_failover_can_be_repeated() -> None:
    stage = settled(t1=1)
    stage.heartbeat("A", -1)
    stage.persisting = False
    stage.send(DeleteGroupsRequest(groups_names=(GROUP,)))
    stage.fail_over()
    stage.persisting = True
    assert stage.describe().group_state == "Empty"
    stage.send(DeleteGroupsRequest(groups_names=(GROUP,)))
    assert stage.describe().error_code is Errors.GROUP_ID_NOT_FOUND


def test_sessions_of_a_resigned_shard_expire_without_records() -> None:
    stage = settled(t1=1)
    stage.resign()
    stage.wait(100_000)
    assert stage.written() == []
    assert stage.coordinator.wake_at_ms is None


def test_unknown_request_raises_type_error() -> None:
    with pytest.raises(TypeError, match="MetadataRequest"):
        Stage().send(MetadataRequest())


def test_unchanged_images_and_early_ticks_have_no_effect() -> None:
    stage = settled(t1=1)
    stage.wait(10)
    stage.handle(ImageChanged(stage.image))
    assert (stage.heartbeat("A", 3), stage.written()) == ("3 null", [])


# ---- events ----------------------------------------------------------------------------------------------------------


def test_journal_has_the_events_of_a_group() -> None:
    stage = Stage(t1=1)
    stage.events.clear()
    stage.heartbeat("A", 0, ["t1"])
    stage.beat("A", 2)
    stage.heartbeat("A", 9)
    stage.heartbeat("A", -1)
    stage.send(DeleteGroupsRequest(groups_names=(GROUP,)))
    expected: list[Event] = [
        MemberJoined("g", "A", "", ("t1",)),
        GroupEpochBumped("g", 2, "member joined"),
        TargetAssignmentComputed("g", 2, (("A", ()),)),
        MemberReconciled("g", "A", 2, ()),
        HeartbeatReceived("g", "A", 2, 0),
        SharePartitionsInitialized("g", "t1", (0,)),
        GroupEpochBumped("g", 3, "share-partitions initialized"),
        TargetAssignmentComputed("g", 3, (("A", (("t1", (0,)),)),)),
        MemberReconciled("g", "A", 3, (("t1", (0,)),)),
        HeartbeatReceived("g", "A", 3, 0),
        HeartbeatReceived("g", "A", 9, 110),
        MemberLeft("g", "A", "left"),
        GroupEpochBumped("g", 4, "member left"),
        HeartbeatReceived("g", "A", -1, 0),
        GroupDeleted("g"),
    ]
    assert stage.events == expected


def test_untraced_coordinator_emits_no_events() -> None:
    stage = Stage(t1=1, traced=False)
    stage.heartbeat("A", 0, ["t1"])
    stage.beat("A", 2)
    stage.heartbeat("A", -1)
    stage.fail_over()
    assert stage.events == []


def test_load_event_has_the_record_count() -> None:
    stage = settled(t1=1)
    stage.events.clear()
    stage.fail_over()
    loaded = [event for event in stage.events if isinstance(event, CoordinatorLoaded)]
    assert sum(event.record_count for event in loaded) == 11


# ---- deadlines -----------------------------------------------------------------------------------------------

A, B = DeadlineKey(DeadlineKind.SHARE_SESSION, "g", "A"), DeadlineKey(DeadlineKind.SHARE_SESSION, "g", "B")


def test_deadlines_expire_in_order_and_once() -> None:
    deadlines = GroupDeadlines()
    deadlines.restart(A, 20)
    deadlines.restart(B, 10)
    assert deadlines.wake_at_ms == 10
    assert deadlines.take_expired(9) == []
    assert deadlines.take_expired(20) == [B, A]
    assert deadlines.take_expired(99) == []
    assert deadlines.wake_at_ms is None


def test_restarted_deadline_moves_later_or_earlier() -> None:
    deadlines = GroupDeadlines()
    deadlines.restart(A, 10)
    deadlines.restart(A, 30)
    assert deadlines.take_expired(29) == []
    deadlines.restart(A, 20)
    assert deadlines.wake_at_ms == 20
    assert deadlines.take_expired(20) == [A]
    assert deadlines.take_expired(99) == []


def test_removed_deadline_does_not_expire() -> None:
    deadlines = GroupDeadlines()
    deadlines.restart(A, 10)
    deadlines.forget(A)
    assert not deadlines.is_over(A, 99)
    assert deadlines.take_expired(99) == []
