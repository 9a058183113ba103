"""A local Kafka of each supported release starts and keeps records; those before 4.1 have no share groups."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

from shareq import ShareConsumer
from shareq.kafka import LocalKafka
from shareq.model.errors import KafkaException
from shareq.proxy.ports import brokers_of
from tests.kafka.fixtures import START_S
from tests.kafka.test_local import create
from tests.polling import PATIENCE_S

GROUP = {"group.id": "g", "auto.offset.reset": "earliest"}


@pytest.mark.kafka
@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_a_chosen_version_runs(version: str) -> None:
    with LocalKafka(version=version, timeout=START_S) as kafka:
        address = kafka.bootstrap_servers
        assert kafka.version == version
        assert f"Kafka version: {version}" in kafka.tail(10_000)
        create(address, "orders")
        producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
        producer.produce("orders", "one")
        assert producer.flush(PATIENCE_S) == 0
        consumer = Consumer({"bootstrap.servers": address, **GROUP})
        consumer.subscribe(["orders"])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.value() == b"one"
        consumer.close()


@pytest.mark.kafka
def test_a_kafka_without_share_groups_refuses_share_consumers() -> None:
    with LocalKafka(version="3.9.2", timeout=START_S) as kafka:
        create(kafka.bootstrap_servers, "orders")
        with ShareConsumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g"}) as consumer:
            consumer.subscribe(["orders"])
            with pytest.raises(KafkaException, match=r"share groups|UNSUPPORTED_VERSION"):
                consumer.poll(PATIENCE_S)


@pytest.mark.kafka
@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_a_chosen_version_runs_on_three_brokers(version: str) -> None:
    with LocalKafka(3, version=version, timeout=START_S) as kafka:
        for address in kafka.bootstrap_servers.split(","):
            assert sorted(brokers_of(address)) == [0, 1, 2]
        create(kafka.bootstrap_servers, "orders", replicas=3)
        assert kafka.brokers_alive == (0, 1, 2)
