"""A dead-letter queue that the process on a backend creates. In a module of its own: a second process on this Kafka,
with other configurations, would lead some of the share-partitions."""

from __future__ import annotations

from collections.abc import Callable

from shareq import Cluster
from shareq.kafka import LocalKafka
from tests.kafka.fixtures import shareq_config
from tests.pairings.dead_letters import AUTO_CREATE, REJECT, DeadLetterStage, Letter


def test_a_queue_is_created_on_a_backend(kafka: LocalKafka, fresh: Callable[[str], str]) -> None:
    """Brokers' configurations are those of the process here, not of the backend."""
    config = {AUTO_CREATE: True, **shareq_config()}
    with Cluster(backend=kafka.bootstrap_servers, config=config) as cluster, cluster.serve() as server:
        stage = DeadLetterStage(server.bootstrap_servers, fresh, unavailable="wait")
        with stage.stack:
            stage.create(queue=None)
            stage.write("a")
            stage.take(1)
            stage.acknowledge(REJECT, 0)
            stage.until_lag(0)
            assert stage.letters() == [Letter(0, 1)]
