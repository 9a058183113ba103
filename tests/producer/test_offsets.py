"""`send_offsets_to_transaction`: whose offsets, what is sent, what each answer does to the transaction."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest

from shareq import Cluster, Producer, TopicPartition
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from shareq.producer import ConsumerGroupMetadata
from shareq.producer.transaction import ProducerTransactionState
from tests.client.fake import Fake
from tests.producer.test_transactions import setup, transactional

GROUP = ConsumerGroupMetadata("g")
POSITIONS = [TopicPartition("t", 0, 5), TopicPartition("t", 1)]


class GroupCoordinator:
    """At node 4; answers `errors` first."""

    def __init__(self, fake: Fake, *errors: Errors) -> None:
        self.errors = list(errors)
        self.asked: list[int] = []
        fake.answers[TxnOffsetCommitRequest] = self.commit
        fake.answers[FindCoordinatorRequest] = self.find

    def find(self, fake: Fake, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        at = 4 if request.key_type == CoordinatorType.GROUP else 9
        (key,) = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=(FindCoordinatorResponse.Coordinator(key=key, node_id=at),))

    def commit(self, fake: Fake, node: int, request: TxnOffsetCommitRequest) -> Any:
        self.asked.append(node)
        error = self.errors.pop(0) if self.errors else Errors.NONE
        if error is Errors.NETWORK_EXCEPTION:
            return error
        part = TxnOffsetCommitResponse.Partition(partition_index=0, error_code=error)
        return TxnOffsetCommitResponse(topics=(TxnOffsetCommitResponse.Topic(name="t", partitions=(part,)),))


def test_offsets_go_to_the_groups_coordinator_and_the_transaction_is_ended_there() -> None:
    """Partitions without an offset are left out; a transaction of offsets alone needs its end, too."""
    fake, _, coordinator, producer = transactional()
    group = GroupCoordinator(fake)
    producer.send_offsets_to_transaction(POSITIONS, ConsumerGroupMetadata("g", 3, "m", "i"))
    (request,) = fake.requests(TxnOffsetCommitRequest)
    partition = TxnOffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
    assert request == TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=7,
        producer_epoch=0,
        generation_id=3,
        member_id="m",
        group_instance_id="i",
        topics=(TxnOffsetCommitRequest.Topic(name="t", partitions=(partition,)),),
    )
    producer.commit_transaction()
    assert (group.asked, coordinator.ended) == ([4], [True])


@pytest.mark.parametrize("positions", [[], [TopicPartition("t", 0)]], ids=["none", "without an offset"])
def test_nothing_is_sent_where_there_is_no_offset(positions: list[TopicPartition]) -> None:
    fake, _, _, producer = transactional()
    producer.send_offsets_to_transaction(positions, GROUP)
    assert fake.requests(TxnOffsetCommitRequest) == []


@pytest.mark.parametrize(
    ("error", "attempts", "state"),
    [
        pytest.param(
            Errors.COORDINATOR_LOAD_IN_PROGRESS, 2, ProducerTransactionState.IN_TRANSACTION, id="loading: again"
        ),
        pytest.param(Errors.NOT_COORDINATOR, 2, ProducerTransactionState.IN_TRANSACTION, id="moved: again"),
        pytest.param(Errors.NETWORK_EXCEPTION, 2, ProducerTransactionState.IN_TRANSACTION, id="disconnected: again"),
        pytest.param(
            Errors.CONCURRENT_TRANSACTIONS, 2, ProducerTransactionState.IN_TRANSACTION, id="still ending: again"
        ),
        pytest.param(Errors.ILLEGAL_GENERATION, 1, ProducerTransactionState.ABORTABLE, id="generation: abort"),
        pytest.param(Errors.UNKNOWN_MEMBER_ID, 1, ProducerTransactionState.ABORTABLE, id="member: abort"),
        pytest.param(Errors.TRANSACTION_ABORTABLE, 1, ProducerTransactionState.ABORTABLE, id="abortable: abort"),
        pytest.param(Errors.INVALID_PRODUCER_EPOCH, 1, ProducerTransactionState.FATAL, id="epoch: fatal"),
        pytest.param(Errors.PRODUCER_FENCED, 1, ProducerTransactionState.FATAL, id="fenced: fatal"),
    ],
)
def test_each_answer(error: Errors, attempts: int, state: ProducerTransactionState) -> None:
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
    assert (len(group.asked), producer._core.identity.state) == (attempts, state)
    if state is ProducerTransactionState.ABORTABLE:
        producer.abort_transaction()
        assert coordinator.ended == [False]


def test_a_call_that_timed_out_may_be_repeated() -> None:
    fake, _, _, producer = transactional()
    group = GroupCoordinator(fake)
    answer, fake.answers[TxnOffsetCommitRequest] = fake.answers[TxnOffsetCommitRequest], lambda *_: None
    with pytest.raises(KafkaException) as raised:
        producer.send_offsets_to_transaction(POSITIONS, GROUP, 1)
    assert raised.value.error == KafkaError._TIMED_OUT
    fake.answers[TxnOffsetCommitRequest] = answer
    producer.send_offsets_to_transaction(POSITIONS, GROUP, 1)
    assert group.asked == [4]


def test_a_transaction_has_to_be_open() -> None:
    _, _, _, producer = setup(transactional_id="x")
    with pytest.raises(IllegalStateException, match="is not possible"):
        producer.send_offsets_to_transaction(POSITIONS, GROUP)
    _, _, _, producer = setup()
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
def test_bad_arguments_are_refused_and_the_transaction_goes_on(
    positions: Any, group: Any, error: type[Exception], text: str
) -> None:
    _, desk, coordinator, producer = transactional()
    with pytest.raises(error, match=text):
        producer.send_offsets_to_transaction(positions, group)
    producer.produce("t", "a", partition=0)
    producer.commit_transaction()
    assert (desk.values(), coordinator.ended) == ([b"a"], [True])


@pytest.mark.parametrize("instance", [None, "i"], ids=["dynamic", "static"])
def test_what_a_consumer_of_confluent_kafka_says_of_its_group(instance: str | None) -> None:
    static = {} if instance is None else {"group.instance.id": instance}
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": "127.0.0.1:1", "group.id": "gruppé", "log_level": 0, **static}
    )
    assert ConsumerGroupMetadata.of(consumer.consumer_group_metadata()) == ConsumerGroupMetadata(
        "gruppé", -1, "", instance
    )


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("tcp", [False, True], ids=["in process", "tcp"])
def test_offsets_count_when_the_transaction_is_committed(tcp: bool, commit: bool) -> None:
    """Through the public API; confluent-kafka's consumer tells what is committed."""
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
