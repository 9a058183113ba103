"""A broker of three dies while both clients consume, on a cluster of ours and on Apache Kafka: all come through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

from shareq import Cluster
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, partition_for
from tests.kafka.fixtures import Reachable
from tests.pairings.scene import CLIENTS, Scene, until, values
from tests.polling import QUICK, take

CONFIG = QUICK | {"default.replication.factor": 3}
LOCKS = {"share_record_lock_duration_ms": 30_000}
"""What is in hand when a broker dies may be lost to all for so long; how often a record comes is not counted."""

PARTITIONS = 3
"""As many as brokers: each leads one of every topic."""


class Three(Reachable, Protocol):
    """A cluster of three brokers, all alive before and after a test."""

    def kill_broker(self, broker_id: int) -> None: ...
    def start_broker(self, broker_id: int) -> None: ...


class Ours:
    def __init__(self, cluster: Cluster, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.kill_broker, self.start_broker = cluster.kill_broker, cluster.start_broker


@pytest.fixture
def served_by_three() -> Iterator[Ours]:
    with Cluster(brokers=3, clock="wall", seed=11, config=CONFIG) as cluster, cluster.serve() as server:
        yield Ours(cluster, server.bootstrap_servers)


@pytest.fixture(params=["served_by_three", "kafka_of_three"], ids=["shareq", "apache-kafka"])
def three(request: pytest.FixtureRequest) -> Three:
    found: Three = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("victim", ["leader", "group coordinator", "share coordinator"])
def test_a_broker_dies(three: Three, fresh: Callable[[str], str], victim: str) -> None:
    with ExitStack() as stack:
        first, second = (Scene(client, three, fresh) for client in CLIENTS)
        for scene in (first, second):
            stack.enter_context(scene.stack)
            scene.create(PARTITIONS, **LOCKS)
        found = {first: begin(first)}
        lost = broker(first, victim)
        while victim != "leader" and broker(second, victim) != lost:
            second.group = second.fresh("group")
        second.configure(**LOCKS)
        found[second] = begin(second)
        three.kill_broker(lost)
        stack.callback(three.start_broker, lost)
        for scene, (consumer, messages) in found.items():
            go_on(scene, consumer, messages)


def begin(scene: Scene) -> tuple[Any, list[Any]]:
    """Consume a record of every partition, and go on consuming."""
    for partition in range(PARTITIONS):
        scene.write(f"before {partition}", partition=partition)
    consumer = scene.consumer(topic_metadata_refresh_interval_ms=200)
    found: list[Any] = take(consumer, PARTITIONS)
    consumer.commit_sync()
    return consumer, found


def go_on(scene: Scene, consumer: Any, found: list[Any]) -> None:
    """Whatever the client meets, all that is written comes, and in the end all of it is accepted."""
    for partition in range(PARTITIONS):
        scene.write(f"after {partition}", partition=partition)
    wanted = {f"{when} {partition}" for when in ("before", "after") for partition in range(PARTITIONS)}
    while not wanted <= set(values(found)):
        found += take(consumer, 1)
    until(lambda: scene.admin.lag(scene.group).total == 0, consumer)
    assert set(values(found)) == wanted


def broker(scene: Scene, what: str) -> int:
    """Which broker of a scene it is."""
    topic = scene.admin.describe_topics([scene.topic]).check()[scene.topic]
    if what == "leader":
        return topic.partitions[0].leader
    key, kept = {
        "group coordinator": (scene.group, GROUP_METADATA_TOPIC),
        "share coordinator": (f"{scene.group}:{topic.topic_id}:0", SHARE_STATE_TOPIC),
    }[what]
    partitions = scene.admin.describe_topics([kept]).check()[kept].partitions
    return partitions[partition_for(key, len(partitions))].leader
