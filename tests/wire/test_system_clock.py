"""A machine that slept, or whose clock was set after the start: timestamps follow the system's clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.model.errors import KafkaError
from tests.broker.system_clock import ahead

__all__ = ["ahead"]

HOUR_MS = 3_600_000


@pytest.fixture(params=["in process", "TCP"])
def cluster_and_address(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, dict[str, str]]]:
    with Cluster(brokers=1, clock="wall", journal=False) as cluster, cluster.serve() as server:
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
