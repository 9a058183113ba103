"""The worked examples of dead-letter queues in which letters wait, on three brokers of shareq, and of Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from shareq import Cluster
from shareq.kafka import LocalKafka
from tests.pairings.dead_letters_of_three import OF_QUEUE, OF_THREE, WaitingStage
from tests.polling import QUICK


@pytest.fixture
def served_by_three(fresh: Callable[[str], str]) -> Iterator[WaitingStage]:
    config = QUICK | {"default.replication.factor": 3}
    with Cluster(brokers=3, clock="wall", seed=11, config=config) as cluster, cluster.serve() as server:
        made = WaitingStage(server.bootstrap_servers, fresh, unavailable="wait")
        made.brokers = cluster
        with made.stack:
            yield made


@pytest.fixture
def kafka_with_three(kafka_of_three: LocalKafka, fresh: Callable[[str], str]) -> Iterator[WaitingStage]:
    made = WaitingStage(kafka_of_three.bootstrap_servers, fresh, unavailable=None)
    made.brokers = kafka_of_three
    with made.stack:
        yield made
    if OF_QUEUE not in kafka_of_three.brokers_alive:
        kafka_of_three.start_broker(OF_QUEUE)


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("served_by_three", id="shareq"),
        pytest.param("kafka_with_three", id="apache-kafka", marks=pytest.mark.kafka),
    ],
)
@pytest.mark.parametrize("name", OF_THREE)
def test_examples_in_which_letters_wait(request: pytest.FixtureRequest, stage: str, name: str) -> None:
    body, expected = OF_THREE[name]
    assert body(request.getfixturevalue(stage)) == expected
