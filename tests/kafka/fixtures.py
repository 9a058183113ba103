"""Brokers for tests with clients: `kafka` is Apache Kafka with one broker, `kafka_of_three` with three, `served` a
cluster of shareq, `backed` one on the topics of `kafka`, `broker` each of `served`, `backed` and `kafka`.
`share_client` is each kind of share consumer.

They live as long as the run (of a worker), so tests need unique names: the fixture `fresh` creates them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.persisters import CHOSEN
from tests.rings.processes import PART

if TYPE_CHECKING:
    from shareq import Cluster
    from shareq.kafka import LocalKafka
    from shareq.wire.server import Server
    from tests.proxy.members import Client, Java

START_S = 240
"""The time limit of a start of Kafka on a busy machine."""

_numbers = count(1)


class Reachable(Protocol):
    """The attribute of a broker that clients need."""

    @property
    def bootstrap_servers(self) -> str: ...


def kafka_or_skip(
    brokers: int, more: Mapping[str, object] = MappingProxyType({}), version: str | None = None
) -> LocalKafka:
    """A running local Kafka. If none can be started, the test is skipped with the reason; in a ring it fails."""
    from shareq.jvm import JavaNotFound
    from shareq.kafka import KafkaNotFound, LocalKafka

    # A broker that stalls for longer than its session is fenced and returns as a new leader without the locks and
    # deliveries of the old one. With three brokers a dead one must be detected soon; a single one need not be.
    config: dict[str, object] = {"broker.session.timeout.ms": 120_000} if brokers == 1 else {}
    config.update(more)
    try:
        return LocalKafka(brokers, config=config, version=version, timeout=START_S).start()
    except (JavaNotFound, KafkaNotFound) as reason:
        if PART in os.environ:
            raise
        pytest.skip(f"Apache Kafka is not available: {reason}")


@pytest.fixture(scope="session")
def kafka() -> Iterator[LocalKafka]:
    """Apache Kafka, one broker."""
    with kafka_or_skip(1) as running:
        yield running


@pytest.fixture(scope="session")
def kafka_of_three() -> Iterator[LocalKafka]:
    """Apache Kafka, three brokers. A test that ends a broker starts it again."""
    with kafka_or_skip(3) as running:
        yield running


@pytest.fixture(scope="session")
def served() -> Iterator[Server]:
    """A cluster of shareq, one broker on a wall clock, configured like `kafka`; `served.cluster` is the cluster. It has
    the first persister of SHAREQ_PERSISTERS."""
    from shareq import Cluster
    from shareq.wire.server import Server

    persister = CHOSEN[0] if CHOSEN else None
    shared: Any = {"clock": "wall", "config": shareq_config(), "persister": persister}
    with Cluster(brokers=1, **shared) as cluster, cluster.serve() as server:
        assert isinstance(server, Server)
        yield server


@dataclass(frozen=True)
class Backed:
    """Share groups of shareq on the topics of a Kafka."""

    cluster: Cluster
    kafka: LocalKafka
    bootstrap_servers: str


@pytest.fixture(scope="module")
def backed(kafka: LocalKafka) -> Iterator[Backed]:
    """A cluster of shareq on the topics of `kafka`; it ends with the module, because it has a thread."""
    from shareq import Cluster

    with Cluster(backend=kafka.bootstrap_servers, config=shareq_config()) as cluster, cluster.serve() as server:
        yield Backed(cluster, kafka, server.bootstrap_servers)


def shareq_config() -> dict[str, object]:
    """The configuration of `kafka`, as far as shareq's brokers have it."""
    from shareq.kafka.local import laptop_config
    from shareq.model.configs import BROKER_CONFIGS

    return {key: value for key, value in laptop_config(1).items() if key in BROKER_CONFIGS}


@pytest.fixture(params=["served", "backed", "kafka"], ids=["shareq", "shareq-on-kafka", "apache-kafka"])
def broker(request: pytest.FixtureRequest) -> Reachable:
    """shareq, shareq on the topics of an Apache Kafka, then Apache Kafka itself."""
    found: Reachable = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def java_members() -> Iterator[Java]:
    """A Java process with share consumers."""
    from shareq.jvm import find_java
    from shareq.kafka.broker_process import KafkaCommand
    from shareq.kafka.jars import kafka_jars
    from tests.proxy.members import java_client

    with java_client(KafkaCommand(find_java(), kafka_jars())) as made:
        yield made


@pytest.fixture(params=["shareq", "confluent", "java_members"], ids=["shareq", "confluent", "java"])
def share_client(request: pytest.FixtureRequest) -> Client:
    """The share consumers of shareq, of confluent-kafka, then of Java."""
    from tests.proxy.members import Confluent, Shareq

    if request.param == "java_members":
        made: Client = request.getfixturevalue(request.param)
        return made
    return Shareq() if request.param == "shareq" else Confluent()


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """`fresh("orders")` is a unique name of a topic or a group."""
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-")[:80]
    return lambda what: f"{what}-{test}-{next(_numbers)}"
