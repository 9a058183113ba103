"""A machine that slept, or whose clock was set after the start: timestamps follow the system's clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.log.records import decode_key_values
from shareq.model.errors import KafkaError
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from shareq.model.states import IsolationLevel
from tests.broker.system_clock import ahead
from tests.polling import PATIENCE_S, QUICK, take

__all__ = ["ahead"]

HOUR_MS = 3_600_000
GROUPS = (("classic", "classic", "orders"), ("names", "consumer", "orders"), ("expression", "consumer", "^o.*"))
"""Group id, protocol and subscription."""


@pytest.fixture(params=["in process", "TCP"])
def cluster_and_address(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, dict[str, str]]]:
    with Cluster(brokers=1, clock="wall", journal=False, config=QUICK) as cluster, cluster.serve() as server:
        servers = server.bootstrap_servers if request.param == "TCP" else cluster.bootstrap_servers
        yield cluster, {"bootstrap.servers": servers}


def test_records_have_the_time_of_day(
    ahead: Callable[[int], None], cluster_and_address: tuple[Cluster, dict[str, str]]
) -> None:
    cluster, address = cluster_and_address
    for topic, kind in (("created", "CreateTime"), ("appended", "LogAppendTime")):
        cluster.create_topic(topic, partitions=1, configs={"message.timestamp.type": kind})
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
    reports: list[tuple[KafkaError | None, int]] = []
    with Producer(address) as producer:
        ahead(2 * HOUR_MS)
        now_ms = time.time_ns() // 1_000_000
        for topic, timestamp in (("created", 0), ("created", now_ms), ("appended", 0)):
            producer.produce(
                topic, b"", timestamp=timestamp, on_delivery=lambda error, m: reports.append((error, m.timestamp()[1]))
            )
        producer.flush()
    assert [error for error, _ in reports] == [None] * 3
    times = [at for _, at in reports]
    with ShareConsumer({**address, "group.id": "g"}) as consumer:
        consumer.subscribe(["created", "appended"])
        while len(times) < 6:
            times += [message.timestamp()[1] for message in consumer.poll(10)]
    assert all(abs(at - now_ms) < HOUR_MS for at in times)


def test_a_group_begins_by_duration_at_the_time_of_day(
    ahead: Callable[[int], None], cluster_and_address: tuple[Cluster, dict[str, str]]
) -> None:
    cluster, address = cluster_and_address
    cluster.create_topic("t", partitions=1)
    cluster.configure_group("g", {"share.auto.offset.reset": "by_duration:PT1H"})
    ahead(2 * HOUR_MS)
    with Producer(address) as producer:
        for minutes in (150, 90, 30):
            producer.produce("t", str(minutes), timestamp=time.time_ns() // 1_000_000 - minutes * 60_000)
        producer.flush()
    with ShareConsumer({**address, "group.id": "g"}) as consumer:
        consumer.subscribe(["t"])
        while not (messages := consumer.poll(10)):
            pass
    assert [message.value() for message in messages] == [b"30"]


@pytest.fixture
def worked(ahead: Callable[[int], None]) -> Iterator[Cluster]:
    """A cluster whose clients have worked two hours later by the system's clock: a share group, groups of both
    protocols, one with an expression, and a transaction."""
    config: dict[str, object] = {
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.heartbeat.interval.ms": 200,
        **QUICK,
    }
    with Cluster(brokers=1, clock="wall", config=config) as cluster, cluster.serve() as server:
        conf: dict[str, Any] = {"bootstrap.servers": server.bootstrap_servers}
        cluster.create_topic("orders", partitions=1)
        cluster.configure_group("crew", {"share.auto.offset.reset": "earliest"})
        ahead(2 * HOUR_MS)
        producer = confluent_kafka.Producer({**conf, "transactional.id": "t"})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("orders", b"one")
        producer.commit_transaction(PATIENCE_S)
        for group_id, protocol, wanted in (
            ("a", "classic", "orders"),
            ("b", "consumer", "orders"),
            ("c", "consumer", "^o.*"),
        ):
            group = {"group.id": group_id, "group.protocol": protocol}
            consumer = confluent_kafka.Consumer({**conf, **group, "auto.offset.reset": "earliest"})
            consumer.subscribe([wanted])
            assert consumer.consume(1, PATIENCE_S)[0].error() is None
            consumer.commit(asynchronous=False)
            consumer.close()
        with ShareConsumer({**conf, "group.id": "crew"}) as member:
            member.subscribe(["orders"])
            take(member, 1)
            assert set(member.commit_sync().values()) == {None}
        yield cluster


def numbers(cluster: Cluster, topic: str) -> Iterator[int]:
    """Each number of eight bytes that the records of a coordinator may have."""
    for partition in range(len(cluster.image.topics[topic].partitions)):
        log = cluster.log(topic, partition)
        for batch in log.read(0, max_bytes=1 << 20, isolation=IsolationLevel.READ_UNCOMMITTED).batches:
            for _, _, value in decode_key_values(batch):
                for at in range(len(value or b"") - 7):
                    yield int.from_bytes((value or b"")[at : at + 8], "big")


def test_coordinators_record_the_time_of_day(worked: Cluster) -> None:
    day_ms = worked.now_ms + 2 * HOUR_MS
    for topic in (GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC):
        found = [number for number in numbers(worked, topic) if abs(number - day_ms) < 3 * HOUR_MS]
        assert found
        assert [number for number in found if abs(number - day_ms) > HOUR_MS] == []
