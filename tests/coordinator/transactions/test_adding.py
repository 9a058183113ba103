"""Adding partitions to transactions: from old clients, from partition leaders, and by AddOffsetsToTxn."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.transactions.states import TransactionState
from shareq.model.actor import ImageChanged
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, TopicPartition
from shareq.model.messages.transactions import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest
from tests.coordinator.transactions.stage import (
    BLOCK,
    ID,
    OFFSETS,
    ORDERS,
    Stage,
    errors,
    only_error,
    without_topic,
)
from tests.coordinator.transactions.test_end import EPOCH, stage_in

S = TransactionState
BILLS = TopicPartition("bills", 2)
NOWHERE = TopicPartition("nowhere", 0)
BEYOND = TopicPartition("orders", 3)

ABORTABLE, CONCURRENT = Errors.TRANSACTION_ABORTABLE, Errors.CONCURRENT_TRANSACTIONS
WAYS = ["client", "leader", "offsets"]


def add(stage: Stage, way: str, epoch: int = EPOCH, **fields: Any) -> Errors:
    """Add one partition by this way; returns its error."""
    if way == "client":
        (error,) = set(stage.add_old(ORDERS, epoch=epoch, **fields).values())
        return error
    return stage.add(ORDERS, epoch=epoch, **fields) if way == "leader" else stage.add_offsets(epoch=epoch, **fields)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("state", "error"),
    [
        pytest.param(S.EMPTY, Errors.NONE, id="Empty: begins"),
        pytest.param(S.ONGOING, Errors.NONE, id="Ongoing: grows"),
        pytest.param(S.PREPARE_COMMIT, Errors.CONCURRENT_TRANSACTIONS, id="PrepareCommit: refused"),
        pytest.param(S.PREPARE_ABORT, Errors.CONCURRENT_TRANSACTIONS, id="PrepareAbort: refused"),
        pytest.param(S.COMPLETE_COMMIT, Errors.NONE, id="CompleteCommit: begins"),
        pytest.param(S.COMPLETE_ABORT, Errors.NONE, id="CompleteAbort: begins"),
    ],
)
def test_adding_a_partition_in_each_state(way: str, state: S, error: Errors) -> None:
    """BEHAVIOUR.md 30."""
    stage = stage_in(state)
    begun_ms = stage.now_ms if state is S.ONGOING else stage.now_ms + 5
    stage.now_ms += 5
    assert add(stage, way) is error
    if error:
        assert len(stage.history()) == 1
        return
    added = OFFSETS if way == "offsets" else ORDERS
    known = stage.known()
    assert known.state is S.ONGOING
    assert added in known.partitions
    assert (known.start_ms, known.client_version) == (begun_ms, 2 if way == "leader" and state is not S.ONGOING else 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.COMPLETE_ABORT])
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"epoch": EPOCH - 1}, Errors.PRODUCER_FENCED, id="older epoch"),
        pytest.param({"epoch": EPOCH + 1}, Errors.PRODUCER_FENCED, id="later epoch"),
        pytest.param({"producer_id": 9}, Errors.INVALID_PRODUCER_ID_MAPPING, id="another producer id"),
    ],
)
def test_adding_checks_producer_id_and_epoch(way: str, state: S, fields: dict[str, Any], error: Errors) -> None:
    """BEHAVIOUR.md 30."""
    stage = stage_in(state)
    assert add(stage, way, **fields) is error
    assert len(stage.history()) == 1


@pytest.mark.parametrize("way", WAYS)
def test_adding_to_an_unknown_transactional_id_is_refused(way: str) -> None:
    """BEHAVIOUR.md 30."""
    assert add(Stage(), way) is Errors.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("way", WAYS)
def test_adding_at_another_broker_is_refused(way: str) -> None:
    stage = stage_in(S.EMPTY)
    stage.resign()
    assert add(stage, way) is Errors.NOT_COORDINATOR


@pytest.mark.parametrize("way", WAYS)
def test_adding_a_known_partition_writes_no_record(way: str) -> None:
    stage = stage_in(S.EMPTY)
    add(stage, way)
    stored = stage.history()
    assert add(stage, way) is Errors.NONE
    assert stage.history() == stored


@pytest.mark.parametrize(
    ("way", "version", "error"),
    [
        pytest.param("client", 0, Errors.INVALID_PRODUCER_EPOCH, id="AddPartitions v0, as librdkafka"),
        pytest.param("client", 1, Errors.INVALID_PRODUCER_EPOCH, id="AddPartitions v1"),
        pytest.param("client", 2, Errors.PRODUCER_FENCED, id="AddPartitions v2"),
        pytest.param("client", 3, Errors.PRODUCER_FENCED, id="AddPartitions v3"),
        pytest.param("offsets", 0, Errors.INVALID_PRODUCER_EPOCH, id="AddOffsets v0, as librdkafka"),
        pytest.param("offsets", 1, Errors.INVALID_PRODUCER_EPOCH, id="AddOffsets v1"),
        pytest.param("offsets", 2, Errors.PRODUCER_FENCED, id="AddOffsets v2"),
        pytest.param("offsets", 4, Errors.PRODUCER_FENCED, id="AddOffsets v4"),
    ],
)
def test_old_versions_get_invalid_producer_epoch(way: str, version: int, error: Errors) -> None:
    assert add(stage_in(S.EMPTY), way, EPOCH - 1, version=version) is error


# ---- clients ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", [NOWHERE, BEYOND], ids=["unknown topic", "unknown partition"])
def test_unknown_partition_prevents_adding_the_others(unknown: TopicPartition) -> None:
    """BEHAVIOUR.md 30."""
    stage = stage_in(S.EMPTY)
    assert stage.add_old(ORDERS, unknown, BILLS, epoch=EPOCH) == {
        ORDERS: Errors.OPERATION_NOT_ATTEMPTED,
        BILLS: Errors.OPERATION_NOT_ATTEMPTED,
        unknown: Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert len(stage.history()) == 1


def test_response_to_a_client_has_a_result_for_each_partition() -> None:
    stage = stage_in(S.EMPTY)
    assert stage.add_old(ORDERS, BILLS, epoch=EPOCH) == {ORDERS: Errors.NONE, BILLS: Errors.NONE}
    assert stage.known().partitions == {ORDERS, BILLS}


def test_empty_transactional_id_is_refused() -> None:
    stage = Stage()
    topics = (AddPartitionsToTxnRequest.Topic(name="orders", partitions=(0, 1)),)
    response = stage.ask(AddPartitionsToTxnRequest(v3_and_below_topics=topics), 3)
    assert only_error(response.results_by_topic_v3_and_below) is Errors.INVALID_REQUEST
    offsets = AddOffsetsToTxnRequest(transactional_id="", producer_id=1, producer_epoch=0, group_id="g")
    assert stage.ask(offsets, 4).error_code is Errors.INVALID_REQUEST


def test_add_offsets_comes_before_the_offsets_topic() -> None:
    """Some clients create it by looking the group's coordinator up, which they do afterwards."""
    stage = stage_in(S.EMPTY)
    stage.handle(ImageChanged(without_topic(stage.image, GROUP_METADATA_TOPIC)))
    assert stage.add_offsets(epoch=EPOCH) is Errors.NONE


