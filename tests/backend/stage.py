"""The test environment of a cluster on the topics of an Apache Kafka."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import confluent_kafka

from shareq import Admin, Cluster, ShareConsumer
from shareq.broker.backend.node import BackendNode
from shareq.broker.loop import VirtualLoop
from shareq.kafka import LocalKafka
from shareq.model.configs import BrokerConfig
from shareq.model.states import AcknowledgeType
from tests.polling import PATIENCE_S, QUICK

CONFIG = {**QUICK, "group.share.max.record.lock.duration.ms": 3_600_000}
GROUP = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 600_000}


def backend_node(
    broker_id: int, client: Any, services: Any, network: Any, loop: VirtualLoop, **more: Any
) -> BackendNode:
    """A node without a process around it: it holds its lease, and knows all topics."""
    return BackendNode(
        broker_id,
        client,
        services,
        **{
            "config": BrokerConfig(),
            "persist": lambda *_: None,
            "when_held": lambda call: call(),
            "when_known": lambda _, call: call(),
            "view": lambda: None,
            "rng": random.Random(1),
            "stale": lambda: None,
            "record": lambda _: None,
            "traced": False,
            **more,
        },
        loop=loop,
        network=network,
    )


class Stage:
    """Clusters, one after the other or at once, on one Kafka; a topic and a group. `stack` closes all that is made."""

    def __init__(self, kafka: LocalKafka, fresh: Callable[[str], str], persister: str | None = None) -> None:
        self.kafka = kafka
        self.persister = persister
        self.topic, self.group = fresh("topic"), fresh("group")
        self.stack = ExitStack()

    def cluster(self, **more: Any) -> Cluster:
        servers = self.kafka.bootstrap_servers
        return self.stack.enter_context(Cluster(backend=servers, config=CONFIG, persister=self.persister, **more))

    def prepared(self, partitions: int = 1) -> Cluster:
        """A cluster with the topic, and the group configured."""
        cluster = self.cluster()
        cluster.create_topic(self.topic, partitions)
        cluster.configure_group(self.group, GROUP)
        return cluster

    def consumer(self, cluster: Cluster) -> ShareConsumer:
        conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": self.group}
        made = self.stack.enter_context(ShareConsumer({**conf, "share.acknowledgement.mode": "explicit"}))
        made.subscribe([self.topic])
        return made

    def produce(self, *values: str) -> None:
        """Produce one batch with a client of the backend: shareq has no part in it. A consumer that waits gets all of
        it in one poll.

        The producer knows the topic before the first record: records that wait for metadata are moved to the partition
        one by one, and a flush at that time can send the first alone.
        """
        producer = confluent_kafka.Producer({"bootstrap.servers": self.kafka.bootstrap_servers, "linger.ms": 10_000})
        producer.list_topics(self.topic, PATIENCE_S)
        for value in values:
            producer.produce(self.topic, value, partition=0)
        assert producer.flush(PATIENCE_S) == 0

    def lag(self, cluster: Cluster) -> int:
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            return admin.list_share_group_offsets(self.group).total


def seen(messages: list[Any]) -> list[tuple[bytes, int]]:
    return [(message.value(), message.delivery_count()) for message in messages]


def finish(consumer: ShareConsumer, messages: list[Any], how: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
    for message in messages:
        consumer.acknowledge(message, how)
    assert set(consumer.commit_sync().values()) == {None}
