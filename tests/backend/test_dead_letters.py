"""Dead letters of processes on one Apache Kafka. `shareq/broker/BEHAVIOUR.md`, section 2.15."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import confluent_kafka
import pytest

from shareq import Admin, Cluster
from shareq.broker.backend.processes import NODES
from shareq.kafka import LocalKafka
from shareq.log.records import decode
from shareq.model.errors import Errors
from shareq.model.messages.data import ProduceRequest
from shareq.model.states import AcknowledgeType
from tests.backend.stage import Stage, finish
from tests.pairings.dead_letters import ENABLED, NAME
from tests.polling import PATIENCE_S, eventually, take
from tests.wire.raw import Raw

BY_NAME = 9
"""A version of Produce that all releases have; it names topics."""


@pytest.fixture
def stage(backend: LocalKafka, fresh: Callable[[str], str]) -> Iterator[Stage]:
    made = Stage(backend, fresh)
    with made.stack:
        yield made


class Rounds:
    """Produce requests to the queue that are held in a process, by the partition of their letters."""

    def __init__(self, cluster: Cluster, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cluster = cluster
        self._queue = queue
        self._deliver = cluster._runtime.network._hand_over
        self.held: dict[int, tuple[Any, ...]] = {}
        monkeypatch.setattr(cluster._runtime.network, "_hand_over", self._take)

    def _take(self, broker: Any, exchange_id: int, request: Any, client: Any) -> None:
        partition = source(self._data(request))[0] if isinstance(request, ProduceRequest) else -1
        if partition < 0 or partition in self.held:
            self._deliver(broker, exchange_id, request, client)
        else:
            self.held[partition] = (broker, exchange_id, request, client)

    @staticmethod
    def _data(request: ProduceRequest) -> bytes:
        return request.topics[0].partitions[0].records or b""

    def arrive(self, partition: int) -> None:
        self._cluster.loop.enter(lambda: self._deliver(*self.held[partition]))

    def arrive_late(self, partition: int, address: str) -> Errors:
        """The request reaches the backend although its process leads no more; the error in the response."""
        request: ProduceRequest = self.held[partition][2]
        named = replace(request, topics=(replace(request.topics[0], name=self._queue),))
        with Raw(int(address.rpartition(":")[2])) as raw:
            answered: Errors = raw.ask(named, BY_NAME).responses[0].partitions[0].error_code
        return answered


def source(data: bytes) -> tuple[int, int]:
    """Partition and offset of the first letter in a batch."""
    return place(next(iter(decode(data))).headers)


def place(headers: Any) -> tuple[int, int]:
    found = dict(headers)
    return int(found["__dlq.errors.partition"]), int(found["__dlq.errors.offset"])


def letters(stage: Stage, queue: str) -> list[tuple[int, int]]:
    """Source partition and offset of all records in the queue."""
    reader = confluent_kafka.Consumer({"bootstrap.servers": stage.kafka.bootstrap_servers, "group.id": "reader"})
    at = confluent_kafka.TopicPartition(queue, 0, 0)
    _, end = reader.get_watermark_offsets(at, PATIENCE_S)
    reader.assign([at])
    found = reader.consume(end, PATIENCE_S) if end else []
    reader.close()
    return [place(message.headers()) for message in found]


def enabled(stage: Stage) -> dict[str, str]:
    """The configurations of a queue. Older releases do not know the key, and need none."""
    with Admin({"bootstrap.servers": stage.kafka.bootstrap_servers}) as admin:
        known = admin.describe_configs("topic", stage.topic)
    return {key: value for key, value in ENABLED.items() if key in known}


@pytest.mark.kafka
def test_a_round_of_a_process_that_leads_no_more_is_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process begins to lead one of two partitions while the first one has a round of each under way."""
    first, queue = stage.prepared(2), f"dlq.{stage.topic}"
    first.serve()
    first.create_topic(queue, configs=enabled(stage))
    first.configure_group(stage.group, {NAME: queue})
    rounds = Rounds(first, queue, monkeypatch)
    producer = confluent_kafka.Producer({"bootstrap.servers": stage.kafka.bootstrap_servers})
    for partition in range(2):
        producer.produce(stage.topic, "a", partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    consumer = stage.consumer(first)
    finish(consumer, take(consumer, 2), AcknowledgeType.REJECT)
    eventually(lambda: sorted(rounds.held), [0, 1])
    second = stage.cluster()
    second.serve()
    eventually(lambda: [sorted(slots(cluster, stage.topic)) for cluster in (first, second)], [[0, 1], [0, 1]])
    moved = slots(second, stage.topic).index(1)

    def written() -> list[tuple[int, int]]:
        consumer.poll(0.1)  # its fetch lets the new leader load the share-partition
        return letters(stage, queue)

    eventually(written, [(moved, 0)])
    assert rounds.arrive_late(moved, stage.kafka.bootstrap_servers) is Errors.INVALID_PRODUCER_EPOCH
    rounds.arrive(1 - moved)
    eventually(written, [(moved, 0), (1 - moved, 0)])
    eventually(lambda: stage.lag(first), 0)


def slots(cluster: Cluster, topic: str) -> list[int]:
    """The slots of the processes that lead the partitions of a topic."""
    return [partition.leader // NODES for partition in cluster.image.topics[topic].partitions]
