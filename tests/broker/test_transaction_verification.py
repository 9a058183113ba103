"""Who is let into a partition in a transaction: the coordinator's word, and what happens while it is awaited."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq.broker import Cluster
from shareq.broker.transaction_verification import VerificationMode, produce_error, verification_mode
from shareq.model.actor import NEWEST_VERSION
from shareq.model.errors import Errors
from shareq.model.events import RequestSent
from shareq.model.ids import GROUP_METADATA_TOPIC, TopicPartition, partition_for
from shareq.model.messages.cluster import CoordinatorType
from shareq.model.messages.transactions import EndTxnRequest, WriteTxnMarkersRequest
from tests.broker.test_transactions import ready, settled
from tests.broker.transactor import FLOWS, JAVA_OLD, LIBRDKAFKA, ClientFlow, Transactor, offsets_error

E = Errors
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=3, trace_messages=True) as made:
        made.create_topic("orders", partitions=3, replication_factor=3)
        yield made


# ---- words -----------------------------------------------------------------------------------------------------------

WORDS = {
    E.NONE: (E.NONE, E.NONE, E.NONE),
    E.TRANSACTION_ABORTABLE: (E.NONE, E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE),
    E.PRODUCER_FENCED: (E.INVALID_PRODUCER_EPOCH,) * 3,
    E.INVALID_PRODUCER_ID_MAPPING: (E.INVALID_PRODUCER_ID_MAPPING,) * 3,
    E.CONCURRENT_TRANSACTIONS: (E.CONCURRENT_TRANSACTIONS, E.NOT_ENOUGH_REPLICAS, E.NOT_ENOUGH_REPLICAS),
    E.COORDINATOR_LOAD_IN_PROGRESS: (E.NOT_ENOUGH_REPLICAS,) * 3,
    E.COORDINATOR_NOT_AVAILABLE: (E.NOT_ENOUGH_REPLICAS,) * 3,
    E.NOT_COORDINATOR: (E.NOT_ENOUGH_REPLICAS,) * 3,
    E.NETWORK_EXCEPTION: (E.NOT_ENOUGH_REPLICAS,) * 3,
    E.REQUEST_TIMED_OUT: (E.NOT_ENOUGH_REPLICAS,) * 3,
    E.INVALID_REQUEST: (E.INVALID_REQUEST,) * 3,
}
"""The coordinator's error, and the errors of Produce: (12 and later, 11, 10)."""


@pytest.mark.parametrize(
    ("error", "version", "told"),
    [
        pytest.param(error, version, told[column], id=f"{error.name} v{version}")
        for error, told in WORDS.items()
        for column, version in enumerate((12, 11, 10))
    ],
)
def test_coordinator_errors_map_to_errors_of_the_version(error: Errors, version: int, told: Errors) -> None:
    assert produce_error(error, verification_mode(version)) is told


@pytest.mark.parametrize("version", [12, 13, NEWEST_VERSION])
def test_new_clients_add_partitions_by_producing(version: int) -> None:
    assert verification_mode(version) == VerificationMode(True, Errors.NONE)


# ---- how often the coordinator is asked ------------------------------------------------------------------------------


def questions(cluster: Cluster) -> int:
    return sum(
        isinstance(entry.event, RequestSent)
        and entry.event.api == "AddPartitionsToTxnRequest"
        and entry.event.source.endswith("/transaction-verification")
        for entry in cluster.journal
    )


@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_a_partition_is_verified_once_per_transaction(cluster: Cluster, flow: ClientFlow) -> None:
    producer = ready(cluster, flow)
    for expected in (1, 1, 2):
        partition = expected - 1
        assert producer.write("x", partition=partition) is Errors.NONE
        assert questions(cluster) == expected
    producer.end()
    settled(cluster)
    producer.write("x")
    assert questions(cluster) == 3


def test_plain_batches_are_not_verified(cluster: Cluster) -> None:
    producer = ready(cluster)
    producer.transactional_id = None  # type: ignore[assignment]    # a plain producer's request
    batch = producer.batch("x", sequence=0, transactional=False)
    assert producer.answer_to(producer.produce_later(batch)).error_code is Errors.NONE
    assert questions(cluster) == 0


# ---- what happens meanwhile ------------------------------------------------------------------------------------------


def marker(
    producer: Transactor, *, topic: str = "orders", partition: int = 0, epoch: int = 9
) -> WriteTxnMarkersRequest:
    at = WriteTxnMarkersRequest.Topic(name=topic, partition_indexes=(partition,))
    return WriteTxnMarkersRequest(
        markers=(
            WriteTxnMarkersRequest.Marker(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                transaction_result=False,
                topics=(at,),
                coordinator_epoch=epoch,
            ),
        )
    )


@pytest.fixture
def slow() -> Iterator[Cluster]:
    """Every message takes 10 ms, each way: a batch arrives after 10, the coordinator is asked after 20, heard at 30."""
    with Cluster(brokers=3, seed=3, latency_ms=10) as made:
        made.create_topic("orders", partitions=1, replication_factor=3)
        yield made


@pytest.mark.parametrize("flow", [JAVA_OLD, LIBRDKAFKA], ids=["Java, old", "librdkafka"])
def test_a_batch_that_a_marker_overtakes_is_not_written(slow: Cluster, flow: ClientFlow) -> None:
    """It would open a transaction in the partition without an end: before EndTxn 5 the epoch stays."""
    producer = ready(slow, flow)
    producer.add(ORDERS)
    call = producer.produce_later(producer.batch("late", sequence=0))
    slow.advance(5)
    producer.send(marker(producer), 1, leader_of(slow))
    assert producer.answer_to(call).error_code is Errors.INVALID_TXN_STATE
    log = slow.log("orders", 0)
    assert log.last_stable_offset == log.log_end_offset == 1


