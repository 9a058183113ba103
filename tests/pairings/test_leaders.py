"""Leaders that change while both clients consume: a cluster of ours with three brokers, of which one dies.

What a broker of Apache Kafka does meanwhile is not compared here: it would need three of them. That both clients come
through is what counts, and that they see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq import Cluster
from shareq.wire.server import Server
from tests.pairings.scene import CLIENTS, Scene, until, values
from tests.polling import take

CONFIG = {"group.share.min.heartbeat.interval.ms": 100, "default.replication.factor": 3}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, clock="wall", seed=11, config=CONFIG) as made:
        yield made


@pytest.fixture
def server(cluster: Cluster) -> Iterator[Server]:
    with Server(cluster) as made:
        yield made


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("victim", ["leader", "group coordinator", "share coordinator"])
def test_a_broker_dies(cluster: Cluster, server: Server, fresh: Callable[[str], str], client: str, victim: str) -> None:
    scene = Scene(client, server, fresh)
    with scene.stack:
        scene.create(partitions=3)
        for partition in range(3):
            scene.write(f"before {partition}", partition=partition)
        consumer = scene.consumer(topic_metadata_refresh_interval_ms=200)
        found: list[Any] = take(consumer, 3)
        consumer.commit_sync()
        cluster.kill_broker(_broker(cluster, scene, victim))
        for partition in range(3):
            scene.write(f"after {partition}", partition=partition)
        wanted = {f"{when} {partition}" for when in ("before", "after") for partition in range(3)}
        while not wanted <= set(values(found)):
            found += take(consumer, 1)
        consumer.commit_sync()
        until(lambda: scene.admin.lag(scene.group).total == 0, consumer)
        assert set(values(found)) == wanted


def _broker(cluster: Cluster, scene: Scene, what: str) -> int:
    """Which one dies."""
    if what == "leader":
        return cluster.image.topics[scene.topic].partitions[0].leader
    key, topic = {
        "group coordinator": (scene.group, "__consumer_offsets"),
        "share coordinator": (f"{scene.group}:{cluster.image.topics[scene.topic].topic_id}:0", "__share_group_state"),
    }[what]
    found = cluster.image.coordinator(topic, key)
    assert found is not None
    return found.broker_id
