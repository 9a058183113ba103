"""confluent-kafka's `Producer` on real sockets, read back by its `Consumer`: ours first, then Apache Kafka alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from tests.kafka.fixtures import Reachable
from tests.pairings.scene import dotted, raised, said
from tests.polling import PATIENCE_S, eventually

Fresh = Callable[[str], str]
COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]


class Bench:
    """One topic with one partition, and producers of it."""

    def __init__(self, servers: str, topic: str, **config: object) -> None:
        self.servers, self.topic = servers, topic
        settings = {key: str(value) for key, value in dotted(config).items()}
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(PATIENCE_S)
        # A plain producer's first batch is overtaken by its second where its leader is not ready yet.
        eventually(lambda: self._led(admin), True)

    def _led(self, admin: AdminClient) -> bool:
        asked = TopicPartition(self.topic, 0)
        try:
            admin.list_offsets({asked: OffsetSpec.latest()})[asked].result(PATIENCE_S)
        except KafkaException:
            return False
        return True

    def producer(self, **conf: object) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "linger.ms": 5, **dotted(conf)})

    def send(self, producer: Producer, *values: bytes) -> list[int | str | None]:
        """The offset of each, or the error."""
        told: list[int | str | None] = []

        def note(error: Any, message: Any) -> None:
            told.append(said(error) if error else message.offset())

        for value in values:
            producer.produce(self.topic, value, on_delivery=note)
        assert producer.flush(PATIENCE_S) == 0
        return told

    def read(self, count: int, isolation: str = "read_committed") -> list[bytes | None]:
        """The first records of the topic."""
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
def bench(broker: Reachable, fresh: Fresh) -> Bench:
    return Bench(broker.bootstrap_servers, fresh("topic"))


# ---- records ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_compression(bench: Bench, compression: str, idempotent: bool) -> None:
    wanted = [b"%d" % number * 50 for number in range(200)]
    producer = bench.producer(compression_type=compression, enable_idempotence=idempotent)
    assert bench.send(producer, *wanted) == list(range(200))
    assert bench.read(200) == wanted


@pytest.mark.parametrize("stored", COMPRESSIONS)
def test_a_topic_with_a_compression_of_its_own(broker: Reachable, fresh: Fresh, stored: str) -> None:
    bench = Bench(broker.bootstrap_servers, fresh("topic"), compression_type=stored.replace("none", "uncompressed"))
    for compression in COMPRESSIONS:
        bench.send(bench.producer(compression_type=compression), b"a" * 100, b"b" * 100)
    assert bench.read(10) == [b"a" * 100, b"b" * 100] * 5


@pytest.mark.parametrize(("acks", "offsets"), [("0", [None]), ("1", [1]), ("all", [1])], ids=["none", "one", "all"])
def test_acknowledgements(bench: Bench, acks: str, offsets: list[int | None]) -> None:
    """A leader that is not quite ready loses what nobody wants acknowledged: the first record shows that it is."""
    assert bench.send(bench.producer(), b"first") == [0]
    assert bench.send(bench.producer(acks=acks), b"a") == offsets
    assert bench.read(2) == [b"first", b"a"]


def test_an_idempotent_producer_keeps_the_order_of_many_requests(bench: Bench) -> None:
    producer = bench.producer(enable_idempotence=True, linger_ms=0, batch_num_messages=1)
    wanted = [b"%d" % number for number in range(300)]
    assert bench.send(producer, *wanted) == list(range(300))
    assert bench.read(300) == wanted


def test_the_time_of_a_record_is_the_brokers_where_the_topic_says_so(broker: Reachable, fresh: Fresh) -> None:
    bench = Bench(broker.bootstrap_servers, fresh("topic"), message_timestamp_type="LogAppendTime")
    told: list[tuple[int, int]] = []
    producer = bench.producer()
    producer.produce(
        bench.topic, b"a", timestamp=1, on_delivery=lambda error, message: told.append(message.timestamp())
    )
    assert producer.flush(PATIENCE_S) == 0
    ((kind, when),) = told
    assert (kind, when > 1) == (2, True)


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_a_record_that_is_too_large_for_the_topic(broker: Reachable, fresh: Fresh) -> None:
    bench = Bench(broker.bootstrap_servers, fresh("topic"), max_message_bytes=1000)
    assert bench.send(bench.producer(), b"x" * 2000) == ["MESSAGE_TOO_LARGE"]
    assert bench.send(bench.producer(), b"x" * 500) == [0]


def test_a_record_without_a_key_where_keys_are_needed(broker: Reachable, fresh: Fresh) -> None:
    bench = Bench(broker.bootstrap_servers, fresh("topic"), cleanup_policy="compact")
    assert bench.send(bench.producer(), b"x") == ["INVALID_RECORD"]


def test_a_record_that_is_too_old(broker: Reachable, fresh: Fresh) -> None:
    bench = Bench(broker.bootstrap_servers, fresh("topic"), message_timestamp_before_max_ms=1000)
    told: list[str] = []
    producer = bench.producer()
    producer.produce(bench.topic, b"x", timestamp=1, on_delivery=lambda error, _: told.append(said(error)))
    assert producer.flush(PATIENCE_S) == 0
    assert told == ["INVALID_TIMESTAMP"]


def test_a_topic_and_a_partition_that_are_not_there(broker: Reachable, bench: Bench, fresh: Fresh) -> None:
    told: list[str] = []
    producer = bench.producer(allow_auto_create_topics=False, topic_metadata_propagation_max_ms=300)
    for topic, partition in ((fresh("nowhere"), -1), (bench.topic, 7)):
        try:
            producer.produce(topic, b"x", partition=partition, on_delivery=lambda error, _: told.append(said(error)))
        except KafkaException as error:  # where the partitions of the topic are known already
            told.append(said(error))
    assert producer.flush(PATIENCE_S) == 0
    assert sorted(told) == ["-190", "UNKNOWN_TOPIC_OR_PARTITION"]


# ---- transactions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_transactions(bench: Bench, fresh: Fresh, compression: str) -> None:
    """0 1 [commit] 3 4 [abort] 6 [commit]: markers take offsets too."""
    producer = bench.producer(transactional_id=fresh("id"), compression_type=compression)
    producer.init_transactions(PATIENCE_S)
    offsets = []
    for values, end in (
        ((b"0", b"1"), producer.commit_transaction),
        ((b"3", b"4"), producer.abort_transaction),
        ((b"6",), producer.commit_transaction),
    ):
        producer.begin_transaction()
        offsets += bench.send(producer, *values)
        end(PATIENCE_S)
    assert offsets == [0, 1, 3, 4, 6]
    assert bench.read(3) == [b"0", b"1", b"6"]
    assert bench.read(5, "read_uncommitted") == [b"0", b"1", b"3", b"4", b"6"]


def test_what_is_aborted_before_it_was_sent_is_told(bench: Bench, fresh: Fresh) -> None:
    producer = bench.producer(transactional_id=fresh("id"), linger_ms=30_000)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    told: list[str] = []
    producer.produce(bench.topic, b"lost", on_delivery=lambda error, _: told.append(said(error)))
    producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(bench.topic, b"kept")
    producer.commit_transaction(PATIENCE_S)
    assert told == ["-152"]
    assert bench.read(1) == [b"kept"]


def test_a_successor_fences_its_predecessor(bench: Bench, fresh: Fresh) -> None:
    name = fresh("id")
    first, second = bench.producer(transactional_id=name), bench.producer(transactional_id=name)
    first.init_transactions(PATIENCE_S)
    first.begin_transaction()
    bench.send(first, b"lost")
    second.init_transactions(PATIENCE_S)
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(PATIENCE_S)
    assert (fenced.value.args[0].name(), fenced.value.args[0].fatal()) == ("_FENCED", True)
    second.begin_transaction()
    bench.send(second, b"kept")
    second.commit_transaction(PATIENCE_S)
    assert bench.read(1) == [b"kept"]


def test_calls_out_of_order(bench: Bench, fresh: Fresh) -> None:
    producer = bench.producer(transactional_id=fresh("id"))
    assert raised(producer.begin_transaction) == "KafkaException -172"
    producer.init_transactions(PATIENCE_S)
    assert raised(producer.commit_transaction, 1) == "KafkaException -172"
    assert raised(producer.produce, bench.topic, b"x") == "KafkaException -172"
    assert raised(bench.producer().init_transactions, 1) == "KafkaException -145"
