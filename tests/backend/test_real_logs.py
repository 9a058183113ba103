"""What Apache Kafka does with the logs of a backend: it compacts them, deletes records, and finds offsets by time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from shareq import Admin, Cluster, NewTopic, ShareConsumer, TopicPartition
from shareq.broker.backend.topics import IN_BACKEND
from shareq.kafka import LocalKafka
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.states import AcknowledgeType
from tests.backend.stage import CONFIG, GROUP, Stage, finish, seen
from tests.kafka.fixtures import kafka_or_skip
from tests.polling import PATIENCE_S, eventually, take

pytestmark = pytest.mark.kafka

AT_ONCE = {"log.cleaner.backoff.ms": 100, "log.initial.task.delay.ms": 100, "log.retention.check.interval.ms": 100}
"""The cleaner and the retention of a broker work several times a second. One key is internal to Kafka."""

MINUTE_MS = 60_000
STATES = IN_BACKEND[SHARE_STATE_TOPIC]


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalKafka]:
    with kafka_or_skip(1, AT_ONCE) as running:
        yield running


@pytest.fixture
def stage(backend: LocalKafka, fresh: Callable[[str], str]) -> Iterator[Stage]:
    made = Stage(backend, fresh)
    with made.stack:
        yield made


@pytest.fixture
def admin(backend: LocalKafka) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": backend.bootstrap_servers}) as made:
        yield made


def produce(stage: Stage, timestamp: int, **values: str) -> None:
    """Produce one batch of records with these keys."""
    conf = {"bootstrap.servers": stage.kafka.bootstrap_servers, "linger.ms": 10_000}
    producer = confluent_kafka.Producer(conf)
    producer.list_topics(stage.topic, PATIENCE_S)
    for key, value in values.items():
        producer.produce(stage.topic, value, key, 0, timestamp=timestamp)
    assert producer.flush(PATIENCE_S) == 0


def offsets(stage: Stage) -> list[int]:
    """The offsets of the records that the log has, read by another client."""
    conf = {"bootstrap.servers": stage.kafka.bootstrap_servers, "group.id": "reader", "enable.partition.eof": True}
    found: list[int] = []
    with confluent_kafka.Consumer(conf) as reader:
        reader.assign([confluent_kafka.TopicPartition(stage.topic, 0, 0)])
        while (message := reader.poll(PATIENCE_S)) is not None and not message.error():
            found.append(message.offset() or 0)
    return found


def taken(consumer: ShareConsumer, count: int) -> list[Any]:
    """The next records, each poll's accepted before the next poll."""
    found: list[Any] = []
    while len(found) < count:
        found += (messages := take(consumer, 1))
        finish(consumer, messages)
    return found


def start_of(admin: Admin, topic: str, partition: int) -> int:
    at = TopicPartition(topic, partition)
    return admin.list_offsets({at: "earliest"})[at].offset or 0


def test_records_that_were_compacted_away_are_holes(stage: Stage, admin: Admin) -> None:
    """Of a group that held them, and of one that reads the batches with holes."""
    cluster = stage.cluster()
    cluster.configure_group(stage.group, GROUP)
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.ms": "1"}
    admin.create_topics([NewTopic(stage.topic, 1, config=compacted)]).check()
    eventually(lambda: stage.topic in cluster.image.topics, True)
    produce(stage, MINUTE_MS, a="a1", b="b1", c="c1", d="d1")
    consumer = stage.consumer(cluster)
    held = take(consumer, 4)
    produce(stage, 2 * MINUTE_MS, b="b2", d="d2")
    produce(stage, 3 * MINUTE_MS, e="e1")  # the segment of the newest batch is not compacted
    eventually(lambda: offsets(stage), [0, 2, 4, 5, 6])
    finish(consumer, held, AcknowledgeType.RELEASE)
    again = taken(consumer, 5)
    assert seen(again) == [(b"a1", 2), (b"c1", 2), (b"b2", 1), (b"d2", 1), (b"e1", 1)]
    eventually(lambda: stage.lag(cluster), 0)
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": f"{stage.group}-later"}
    cluster.configure_group(conf["group.id"], {"share.auto.offset.reset": "earliest"})
    with ShareConsumer({**conf, "share.acknowledgement.mode": "explicit"}) as later:
        later.subscribe([stage.topic])
        assert seen(taken(later, 5)) == [(value, 1) for value in (b"a1", b"c1", b"b2", b"d2", b"e1")]


