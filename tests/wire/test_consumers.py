"""confluent-kafka's `Consumer` with the classic protocol over TCP: on a shareq cluster and on Apache Kafka.

Consumers are polled in turn until a condition holds; the only time limit is PATIENCE_S.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from shareq import Admin, Cluster
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, commits, configure
from tests.wire.stage import PARTITIONS, Stage

FROM_THE_START = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 600_000}
CLASSIC = {"session.timeout.ms": 120_000, "heartbeat.interval.ms": 300}
"""Long sessions: no offset is committed, so a member that joins again would read all records again."""
Fresh = Callable[[str], str]


@pytest.fixture
def stage(broker: Reachable, fresh: Fresh, stack: ExitStack) -> Stage:
    return Stage(broker.bootstrap_servers, fresh("topic"), fresh("group"), stack, CLASSIC)


# ---- one consumer ----------------------------------------------------------------------------------------------------


def test_a_consumer_continues_from_the_committed_offsets(stage: Stage) -> None:
    first = stage.reader()
    stage.send(40)
    stage.until(lambda: stage.received_all_from(first), first)
    first.consumer.commit(asynchronous=False)
    assert [p.offset for p in first.consumer.committed(stage.partitions())] == [10] * PARTITIONS
    first.close()
    stage.send(8)
    second = stage.reader()
    stage.until(lambda: len(second.got) == 8, second)
    assert sorted(second.got) == sorted(stage.sent[40:])


def test_auto_commit_stores_offsets(stage: Stage) -> None:
    reader = stage.reader(enable_auto_commit=True, auto_commit_interval_ms=100)
    stage.send(8)
    stage.until(lambda: stage.received_all_from(reader), reader)
    reader.close()
    assert stage.committed() == [2] * PARTITIONS


def test_a_manually_assigned_consumer_commits_without_membership(stage: Stage) -> None:
    stage.send(8)
    consumer = Consumer({"bootstrap.servers": stage.servers, "group.id": stage.group, "enable.auto.commit": False})
    stage.stack.callback(consumer.close)
    consumer.assign([TopicPartition(stage.topic, 1, 0)])
    deadline = time.monotonic() + PATIENCE_S
    got = 0
    while got < 2:
        assert time.monotonic() < deadline
        got += sum(1 for message in consumer.consume(10, 0.05) if not message.error())
    consumer.commit(offsets=[TopicPartition(stage.topic, 1, 2, metadata="by hand")], asynchronous=False)
    (stored,) = consumer.committed([TopicPartition(stage.topic, 1)])
    assert (stored.offset, stored.metadata) == (2, "by hand")
    assert stage.committed() == [-1001, 2, -1001, -1001]
    group = stage.admin.describe_consumer_groups([stage.group])[stage.group].result(PATIENCE_S)
    assert (group.state.name, group.is_simple_consumer_group, len(group.members)) == ("EMPTY", True, 0)


# ---- several members -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_partitions_move_between_members(stage: Stage, strategy: str) -> None:
    first = stage.reader(partition_assignment_strategy=strategy)
    stage.until(lambda: len(first.assigned) == 4, first)
    second = stage.reader(partition_assignment_strategy=strategy)
    stage.until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    assert {index for _, index in first.assigned | second.assigned} == set(range(PARTITIONS))
    if strategy == "cooperative-sticky":
        assert first.revoked == second.assigned, "only partitions that move to the other member are revoked"
    stage.send(40)
    stage.until(lambda: stage.received_all_from(first, second), first, second)
    second.close()
    stage.until(lambda: len(first.assigned) == 4, first)


def test_surplus_members_have_no_partition(stage: Stage) -> None:
    readers = [stage.reader() for _ in range(5)]
    stage.until(lambda: sorted(len(one.assigned) for one in readers) == [0, 1, 1, 1, 1], *readers)


def test_members_use_an_assignor_that_all_support(stage: Stage) -> None:
    first = stage.reader(partition_assignment_strategy="roundrobin,range")
    second = stage.reader(partition_assignment_strategy="range")
    stage.until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    group = stage.admin.describe_consumer_groups([stage.group])[stage.group].result(PATIENCE_S)
    assert group.partition_assignor == "range"


def test_a_static_member_rejoins_without_a_rebalance(stage: Stage) -> None:
    first, other = stage.reader(group_instance_id="one"), stage.reader(group_instance_id="two")
    stage.until(lambda: len(first.assigned) == len(other.assigned) == 2, first, other)
    had, others = set(first.assigned), set(other.assigned)
    other.revoked.clear()
    first.close()
    again = stage.reader(group_instance_id="one")
    stage.until(lambda: len(again.assigned) == 2, again, other)
    assert (again.assigned, other.assigned, other.revoked) == (had, others, set())


# ---- together with other groups --------------------------------------------------------------------------------------


def test_a_share_group_and_a_consumer_group_each_receive_every_record(stage: Stage, fresh: Fresh) -> None:
    stage.send(40)
    reader = stage.reader()
    group = fresh("share")
    with Admin({"bootstrap.servers": stage.servers}) as admin:
        configure(admin, group, FROM_THE_START)
    sharing = ShareConsumer({"bootstrap.servers": stage.servers, "group.id": group})
    stage.stack.callback(sharing.close)
    sharing.subscribe([stage.topic])
    shared: list[bytes | None] = []

    def both() -> bool:
        shared.extend(message.value() for message in sharing.poll(0.05) if not message.error())
        return stage.received_all_from(reader) and len(shared) >= len(stage.sent)

    stage.until(both, reader)
    assert sorted(value for value in shared if value is not None) == sorted(stage.sent)
    listed = stage.admin.list_consumer_groups().result(PATIENCE_S).valid
    assert {found.group_id: found.type.name for found in listed if found.group_id == stage.group} == {
        stage.group: "CLASSIC"
    }


def test_offsets_are_committed_only_with_their_transaction(stage: Stage, fresh: Fresh) -> None:
    stage.send(8)
    reader = stage.reader(isolation_level="read_committed")
    stage.until(lambda: stage.received_all_from(reader), reader)
    producer = Producer({"bootstrap.servers": stage.servers, "transactional.id": fresh("tx")})
    producer.init_transactions(PATIENCE_S)
    for offset, kept in ((1, False), (2, True)):
        producer.begin_transaction()
        where = [TopicPartition(stage.topic, 0, offset)]
        producer.send_offsets_to_transaction(where, reader.consumer.consumer_group_metadata(), PATIENCE_S)
        if kept:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
            assert stage.committed()[0] == -1001
    stage.until(lambda: stage.committed()[0] == 2, reader)


# ---- admin -----------------------------------------------------------------------------------------------------------


def test_groups_are_described_and_deleted(stage: Stage) -> None:
    reader = stage.reader(client_id="reader")
    stage.until(lambda: len(reader.assigned) == 4, reader)
    group = stage.admin.describe_consumer_groups([stage.group])[stage.group].result(PATIENCE_S)
    assert (group.state.name, group.type.name, group.partition_assignor) == ("STABLE", "CLASSIC", "range")
    (member,) = group.members
    assert member.client_id == "reader"
    assert {partition.partition for partition in member.assignment.topic_partitions} == set(range(PARTITIONS))
    with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
        stage.admin.delete_consumer_groups([stage.group])[stage.group].result(PATIENCE_S)
    reader.close()
    stage.admin.delete_consumer_groups([stage.group])[stage.group].result(PATIENCE_S)
    listed = stage.admin.list_consumer_groups().result(PATIENCE_S)
    assert stage.group not in {found.group_id for found in listed.valid}


def test_offsets_of_an_empty_group_are_altered_by_an_admin(stage: Stage) -> None:
    stage.send(8)
    moved = ConsumerGroupTopicPartitions(stage.group, [TopicPartition(stage.topic, 2, 1)])
    stage.admin.alter_consumer_group_offsets([moved])[stage.group].result(PATIENCE_S)
    assert stage.committed() == [-1001, -1001, 1, -1001]
    reader = stage.reader()
    stage.until(lambda: len(reader.got) == 7, reader)
    refused = stage.admin.alter_consumer_group_offsets([moved])[stage.group].result(PATIENCE_S)
    assert [partition.error.name() for partition in refused.topic_partitions] == ["UNKNOWN_MEMBER_ID"]


# ---- shareq only: injected faults ------------------------------------------------------------------------------------


def test_a_killed_broker_loses_no_record(stack: ExitStack) -> None:
    config = {"group.initial.rebalance.delay.ms": 0}
    with Cluster(brokers=3, seed=5, clock="wall", config=config) as cluster, cluster.serve() as server:
        stage = Stage(server.bootstrap_servers, "t", "g", stack, CLASSIC)
        readers = [stage.reader(), stage.reader()]
        # No offset is committed yet: a member that receives a partition reads it from the start again.
        stage.until(lambda: all(len(reader.assigned) == 2 for reader in readers), *readers)
        stage.send(8)
        stage.until(lambda: stage.received_all_from(*readers), *readers)
        for reader in readers:
            reader.consumer.commit(asynchronous=False)
        coordinator = cluster.image.coordinator("__consumer_offsets", "g")
        assert coordinator is not None
        cluster.kill_broker(coordinator.broker_id)
        stage.send(8)
        stage.until(lambda: set(stage.sent) <= {value for one in readers for value in one.got}, *readers)
        # Without a coordinator close() could not send the leave request.
        stage.until(lambda: commits(readers[0].consumer), *readers)
        readers[0].close()
        stage.until(lambda: len(readers[1].assigned) == PARTITIONS, readers[1])
        readers[1].close()
