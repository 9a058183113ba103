"""Kafka's metrics that follow from no event, of a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import confluent_kafka
import pytest

from shareq import Cluster, ShareConsumer, metrics
from shareq.trace.analysis.metrics import ALL_LEFT_OUT, LEFT_OUT
from tests.polling import QUICK, eventually

PARTITIONS = 2


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, clock="wall", config=QUICK) as made, made.serve():
        made.create_topic("t", PARTITIONS)
        yield made


def value(cluster: Cluster, name: str, **tags: str) -> float:
    return metrics(cluster).value(name, **tags)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_and_offsets_are_counted(cluster: Cluster, protocol: str) -> None:
    assert cluster._server is not None
    conf: dict[str, Any] = {"bootstrap.servers": cluster._server.bootstrap_servers, "group.id": "g"}
    settings = {**conf, "group.protocol": protocol, "enable.auto.commit": False}
    # Closed in any case: left to the collector, it would be destroyed in a thread for which it waits.
    with closing(confluent_kafka.Consumer(settings)) as member:
        member.subscribe(["t"])

        def assigned() -> int:
            member.poll(0.1)
            return len(member.assignment())

        eventually(assigned, PARTITIONS)  # so that the member knows its epoch
        eventually(partial(value, cluster, f"{protocol}-group-count", state="Stable"), 1)
        assert value(cluster, "group-count", protocol=protocol) == 1
        assert value(cluster, "group-count", protocol="share") == 0
        assert value(cluster, "offset-count") == 0
        offsets = [confluent_kafka.TopicPartition("t", index, 0) for index in range(PARTITIONS)]
        member.commit(offsets=offsets, asynchronous=False)
        assert value(cluster, "offset-count") == PARTITIONS
    eventually(partial(value, cluster, f"{protocol}-group-count", state="Empty"), 1)


def test_partitions_of_sessions_and_waiting_fetches_are_counted(cluster: Cluster) -> None:
    assert cluster._server is not None
    names = {"SharePartitionsCount": {}, "NumDelayedOperations": {"delayedOperation": "ShareFetch"}}
    assert [value(cluster, name, **tags) for name, tags in names.items()] == [0, 0]
    with ShareConsumer({"bootstrap.servers": cluster._server.bootstrap_servers, "group.id": "g"}) as member:
        member.subscribe(["t"])

        def found() -> list[float]:
            member.poll(0.1)
            return [value(cluster, name, **tags) for name, tags in names.items()]

        eventually(found, [PARTITIONS, 2])  # a fetch at each of the two leaders
    eventually(partial(value, cluster, "SharePartitionsCount"), 0)


def test_what_follows_from_no_event_is_not_known_of_the_past() -> None:
    with Cluster(brokers=1) as cluster:
        now, then = metrics(cluster), metrics(cluster, until=cluster.journal.total)
        assert (now.left_out, then.left_out) == (LEFT_OUT, ALL_LEFT_OUT)
        assert "offset-count" in {metric.name for metric in now.keys() - then.keys()}
    assert metrics(cluster).left_out == ALL_LEFT_OUT
