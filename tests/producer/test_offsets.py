"""`send_offsets_to_transaction`: arguments, the request, and the effect of each response. BEHAVIOUR.md, 17."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest

from shareq import Cluster, Producer, TopicPartition
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetCommitResponse
from shareq.model.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from shareq.producer import ConsumerGroupMetadata
from shareq.producer.transaction import ProducerTransactionState
from tests.client.fake import Fake
from tests.producer.stage import transactional, with_coordinator

GROUP = ConsumerGroupMetadata("g")
POSITIONS = [TopicPartition("t", 0, 5), TopicPartition("t", 1)]


class GroupCoordinator:
    """A group coordinator at node 4; its first responses have the given errors."""

    def __init__(self, fake: Fake, *errors: Errors) -> None:
        self.errors = list(errors)
        self.nodes: list[int] = []
        fake.answers[TxnOffsetCommitRequest] = self.commit
        fake.answers[FindCoordinatorRequest] = self.find

    def find(self, fake: Fake, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        at = 4 if request.key_type == CoordinatorType.GROUP else 9
        (key,) = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=(FindCoordinatorResponse.Coordinator(key=key, node_id=at),))

    def commit(self, fake: Fake, node: int, request: TxnOffsetCommitRequest) -> Any:
        self.nodes.append(node)
        error = self.errors.pop(0) if self.errors else Errors.NONE
        if error is Errors.NETWORK_EXCEPTION:
            return error
        part = OffsetCommitResponse.Partition(partition_index=0, error_code=error)
        return TxnOffsetCommitResponse(topics=(OffsetCommitResponse.Topic(name="t", partitions=(part,)),))


def test_offsets_are_sent_to_the_group_coordinator_and_the_transaction_is_ended() -> None:
    """Partitions without an offset are left out; a transaction with offsets only is ended, too."""
    fake, _, coordinator, producer = transactional()
    group = GroupCoordinator(fake)
    producer.send_offsets_to_transaction(POSITIONS, ConsumerGroupMetadata("g", 3, "m", "i"))
    (request,) = fake.requests(TxnOffsetCommitRequest)
    partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
    assert request == TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=7,
        producer_epoch=0,
        generation_id=3,
        member_id="m",
        group_instance_id="i",
        topics=(OffsetCommitRequest.Topic(name="t", partitions=(partition,)),),
    )
    producer.commit_transaction()
    assert (group.nodes, coordinator.ended) == ([4], [True])


@pytest.mark.parametrize("positions", [[], [TopicPartition("t", 0)]], ids=["none", "without an offset"])
def test_no_request_is_sent_without_an_offset(positions: list[TopicPartition]) -> None:
    fake, _, _, producer = transactional()
    producer.send_offsets_to_transaction(positions, GROUP)
    assert fake.requests(TxnOffsetCommitRequest) == []


@pytest.mark.parametrize(
    ("error", "attempts", "state"),
    [
        pytest.param(
            Errors.COORDINATOR_LOAD_IN_PROGRESS, 2, ProducerTransactionState.IN_TRANSACTION, id="loading: retried"
        ),
        pytest.param(Errors.NOT_COORDINATOR, 2, ProducerTransactionState.IN_TRANSACTION, id="moved: retried"),
        pytest.param(Errors.NETWORK_EXCEPTION, 2, ProducerTransactionState.IN_TRANSACTION, id="disconnected: retried"),
        pytest.param(
            Errors.CONCURRENT_TRANSACTIONS,
            2,
            ProducerTransactionState.IN_TRANSACTION,
            id="concurrent transactions: retried",
        ),
        pytest.param(Errors.ILLEGAL_GENERATION, 1, ProducerTransactionState.ABORTABLE, id="generation: abort"),
        pytest.param(Errors.UNKNOWN_MEMBER_ID, 1, ProducerTransactionState.ABORTABLE, id="member: abort"),
        pytest.param(Errors.TRANSACTION_ABORTABLE, 1, ProducerTransactionState.ABORTABLE, id="abortable: abort"),
        pytest.param(Errors.INVALID_PRODUCER_EPOCH, 1, ProducerTransactionState.FATAL, id="epoch: fatal"),
        pytest.param(Errors.PRODUCER_FENCED, 1, ProducerTransactionState.FATAL, id="fenced: fatal"),
    ],
)
def test_errors_of_txn_offset_commit(error: Errors, attempts: int, state: ProducerTransactionState) -> None:
    fake, _, coordinator, producer = transactional()
    group = GroupCoordinator(fake, error)
    if attempts == 2:
        producer.send_offsets_to_transaction(POSITIONS, GROUP)
    else:
        with pytest.raises(KafkaException) as raised:
            producer.send_offsets_to_transaction(POSITIONS, GROUP)
        assert (raised.value.error.code(), raised.value.error.fatal()) == (
            error,
            state is ProducerTransactionState.FATAL,
        )
    assert (len(group.nodes), producer._core.identity.state) == (attempts, state)
    if state is ProducerTransactionState.ABORTABLE:
        producer.abort_transaction()
        assert coordinator.ended == [False]


def test_a_call_that_timed_out_can_be_repeated() -> None:
    fake, _, _, producer = transactional()
    group = GroupCoordinator(fake)
    answer, fake.answers[TxnOffsetCommitRequest] = fake.answers[TxnOffsetCommitRequest], lambda *_: None
    with pytest.raises(KafkaException) as raised:
        producer.send_offsets_to_transaction(POSITIONS, GROUP, 1)
    assert raised.value.error == KafkaError._TIMED_OUT
    fake.answers[TxnOffsetCommitRequest] = answer
    producer.send_offsets_to_transaction(POSITIONS, GROUP, 1)
    assert group.nodes == [4]


def test_an_open_transaction_is_required() -> None:
    _, _, _, producer = with_coordinator(transactional_id="x")
    with pytest.raises(IllegalStateException, match="is not possible"):
        producer.send_offsets_to_transaction(POSITIONS, GROUP)
    _, _, _, producer = with_coordinator()
    with pytest.raises(IllegalStateException, match=r"transactional\.id"):
        producer.send_offsets_to_transaction(POSITIONS, GROUP)


@pytest.mark.parametrize(
    ("positions", "group", "error", "text"),
    [
        pytest.param(5, GROUP, TypeError, "positions must be a list", id="no list"),
        pytest.param([("t", 0, 5)], GROUP, TypeError, "must be TopicPartitions, not tuple", id="tuples"),
        pytest.param([TopicPartition("t", 0, 2**63)], GROUP, ValueError, "offset=9223372036854775808", id="no int64"),
        pytest.param([TopicPartition("t", -1, 5)], GROUP, ValueError, "partition=-1", id="no partition"),
        pytest.param([TopicPartition("t", 0, 5, "\udc80")], GROUP, ValueError, "metadata='", id="a surrogate"),
        pytest.param(POSITIONS, "g", TypeError, "group_metadata must be a ConsumerGroupMetadata", id="a name"),
        pytest.param(POSITIONS, b"CGMDv1:x", ValueError, "CGMDv2", id="bytes of another form"),
        pytest.param(POSITIONS, b"", ValueError, "CGMDv2", id="no bytes"),
    ],
)
def test_invalid_arguments_are_refused_and_the_transaction_continues(
    positions: Any, group: Any, error: type[Exception], text: str
) -> None:
    _, leader, coordinator, producer = transactional()
    with pytest.raises(error, match=text):
        producer.send_offsets_to_transaction(positions, group)
    producer.produce("t", "a", partition=0)
    producer.commit_transaction()
    assert (leader.values(), coordinator.ended) == ([b"a"], [True])


@pytest.mark.parametrize("instance", [None, "i"], ids=["dynamic", "static"])
def test_group_metadata_of_a_confluent_kafka_consumer_is_accepted(instance: str | None) -> None:
    static = {} if instance is None else {"group.instance.id": instance}
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": "127.0.0.1:1", "group.id": "gruppé", "log_level": 0, **static}
    )
    assert ConsumerGroupMetadata.of(consumer.consumer_group_metadata()) == ConsumerGroupMetadata(
        "gruppé", -1, "", instance
    )


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("tcp", [False, True], ids=["in process", "tcp"])
def test_offsets_take_effect_when_the_transaction_is_committed(tcp: bool, commit: bool) -> None:
    """Through the public API; confluent-kafka's consumer reads the committed offset."""
    with Cluster(brokers=1, clock="wall") as cluster:
        cluster.create_topic("t", partitions=1)
        address = cluster.serve().bootstrap_servers
        conf = {"bootstrap.servers": address if tcp else cluster.bootstrap_servers}
        consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "g", "log_level": 0})
        with Producer({**conf, "transactional.id": "x"}) as producer:
            producer.init_transactions(30)
            producer.begin_transaction()
            producer.produce("t", b"a")
            positions = [confluent_kafka.TopicPartition("t", 0, 41)]
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)  # type: ignore[arg-type]
            producer.commit_transaction(30) if commit else producer.abort_transaction(30)
        (found,) = consumer.committed([confluent_kafka.TopicPartition("t", 0)], timeout=30)
        consumer.close()
        assert found.offset == (41 if commit else confluent_kafka.OFFSET_INVALID)
