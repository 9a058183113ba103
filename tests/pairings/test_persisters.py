"""shareq's and confluent-kafka's clients on a cluster of shareq with each persister; and an ordinary consumer, which
reads a log with control records. `SHAREQ_PERSISTERS=control-records` runs the other pairings with that persister."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from shareq import AcknowledgeType, Cluster
from tests.kafka.fixtures import Reachable, shareq_config
from tests.pairings.stage import CLIENTS, Fresh, Stage, observe, seen
from tests.persisters import KEEPING
from tests.polling import PATIENCE_S, take


@pytest.fixture(params=KEEPING)
def serve(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, Reachable]]:
    made = Cluster(brokers=1, clock="wall", config=shareq_config(), persister=request.param)
    with made as cluster, cluster.serve() as server:
        yield cluster, server


def work_in_two_lives(stage: Stage) -> Any:
    """Accept, release and reject; then the rest, by another consumer, and a second group from the beginning."""
    stage.create()
    stage.write("a", "b", "c", "d")
    consumer = stage.explicit()
    for message, verdict in zip(take(consumer, 4), ("ACCEPT", "RELEASE", "REJECT", "RELEASE"), strict=True):
        consumer.acknowledge(message, getattr(AcknowledgeType, verdict))
        consumer.commit_sync()
    consumer.close()
    stage.write("e")
    again = stage.explicit()
    rest = take(again, 3)
    for message in rest:
        again.acknowledge(message)
    again.commit_sync()
    lag = stage.admin.lag(stage.group).total
    stage.group = stage.fresh("other")
    stage.configure()
    return seen(rest), lag, [m.value() for m in take(stage.consumer(), 5)], read_all(stage)


def read_all(stage: Stage) -> list[list[bytes | None]]:
    """What an ordinary consumer gets, uncommitted and committed."""
    found = []
    for isolation in ("read_uncommitted", "read_committed"):
        conf = {"bootstrap.servers": stage.address, "group.id": stage.fresh("reader"), "isolation.level": isolation}
        reader = confluent_kafka.Consumer({**conf, "auto.offset.reset": "earliest"})
        reader.assign([confluent_kafka.TopicPartition(stage.topic, 0, 0)])
        found.append([message.value() for message in reader.consume(5, PATIENCE_S)])
        reader.close()
    return found


def test_both_clients_work_with_each_persister(serve: tuple[Cluster, Reachable], fresh: Fresh) -> None:
    cluster, server = serve
    values = [b"a", b"b", b"c", b"d", b"e"]
    expected = [("b", 2), ("d", 2), ("e", 1)], 0, values, [values, values]
    assert observe(work_in_two_lives, server, fresh) == {"shareq": expected, "confluent": expected}
    topics = [name for name in cluster.image.topics if name.startswith("topic-")]
    hidden = [len(cluster.log(name, 0).hidden) for name in topics]
    assert len(hidden) == len(CLIENTS)
    assert all(hidden) == ("control-records" in repr(cluster))
