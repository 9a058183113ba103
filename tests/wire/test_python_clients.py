"""aiokafka and kafka-python, which speak older versions than librdkafka and Java's clients, on a served cluster."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import closing

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Place
from kafka.admin import NewTopic as Wanted

from shareq import Cluster
from tests.polling import PATIENCE_S

PATIENCE_MS = int(PATIENCE_S * 1000)
VALUES = [b"one", b"two", b"three"]

# A client of kafka-python that is closed while it connects leaves its socket to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """No later test finds what a client has left."""
    yield
    gc.collect()


@pytest.fixture
def address() -> Iterator[str]:
    config = {"group.initial.rebalance.delay.ms": 0}
    with Cluster(brokers=1, clock="wall", config=config) as cluster, cluster.serve() as server:
        yield server.bootstrap_servers


@pytest.mark.parametrize("compression", [None, "gzip", "zstd"])
def test_aiokafka_produces_and_consumes_in_a_group(address: str, compression: str | None) -> None:
    asyncio.run(_with_aiokafka(address, compression))


async def _with_aiokafka(address: str, compression: str | None) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        await admin.create_topics([NewTopic("orders", 1, 1)])
        async with AIOKafkaProducer(bootstrap_servers=address, compression_type=compression) as producer:
            sent = [await producer.send_and_wait("orders", value) for value in VALUES]
        assert [one.offset for one in sent] == [0, 1, 2]
        settings = {"bootstrap_servers": address, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with AIOKafkaConsumer("orders", group_id="g", **settings) as consumer:
            found = [(await consumer.getone()).value for _ in VALUES]
            await consumer.commit({TopicPartition("orders", 0): 2})
            assert await consumer.end_offsets([TopicPartition("orders", 0)]) == {TopicPartition("orders", 0): 3}
            (described,) = await admin.describe_consumer_groups(["g"])
            assert described.groups[0][2] == "Stable"
        assert found == VALUES
        async with AIOKafkaConsumer("orders", group_id="g", **settings) as consumer:
            assert (await consumer.getone()).value == VALUES[2]
        assert await admin.list_consumer_groups() == [("g", "consumer")]
        committed = await admin.list_consumer_group_offsets("g")
        assert committed[TopicPartition("orders", 0)].offset == 2
    finally:
        await admin.close()


def test_aiokafka_writes_transactions(address: str) -> None:
    asyncio.run(_in_transactions(address))


async def _in_transactions(address: str) -> None:
    place = TopicPartition("orders", 0)
    async with AIOKafkaProducer(bootstrap_servers=address, transactional_id="t") as producer:
        for value, kept in ((b"aborted", False), (b"kept", True)):
            await producer.begin_transaction()
            await producer.send_and_wait("orders", value, partition=0)
            await producer.send_offsets_to_transaction({place: int(kept) + 4}, "g")
            await (producer.commit_transaction() if kept else producer.abort_transaction())
    settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed", "group_id": "g"}
    async with AIOKafkaConsumer(bootstrap_servers=address, **settings) as consumer:
        consumer.assign([place])
        assert await consumer.committed(place) == 5
        consumer.seek(place, 0)
        assert (await consumer.getone()).value == b"kept"


def test_kafka_python_produces_and_consumes_in_a_group(address: str) -> None:
    place = Place("orders", 0)
    with closing(KafkaAdminClient(bootstrap_servers=address)) as admin:
        admin.create_topics([Wanted("orders", 1, 1)])
        with closing(KafkaProducer(bootstrap_servers=address)) as producer:
            sent = [producer.send("orders", value, partition=0).get(PATIENCE_S) for value in VALUES]
        assert [one.offset for one in sent] == [0, 1, 2]
        settings = {
            "bootstrap_servers": address,
            "group_id": "g",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "consumer_timeout_ms": PATIENCE_MS,
        }
        with closing(KafkaConsumer("orders", **settings)) as consumer:
            assert [next(consumer).value for _ in VALUES] == VALUES
            assert consumer.end_offsets([place]) == {place: 3}
            consumer.commit()
            assert consumer.committed(place) == 3
        assert "g" in str(admin.list_groups())
        assert "orders" in admin.list_topics()
