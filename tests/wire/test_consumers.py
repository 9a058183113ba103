"""confluent-kafka's `Consumer` with the classic protocol over TCP: on a shareq cluster and on Apache Kafka.

Consumers are polled in turn until a condition holds; the only time limit is PATIENCE_S.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from shareq import Admin, Cluster
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, commits, configure

PARTITIONS = 4
FROM_THE_START = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 600_000}
Fresh = Callable[[str], str]


class Reader:
    """A consumer and the events of its group.

    `assigned` has its current partitions, `revoked` every partition that was ever revoked.
    """

    def __init__(self, scene: Scene, **conf: Any) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": scene.servers,
                "group.id": scene.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 120_000,  # no offset is committed: a member that rejoins reads all records again
                "heartbeat.interval.ms": 300,
                **{key.replace("_", "."): value for key, value in conf.items()},
            }
        )
        self.cooperative = conf.get("partition_assignment_strategy") == "cooperative-sticky"
        self.assigned: set[int] = set()
        self.revoked: set[int] = set()
        self.got: list[bytes] = []
        self.consumer.subscribe([scene.topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke)
        scene.stack.callback(self.consumer.close)

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        del consumer
        self.assigned |= {partition.partition for partition in partitions}

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        del consumer
        revoked = {partition.partition for partition in partitions}
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


class Scene:
    """A topic and a group on a broker; all clients are closed at the end."""

    def __init__(self, servers: str, topic: str, group: str, stack: ExitStack) -> None:
        self.servers, self.topic, self.group, self.stack = servers, topic, group, stack
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.admin.create_topics([NewTopic(topic, PARTITIONS, -1)])[topic].result(PATIENCE_S)
        self.producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self.sent: list[bytes] = []

    def send(self, count: int) -> None:
        """Produce records to the partitions in turn."""
        for number in range(count):
            value = str(len(self.sent)).encode()
            self.producer.produce(self.topic, value, partition=number % PARTITIONS)
            self.sent.append(value)
        assert self.producer.flush(PATIENCE_S) == 0

    def reader(self, **conf: Any) -> Reader:
        return Reader(self, **conf)

    def until(self, condition: Callable[[], bool], *readers: Reader) -> None:
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


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def scene(broker: Reachable, fresh: Fresh, stack: ExitStack) -> Scene:
    return Scene(broker.bootstrap_servers, fresh("topic"), fresh("group"), stack)


# ---- one consumer ----------------------------------------------------------------------------------------------------


def test_a_consumer_continues_from_the_committed_offsets(scene: Scene) -> None:
    first = scene.reader()
    scene.send(40)
    scene.until(lambda: scene.received_all_from(first), first)
    first.consumer.commit(asynchronous=False)
    assert [p.offset for p in first.consumer.committed(scene.partitions())] == [10] * PARTITIONS
    first.close()
    scene.send(8)
    second = scene.reader()
    scene.until(lambda: len(second.got) == 8, second)
    assert sorted(second.got) == sorted(scene.sent[40:])


def test_auto_commit_stores_offsets(scene: Scene) -> None:
    reader = scene.reader(enable_auto_commit=True, auto_commit_interval_ms=100)
    scene.send(8)
    scene.until(lambda: scene.received_all_from(reader), reader)
    reader.close()
    assert scene.committed() == [2] * PARTITIONS


def test_a_manually_assigned_consumer_commits_without_membership(scene: Scene) -> None:
    scene.send(8)
    consumer = Consumer({"bootstrap.servers": scene.servers, "group.id": scene.group, "enable.auto.commit": False})
    scene.stack.callback(consumer.close)
    consumer.assign([TopicPartition(scene.topic, 1, 0)])
    deadline = time.monotonic() + PATIENCE_S
    got = 0
    while got < 2:
        assert time.monotonic() < deadline
        got += sum(1 for message in consumer.consume(10, 0.05) if not message.error())
    consumer.commit(offsets=[TopicPartition(scene.topic, 1, 2, metadata="by hand")], asynchronous=False)
    (stored,) = consumer.committed([TopicPartition(scene.topic, 1)])
    assert (stored.offset, stored.metadata) == (2, "by hand")
    assert scene.committed() == [-1001, 2, -1001, -1001]
    group = scene.admin.describe_consumer_groups([scene.group])[scene.group].result(PATIENCE_S)
    assert (group.state.name, group.is_simple_consumer_group, len(group.members)) == ("EMPTY", True, 0)


# ---- several members -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_partitions_move_between_members(scene: Scene, strategy: str) -> None:
    first = scene.reader(partition_assignment_strategy=strategy)
    scene.until(lambda: len(first.assigned) == 4, first)
    second = scene.reader(partition_assignment_strategy=strategy)
    scene.until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    assert first.assigned | second.assigned == set(range(PARTITIONS))
    if strategy == "cooperative-sticky":
        assert first.revoked == second.assigned, "only partitions that move to the other member are revoked"
    scene.send(40)
    scene.until(lambda: scene.received_all_from(first, second), first, second)
    second.close()
    scene.until(lambda: len(first.assigned) == 4, first)


def test_surplus_members_have_no_partition(scene: Scene) -> None:
    readers = [scene.reader() for _ in range(5)]
    scene.until(lambda: sorted(len(one.assigned) for one in readers) == [0, 1, 1, 1, 1], *readers)


def test_members_use_an_assignor_that_all_support(scene: Scene) -> None:
    first = scene.reader(partition_assignment_strategy="roundrobin,range")
    second = scene.reader(partition_assignment_strategy="range")
    scene.until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    group = scene.admin.describe_consumer_groups([scene.group])[scene.group].result(PATIENCE_S)
    assert group.partition_assignor == "range"


def test_a_static_member_rejoins_without_a_rebalance(scene: Scene) -> None:
    first, other = scene.reader(group_instance_id="one"), scene.reader(group_instance_id="two")
    scene.until(lambda: len(first.assigned) == len(other.assigned) == 2, first, other)
    had, others = set(first.assigned), set(other.assigned)
    other.revoked.clear()
    first.close()
    again = scene.reader(group_instance_id="one")
    scene.until(lambda: len(again.assigned) == 2, again, other)
    assert (again.assigned, other.assigned, other.revoked) == (had, others, set())


# ---- together with other groups --------------------------------------------------------------------------------------


def test_a_share_group_and_a_consumer_group_each_receive_every_record(scene: Scene, fresh: Fresh) -> None:
    scene.send(40)
    reader = scene.reader()
    group = fresh("share")
    with Admin({"bootstrap.servers": scene.servers}) as admin:
        configure(admin, group, FROM_THE_START)
    sharing = ShareConsumer({"bootstrap.servers": scene.servers, "group.id": group})
    scene.stack.callback(sharing.close)
    sharing.subscribe([scene.topic])
    shared: list[bytes | None] = []

    def both() -> bool:
        shared.extend(message.value() for message in sharing.poll(0.05) if not message.error())
        return scene.received_all_from(reader) and len(shared) >= len(scene.sent)

    scene.until(both, reader)
    assert sorted(value for value in shared if value is not None) == sorted(scene.sent)
    listed = scene.admin.list_consumer_groups().result(PATIENCE_S).valid
    assert {found.group_id: found.type.name for found in listed if found.group_id == scene.group} == {
        scene.group: "CLASSIC"
    }


def test_offsets_are_committed_only_with_their_transaction(scene: Scene, fresh: Fresh) -> None:
    scene.send(8)
    reader = scene.reader(isolation_level="read_committed")
    scene.until(lambda: scene.received_all_from(reader), reader)
    producer = Producer({"bootstrap.servers": scene.servers, "transactional.id": fresh("tx")})
    producer.init_transactions(PATIENCE_S)
    for offset, kept in ((1, False), (2, True)):
        producer.begin_transaction()
        where = [TopicPartition(scene.topic, 0, offset)]
        producer.send_offsets_to_transaction(where, reader.consumer.consumer_group_metadata(), PATIENCE_S)
        if kept:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
            assert scene.committed()[0] == -1001
    scene.until(lambda: scene.committed()[0] == 2, reader)


# ---- admin -----------------------------------------------------------------------------------------------------------


def test_groups_are_described_and_deleted(scene: Scene) -> None:
    reader = scene.reader(client_id="reader")
    scene.until(lambda: len(reader.assigned) == 4, reader)
    group = scene.admin.describe_consumer_groups([scene.group])[scene.group].result(PATIENCE_S)
    assert (group.state.name, group.type.name, group.partition_assignor) == ("STABLE", "CLASSIC", "range")
    (member,) = group.members
    assert member.client_id == "reader"
    assert {partition.partition for partition in member.assignment.topic_partitions} == set(range(PARTITIONS))
    with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
        scene.admin.delete_consumer_groups([scene.group])[scene.group].result(PATIENCE_S)
    reader.close()
    scene.admin.delete_consumer_groups([scene.group])[scene.group].result(PATIENCE_S)
    listed = scene.admin.list_consumer_groups().result(PATIENCE_S)
    assert scene.group not in {found.group_id for found in listed.valid}


def test_offsets_of_an_empty_group_are_altered_by_an_admin(scene: Scene) -> None:
    scene.send(8)
    moved = ConsumerGroupTopicPartitions(scene.group, [TopicPartition(scene.topic, 2, 1)])
    scene.admin.alter_consumer_group_offsets([moved])[scene.group].result(PATIENCE_S)
    assert scene.committed() == [-1001, -1001, 1, -1001]
    reader = scene.reader()
    scene.until(lambda: len(reader.got) == 7, reader)
    refused = scene.admin.alter_consumer_group_offsets([moved])[scene.group].result(PATIENCE_S)
    assert [partition.error.name() for partition in refused.topic_partitions] == ["UNKNOWN_MEMBER_ID"]


# ---- shareq only: injected faults ------------------------------------------------------------------------------------


def test_a_killed_broker_loses_no_record(stack: ExitStack) -> None:
    config = {"group.initial.rebalance.delay.ms": 0}
    with Cluster(brokers=3, seed=5, clock="wall", config=config) as cluster, cluster.serve() as server:
        scene = Scene(server.bootstrap_servers, "t", "g", stack)
        readers = [scene.reader(), scene.reader()]
        # No offset is committed yet: a member that receives a partition reads it from the start again.
        scene.until(lambda: all(len(reader.assigned) == 2 for reader in readers), *readers)
        scene.send(8)
        scene.until(lambda: scene.received_all_from(*readers), *readers)
        for reader in readers:
            reader.consumer.commit(asynchronous=False)
        coordinator = cluster.image.coordinator("__consumer_offsets", "g")
        assert coordinator is not None
        cluster.kill_broker(coordinator.broker_id)
        scene.send(8)
        scene.until(lambda: set(scene.sent) <= {value for one in readers for value in one.got}, *readers)
        # Without a coordinator close() could not send the leave request.
        scene.until(lambda: commits(readers[0].consumer), *readers)
        readers[0].close()
        scene.until(lambda: len(readers[1].assigned) == PARTITIONS, readers[1])
        readers[1].close()
