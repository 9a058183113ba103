"""confluent-kafka's `Producer` over TCP, read back by its `Consumer`, on a shareq cluster and on Apache Kafka."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from tests.kafka.fixtures import Reachable
from tests.pairings.stage import AdminStage, Fresh, dotted, error_name, raised
from tests.polling import PATIENCE_S

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]


class ProducerStage(AdminStage):
    """A topic with one partition, and its producers."""

    def __init__(self, broker: Reachable, fresh: Fresh, **config: object) -> None:
        super().__init__(broker.bootstrap_servers, fresh)
        # Without idempotence the second batch can overtake the first while the leader is not ready.
        self.create(1, **config)

    def producer(self, **conf: object) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "linger.ms": 5, **dotted(conf)})

    def send(self, producer: Producer, *values: bytes) -> list[int | str | None]:
        """Produce the values; the offset or the error name of each."""
        reports: list[int | str | None] = []

        def report(error: Any, message: Any) -> None:
            reports.append(error_name(error) if error else message.offset())

        for value in values:
            producer.produce(self.topic, value, on_delivery=report)
        assert producer.flush(PATIENCE_S) == 0
        return reports

    def read(self, count: int, isolation: str = "read_committed") -> list[bytes | None]:
        """The first `count` values of the topic."""
        conf = {"bootstrap.servers": self.servers, "group.id": "none", "check.crcs": True, "isolation.level": isolation}
        consumer = Consumer(conf)
        consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
        found: list[bytes | None] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(found) < count:
            assert time.monotonic() < deadline, found
            for message in consumer.consume(100, 0.2):
                assert message.error() is None
                found.append(message.value())
        consumer.close()
        return found


@pytest.fixture
def stage(broker: Reachable, fresh: Fresh) -> ProducerStage:
    return ProducerStage(broker, fresh)


# ---- records ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_of_every_compression_type_are_read_back(
    stage: ProducerStage, compression: str, idempotent: bool
) -> None:
    wanted = [b"%d" % number * 50 for number in range(200)]
    producer = stage.producer(compression_type=compression, enable_idempotence=idempotent)
    assert stage.send(producer, *wanted) == list(range(200))
    assert stage.read(200) == wanted


@pytest.mark.parametrize("stored", COMPRESSIONS)
def test_the_topic_s_compression_type_recompresses(broker: Reachable, fresh: Fresh, stored: str) -> None:
    stage = ProducerStage(broker, fresh, compression_type=stored.replace("none", "uncompressed"))
    for compression in COMPRESSIONS:
        stage.send(stage.producer(compression_type=compression), b"a" * 100, b"b" * 100)
    assert stage.read(10) == [b"a" * 100, b"b" * 100] * 5


@pytest.mark.parametrize(("acks", "offsets"), [("0", [None]), ("1", [1]), ("all", [1])], ids=["none", "one", "all"])
def test_offsets_by_acks_setting(stage: ProducerStage, acks: str, offsets: list[int | None]) -> None:
    """acks=0 loses records that reach a leader before it is ready; the first record shows that it is."""
    assert stage.send(stage.producer(), b"first") == [0]
    assert stage.send(stage.producer(acks=acks), b"a") == offsets
    assert stage.read(2) == [b"first", b"a"]


def test_an_idempotent_producer_keeps_the_order_of_many_requests(stage: ProducerStage) -> None:
    producer = stage.producer(enable_idempotence=True, linger_ms=0, batch_num_messages=1)
    wanted = [b"%d" % number for number in range(300)]
    assert stage.send(producer, *wanted) == list(range(300))
    assert stage.read(300) == wanted


def test_log_append_time_replaces_the_producer_s_timestamp(broker: Reachable, fresh: Fresh) -> None:
    stage = ProducerStage(broker, fresh, message_timestamp_type="LogAppendTime")
    timestamps: list[tuple[int, int]] = []
    producer = stage.producer()
    producer.produce(
        stage.topic, b"a", timestamp=1, on_delivery=lambda error, message: timestamps.append(message.timestamp())
    )
    assert producer.flush(PATIENCE_S) == 0
    ((kind, when),) = timestamps
    assert (kind, when > 1) == (2, True)


# ---- refused records -------------------------------------------------------------------------------------------------


def test_a_record_above_max_message_bytes_is_refused(broker: Reachable, fresh: Fresh) -> None:
    stage = ProducerStage(broker, fresh, max_message_bytes=1000)
    assert stage.send(stage.producer(), b"x" * 2000) == ["MESSAGE_TOO_LARGE"]
    assert stage.send(stage.producer(), b"x" * 500) == [0]


def test_a_record_without_key_is_refused_by_a_compacted_topic(broker: Reachable, fresh: Fresh) -> None:
    stage = ProducerStage(broker, fresh, cleanup_policy="compact")
    assert stage.send(stage.producer(), b"x") == ["INVALID_RECORD"]


def test_a_record_older_than_timestamp_before_max_is_refused(broker: Reachable, fresh: Fresh) -> None:
    stage = ProducerStage(broker, fresh, message_timestamp_before_max_ms=1000)
    errors: list[str] = []
    producer = stage.producer()
    producer.produce(stage.topic, b"x", timestamp=1, on_delivery=lambda error, _: errors.append(error_name(error)))
    assert producer.flush(PATIENCE_S) == 0
    assert errors == ["INVALID_TIMESTAMP"]


def test_produce_to_a_missing_topic_or_partition_fails(broker: Reachable, stage: ProducerStage, fresh: Fresh) -> None:
    errors: list[str] = []
    producer = stage.producer(allow_auto_create_topics=False, topic_metadata_propagation_max_ms=300)
    for topic, partition in ((fresh("nowhere"), -1), (stage.topic, 7)):
        try:
            producer.produce(
                topic, b"x", partition=partition, on_delivery=lambda error, _: errors.append(error_name(error))
            )
        except KafkaException as error:  # raised if the client has the topic's metadata already
            errors.append(error_name(error))
    assert producer.flush(PATIENCE_S) == 0
    assert sorted(errors) == ["-190", "UNKNOWN_TOPIC_OR_PARTITION"]


# ---- transactions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_committed_and_aborted_transactions_are_read_back(stage: ProducerStage, fresh: Fresh, compression: str) -> None:
    """0 1 [commit] 3 4 [abort] 6 [commit]: each marker takes an offset."""
    producer = stage.producer(transactional_id=fresh("id"), compression_type=compression)
    producer.init_transactions(PATIENCE_S)
    offsets = []
    for values, end in (
        ((b"0", b"1"), producer.commit_transaction),
        ((b"3", b"4"), producer.abort_transaction),
        ((b"6",), producer.commit_transaction),
    ):
        producer.begin_transaction()
        offsets += stage.send(producer, *values)
        end(PATIENCE_S)
    assert offsets == [0, 1, 3, 4, 6]
    assert stage.read(3) == [b"0", b"1", b"6"]
    assert stage.read(5, "read_uncommitted") == [b"0", b"1", b"3", b"4", b"6"]


def test_records_aborted_before_they_are_sent_have_an_error(stage: ProducerStage, fresh: Fresh) -> None:
    producer = stage.producer(transactional_id=fresh("id"), linger_ms=30_000)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    errors: list[str] = []
    producer.produce(stage.topic, b"lost", on_delivery=lambda error, _: errors.append(error_name(error)))
    producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(stage.topic, b"kept")
    producer.commit_transaction(PATIENCE_S)
    assert errors == ["-152"]
    assert stage.read(1) == [b"kept"]


def test_a_second_producer_fences_the_first(stage: ProducerStage, fresh: Fresh) -> None:
    name = fresh("id")
    first, second = stage.producer(transactional_id=name), stage.producer(transactional_id=name)
    first.init_transactions(PATIENCE_S)
    first.begin_transaction()
    stage.send(first, b"lost")
    second.init_transactions(PATIENCE_S)
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(PATIENCE_S)
    assert (fenced.value.args[0].name(), fenced.value.args[0].fatal()) == ("_FENCED", True)
    second.begin_transaction()
    stage.send(second, b"kept")
    second.commit_transaction(PATIENCE_S)
    assert stage.read(1) == [b"kept"]


def test_transaction_calls_out_of_order_are_refused(stage: ProducerStage, fresh: Fresh) -> None:
    producer = stage.producer(transactional_id=fresh("id"))
    assert raised(producer.begin_transaction) == "KafkaException -172"
    producer.init_transactions(PATIENCE_S)
    assert raised(producer.commit_transaction, 1) == "KafkaException -172"
    assert raised(producer.produce, stage.topic, b"x") == "KafkaException -172"
    assert raised(stage.producer().init_transactions, 1) == "KafkaException -145"
