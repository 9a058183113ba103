"""The state topic of ShareQ and of Apache Kafka in Spark: states equal the answers of the share coordinator."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from shareq import AcknowledgeType, Admin, Cluster, KafkaException, NewTopic, Producer, ShareConsumer
from shareq.admin.core import AdminCore, Operation, Send
from shareq.broker.backend.topics import IN_BACKEND
from shareq.client.config import ClientConfig
from shareq.client.shell import perform
from shareq.model.actor import ANY_NODE
from shareq.model.ids import SHARE_STATE_TOPIC, TopicId
from shareq.model.messages.base import Request
from shareq.model.messages.share_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    StateBatch,
)
from shareq.model.states import IsolationLevel
from shareq.spark import state_topic
from shareq.transports import transport_for
from tests.kafka.fixtures import Reachable
from tests.polling import configure, take

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from shareq.kafka import LocalKafka
    from shareq.spark.state_topic import StateTopic

Fresh = Callable[[str], str]
RECORDS = 40
TYPES = [AcknowledgeType.ACCEPT, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT]


class Group(NamedTuple):
    """A share group on a topic of two partitions."""

    address: str
    topic: str
    name: str

    def of(self, df: DataFrame) -> list[Any]:
        """The rows of this group; the state topic may have others."""
        return df.where(f"group_id = '{self.name}'").orderBy("partition", "offset").collect()


def group_at_work(address: str, fresh: Fresh, seed: int) -> Group:
    """A consumer acknowledges all records at random, batch by batch; it releases records again on redelivery."""
    group = Group(address, fresh("topic"), fresh("group"))
    rng = random.Random(seed)
    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([NewTopic(group.topic, 2)]).check()
        configure(admin, group.name, {"share.auto.offset.reset": "earliest"})
    with Producer({"bootstrap.servers": address, "linger.ms": 0}) as producer:
        for number in range(RECORDS):
            producer.produce(group.topic, b"%d" % number, partition=number % 2)
            if number % 5 == 4:
                producer.flush()
    conf = {"bootstrap.servers": address, "group.id": group.name, "share.acknowledgement.mode": "explicit"}
    with ShareConsumer({**conf, "max.poll.records": 7}) as consumer:
        consumer.subscribe([group.topic])
        first_time = 0
        while first_time < RECORDS:
            for message in take(consumer, 1):
                again = message.delivery_count() > 1
                first_time += not again
                consumer.acknowledge(message, AcknowledgeType.RELEASE if again else rng.choice(TYPES))
            assert not any(consumer.commit_sync().values())
    return group


def response_partition(address: str, request: Request) -> Any:
    """The one partition in the response of the only broker."""
    conf = ClientConfig({"bootstrap.servers": address}, (), client="state-reader")
    transport = transport_for(address)
    core = AdminCore(conf, transport.rng())
    connection = transport.connect(core, "state-reader")

    def operation() -> Operation[Any]:
        ((response, error, reason),) = yield [Send(ANY_NODE, request)]
        assert response is not None, error or reason
        return response.results[0].partitions[0]

    try:
        task = perform(connection, core.calls, lambda now_ms: core.start(operation(), 60_000, now_ms))
        connection.wait(lambda: task.done, None)
        return task.result()
    finally:
        connection.close()


def coordinator_state(group: Group, row: Any) -> dict[str, Any]:
    """The share coordinator's state of a share-partition. Reading it with its current epoch does not change it."""
    found: dict[str, Any] = {}
    kinds: tuple[Any, ...] = (ReadShareGroupStateRequest, ReadShareGroupStateSummaryRequest)
    for kind in kinds:
        entry = kind.Partition(partition=row.partition, leader_epoch=row.leader_epoch_fence)
        topic = kind.Topic(topic_id=TopicId(row.topic_id), partitions=(entry,))
        answer = response_partition(group.address, kind(group_id=group.name, topics=(topic,)))
        assert not answer.error_code
        found |= {name: getattr(answer, name) for name in FIELDS if hasattr(answer, name)}
    return found


FIELDS = ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")


def row_state(row: Any) -> dict[str, Any]:
    """The state in a row, in the form of `coordinator_state`."""
    found = {name: row[name] for name in FIELDS}
    return found | {"state_batches": tuple(StateBatch(*batch) for batch in row.state_batches)}


