"""Other libraries' clients of `shareq serve --backend` on each release of Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType

from shareq.jvm import find_java
from shareq.kafka import LocalKafka
from shareq.kafka.broker_process import KafkaCommand
from shareq.kafka.jars import kafka_jars
from tests.backend.java_consumer import JavaConsumer
from tests.backend.serving import Serving, Work, serving
from tests.polling import PATIENCE_S
from tests.proxy.members import java_client

pytestmark = pytest.mark.kafka

Fresh = Callable[[str], str]


@pytest.fixture(scope="module")
def process(backend: LocalKafka) -> Iterator[Serving]:
    with serving(backend.bootstrap_servers) as made:
        yield made


@pytest.fixture
def admin(process: Serving) -> AdminClient:
    return AdminClient({"bootstrap.servers": process.address})


@pytest.fixture
def topic(admin: AdminClient, fresh: Fresh) -> str:
    """A topic of one partition."""
    name = fresh("topic")
    (made,) = admin.create_topics([confluent_kafka.cimpl.NewTopic(name, 1, 1)]).values()
    made.result(PATIENCE_S)
    return name


def produce(process: Serving, topic: str, *values: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": process.address, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0


def read(consumer: confluent_kafka.Consumer, count: int) -> list[bytes | None]:
    """The values of the next records."""
    found = consumer.consume(count, PATIENCE_S)
    assert [message.error() for message in found] == [None] * count
    return [message.value() for message in found]


def test_members_of_java_and_of_confluent_share_the_records(
    backend: LocalKafka, process: Serving, fresh: Fresh
) -> None:
    with ExitStack() as stack:
        topic, group = fresh("topic"), fresh("group")
        libraries = (confluent_kafka,)
        work = Work(backend, process.address, topic, group, stack, partitions=2, libraries=libraries)
        java = stack.enter_context(java_client(KafkaCommand(find_java(), kafka_jars())))
        member = java.open("java", process.address, group, topic)
        consumer = JavaConsumer(member)
        work.add(consumer)
        with work.running():
            while not work.ledger.takers[consumer] or len(work.ledger.takers) < 2:
                work.produce(10, through=process.address)
                work.until_done()
        member.close()
        work.ledger.check()
        assert work.ledger.errors == []


def test_a_transaction_moves_records_of_a_consumer_group(process: Serving, topic: str, fresh: Fresh) -> None:
    """Offsets and copies of a transaction are committed together; those of an aborted one are not."""
    produce(process, topic, "a", "b")
    conf: dict[str, Any] = {"bootstrap.servers": process.address}
    options = {"group.id": fresh("group"), "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    with confluent_kafka.Consumer({**conf, **options}) as reader:
        reader.subscribe([topic])
        assert read(reader, 2) == [b"a", b"b"]
        producer = confluent_kafka.Producer({**conf, "transactional.id": fresh("id")})
        producer.init_transactions(PATIENCE_S)
        for value, end in (("aborted", producer.abort_transaction), ("copied", producer.commit_transaction)):
            producer.begin_transaction()
            producer.produce(topic, value)
            position = reader.position(reader.assignment())
            producer.send_offsets_to_transaction(position, reader.consumer_group_metadata(), PATIENCE_S)
            end(PATIENCE_S)
        (committed,) = reader.committed(reader.assignment(), PATIENCE_S)
        assert committed.offset == 2
        assert read(reader, 1) == [b"copied"]


def test_an_admin_client_sees_topics_configurations_and_groups(
    process: Serving, admin: AdminClient, topic: str, fresh: Fresh
) -> None:
    group = fresh("group")
    with confluent_kafka.Consumer({"bootstrap.servers": process.address, "group.id": group}) as consumer:
        place = confluent_kafka.TopicPartition(topic, 0, 2)
        produce(process, topic, "a", "b", "c")
        consumer.commit(offsets=[place], asynchronous=False)
    (found,) = admin.describe_topics(confluent_kafka.TopicCollection([topic])).values()
    (partition,) = found.result(PATIENCE_S).partitions
    assert f"{partition.leader.host}:{partition.leader.port}" == process.address
    assert topic in admin.list_topics(timeout=PATIENCE_S).topics
    (end,) = admin.list_offsets({confluent_kafka.TopicPartition(topic, 0): OffsetSpec.latest()}).values()
    assert end.result(PATIENCE_S).offset == 3
    (configs,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    assert configs.result(PATIENCE_S)["cleanup.policy"].value == "delete"
    assert group in {one.group_id for one in admin.list_consumer_groups().result(PATIENCE_S).valid}
    (described,) = admin.describe_consumer_groups([group]).values()
    assert described.result(PATIENCE_S).state is confluent_kafka.ConsumerGroupState.EMPTY
    (deleted,) = admin.delete_topics([topic]).values()
    deleted.result(PATIENCE_S)
    assert topic not in admin.list_topics(timeout=PATIENCE_S).topics
