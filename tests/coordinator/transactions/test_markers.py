"""The markers of decided transactions: requests to all leaders, retries, and the completion."""

from __future__ import annotations

import pytest

from shareq.coordinator.transactions.markers import RETRY_BACKOFF_MS, completion
from shareq.coordinator.transactions.states import TransactionState
from shareq.model.actor import Answer, Call, ImageChanged
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition, partition_for
from shareq.model.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.coordinator.transactions.stage import (
    BLOCK,
    HOME,
    ORDERS,
    PARTITIONS,
    Stage,
    led_by,
    without_leader,
    without_topic,
)

S = TransactionState
MORE = TopicPartition("orders", 1)
BILLS = TopicPartition("bills", 0)


def committed_stage(*partitions: TopicPartition, holding: bool = True, stage: Stage | None = None) -> Stage:
    """A stage with a decided commit of these partitions; leaders hold the markers unless `holding` is False."""
    stage = stage or Stage()
    stage.init()
    stage.add(*partitions)
    stage.holding_markers = holding
    assert stage.end().error_code is Errors.NONE
    return stage


def marker_requests(stage: Stage) -> list[tuple[int, set[TopicPartition]]]:
    """The WriteTxnMarkers requests: node and partitions."""
    found = []
    for call in stage.calls:
        if isinstance(call.request, WriteTxnMarkersRequest):
            (marker,) = call.request.markers
            found.append((call.node, {TopicPartition(t.name, i) for t in marker.topics for i in t.partition_indexes}))
    return found


def fail(stage: Stage, call: Call, error: Errors = Errors.NETWORK_EXCEPTION) -> None:
    """Fail a held request."""
    stage.held_markers.remove(call)
    stage.handle(Answer(call.id, None, error))


def test_each_leader_gets_one_request_for_all_its_partitions() -> None:
    """BEHAVIOUR.md 33."""
    stage = committed_stage(ORDERS, MORE, BILLS)
    assert marker_requests(stage) == [(1, {ORDERS, MORE}), (2, {BILLS})]
    assert stage.known().state is S.PREPARE_COMMIT
    stage.release_markers()
    assert set(stage.marked) == {(at, True, BLOCK, 1) for at in (ORDERS, MORE, BILLS)}
    assert stage.known().state is S.COMPLETE_COMMIT


def test_marker_contains_the_coordinator_epoch() -> None:
    stage = Stage()
    stage.elect()
    committed_stage(ORDERS, stage=stage)
    (request,) = [call.request for call in stage.held_markers]
    assert isinstance(request, WriteTxnMarkersRequest)
    assert request.markers[0].coordinator_epoch == 2


def test_end_txn_is_answered_before_the_markers_are_written() -> None:
    """BEHAVIOUR.md 33."""
    stage = committed_stage(ORDERS)
    assert stage.held_markers
    assert stage.known().state is S.PREPARE_COMMIT


def test_transaction_is_complete_after_the_last_marker() -> None:
    """BEHAVIOUR.md 33."""
    stage = committed_stage(ORDERS, BILLS)
    first, second = stage.held_markers
    stage.write_markers(second)
    assert stage.known().state is S.PREPARE_COMMIT
    stage.write_markers(first)
    assert stage.known().state is S.COMPLETE_COMMIT


@pytest.mark.parametrize(
    "error",
    [
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.REQUEST_TIMED_OUT,
    ],
    ids=lambda e: e.name,
)
def test_failed_marker_is_retried(error: Errors) -> None:
    """BEHAVIOUR.md 33."""
    stage = Stage()
    stage.marker_errors = {MORE: error}
    committed_stage(ORDERS, MORE, holding=False, stage=stage)
    stage.wait(3 * RETRY_BACKOFF_MS)
    assert marker_requests(stage) == [(1, {ORDERS, MORE}), (1, {MORE}), (1, {MORE}), (1, {MORE})]
    stage.marker_errors = {}
    stage.wait(RETRY_BACKOFF_MS)
    assert stage.known().state is S.COMPLETE_COMMIT
    assert stage.coordinator.wake_at_ms is None or stage.coordinator.wake_at_ms > stage.now_ms + RETRY_BACKOFF_MS


@pytest.mark.parametrize("error", [Errors.NETWORK_EXCEPTION, Errors.REQUEST_TIMED_OUT], ids=lambda e: e.name)
def test_failed_request_is_retried(error: Errors) -> None:
    """BEHAVIOUR.md 33."""
    stage = committed_stage(ORDERS)
    fail(stage, stage.held_markers[0], error)
    assert stage.held_markers == []
    stage.wait(RETRY_BACKOFF_MS)
    assert len(stage.held_markers) == 1
    stage.release_markers()
    assert stage.known().state is S.COMPLETE_COMMIT


def test_partition_missing_in_the_response_is_retried() -> None:
    """BEHAVIOUR.md 33."""
    stage = committed_stage(ORDERS)
    call = stage.held_markers.pop()
    stage.handle(Answer(call.id, WriteTxnMarkersResponse()))
    stage.wait(RETRY_BACKOFF_MS)
    assert marker_requests(stage) == [(1, {ORDERS}), (1, {ORDERS})]


def test_new_leader_gets_the_marker_at_once() -> None:
    stage = committed_stage(ORDERS)
    fail(stage, stage.held_markers[0])
    stage.handle(ImageChanged(led_by(stage.image, ORDERS, 2)))
    assert marker_requests(stage) == [(1, {ORDERS}), (2, {ORDERS})]