@pytest.mark.parametrize("which", ["served", "backed", "kafka"], ids=["shareq", "shareq-on-kafka", "apache-kafka"])
def test_states_equal_the_answers_of_the_share_coordinator(
    which: str, request: pytest.FixtureRequest, spark: SparkSession, fresh: Fresh, seed: int
) -> None:
    broker: Reachable = request.getfixturevalue(which)
    group = group_at_work(broker.bootstrap_servers, fresh, seed)
    topic = state_topic(spark, broker, IN_BACKEND[SHARE_STATE_TOPIC] if which == "backed" else SHARE_STATE_TOPIC)
    now = group.of(topic.states())
    assert [(row.topic, row.partition, row.complete) for row in now] == [(group.topic, p, True) for p in (0, 1)]
    for row in now:
        assert row_state(row) == coordinator_state(group, row)
    history = group.of(topic.history())
    assert [row for row in history if (row.partition, row.offset) in {(r.partition, r.offset) for r in now}] == now
    assert_every_record_counts(group, topic, history)
    halfway = history[len(history) // 2]
    then = {row.partition: row for row in group.of(topic.states(at={halfway.state_partition: halfway.offset + 1}))}
    assert then[halfway.partition] == halfway
    assert len(group.of(topic.states(at=datetime.now(UTC)))) == 2
    assert group.of(topic.states(at=datetime(2020, 1, 1, tzinfo=UTC))) == []


def assert_every_record_counts(group: Group, topic: StateTopic, history: list[Any]) -> None:
    """The group's records are those of its history: first a snapshot, then updates, and the SPSO never decreases."""
    records = group.of(topic.records())
    assert [(row.state_partition, row.offset, row.kind) for row in records] == [
        (row.state_partition, row.offset, row.kind) for row in history
    ]
    for partition in (0, 1):
        kinds, spsos = zip(*((r.kind, r.start_offset) for r in history if r.partition == partition), strict=True)
        assert kinds[0] == "snapshot"
        assert "update" in kinds
        assert list(spsos) == sorted(spsos)


def test_segments_and_rows_give_the_same_states_as_brokers(
    spark: SparkSession, served: Any, fresh: Fresh, seed: int, tmp_path: Path
) -> None:
    group = group_at_work(served.bootstrap_servers, fresh, seed)
    live = state_topic(spark, served)
    expected = group.of(live.states().drop("topic"))
    assert group.of(state_topic(spark, live.raw).states().drop("topic")) == expected
    folder = tmp_path / f"{SHARE_STATE_TOPIC}-0"
    folder.mkdir()
    log = served.cluster.log(SHARE_STATE_TOPIC, 0)
    batches = log.read(log.log_start_offset, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED).batches
    (folder / "00000000000000000000.log").write_bytes(b"".join(batch.data for batch in batches))
    for path in (tmp_path, folder, str(folder / "00000000000000000000.log")):
        assert group.of(state_topic(spark, path).states().drop("topic")) == expected


@pytest.mark.parametrize(
    ("which", "name"),
    [("kafka", SHARE_STATE_TOPIC), ("backed", IN_BACKEND[SHARE_STATE_TOPIC])],
    ids=["apache-kafka", "shareq-on-kafka"],
)
def test_the_log_folder_of_apache_kafka_is_read(
    which: str, name: str, request: pytest.FixtureRequest, spark: SparkSession, fresh: Fresh
) -> None:
    """The states of a cluster of shareq on its topics are in a topic with another name."""
    kafka: LocalKafka = request.getfixturevalue("kafka")
    address = request.getfixturevalue(which).bootstrap_servers
    group = group_at_work(address, fresh, request.getfixturevalue("seed"))
    expected = group.of(state_topic(spark, kafka, name).states().drop("topic"))
    assert len(expected) == 2
    folder = kafka._brokers[0].data
    assert group.of(state_topic(spark, folder, name).states().drop("topic")) == expected


@contextmanager
def unserved() -> Iterator[Cluster]:
    """A cluster on virtual time that other processes cannot reach."""
    config = {"share.coordinator.state.topic.num.partitions": 5}
    with Cluster(brokers=1, config=config) as cluster:
        yield cluster


def test_a_cluster_in_this_process_is_read(spark: SparkSession, fresh: Fresh, seed: int) -> None:
    with unserved() as cluster:
        group = group_at_work(cluster.bootstrap_servers, fresh, seed)
        now = group.of(state_topic(spark, cluster).states())
        for row in now:
            assert row_state(row) == coordinator_state(group, row)
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.delete_share_groups([group.name]).check()
        topic = state_topic(spark, cluster)
        assert group.of(topic.states()) == []
        assert group.of(topic.records())[-1].kind == "tombstone"


def test_a_cluster_without_state_is_refused(spark: SparkSession) -> None:
    with unserved() as cluster, pytest.raises(KafkaException, match=r"UNKNOWN_TOPIC_OR_PARTITION|does not host"):
        state_topic(spark, cluster)


def test_an_invalid_source_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="source=42: must be an address, a path or a DataFrame"):
        state_topic(spark, 42)
