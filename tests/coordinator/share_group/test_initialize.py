"""The initialization of share-partitions: two phases, retries, added partitions, deleted and recreated topics."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from shareq.coordinator.runtime.runtime import RETRY_MS
from shareq.coordinator.share_group.partitions import SharePartitions, difference, union
from shareq.coordinator.share_group.state import ShareGroup
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request
from shareq.model.messages.share_group import AlterShareGroupOffsetsRequest, ShareGroupHeartbeatRequest
from tests.coordinator.share_group.stage import GROUP, Stage

A, B = TopicId("a"), TopicId("b")


def with_topics(topics: Mapping[str, int]) -> Stage:
    stage = Stage()
    for name, count in topics.items():
        stage.create_topic(name, count)
    return stage


def unanswered_join(**topics: int) -> Stage:
    """A has joined with all topics; nothing is initialized, as the requests to the persister are lost."""
    stage = with_topics(topics)
    stage.persisting = False
    stage.heartbeat("A", 0, topics)
    stage.held.clear()
    stage.persisting = True
    stage.written()
    return stage


def settled(**topics: int) -> Stage:
    """A has joined with all topics and is assigned all their partitions, at epoch 3."""
    stage = with_topics(topics)
    stage.heartbeat("A", 0, topics)
    stage.beat("A", 2)
    stage.written()
    stage.initialized()
    return stage


def test_all_partitions_are_initialized_in_one_request_and_one_record() -> None:
    """BEHAVIOUR.md 34, 36."""
    stage = Stage(t1=2, t2=1)
    stage.persisting = False
    stage.heartbeat("A", 0, ["t1", "t2"])
    assert stage.written()[-1] == "R15(initializing {t1:0,1 t2:0})"
    stage.release()
    assert stage.initialized() == ["t1:0@-1 t1:1@-1 t2:0@-1 epoch 2"]
    assert stage.written() == ["R15(initialized {t1:0,1 t2:0})"]


@pytest.mark.parametrize("whole_call", [False, True], ids=["one partition fails", "the call fails"])
def test_failure_reverts_the_whole_request_and_the_next_heartbeat_repeats_it(whole_call: bool) -> None:
    """BEHAVIOUR.md 36."""
    stage = Stage(t1=2)
    if whole_call:
        stage.persister_error = Errors.COORDINATOR_NOT_AVAILABLE
    else:
        stage.persister = lambda _, index: Errors.NETWORK_EXCEPTION if index else Errors.NONE
    stage.heartbeat("A", 0, ["t1"])
    assert stage.written()[-2:] == ["R15(initializing {t1:0,1})", "R15()"]
    stage.persister_error, stage.persister = Errors.NONE, lambda _, index: Errors.NONE
    stage.initialized()
    assert stage.heartbeat("A", 2) == "2 null"
    assert stage.initialized() == ["t1:0@-1 t1:1@-1 epoch 2"]
    assert stage.written() == ["R15(initializing {t1:0,1})", "R15(initialized {t1:0,1})"]


def test_success_is_reverted_if_its_append_fails() -> None:
    """BEHAVIOUR.md 36."""
    stage = Stage(t1=1)
    stage.persisting = False
    stage.heartbeat("A", 0, ["t1"])
    stage.written()
    stage.appending = False
    stage.release_next()
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.release_next()
    stage.append_error = Errors.NONE
    stage.release()
    stage.wait(RETRY_MS)
    assert stage.written() == ["R15()"]
    stage.heartbeat("A", 2)
    assert stage.written() == ["R15(initializing {t1:0})", "R15(initialized {t1:0})"]


@pytest.mark.parametrize(
    ("wait_ms", "retry_ms", "expected"),
    [
        pytest.param(29_999, None, [], id="younger than the interval"),
        pytest.param(30_000, None, ["t1:0@0 epoch 2"], id="as old as the interval"),
        pytest.param(6_000, 6_000, ["t1:0@0 epoch 2"], id="a shorter interval"),
        pytest.param(4_999, 1, [], id="not shorter than the commit timeout"),
        pytest.param(5_000, 1, ["t1:0@0 epoch 2"], id="as old as the commit timeout"),
    ],
)
def test_lost_initialization_is_repeated_after_the_retry_interval(
    wait_ms: int, retry_ms: int | None, expected: list[str]
) -> None:
    """BEHAVIOUR.md 35, 37."""
    stage = unanswered_join(t1=1)
    if retry_ms:
        stage.configure(group_share_initialize_retry_interval_ms=retry_ms)
    assert (stage.heartbeat("A", 2), stage.initialized()) == ("2 null", [])
    stage.wait(wait_ms)
    stage.heartbeat("A", 2)
    assert stage.initialized() == expected


def test_each_write_of_the_record_resets_the_age_of_all_entries() -> None:
    """BEHAVIOUR.md 37."""
    stage = unanswered_join(t1=1, t2=1)
    stage.create_topic("t3", 1)
    stage.wait(20_000)
    stage.heartbeat("A", 2, ["t1", "t2", "t3"])
    assert stage.initialized() == ["t3:0@-1 epoch 3"]
    stage.wait(29_999)
    stage.heartbeat("A", 3)
    assert stage.initialized() == []
    stage.wait(1)
    stage.heartbeat("A", 3)
    assert stage.initialized() == ["t1:0@0 t2:0@0 epoch 4"]


def test_new_partitions_of_a_known_topic_start_at_0() -> None:
    """BEHAVIOUR.md 35."""
    stage = settled(t1=2)
    stage.grow_topic("t1", 4)
    assert stage.beat("A", 3) == "4 null"
    records = ["R11(4)", "R12(4)", "R14(A 4<3 {t1:0,1})", "R15(initializing {t1:2,3}, initialized {t1:0,1})",
               "R15(initialized {t1:0,1,2,3})"]  # fmt: skip
    assert stage.written() == records
    assert stage.initialized() == ["t1:2@0 t1:3@0 epoch 4"]
    assert stage.beat("A", 4) == "5 {t1:0,1,2,3}"


def test_topic_created_after_the_subscription_starts_by_the_reset_strategy() -> None:
    """BEHAVIOUR.md 35."""
    stage = Stage(t1=1)
    stage.heartbeat("A", 0, ["t1", "t2"])
    stage.beat("A", 2)
    stage.initialized()
    stage.create_topic("t2", 1)
    assert stage.beat("A", 3) == "4 null"
    assert stage.initialized() == ["t2:0@-1 epoch 4"]
    assert stage.beat("A", 4) == "5 {t1:0 t2:0}"


def test_new_subscription_to_an_existing_topic_is_initialized_at_once() -> None:
    """BEHAVIOUR.md 34."""
    stage = settled(t1=1)
    stage.create_topic("t2", 1)
    stage.heartbeat("A", 3)
    stage.heartbeat("A", 3, ["t1", "t2"])
    assert stage.initialized() == ["t2:0@-1 epoch 4"]


def test_first_attempt_lost_in_a_failover_is_repeated_with_start_offset_0() -> None:
    """BEHAVIOUR.md 35, 43."""
    stage = unanswered_join(t1=1)
    stage.fail_over()
    stage.wait(29_999)
    stage.heartbeat("A", 2)
    assert stage.initialized() == []
    stage.wait(1)
    stage.heartbeat("A", 2)
    assert stage.initialized() == ["t1:0@0 epoch 2"]


def test_deleted_topic_is_removed_without_a_request_to_the_persister() -> None:
    """BEHAVIOUR.md 39."""
    stage = settled(t1=1, t2=1)
    stage.delete_topic("t1")
    assert stage.written() == ["R15(initialized {t2:0})"]
    assert stage.persisted == []
    assert stage.beat("A", 3) == "4 {t2:0}"


def test_deleted_topic_without_share_partitions_writes_no_record() -> None:
    """BEHAVIOUR.md 39."""
    stage = settled(t1=1, other=1)
    stage.create_topic("third", 1)
    stage.delete_topic("third")
    assert stage.written() == []


def test_topic_deleted_during_a_failover_is_removed_by_the_next_coordinator() -> None:
    """BEHAVIOUR.md 39."""
    stage = settled(t1=1, t2=1)
    stage.resign()
    stage.delete_topic("t1")
    stage.elect()
    assert stage.written() == ["R15(initialized {t2:0})"]


def test_recreated_topic_has_a_new_id_and_a_new_start() -> None:
    """BEHAVIOUR.md hard case 30."""
    stage = settled(t1=2)
    stage.delete_topic("t1")
    stage.create_topic("t1", 1)
    assert stage.beat("A", 3) == "4 {}"
    assert stage.initialized() == ["t1:0@-1 epoch 4"]
    assert stage.beat("A", 4) == "5 {t1:0}"


def test_success_after_the_topic_was_deleted_is_ignored() -> None:
    """BEHAVIOUR.md 38."""
    stage = Stage(t1=1)
    stage.persisting = False
    stage.heartbeat("A", 0, ["t1"])
    stage.delete_topic("t1")
    stage.written()
    stage.release()
    assert stage.written() == []


def test_success_for_a_deleted_topic_is_ignored_after_a_failed_append_of_the_deletion() -> None:
    """BEHAVIOUR.md 38."""
    stage = Stage(t1=1)
    stage.persisting = False
    stage.heartbeat("A", 0, ["t1"])
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.delete_topic("t1")
    stage.append_error = Errors.NONE
    stage.written()
    stage.release()
    assert stage.written() == []


# ---- slow and failed appends -----------------------------------------------------------------------------------------


def recorded_partitions(stage: Stage) -> SharePartitions | None:
    """The share-partitions of the group in the shard's state."""
    shard = stage.coordinator._runtime.shard(stage.shard_of())
    group = shard.find(ShareGroup, GROUP) if shard else None
    return group.share_partitions if group else None


