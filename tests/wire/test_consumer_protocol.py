"""confluent-kafka's `Consumer` with `group.protocol=consumer` over TCP: on a shareq cluster and on Apache Kafka.

Consumers are polled in turn until a condition holds; the only time limit is PATIENCE_S.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from shareq import Cluster
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, commits

SPEED = 10.0
"""Factor of a cluster's clock in tests of long intervals."""
Fresh = Callable[[str], str]


class Listener:
    """A consumer and the events of its group. `assigned` has its current partitions."""

    def __init__(self, servers: str, group: str, topics: list[str], **conf: object) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
            | {key.replace("_", "."): value for key, value in conf.items()}
        )
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
        message = self.consumer.poll(0.02)
        if message is not None and message.error() is None:
            self.got.append(_value(message))

    def close(self) -> None:
        self.consumer.close()
        self.assigned.clear()


def _value(message: Message) -> bytes:
    value = message.value()
    assert value is not None
    return value


class Stage:
    """A topic and a group on a broker, with listeners that are closed at the end."""

    def __init__(self, servers: str, topic: str, group: str, partitions: int, stack: ExitStack) -> None:
        self.servers, self.topic, self.group, self.stack = servers, topic, group, stack
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.create(topic, partitions)
        self.producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self.sent: list[bytes] = []
        self.partitions = partitions

    def create(self, topic: str, partitions: int) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, -1)])[topic].result(PATIENCE_S)

    def send(self, count: int) -> None:
        """Produce records to the partitions in turn."""
        for number in range(count):
            value = str(len(self.sent)).encode()
            self.producer.produce(self.topic, value, partition=number % self.partitions)
            self.sent.append(value)
        assert self.producer.flush(PATIENCE_S) == 0

    def listener(self, topics: list[str] | None = None, **conf: object) -> Listener:
        made = Listener(self.servers, self.group, topics or [self.topic], **conf)
        self.stack.callback(made.consumer.close)
        return made

    def until(self, condition: Callable[[], bool], *listeners: Listener) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, [(one.assigned, len(one.got)) for one in listeners]
            for one in listeners:
                one.poll()

    def received_all_from(self, *listeners: Listener) -> bool:
        return sorted(value for one in listeners for value in one.got) == sorted(self.sent)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def stage(broker: Reachable, fresh: Fresh, stack: ExitStack) -> Stage:
    return Stage(broker.bootstrap_servers, fresh("topic"), fresh("group"), 4, stack)


def test_a_consumer_continues_from_the_committed_offsets(stage: Stage) -> None:
    first = stage.listener()
    stage.send(40)
    stage.until(lambda: stage.received_all_from(first), first)
    first.consumer.commit(asynchronous=False)
    first.close()
    stage.send(8)
    second = stage.listener()
    stage.until(lambda: len(second.got) == 8, second)
    assert sorted(second.got) == sorted(stage.sent[40:])


def test_partitions_move_between_members_without_revoking_others(stage: Stage) -> None:
    first = stage.listener()
    stage.until(lambda: len(first.assigned) == 4, first)
    second = stage.listener()
    stage.until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    assert first.revoked == second.assigned, "only partitions that move to the other member are revoked"
    kept = set(first.assigned)
    stage.send(40)
    stage.until(lambda: stage.received_all_from(first, second), first, second)
    second.close()
    stage.until(lambda: len(first.assigned) == 4, first)
    assert kept <= first.assigned
    assert first.revoked.isdisjoint(kept)


def test_surplus_members_have_no_partition(stage: Stage) -> None:
    listeners = [stage.listener() for _ in range(5)]
    stage.until(lambda: sorted(len(one.assigned) for one in listeners) == [0, 1, 1, 1, 1], *listeners)
    owned = [partition for one in listeners for partition in one.assigned]
    assert len(set(owned)) == 4


def test_a_regular_expression_subscribes_to_all_matching_topics(stage: Stage) -> None:
    stage.create(f"{stage.topic}-more", 2)
    stage.create(f"no-{stage.topic}", 1)
    listener = stage.listener([f"^{stage.topic}.*"])
    stage.until(lambda: len(listener.assigned) == 6, listener)
    assert {topic for topic, _ in listener.assigned} == {stage.topic, f"{stage.topic}-more"}


