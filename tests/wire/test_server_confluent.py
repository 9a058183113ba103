"""confluent-kafka's clients with a served cluster: create, configure, produce, consume, and the loss of a broker."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from confluent_kafka import Producer, ShareConsumer

from shareq import Cluster
from shareq.wire.server import Server
from tests.polling import PATIENCE_S, QUICK
from tests.wire.raw import quiet_ports

admin: Any = import_module("confluent_kafka.admin")  # its stubs do not declare what it exports


QUIET = {"log_level": 0, "logger": logging.getLogger("confluent")}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    config = QUICK | {"group.share.record.lock.duration.ms": 60_000}  # records are counted: no lock may expire
    with Cluster(brokers=3, clock="wall", seed=7, config=config) as made:
        yield made


@pytest.fixture
def server(cluster: Cluster) -> Iterator[Server]:
    with Server(cluster) as made:
        yield made
        assert list(made.failures) == []


def config(server: Server, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": server.bootstrap_servers, **QUIET, **{k.replace("_", "."): v for k, v in more.items()}}


def prepare(server: Server, topic: str, group_id: str, partitions: int = 3) -> None:
    """Create a topic, and configure the group to start at its beginning, through confluent-kafka's admin client."""
    client = admin.AdminClient(config(server))
    for created in client.create_topics([admin.NewTopic(topic, partitions)]).values():
        created.result(PATIENCE_S)
    entry = admin.ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=admin.AlterConfigOpType.SET)
    resource = admin.ConfigResource(admin.ResourceType.GROUP, group_id, incremental_configs=[entry])
    for altered in client.incremental_alter_configs([resource]).values():
        altered.result(PATIENCE_S)


def send(server: Server, topic: str, values: set[bytes]) -> None:
    producer = Producer(config(server))
    refused: list[object] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: refused.append(error) if error else None)
    assert producer.flush(PATIENCE_S) == 0
    assert refused == []


def take(consumer: Any, count: int) -> list[bytes]:
    """Poll until at least `count` records are received; their values."""
    values: list[bytes] = []
    while len(values) < count:
        for message in consumer.poll(PATIENCE_S):
            assert message.error() is None, message.error()
            values.append(message.value())
    return values


def test_a_share_group_receives_all_records(cluster: Cluster, server: Server) -> None:
    prepare(server, "orders", "payments")
    sent = {b"%d" % number for number in range(1000)}
    send(server, "orders", sent)
    assert sum(cluster.log("orders", p).log_end_offset for p in range(3)) == 1000
    consumer = ShareConsumer(config(server, group_id="payments"))
    consumer.subscribe(["orders"])
    got = take(consumer, len(sent))
    consumer.close()
    assert sorted(got) == sorted(sent)


def test_a_client_survives_a_killed_broker(cluster: Cluster, server: Server) -> None:
    prepare(server, "orders", "payments")
    first, second = {b"%d" % n for n in range(300)}, {b"%d" % n for n in range(300, 600)}
    send(server, "orders", first)
    consumer = ShareConsumer(config(server, group_id="payments"))
    consumer.subscribe(["orders"])
    got = take(consumer, len(first))
    victim = cluster.image.topics["orders"].partitions[0].leader
    cluster.kill_broker(victim)
    send(server, "orders", second)
    while not second <= set(got):
        got += take(consumer, 1)
    consumer.close()
    assert set(got) == first | second


def test_a_consumer_survives_the_restart_of_a_server_in_memory() -> None:
    """The group and the topic are gone: the member joins again, and gets what is produced from then on."""
    ports = quiet_ports(1)
    consumer: Any = None
    for values in ({b"before"}, {b"after"}):
        with Cluster(brokers=1, clock="wall", seed=7, config=QUICK) as cluster, Server(cluster, ports=ports) as server:
            prepare(server, "orders", "payments", partitions=1)
            if consumer is None:
                consumer = ShareConsumer(config(server, group_id="payments"))
                consumer.subscribe(["orders"])
            send(server, "orders", values)
            assert set(take(consumer, 1)) == values
    consumer.close()
