"""Java's tools, run on a shareq cluster and on Apache Kafka at the same time; their output must be equal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq.kafka import LocalKafka
from shareq.wire.server import Server
from tests.tools.java_tools import JavaTools, started
from tests.tools.side_by_side import SideBySide


@pytest.fixture(scope="session")
def java_tools() -> Iterator[JavaTools]:
    with started() as running:
        yield running


@pytest.fixture
def both(served: Server, kafka: LocalKafka, java_tools: JavaTools) -> SideBySide:
    """A shareq cluster and Apache Kafka, one broker each, with equal configurations."""
    return SideBySide(served.bootstrap_servers, kafka.bootstrap_servers, java_tools)