HEARTBEAT = ShareGroupHeartbeatRequest(
    group_id=GROUP, member_id="A", member_epoch=0, subscribed_topic_names=("t1", "t2")
)
ALTER = AlterShareGroupOffsetsRequest(
    group_id=GROUP,
    topics=(
        AlterShareGroupOffsetsRequest.Topic(
            topic_name="t1",
            partitions=(AlterShareGroupOffsetsRequest.Partition(partition_index=0, start_offset=5),),
        ),
    ),
)


@pytest.mark.parametrize("persisting", [True, False], ids=["fast persister", "slow persister"])
@pytest.mark.parametrize("request_", [HEARTBEAT, ALTER], ids=["heartbeat", "alter offsets"])
def test_topic_deleted_between_the_append_and_its_commit_is_removed(request_: Request, persisting: bool) -> None:
    """BEHAVIOUR.md 39. The group does not exist yet when the topic is deleted."""
    stage = Stage(t1=1, t2=1)
    stage.appending = False
    stage.send(request_)
    gone = stage.image.topics["t1"].topic_id
    stage.delete_topic("t1")
    stage.appending, stage.persisting = True, persisting
    stage.release_next()
    stage.release()
    known = recorded_partitions(stage)
    assert known is not None
    assert gone not in known.topics()
    assert not known.initializing