@pytest.mark.parametrize("flow", [JAVA_OLD, LIBRDKAFKA], ids=["Java, old", "librdkafka"])
@pytest.mark.parametrize("others", [0, 1], ids=["alone", "another producer's are"])
def test_offsets_that_a_marker_overtakes_are_not_written(cluster: Cluster, flow: ClientFlow, others: int) -> None:
    """The marker is in the log, and the group's coordinator has not heard of it yet."""
    producer = ready(cluster, flow)
    other = ready(cluster, flow, "other")
    for each in (producer, other):
        assert each.commit_offset(1) is Errors.NONE
    coordinator = cluster.image.coordinator(GROUP_METADATA_TOPIC, "g")
    assert coordinator is not None
    node = coordinator.broker_id
    shard = partition_for("g", len(cluster.image.topics[GROUP_METADATA_TOPIC].partitions))
    late = (producer, other)[others]
    calls: list[int] = []

    def at_once() -> None:
        producer.post(marker(producer, topic=GROUP_METADATA_TOPIC, partition=shard), 1, node)
        calls.append(late.post(late.offsets(2), flow.commit_offsets, node))

    cluster.loop.enter(at_once)
    assert cluster.wait(lambda: late.answered(calls[0]), 60)
    assert offsets_error(late.response(calls[0])) is (Errors.NONE if others else Errors.INVALID_TXN_STATE)
    other.send(marker(other, topic=GROUP_METADATA_TOPIC, partition=shard), 1, node)
    cluster.advance(10)
    log = cluster.log(GROUP_METADATA_TOPIC, shard)
    assert log.last_stable_offset == log.log_end_offset, "a transaction that nobody would ever end"


def test_a_marker_of_the_previous_transaction_refuses_no_batch(slow: Cluster) -> None:
    """It comes while the next transaction's first batch waits for it to be over."""
    producer = ready(slow)
    producer.write("a")
    node = producer.find("t", CoordinatorType.TRANSACTION)
    end = EndTxnRequest(transactional_id="t", producer_id=producer.producer_id, producer_epoch=0, committed=True)
    producer.send(end, 5, node)
    producer.epoch += 1
    call = producer.produce_later(producer.batch("b", sequence=0))
    assert producer.answer_to(call).error_code is Errors.NONE
    assert slow.log("orders", 0).log_end_offset == 3


def test_a_marker_of_another_producer_refuses_no_batch(slow: Cluster) -> None:
    producer, other = ready(slow, JAVA_OLD), ready(slow, JAVA_OLD, "other")
    producer.add(ORDERS)
    call = producer.produce_later(producer.batch("x", sequence=0))
    slow.advance(5)
    producer.send(marker(other), 1, leader_of(slow))
    assert producer.answer_to(call).error_code is Errors.NONE


@pytest.mark.parametrize("comes_back", [False, True], ids=["moved", "moved and came back"])
def test_a_leader_change_during_verification_refuses_the_batch(slow: Cluster, comes_back: bool) -> None:
    """Whoever led the partition meanwhile may have ended the transaction there."""
    first = leader_of(slow)
    slow.kill_broker(first)
    slow.start_broker(first)
    producer = ready(slow, JAVA_OLD)
    while producer.find("t", CoordinatorType.TRANSACTION) == first:
        producer.transactional_id += "t"
    assert producer.begin() is Errors.NONE
    assert producer.add(ORDERS) is Errors.NONE
    call = producer.produce_later(producer.batch("x", sequence=0))
    slow.advance(15)
    slow.elect_preferred_leaders()
    if comes_back:
        slow.kill_broker(first)
    assert producer.answer_to(call).error_code is Errors.NOT_LEADER_OR_FOLLOWER
    assert slow.log("orders", 0).log_end_offset == 0


def leader_of(cluster: Cluster) -> int:
    return cluster.image.topics["orders"].partitions[0].leader


# ---- markers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "leads", "error"),
    [
        pytest.param(0, True, Errors.NONE, id="a partition led here"),
        pytest.param(0, False, Errors.NOT_LEADER_OR_FOLLOWER, id="led elsewhere"),
        pytest.param(9, True, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="unknown"),
    ],
)
def test_markers_are_written_by_leaders(cluster: Cluster, partition: int, leads: bool, error: Errors) -> None:
    producer = ready(cluster)
    node = leader_of(cluster) if leads else next(b for b in cluster.brokers_alive if b != leader_of(cluster))
    response = producer.ask(marker(producer, partition=partition), 1, node)
    (written,) = response.markers
    assert (written.producer_id, written.topics[0].partitions[0].error_code) == (producer.producer_id, error)
    assert cluster.log("orders", 0).log_end_offset == (0 if error else 1)


def test_a_coordinator_of_an_older_epoch_is_fenced(cluster: Cluster) -> None:
    producer = ready(cluster)
    errors = [
        producer.ask(marker(producer, epoch=epoch), 1, leader_of(cluster)).markers[0].topics[0].partitions[0].error_code
        for epoch in (4, 5, 4)
    ]
    assert errors == [Errors.NONE, Errors.NONE, Errors.TRANSACTION_COORDINATOR_FENCED]
