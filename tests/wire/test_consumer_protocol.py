"""confluent-kafka's `Consumer` with `group.protocol=consumer` over TCP: on a shareq cluster and on Apache Kafka.

Consumers are polled in turn until a condition holds; the only time limit is PATIENCE_S.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka.cimpl import NewPartitions

from shareq import Cluster
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, commits
from tests.wire.stage import Stage

SPEED = 10.0
"""Factor of a cluster's clock in tests of long intervals."""
CONSUMER = {"group.protocol": "consumer"}
Fresh = Callable[[str], str]


@pytest.fixture
def stage(broker: Reachable, fresh: Fresh, stack: ExitStack) -> Stage:
    return Stage(broker.bootstrap_servers, fresh("topic"), fresh("group"), stack, CONSUMER)


def test_a_consumer_continues_from_the_committed_offsets(stage: Stage) -> None:
    first = stage.reader()
    stage.send(40)
    stage.until(lambda: stage.received_all_from(first), first)
    first.consumer.commit(asynchronous=False)
    first.close()
    stage.send(8)
    second = stage.reader()
    stage.until(lambda: len(second.got) == 8, second)
    assert sorted(second.got) == sorted(stage.sent[40:])


def test_partitions_move_between_members_without_revoking_others(stage: Stage) -> None:
    first = stage.reader()
    stage.until(lambda: len(first.assigned) == 4, first)
    second = stage.reader()
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
    readers = [stage.reader() for _ in range(5)]
    stage.until(lambda: sorted(len(one.assigned) for one in readers) == [0, 1, 1, 1, 1], *readers)
    owned = [partition for one in readers for partition in one.assigned]
    assert len(set(owned)) == 4


def test_a_regular_expression_subscribes_to_all_matching_topics(stage: Stage) -> None:
    stage.create(f"{stage.topic}-more", 2)
    stage.create(f"no-{stage.topic}", 1)
    reader = stage.reader([f"^{stage.topic}.*"])
    stage.until(lambda: len(reader.assigned) == 6, reader)
    assert {topic for topic, _ in reader.assigned} == {stage.topic, f"{stage.topic}-more"}


def test_a_static_member_rejoins_with_its_partitions(stage: Stage) -> None:
    first, other = stage.reader(group_instance_id="one"), stage.reader(group_instance_id="two")
    stage.until(lambda: len(first.assigned) == len(other.assigned) == 2, first, other)
    had, others = set(first.assigned), set(other.assigned)
    first.close()
    again = stage.reader(group_instance_id="one")
    stage.until(lambda: len(again.assigned) == 2, again, other)
    assert (again.assigned, other.assigned, other.revoked & others) == (had, others, set())


def test_a_requested_assignor_is_used(stage: Stage) -> None:
    readers = [stage.reader(group_remote_assignor="range") for _ in range(2)]
    stage.until(lambda: all(len(one.assigned) == 2 for one in readers), *readers)
    cut = {frozenset(partition for _, partition in one.assigned) for one in readers}
    assert cut == {frozenset({0, 1}), frozenset({2, 3})}


def test_added_partitions_are_assigned(stage: Stage) -> None:
    reader = stage.reader(topic_metadata_refresh_interval_ms=200)
    stage.until(lambda: len(reader.assigned) == 4, reader)
    stage.admin.create_partitions([NewPartitions(stage.topic, 6)])[stage.topic].result(PATIENCE_S)
    stage.until(lambda: len(reader.assigned) == 6, reader)


def test_the_group_is_described_and_deleted(stage: Stage) -> None:
    reader = stage.reader(client_id="reader")
    stage.until(lambda: len(reader.assigned) == 4, reader)
    group = stage.admin.describe_consumer_groups([stage.group])[stage.group].result(PATIENCE_S)
    assert (group.state.name, group.type.name, len(group.members)) == ("STABLE", "CONSUMER", 1)
    (member,) = group.members
    assert member.client_id == "reader"
    assert {partition.partition for partition in member.assignment.topic_partitions} == {0, 1, 2, 3}
    reader.close()
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
        stage = Stage(server.bootstrap_servers, "t", "g", stack, CONSUMER)
        readers = [stage.reader(), stage.reader()]
        # No offset is committed: a member that receives a partition reads it from the start again.
        stage.until(lambda: all(len(one.assigned) == 2 for one in readers), *readers)
        stage.send(8)
        stage.until(lambda: stage.received_all_from(*readers), *readers)
        coordinator = cluster.image.coordinator("__consumer_offsets", "g")
        assert coordinator is not None
        cluster.kill_broker(coordinator.broker_id)
        stage.send(8)
        stage.until(lambda: set(stage.sent) <= {value for one in readers for value in one.got}, *readers)
        # Without a coordinator close() could not send the leave request.
        stage.until(lambda: commits(readers[0].consumer), *readers)
        readers[0].close()
        stage.until(lambda: len(readers[1].assigned) == 4, readers[1])
        readers[1].close()


def test_a_regular_expression_subscribes_to_topics_created_later(stack: ExitStack) -> None:
    with Cluster(brokers=3, seed=5, clock=SPEED, config=QUICK | HOURS) as cluster, cluster.serve() as server:
        stage = Stage(server.bootstrap_servers, "t", "g", stack, CONSUMER)
        reader = stage.reader(["^t.*"])
        stage.until(lambda: len(reader.assigned) == 4, reader)
        stage.create("t-more", 2)
        stage.until(lambda: len(reader.assigned) == 6, reader)
        assert reader.revoked == set()
        reader.close()