def test_marker_waits_for_a_leader() -> None:
    stage = Stage()
    stage.handle(ImageChanged(without_leader(stage.image, ORDERS)))
    committed_stage(ORDERS, BILLS, holding=False, stage=stage)
    assert marker_requests(stage) == [(2, {BILLS})]
    stage.wait(10 * RETRY_BACKOFF_MS)
    assert stage.known().state is S.PREPARE_COMMIT
    stage.handle(ImageChanged(stage.image))
    assert stage.known().state is S.COMPLETE_COMMIT


def test_deleted_topic_needs_no_marker() -> None:
    """BEHAVIOUR.md 33."""
    stage = Stage()
    stage.marker_errors = {ORDERS: Errors.UNKNOWN_TOPIC_OR_PARTITION}
    committed_stage(ORDERS, holding=False, stage=stage)
    assert stage.known().state is S.PREPARE_COMMIT
    stage.handle(ImageChanged(without_topic(stage.image, "orders")))
    assert stage.known().state is S.COMPLETE_COMMIT


def test_invalid_producer_epoch_counts_as_written() -> None:
    """BEHAVIOUR.md 33."""
    stage = Stage()
    stage.marker_errors = {ORDERS: Errors.INVALID_PRODUCER_EPOCH}
    committed_stage(ORDERS, holding=False, stage=stage)
    assert stage.known().state is S.COMPLETE_COMMIT


def test_fenced_coordinator_stops_sending_markers() -> None:
    """BEHAVIOUR.md 33."""
    stage = Stage()
    stage.marker_errors = {ORDERS: Errors.TRANSACTION_COORDINATOR_FENCED}
    committed_stage(ORDERS, BILLS, holding=False, stage=stage)
    stage.wait(60_000)
    assert marker_requests(stage) == [(1, {ORDERS}), (2, {BILLS})]
    assert stage.known().state is S.PREPARE_COMMIT


@pytest.mark.parametrize(
    "error",
    [Errors.NOT_ENOUGH_REPLICAS, Errors.MESSAGE_TOO_LARGE, Errors.KAFKA_STORAGE_ERROR, Errors.NOT_LEADER_OR_FOLLOWER],
    ids=lambda e: e.name,
)
def test_failed_append_of_a_completion_is_retried(error: Errors) -> None:
    """BEHAVIOUR.md 33."""
    stage = committed_stage(ORDERS)
    stage.append_error = error
    stage.release_markers()
    assert stage.known().state is S.PREPARE_COMMIT
    stage.append_error = Errors.NONE
    stage.wait(RETRY_BACKOFF_MS)
    assert stage.known().state is S.COMPLETE_COMMIT
    assert marker_requests(stage) == [(1, {ORDERS})]


def test_decisions_found_at_load_are_completed_despite_a_slow_log() -> None:
    """BEHAVIOUR.md 33. The first transaction is complete at once, because its topic was deleted; its append is held."""
    first, second = "x1", "x6"
    assert partition_for(first, PARTITIONS) == partition_for(second, PARTITIONS), "both ids belong to one shard"
    stage = Stage()
    stage.holding_markers = True
    for number, (id_, at) in enumerate(((first, ORDERS), (second, BILLS))):
        stage.init(id_=id_)
        stage.add(at, id_=id_, producer_id=BLOCK + number)
        stage.end(id_=id_, producer_id=BLOCK + number)
    stage.image = without_topic(stage.image, "orders")
    stage.holding_markers, stage.holding = False, True
    stage.start()
    stage.wait(60_000)
    stage.release()
    stage.wait(1000)
    for id_ in (first, second):
        known = stage.history(id_)[-1]
        assert known is not None
        assert known.state is S.COMPLETE_COMMIT


def test_completion_is_not_recorded_twice() -> None:
    """The append of the completion was reported as timed out, and was committed nevertheless."""
    stage = committed_stage(ORDERS)
    decided = stage.known()
    stage.release_markers()
    completed = stage.known()
    shard = stage.coordinator._runtime.shard(HOME)
    assert shard is not None
    assert completion(decided, shard, stage.now_ms) == []
    stage.add(ORDERS, epoch=completed.producer_epoch)
    assert completion(decided, shard, stage.now_ms) == []


def test_marker_responses_after_the_resignation_are_ignored() -> None:
    stage = committed_stage(ORDERS)
    stage.resign()
    history = stage.history()
    stage.release_markers()
    stage.wait(60_000)
    assert stage.history() == history


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_new_coordinator_sends_the_markers_of_recorded_decisions(commit: bool) -> None:
    """BEHAVIOUR.md 33."""
    stage = Stage()
    stage.init()
    stage.add(ORDERS, BILLS)
    stage.holding_markers = True
    stage.end(commit=commit)
    stage.holding_markers = False
    stage.start()
    assert {(at, done) for at, done, _, _ in stage.marked} == {(ORDERS, commit), (BILLS, commit)}
    assert stage.known().state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)


def test_reelected_coordinator_sends_the_markers_again() -> None:
    stage = committed_stage(ORDERS)
    stage.elect()
    assert len(stage.held_markers) == 2
    late, present = stage.held_markers
    stage.write_markers(late)
    assert stage.known().state is S.PREPARE_COMMIT
    stage.write_markers(present)
    assert stage.known().state is S.COMPLETE_COMMIT
