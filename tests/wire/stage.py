"""A topic and a group on a broker, with confluent-kafka's consumers of either protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.polling import PATIENCE_S

PARTITIONS = 4


class Reader:
    """A consumer and the events of its group.

    `assigned` has its current partitions, `revoked` every partition that was ever revoked.
    """

    def __init__(self, topics: list[str], conf: Mapping[str, object]) -> None:
        self.consumer = Consumer(dict(conf))
        self.assigned: set[tuple[str, int]] = set()
        self.revoked: set[tuple[str, int]] = set()
        self.got: list[bytes] = []
        self.consumer.subscribe(topics, on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke)

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned |= {(partition.topic, partition.partition) for partition in partitions}

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        revoked = {(partition.topic, partition.partition) for partition in partitions}
        self.assigned -= revoked
        self.revoked |= revoked

    def poll(self) -> None:
        for message in self.consumer.consume(100, 0.02):
            if not message.error():
                value = message.value()
                assert value is not None
                self.got.append(value)

    def close(self) -> None:
        self.consumer.close()
        self.assigned.clear()


class Stage:
    """A topic of four partitions, a group, and its readers, which the stack closes; `protocol`: their configuration."""

    def __init__(self, servers: str, topic: str, group: str, stack: ExitStack, protocol: Mapping[str, object]) -> None:
        self.servers, self.topic, self.group, self.stack = servers, topic, group, stack
        self.conf = {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}
        self.conf |= {"auto.offset.reset": "earliest", **protocol}
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.create(topic, PARTITIONS)
        self.producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self.sent: list[bytes] = []

    def create(self, topic: str, partitions: int) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, -1)])[topic].result(PATIENCE_S)

    def send(self, count: int) -> None:
        """Produce records to the partitions in turn."""
        for number in range(count):
            value = str(len(self.sent)).encode()
            self.producer.produce(self.topic, value, partition=number % PARTITIONS)
            self.sent.append(value)
        assert self.producer.flush(PATIENCE_S) == 0

    def reader(self, topics: list[str] | None = None, **conf: object) -> Reader:
        dotted = {key.replace("_", "."): value for key, value in conf.items()}
        made = Reader(topics or [self.topic], self.conf | dotted)
        self.stack.callback(made.consumer.close)
        return made

    def until(self, condition: Callable[[], bool], *readers: Reader) -> None:
        """Poll the readers in turn until the condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, [(one.assigned, len(one.got)) for one in readers]
            for one in readers:
                one.poll()

    def received_all_from(self, *readers: Reader) -> bool:
        return sorted(value for one in readers for value in one.got) == sorted(self.sent)

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, index) for index in range(PARTITIONS)]

    def committed(self) -> list[int]:
        """Committed offsets of all partitions, read by an admin client."""
        request = [ConsumerGroupTopicPartitions(self.group, self.partitions())]
        found = self.admin.list_consumer_group_offsets(request)[self.group].result(PATIENCE_S)
        return [partition.offset for partition in found.topic_partitions]
