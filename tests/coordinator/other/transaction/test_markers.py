"""From the decision to its completion: markers to all leaders, tried again until each partition has its own."""

from __future__ import annotations

import pytest

from shareq.coordinator.other.transaction.markers import RETRY_BACKOFF_MS, completion
from shareq.coordinator.other.transaction.states import TransactionState
from shareq.model.actor import Answer, Call, ImageChanged
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition, partition_for
from shareq.model.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.coordinator.other.transaction.stage import (
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


def ended(*partitions: TopicPartition, silent: bool = True, stage: Stage | None = None) -> Stage:
    """A transaction that reached these partitions is committed; leaders are silent unless told otherwise."""
    stage = stage or Stage()
    stage.init()
    stage.add(*partitions)
    stage.silent = silent
    assert stage.end().error_code is Errors.NONE
    return stage


def calls(stage: Stage) -> list[tuple[int, set[TopicPartition]]]:
    """Markers that were asked for: the node, and the partitions."""
    found = []
    for call in stage.called:
        if isinstance(call.request, WriteTxnMarkersRequest):
            (marker,) = call.request.markers
            found.append((call.node, {TopicPartition(t.name, i) for t in marker.topics for i in t.partition_indexes}))
    return found


def fail(stage: Stage, call: Call, error: Errors = Errors.NETWORK_EXCEPTION) -> None:
    """The call breaks."""
    stage.kept.remove(call)
    stage.handle(Answer(call.id, None, error))


def test_each_leader_is_asked_once_for_all_its_partitions() -> None:
    stage = ended(ORDERS, MORE, BILLS)
    assert calls(stage) == [(1, {ORDERS, MORE}), (2, {BILLS})]
    assert stage.known().state is S.PREPARE_COMMIT
    stage.speak()
    assert set(stage.marked) == {(at, True, BLOCK, 1) for at in (ORDERS, MORE, BILLS)}
    assert stage.known().state is S.COMPLETE_COMMIT


def test_a_marker_names_the_coordinators_epoch() -> None:
    stage = Stage()
    stage.elect()
    ended(ORDERS, stage=stage)
    (request,) = [call.request for call in stage.kept]
    assert isinstance(request, WriteTxnMarkersRequest)
    assert request.markers[0].coordinator_epoch == 2


def test_the_answer_waits_for_the_decision_and_not_for_markers() -> None:
    stage = ended(ORDERS)
    assert stage.kept
    assert stage.known().state is S.PREPARE_COMMIT


def test_it_is_complete_with_the_last_marker_only() -> None:
    stage = ended(ORDERS, BILLS)
    first, second = stage.kept
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
def test_a_partition_that_fails_is_tried_again(error: Errors) -> None:
    stage = Stage()
    stage.marker_errors = {MORE: error}
    ended(ORDERS, MORE, silent=False, stage=stage)
    stage.advance(3 * RETRY_BACKOFF_MS)
    assert calls(stage) == [(1, {ORDERS, MORE}), (1, {MORE}), (1, {MORE}), (1, {MORE})]
    stage.marker_errors = {}
    stage.advance(RETRY_BACKOFF_MS)
    assert stage.known().state is S.COMPLETE_COMMIT
    assert stage.coordinator.wake_at_ms is None or stage.coordinator.wake_at_ms > stage.now_ms + RETRY_BACKOFF_MS


@pytest.mark.parametrize("error", [Errors.NETWORK_EXCEPTION, Errors.REQUEST_TIMED_OUT], ids=lambda e: e.name)
def test_a_leader_that_is_lost_is_tried_again(error: Errors) -> None:
    stage = ended(ORDERS)
    fail(stage, stage.kept[0], error)
    assert stage.kept == []
    stage.advance(RETRY_BACKOFF_MS)
    assert len(stage.kept) == 1
    stage.speak()
    assert stage.known().state is S.COMPLETE_COMMIT


def test_a_leader_that_says_nothing_of_a_partition_is_asked_again() -> None:
    stage = ended(ORDERS)
    call = stage.kept.pop()
    stage.handle(Answer(call.id, WriteTxnMarkersResponse()))
    stage.advance(RETRY_BACKOFF_MS)
    assert calls(stage) == [(1, {ORDERS}), (1, {ORDERS})]


def test_a_new_leader_is_asked_at_once() -> None:
    stage = ended(ORDERS)
    fail(stage, stage.kept[0])
    stage.handle(ImageChanged(led_by(stage.image, ORDERS, 2)))
    assert calls(stage) == [(1, {ORDERS}), (2, {ORDERS})]


def test_a_partition_without_leader_waits_for_one() -> None:
    stage = Stage()
    stage.handle(ImageChanged(without_leader(stage.image, ORDERS)))
    ended(ORDERS, BILLS, silent=False, stage=stage)
    assert calls(stage) == [(2, {BILLS})]
    stage.advance(10 * RETRY_BACKOFF_MS)
    assert stage.known().state is S.PREPARE_COMMIT
    stage.handle(ImageChanged(stage.image))
    assert stage.known().state is S.COMPLETE_COMMIT


def test_a_topic_that_is_gone_needs_no_marker() -> None:
    stage = Stage()
    stage.marker_errors = {ORDERS: Errors.UNKNOWN_TOPIC_OR_PARTITION}
    ended(ORDERS, silent=False, stage=stage)
    assert stage.known().state is S.PREPARE_COMMIT
    stage.handle(ImageChanged(without_topic(stage.image, "orders")))
    assert stage.known().state is S.COMPLETE_COMMIT


def test_a_partition_where_the_producer_has_moved_on_is_done() -> None:
    stage = Stage()
    stage.marker_errors = {ORDERS: Errors.INVALID_PRODUCER_EPOCH}
    ended(ORDERS, silent=False, stage=stage)
    assert stage.known().state is S.COMPLETE_COMMIT


def test_a_coordinator_that_was_replaced_leaves_the_rest_to_its_successor() -> None:
    stage = Stage()
    stage.marker_errors = {ORDERS: Errors.TRANSACTION_COORDINATOR_FENCED}
    ended(ORDERS, BILLS, silent=False, stage=stage)
    stage.advance(60_000)
    assert calls(stage) == [(1, {ORDERS}), (2, {BILLS})]
    assert stage.known().state is S.PREPARE_COMMIT


@pytest.mark.parametrize(
    "error",
    [Errors.NOT_ENOUGH_REPLICAS, Errors.MESSAGE_TOO_LARGE, Errors.KAFKA_STORAGE_ERROR, Errors.NOT_LEADER_OR_FOLLOWER],
    ids=lambda e: e.name,
)
def test_a_completion_that_cannot_be_stored_is_tried_again(error: Errors) -> None:
    stage = ended(ORDERS)
    stage.append_error = error
    stage.speak()
    assert stage.known().state is S.PREPARE_COMMIT
    stage.append_error = Errors.NONE
    stage.advance(RETRY_BACKOFF_MS)
    assert stage.known().state is S.COMPLETE_COMMIT
    assert calls(stage) == [(1, {ORDERS})]


def test_decisions_found_at_load_are_announced_however_long_the_log_stalls() -> None:
    """The transaction of one id is completed at once, because its topic is gone; the append of that stalls."""
    first, second = "x1", "x6"
    assert partition_for(first, PARTITIONS) == partition_for(second, PARTITIONS), "they are kept in one shard"
    stage = Stage()
    stage.silent = True
    for number, (id_, at) in enumerate(((first, ORDERS), (second, BILLS))):
        stage.init(id_=id_)
        stage.add(at, id_=id_, producer_id=BLOCK + number)
        stage.end(id_=id_, producer_id=BLOCK + number)
    stage.image = without_topic(stage.image, "orders")
    stage.silent, stage.holding = False, True
    stage.start()
    stage.advance(60_000)
    stage.release()
    stage.advance(1000)
    for id_ in (first, second):
        known = stage.history(id_)[-1]
        assert known is not None
        assert known.state is S.COMPLETE_COMMIT


def test_a_completion_that_got_through_unnoticed_is_not_done_twice() -> None:
    """Its append took too long, and was committed all the same."""
    stage = ended(ORDERS)
    decided = stage.known()
    stage.speak()
    completed = stage.known()
    shard = stage.coordinator._runtime.shard(HOME)
    assert shard is not None
    assert completion(decided, shard, stage.now_ms) == []
    stage.add(ORDERS, epoch=completed.producer_epoch)
    assert completion(decided, shard, stage.now_ms) == []


def test_answers_that_come_after_the_office_was_lost_change_nothing() -> None:
    stage = ended(ORDERS)
    stage.resign()
    history = stage.history()
    stage.speak()
    stage.advance(60_000)
    assert stage.history() == history


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_successor_sends_the_markers_of_stored_decisions_anew(commit: bool) -> None:
    stage = Stage()
    stage.init()
    stage.add(ORDERS, BILLS)
    stage.silent = True
    stage.end(commit=commit)
    stage.silent = False
    stage.start()
    assert {(at, done) for at, done, _, _ in stage.marked} == {(ORDERS, commit), (BILLS, commit)}
    assert stage.known().state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)


def test_a_new_term_of_office_begins_anew_even_on_the_same_broker() -> None:
    stage = ended(ORDERS)
    stage.elect()
    assert len(stage.kept) == 2
    late, present = stage.kept
    stage.write_markers(late)
    assert stage.known().state is S.PREPARE_COMMIT
    stage.write_markers(present)
    assert stage.known().state is S.COMPLETE_COMMIT