# ---- partition leaders -----------------------------------------------------------------------------------------------


def verification(
    *partitions: TopicPartition, epoch: int = EPOCH, producer_id: int = BLOCK
) -> AddPartitionsToTxnRequest:
    topics = tuple(AddPartitionsToTxnRequest.Topic(name=t, partitions=(p,)) for t, p in partitions)
    transaction = AddPartitionsToTxnRequest.Transaction(
        transactional_id=ID, producer_id=producer_id, producer_epoch=epoch, verify_only=True, topics=topics
    )
    return AddPartitionsToTxnRequest(transactions=(transaction,))


@pytest.mark.parametrize(
    ("state", "known", "other"),
    [
        pytest.param(S.EMPTY, ABORTABLE, ABORTABLE, id="Empty"),
        pytest.param(S.ONGOING, Errors.NONE, ABORTABLE, id="Ongoing"),
        pytest.param(S.PREPARE_COMMIT, CONCURRENT, CONCURRENT, id="PrepareCommit"),
        pytest.param(S.PREPARE_ABORT, CONCURRENT, CONCURRENT, id="PrepareAbort"),
        pytest.param(S.COMPLETE_COMMIT, ABORTABLE, ABORTABLE, id="CompleteCommit"),
        pytest.param(S.COMPLETE_ABORT, ABORTABLE, ABORTABLE, id="CompleteAbort"),
    ],
)
def test_verification_adds_no_partition(state: S, known: Errors, other: Errors) -> None:
    """BEHAVIOUR.md 30."""
    stage = stage_in(state)
    response = stage.ask(verification(ORDERS, BILLS))
    assert errors(response.results_by_transaction[0].topic_results) == {ORDERS: known, BILLS: other}
    assert len(stage.history()) == 1


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"epoch": EPOCH - 1}, Errors.PRODUCER_FENCED, id="older epoch"),
        pytest.param({"producer_id": 9}, Errors.INVALID_PRODUCER_ID_MAPPING, id="another producer id"),
    ],
)
def test_verification_checks_producer_id_and_epoch(fields: dict[str, Any], error: Errors) -> None:
    """BEHAVIOUR.md 30."""
    response = stage_in(S.ONGOING).ask(verification(ORDERS, **fields))
    assert only_error(response.results_by_transaction[0].topic_results) is error


def test_leader_adds_to_several_transactions_in_one_request() -> None:
    stage = Stage()
    ids = ["a", "b", "c"]
    for id_ in ids[:2]:
        stage.init(id_=id_)
    topics = (AddPartitionsToTxnRequest.Topic(name="orders", partitions=(0, 1)),)
    transactions = tuple(
        AddPartitionsToTxnRequest.Transaction(
            transactional_id=id_, producer_id=BLOCK + number, producer_epoch=0, topics=topics
        )
        for number, id_ in enumerate(ids)
    )
    response = stage.ask(AddPartitionsToTxnRequest(transactions=transactions))
    assert {t.transactional_id: only_error(t.topic_results) for t in response.results_by_transaction} == {
        "a": Errors.NONE,
        "b": Errors.NONE,
        "c": Errors.INVALID_PRODUCER_ID_MAPPING,
    }
