"""Brokers to point clients at: `kafka` is Apache Kafka, `kafka_of_three` one of three brokers, `served` a cluster of
ours, `broker` ours and then Apache's.

They live as long as the run (of a worker), so tests take names of their own: the fixture `fresh` makes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from shareq.kafka import LocalKafka
    from shareq.wire.server import Server

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

START_S = 240
"""How long a busy machine may take to start a Kafka."""

_numbers = count(1)


class Reachable(Protocol):
    """What a client needs to know of a broker."""

    @property
    def bootstrap_servers(self) -> str: ...


def kafka_or_skip(brokers: int, more: Mapping[str, object] = MappingProxyType({})) -> LocalKafka:
    """A local Kafka that runs. Where there is none to be had, tests are left out in plain words, but never in CI."""
    from shareq.jvm import JavaNotFound
    from shareq.kafka import KafkaNotFound, LocalKafka

    # A broker that stalls for longer than its session is fenced and comes back as a new leader, which knows nothing of
    # the locks and deliveries of the old one. Of three one must be missed soon when it dies; one alone need not be.
    config: dict[str, object] = {"broker.session.timeout.ms": 120_000} if brokers == 1 else {}
    config.update(more)
    try:
        return LocalKafka(brokers, config=config, timeout=START_S).start()
    except (JavaNotFound, KafkaNotFound) as reason:
        if IN_CI:
            raise
        pytest.skip(f"left out, Apache Kafka is not to be had here: {reason}")


@pytest.fixture(scope="session")
def kafka() -> Iterator[LocalKafka]:
    """Apache Kafka, one broker."""
    with kafka_or_skip(1) as running:
        yield running


@pytest.fixture(scope="session")
def kafka_of_three() -> Iterator[LocalKafka]:
    """Apache Kafka, three brokers. Who ends one starts it again."""
    with kafka_or_skip(3) as running:
        yield running


@pytest.fixture(scope="session")
def served() -> Iterator[Server]:
    """A cluster of ours, one broker on a wall clock, configured like `kafka`; `served.cluster` is what is served."""
    from shareq import Cluster
    from shareq.kafka.local import laptop_config
    from shareq.model.configs import BROKER_CONFIGS
    from shareq.wire.server import Server

    config = {key: value for key, value in laptop_config(1).items() if key in BROKER_CONFIGS}
    with Cluster(brokers=1, clock="wall", config=config) as cluster, cluster.serve() as server:
        assert isinstance(server, Server)
        yield server


@pytest.fixture(params=["served", "kafka"], ids=["shareq", "apache-kafka"])
def broker(request: pytest.FixtureRequest) -> Reachable:
    """First ours, then Apache Kafka."""
    found: Reachable = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """`fresh("orders")` is a name that no other test has for a topic or a group."""
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-")[:80]
    return lambda what: f"{what}-{test}-{next(_numbers)}"