@pytest.mark.parametrize("error", [Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR], ids=lambda e: e.name)
def test_removal_of_a_deleted_topic_is_repeated_after_a_failed_append(error: Errors) -> None:
    """BEHAVIOUR.md 39."""
    stage = settled(t1=1, t2=1)
    stage.append_error = error
    stage.delete_topic("t1")
    stage.wait(20_000)
    assert stage.written() == []
    stage.append_error = Errors.NONE
    stage.wait(RETRY_MS)
    assert stage.written() == ["R15(initialized {t2:0})"]


@pytest.mark.parametrize("initialized", [True, False], ids=["success", "failure"])
def test_initialization_ends_behind_a_slow_append(initialized: bool) -> None:
    """The append of its result waits longer than the write timeout; a repeated initialization does not start at 0."""
    stage = Stage(t1=1)
    stage.persisting = False
    stage.heartbeat("A", 0, ["t1"])
    if not initialized:
        stage.persister_error = Errors.COORDINATOR_NOT_AVAILABLE
    stage.appending = False
    stage.send(replace(HEARTBEAT, member_id="B", subscribed_topic_names=("t1",)))
    stage.release_next()
    stage.wait(20_000)
    stage.persister_error = Errors.NONE
    stage.release()
    known = recorded_partitions(stage)
    assert known is not None
    assert not known.initializing
    assert bool(known.initialized) == initialized
    stage.initialized()
    stage.beat("A", 2)
    assert stage.initialized() == ([] if initialized else ["t1:0@-1 epoch 3"])


