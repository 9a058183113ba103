"""No record is lost if one of three brokers is killed while both clients consume, on shareq and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

from shareq import Cluster
from shareq.broker.backend.topics import IN_BACKEND
from shareq.kafka import LocalKafka
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, partition_for
from tests.kafka.fixtures import Reachable
from tests.pairings.stage import CLIENTS, Stage, until, values
from tests.polling import QUICK, take

CONFIG = QUICK | {"default.replication.factor": 3}
LOCKS = {"share_record_lock_duration_ms": 30_000}
"""Records acquired when a broker is killed can stay locked for this time; deliveries are not counted."""

PARTITIONS = 3
"""As many partitions as brokers, so that each broker leads one of every topic."""


class BrokersOfThree(Reachable, Protocol):
    """A cluster of three brokers, all alive before and after a test."""

    def kill_broker(self, broker_id: int) -> None: ...
    def start_broker(self, broker_id: int) -> None: ...


class ServedByThree:
    """`brokers`: the cluster whose brokers are killed and started."""

    def __init__(self, brokers: Cluster | LocalKafka, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.kill_broker, self.start_broker = brokers.kill_broker, brokers.start_broker


@pytest.fixture
def served_by_three() -> Iterator[ServedByThree]:
    with Cluster(brokers=3, clock="wall", seed=11, config=CONFIG) as cluster, cluster.serve() as server:
        yield ServedByThree(cluster, server.bootstrap_servers)


class BackedByThree(ServedByThree):
    pass


@pytest.fixture
def backed_by_three(kafka_of_three: LocalKafka) -> Iterator[BackedByThree]:
    with Cluster(backend=kafka_of_three.bootstrap_servers, config=QUICK) as cluster, cluster.serve() as server:
        yield BackedByThree(kafka_of_three, server.bootstrap_servers)


@pytest.fixture(
    params=["served_by_three", "backed_by_three", "kafka_of_three"], ids=["shareq", "shareq-on-kafka", "apache-kafka"]
)
def three(request: pytest.FixtureRequest) -> BrokersOfThree:
    found: BrokersOfThree = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("victim", ["leader", "group coordinator", "share coordinator"])
def test_clients_continue_after_a_broker_is_killed(
    three: BrokersOfThree, fresh: Callable[[str], str], victim: str
) -> None:
    with ExitStack() as stack:
        first, second = (Stage(client, three, fresh) for client in CLIENTS)
        for stage in (first, second):
            stack.enter_context(stage.stack)
            stage.create(PARTITIONS, **LOCKS)
        found = {first: start_consuming(first)}
        lost = broker(first, victim)
        while victim != "leader" and broker(second, victim) != lost:
            second.group = second.fresh("group")
        second.configure(**LOCKS)
        found[second] = start_consuming(second)
        three.kill_broker(lost)
        stack.callback(three.start_broker, lost)
        for stage, (consumer, messages) in found.items():
            continue_consuming(stage, consumer, messages)


def start_consuming(stage: Stage) -> tuple[Any, list[Any]]:
    """Consume a record of every partition; the consumer stays subscribed."""
    for partition in range(PARTITIONS):
        stage.write(f"before {partition}", partition=partition)
    consumer = stage.consumer(topic_metadata_refresh_interval_ms=200)
    found: list[Any] = take(consumer, PARTITIONS)
    consumer.commit_sync()
    return consumer, found


def continue_consuming(stage: Stage, consumer: Any, found: list[Any]) -> None:
    """Every record produced from now on is delivered, and in the end all are accepted."""
    for partition in range(PARTITIONS):
        stage.write(f"after {partition}", partition=partition)
    wanted = {f"{when} {partition}" for when in ("before", "after") for partition in range(PARTITIONS)}
    while not wanted <= set(values(found)):
        found += take(consumer, 1)
    until(lambda: stage.admin.lag(stage.group).total == 0, consumer)
    assert set(values(found)) == wanted


def broker(stage: Stage, what: str) -> int:
    """Id of the broker with this role for the stage."""
    topic = stage.admin.describe_topics([stage.topic]).check()[stage.topic]
    if what == "leader":
        return topic.partitions[0].leader
    key, topic_of_coordinator = {
        "group coordinator": (stage.group, GROUP_METADATA_TOPIC),
        "share coordinator": (f"{stage.group}:{topic.topic_id}:0", SHARE_STATE_TOPIC),
    }[what]
    name = IN_BACKEND[topic_of_coordinator] if isinstance(stage.broker, BackedByThree) else topic_of_coordinator
    partitions = stage.admin.describe_topics([name]).check()[name].partitions
    return partitions[partition_for(key, len(partitions))].leader
