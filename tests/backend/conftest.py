"""The releases of Apache Kafka that can be a backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq.kafka import LocalKafka
from tests.kafka.fixtures import kafka_or_skip


@pytest.fixture(scope="module")
def compacting_kafka() -> Iterator[LocalKafka]:
    """The Kafka of backends with the compacted topic: the state topic of the others has another cleanup policy. It ends
    with the module, because few use it."""
    with kafka_or_skip(1) as running:
        yield running


@pytest.fixture(scope="session", params=[None, "3.9.2", "4.3.1"], ids=["default", "3.9.2", "4.3.1"])
def backend(request: pytest.FixtureRequest) -> Iterator[LocalKafka]:
    """The default release, one without share groups, and 4.3; the tests of one run after each other."""
    if request.param is None:
        yield request.getfixturevalue("kafka")
        return
    with kafka_or_skip(1, version=request.param) as running:
        yield running