@pytest.mark.parametrize("error", [Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR], ids=lambda e: e.name)
def test_failed_initialization_is_reverted_when_the_append_succeeds(error: Errors) -> None:
    stage = Stage(t1=1)
    stage.persisting = False
    stage.heartbeat("A", 0, ["t1"])
    stage.persister_error, stage.append_error = Errors.COORDINATOR_NOT_AVAILABLE, error
    stage.release()
    stage.persister_error = Errors.NONE
    stage.wait(20_000)
    stage.append_error = Errors.NONE
    stage.wait(RETRY_MS)
    assert recorded_partitions(stage) == SharePartitions()
    stage.initialized()
    stage.heartbeat("A", 2)
    assert stage.initialized() == ["t1:0@-1 epoch 2"]


def test_partition_is_not_assigned_before_it_is_initialized() -> None:
    """BEHAVIOUR.md 29."""
    stage = unanswered_join(t1=1)
    assert stage.beat("A", 2, ["t1"]) == "2 {}"
    stage.wait(30_000)
    stage.heartbeat("A", 2)
    assert stage.beat("A", 2) == "3 {t1:0}"


# ---- changes of share-partitions -------------------------------------------------------------------------------------

PART = frozenset


@pytest.mark.parametrize(
    ("before", "move", "after"),
    [
        pytest.param(
            SharePartitions({}, {}, frozenset({A, B})),
            lambda known: known.begin({A: PART({0})}),
            SharePartitions({A: PART({0})}, {}, frozenset({B})),
            id="begin: the topic is subscribed again",
        ),
        pytest.param(
            SharePartitions({A: PART({0, 1})}, {A: PART({2})}),
            lambda known: known.finish({A: PART({1})}),
            SharePartitions({A: PART({0})}, {A: PART({1, 2})}),
            id="finish: one of two",
        ),
        pytest.param(
            SharePartitions({A: PART({0})}, {A: PART({0})}),
            lambda known: known.finish({A: PART({0})}),
            SharePartitions({}, {A: PART({0})}),
            id="finish: an altered partition was in both lists",
        ),
        pytest.param(
            SharePartitions({A: PART({0}), B: PART({0})}),
            lambda known: known.abandon({A: PART({0, 5})}),
            SharePartitions({B: PART({0})}),
            id="abandon",
        ),
        pytest.param(
            SharePartitions({A: PART({1})}, {A: PART({0}), B: PART({0})}),
            lambda known: known.begin_delete([A]),
            SharePartitions({A: PART({1})}, {B: PART({0})}, frozenset({A})),
            id="begin to delete: initializing partitions stay",
        ),
        pytest.param(
            SharePartitions({}, {}, frozenset({A, B})),
            lambda known: known.finish_delete([A]),
            SharePartitions({}, {}, frozenset({B})),
            id="finish to delete",
        ),
    ],
)
def test_changes_of_share_partitions(before: SharePartitions, move: object, after: SharePartitions) -> None:
    """BEHAVIOUR.md 33."""
    assert callable(move)
    assert move(before) == after


def test_union_and_difference_of_partitions_by_topic() -> None:
    some, others = {A: PART({0, 1})}, {A: PART({1, 2}), B: PART({0})}
    assert union(some, others) == {A: PART({0, 1, 2}), B: PART({0})}
    assert difference(some, others) == {A: PART({0})}
    assert difference({B: PART({0})}, others) == {}


def test_partitions_are_not_initialized_while_a_newer_attempt_is_under_way() -> None:
    """BEHAVIOUR.md 36. The newer one resets the state when it arrives: what members had accepted would be delivered
    again."""
    stage = Stage(t1=1)
    stage.persisting = False
    stage.heartbeat("A", 0, ["t1"])
    stage.heartbeat("B", 0, ["t1"])
    stage.wait(31_000)
    stage.beat("A", 2)
    first, second = (effect for effect in stage.held)
    assert first != second
    stage.written()
    stage.release_next()
    assert stage.written() == []
    stage.release_next()
    assert stage.initialized() == ["t1:0@-1 epoch 2", "t1:0@0 epoch 3"]
    assert stage.written() == ["R15(initialized {t1:0})"]