def test_a_static_member_rejoins_with_its_partitions(stage: Stage) -> None:
    first, other = stage.listener(group_instance_id="one"), stage.listener(group_instance_id="two")
    stage.until(lambda: len(first.assigned) == len(other.assigned) == 2, first, other)
    had, others = set(first.assigned), set(other.assigned)
    first.close()
    again = stage.listener(group_instance_id="one")
    stage.until(lambda: len(again.assigned) == 2, again, other)
    assert (again.assigned, other.assigned, other.revoked & others) == (had, others, set())


def test_a_requested_assignor_is_used(stage: Stage) -> None:
    listeners = [stage.listener(group_remote_assignor="range") for _ in range(2)]
    stage.until(lambda: all(len(one.assigned) == 2 for one in listeners), *listeners)
    cut = {frozenset(partition for _, partition in one.assigned) for one in listeners}
    assert cut == {frozenset({0, 1}), frozenset({2, 3})}


def test_added_partitions_are_assigned(stage: Stage) -> None:
    listener = stage.listener(topic_metadata_refresh_interval_ms=200)
    stage.until(lambda: len(listener.assigned) == 4, listener)
    stage.admin.create_partitions([NewPartitions(stage.topic, 6)])[stage.topic].result(PATIENCE_S)
    stage.until(lambda: len(listener.assigned) == 6, listener)


def test_the_group_is_described_and_deleted(stage: Stage) -> None:
    listener = stage.listener(client_id="reader")
    stage.until(lambda: len(listener.assigned) == 4, listener)
    group = stage.admin.describe_consumer_groups([stage.group])[stage.group].result(PATIENCE_S)
    assert (group.state.name, group.type.name, len(group.members)) == ("STABLE", "CONSUMER", 1)
    (member,) = group.members
    assert member.client_id == "reader"
    assert {partition.partition for partition in member.assignment.topic_partitions} == {0, 1, 2, 3}
    listener.close()
    stage.admin.delete_consumer_groups([stage.group])[stage.group].result(PATIENCE_S)
    listed = stage.admin.list_consumer_groups().result(PATIENCE_S)
    assert stage.group not in {found.group_id for found in listed.valid}


# ---- shareq only: injected faults ------------------------------------------------------------------------------------


QUICK = {
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
    "default.replication.factor": 3,
}
HOURS = {"group.consumer.session.timeout.ms": 36_000_000, "group.consumer.max.session.timeout.ms": 36_000_000}
"""No member expires on a fast clock because its thread did not run for a while."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=5, clock="wall", config=QUICK | HOURS) as made:
        yield made


def test_a_killed_broker_loses_no_record(cluster: Cluster, stack: ExitStack) -> None:
    with cluster.serve() as server:
        stage = Stage(server.bootstrap_servers, "t", "g", 4, stack)
        listeners = [stage.listener(), stage.listener()]
        # No offset is committed: a member that receives a partition reads it from the start again.
        stage.until(lambda: all(len(one.assigned) == 2 for one in listeners), *listeners)
        stage.send(8)
        stage.until(lambda: stage.received_all_from(*listeners), *listeners)
        coordinator = cluster.image.coordinator("__consumer_offsets", "g")
        assert coordinator is not None
        cluster.kill_broker(coordinator.broker_id)
        stage.send(8)
        stage.until(lambda: set(stage.sent) <= {value for one in listeners for value in one.got}, *listeners)
        # Without a coordinator close() could not send the leave request.
        stage.until(lambda: commits(listeners[0].consumer), *listeners)
        listeners[0].close()
        stage.until(lambda: len(listeners[1].assigned) == 4, listeners[1])
        listeners[1].close()


def test_a_regular_expression_subscribes_to_topics_created_later(stack: ExitStack) -> None:
    with Cluster(brokers=3, seed=5, clock=SPEED, config=QUICK | HOURS) as cluster, cluster.serve() as server:
        stage = Stage(server.bootstrap_servers, "t", "g", 4, stack)
        listener = stage.listener(["^t.*"])
        stage.until(lambda: len(listener.assigned) == 4, listener)
        stage.create("t-more", 2)
        stage.until(lambda: len(listener.assigned) == 6, listener)
        assert listener.revoked == set()
        listener.close()