def test_records_that_retention_has_deleted_move_the_start(stage: Stage, admin: Admin) -> None:
    """Records that a member holds can be accepted nevertheless, as in Kafka."""
    cluster = stage.prepared()
    admin.incremental_alter_configs("topic", stage.topic, {"retention.ms": "-1", "segment.ms": "1"})
    produce(stage, MINUTE_MS, a="a", b="b")
    consumer = stage.consumer(cluster)
    held = take(consumer, 2)
    admin.incremental_alter_configs("topic", stage.topic, {"retention.ms": str(60 * MINUTE_MS)})
    eventually(lambda: start_of(admin, stage.topic, 0), 2)
    produce(stage, int(time.time() * 1000), c="c")
    finish(consumer, held)
    last = take(consumer, 1)
    assert seen(last) == [(b"c", 1)]
    finish(consumer, last)
    eventually(lambda: stage.lag(cluster), 0)


def test_a_group_starts_at_the_first_record_of_a_duration(stage: Stage) -> None:
    cluster = stage.prepared()
    now = int(time.time() * 1000)
    for minutes in (90, 60, 30):
        produce(stage, now - minutes * MINUTE_MS, key=f"{minutes} minutes ago")
    between = now - 75 * MINUTE_MS
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as asked:
        at = TopicPartition(stage.topic, 0)
        found = asked.list_offsets({at: between})[at]
    assert (found.offset, found.timestamp) == (1, now - 60 * MINUTE_MS)
    cluster.configure_group(stage.group, {"share.auto.offset.reset": "by_duration:PT45M"})
    assert seen(take(stage.consumer(cluster), 1)) == [(b"30 minutes ago", 1)]


def test_states_are_right_after_the_state_topic_was_pruned(stage: Stage, admin: Admin) -> None:
    """A second process begins with a fence, and prunes the log up to it."""
    first = stage.prepared()
    stage.produce("a", "b", "c", "d")
    consumer = stage.consumer(first)
    a, _, c, _ = take(consumer, 4)
    finish(consumer, [a])
    finish(consumer, [c])
    consumer.close()
    first.close()
    topic = admin.describe_topics([STATES])[STATES]
    before = {one.partition: start_of(admin, STATES, one.partition) for one in topic.partitions}
    soon = {
        "share.coordinator.state.topic.prune.interval.ms": 100,
        "share.coordinator.cold.partition.snapshot.interval.ms": 100,
    }
    with Cluster(backend=stage.kafka.bootstrap_servers, config={**CONFIG, **soon}) as second:
        second.configure_group(stage.group, {"share.record.lock.duration.ms": 60_000})
        eventually(lambda: any(start_of(admin, STATES, index) > start for index, start in before.items()), True)
    third = stage.cluster()
    assert stage.lag(third) == 2
    messages = take(stage.consumer(third), 2)
    assert seen(messages) == [(b"b", 2), (b"d", 2)]


def test_topics_of_shareq_are_cleaned_as_they_must(stage: Stage, admin: Admin) -> None:
    """BEHAVIOUR.md, 1.2 and 3.10."""
    stage.cluster()
    compacted = {"cleanup.policy": "compact", "min.compaction.lag.ms": "3600000"}
    wanted: dict[str, dict[str, str]] = {
        "shareq-group-metadata": compacted,
        "shareq-group-configs": compacted,
        STATES: {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
    }
    for topic, configs in wanted.items():
        found = admin.describe_configs("topic", topic, list(configs))
        assert {key: one.value for key, one in found.items()} == configs


def test_locks_end_by_a_scaled_clock(stage: Stage) -> None:
    """The lease and the session of the process are those of real time."""
    cluster: Any = stage.stack.enter_context(Cluster(backend=stage.kafka.bootstrap_servers, config=CONFIG, clock=20.0))
    cluster.create_topic(stage.topic)
    cluster.configure_group(stage.group, {"share.auto.offset.reset": "earliest"})
    stage.produce("a")
    consumer = stage.consumer(cluster)
    assert seen(take(consumer, 1)) == [(b"a", 1)]
    other = stage.consumer(cluster)
    again = take(other, 1)
    assert seen(again) == [(b"a", 2)]
    cluster.change_speed(0.5)
    finish(other, again)
    stage.produce("b")
    assert seen(take(other, 1)) == [(b"b", 1)]
