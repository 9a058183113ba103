"""Verification that a partition is in a transaction: requests to the coordinator, and events during such a request."""

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


# ---- errors ----------------------------------------------------------------------------------------------------------

PRODUCE_ERRORS = {
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
"""Error of the coordinator, and the errors of Produce in versions (12 and later, 11, 10)."""


@pytest.mark.parametrize(
    ("error", "version", "produce_error_expected"),
    [
        pytest.param(error, version, produce_error_expected[column], id=f"{error.name} v{version}")
        for error, produce_error_expected in PRODUCE_ERRORS.items()
        for column, version in enumerate((12, 11, 10))
    ],
)
def test_coordinator_errors_map_to_errors_of_the_version(
    error: Errors, version: int, produce_error_expected: Errors
) -> None:
    assert produce_error(error, verification_mode(version)) is produce_error_expected


@pytest.mark.parametrize("version", [12, 13, NEWEST_VERSION])
def test_new_clients_add_partitions_by_producing(version: int) -> None:
    assert verification_mode(version) == VerificationMode(True, Errors.NONE)


# ---- requests to the coordinator -------------------------------------------------------------------------------------


def verification_requests(cluster: Cluster) -> int:
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
        assert verification_requests(cluster) == expected
    producer.end()
    settled(cluster)
    producer.write("x")
    assert verification_requests(cluster) == 3


def test_plain_batches_are_not_verified(cluster: Cluster) -> None:
    producer = ready(cluster)
    producer.transactional_id = None  # type: ignore[assignment]    # as in a request without transactions
    batch = producer.batch("x", sequence=0, transactional=False)
    assert producer.answer_to(producer.produce_later(batch)).error_code is Errors.NONE
    assert verification_requests(cluster) == 0


# ---- events while the response is pending ----------------------------------------------------------------------------


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
    """A message takes 10 ms: a batch arrives after 10 ms, the coordinator's request after 20, its response after 30."""
    with Cluster(brokers=3, seed=3, latency_ms=10) as made:
        made.create_topic("orders", partitions=1, replication_factor=3)
        yield made


@pytest.mark.parametrize("flow", [JAVA_OLD, LIBRDKAFKA], ids=["Java, old", "librdkafka"])
def test_a_batch_overtaken_by_a_marker_is_not_written(slow: Cluster, flow: ClientFlow) -> None:
    """Before EndTxn 5 the epoch stays the same, so the batch would open a transaction that never ends."""
    producer = ready(slow, flow)
    producer.add(ORDERS)
    call = producer.produce_later(producer.batch("late", sequence=0))
    slow.advance(5)
    producer.send(marker(producer), 1, leader_of(slow))
    assert producer.answer_to(call).error_code is Errors.INVALID_TXN_STATE
    log = slow.log("orders", 0)
    assert log.last_stable_offset == log.log_end_offset == 1


@pytest.mark.parametrize("flow", [JAVA_OLD, LIBRDKAFKA], ids=["Java, old", "librdkafka"])
@pytest.mark.parametrize("others", [0, 1], ids=["alone", "another producer"])
def test_offsets_overtaken_by_a_marker_are_not_written(cluster: Cluster, flow: ClientFlow, others: int) -> None:
    """The marker is in the log, but the group coordinator has not applied it yet."""
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
    assert log.last_stable_offset == log.log_end_offset, "a transaction without an end"


def test_a_marker_of_the_previous_transaction_refuses_no_batch(slow: Cluster) -> None:
    """The marker arrives while the next transaction's first batch waits for the completion of the previous one."""
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


@pytest.mark.parametrize("returns", [False, True], ids=["moved", "moved and returned"])
def test_a_leader_change_during_verification_refuses_the_batch(slow: Cluster, returns: bool) -> None:
    """Another leader may have ended the transaction in the partition meanwhile."""
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
    if returns:
        slow.kill_broker(first)
    assert producer.answer_to(call).error_code is Errors.NOT_LEADER_OR_FOLLOWER
    assert slow.log("orders", 0).log_end_offset == 0


def leader_of(cluster: Cluster) -> int:
    return cluster.image.topics["orders"].partitions[0].leader


# ---- markers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "leads", "error"),
    [
        pytest.param(0, True, Errors.NONE, id="this broker leads the partition"),
        pytest.param(0, False, Errors.NOT_LEADER_OR_FOLLOWER, id="another broker leads it"),
        pytest.param(9, True, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="unknown partition"),
    ],
)
def test_markers_are_written_by_leaders(cluster: Cluster, partition: int, leads: bool, error: Errors) -> None:
    producer = ready(cluster)
    node = leader_of(cluster) if leads else next(b for b in cluster.brokers_alive if b != leader_of(cluster))
    response = producer.ask(marker(producer, partition=partition), 1, node)
    (written,) = response.markers
    assert (written.producer_id, written.topics[0].partitions[0].error_code) == (producer.producer_id, error)
    assert cluster.log("orders", 0).log_end_offset == (0 if error else 1)


def test_markers_of_an_older_coordinator_epoch_are_fenced(cluster: Cluster) -> None:
    producer = ready(cluster)
    errors = [
        producer.ask(marker(producer, epoch=epoch), 1, leader_of(cluster)).markers[0].topics[0].partitions[0].error_code
        for epoch in (4, 5, 4)
    ]
    assert errors == [Errors.NONE, Errors.NONE, Errors.TRANSACTION_COORDINATOR_FENCED]
