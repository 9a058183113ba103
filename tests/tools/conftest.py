"""Java's tools, run on two brokers at the same time: shareq, with and without a backend, and Apache Kafka, with and
without a tap; their output must be equal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq.kafka import LocalKafka
from shareq.proxy import Tap, tap
from shareq.wire.server import Server
from tests.kafka.fixtures import Reachable
from tests.tools.java_tools import JavaTools, started
from tests.tools.side_by_side import SideBySide


@pytest.fixture(scope="session")
def java_tools() -> Iterator[JavaTools]:
    with started() as running:
        yield running


@pytest.fixture(scope="module")
def tapped_kafka(kafka: LocalKafka) -> Iterator[Tap]:
    with tap(kafka.bootstrap_servers) as made:
        yield made
        assert not made.failures


@pytest.fixture(params=["served", "backed", "tapped_kafka"], ids=["shareq", "shareq-on-kafka", "apache-kafka-tapped"])
def both(request: pytest.FixtureRequest, served: Server, java_tools: JavaTools) -> SideBySide:
    """A shareq cluster and Apache Kafka, one broker each, with equal configurations. A cluster with a backend, and a
    tap, have the topics of that Kafka, so they are compared with the cluster that the other tests compare with Kafka.
    """
    ours: Reachable = request.getfixturevalue(request.param)
    apache = request.getfixturevalue("kafka") if ours is served else served
    return SideBySide(ours.bootstrap_servers, apache.bootstrap_servers, java_tools)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Reachable:
    """A cluster of shareq, unless the test chooses another one: `ON_BOTH`."""
    found: Reachable = request.getfixturevalue(getattr(request, "param", "served"))
    return found
