"""A cluster on the topics of an Apache Kafka, in this process. BEHAVIOUR.md of the backend."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import confluent_kafka
import pytest

from shareq import Admin, Cluster, ConfigException, KafkaException, Producer, ShareConsumer
from shareq.broker.backend import runtime
from shareq.kafka import LocalKafka
from shareq.model.errors import IllegalStateException
from shareq.model.events import LeaderElected, TopicCreated, TopicDeleted
from shareq.model.states import AcknowledgeType
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from tests.kafka.fixtures import START_S, kafka_or_skip
from tests.polling import PATIENCE_S, QUICK, eventually, take

CONFIG = {**QUICK, "group.share.max.record.lock.duration.ms": 3_600_000}
GROUP = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 600_000}
Fresh = Callable[[str], str]


@pytest.fixture(scope="module")
def old_kafka() -> Iterator[LocalKafka]:
    """A release without share groups."""
    with kafka_or_skip(1, version="3.9.2") as running:
        yield running


@pytest.fixture(params=["kafka", "old_kafka"], ids=["newest", "3.9.2"])
def backend(request: pytest.FixtureRequest) -> LocalKafka:
    found: LocalKafka = request.getfixturevalue(request.param)
    return found


class World:
    """Clusters, one after the other or at once, on one Kafka; a topic and a group. `close()` closes all."""

    def __init__(self, kafka: LocalKafka, fresh: Fresh) -> None:
        self.kafka = kafka
        self.topic, self.group = fresh("topic"), fresh("group")
        self.stack = ExitStack()

    def cluster(self, **more: Any) -> Cluster:
        return self.stack.enter_context(Cluster(backend=self.kafka.bootstrap_servers, config=CONFIG, **more))

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
        """Produce with a client of the backend: shareq has no part in it."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.kafka.bootstrap_servers, "linger.ms": 0})
        for value in values:
            producer.produce(self.topic, value, partition=0)
        assert producer.flush(PATIENCE_S) == 0

    def lag(self, cluster: Cluster) -> int:
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            return admin.list_share_group_offsets(self.group).total


@pytest.fixture
def world(backend: LocalKafka, fresh: Fresh) -> Iterator[World]:
    made = World(backend, fresh)
    with made.stack:
        yield made


@pytest.fixture
def newest(kafka: LocalKafka, fresh: Fresh) -> Iterator[World]:
    made = World(kafka, fresh)
    with made.stack:
        yield made


def events_of(cluster: Cluster) -> list[Any]:
    return [entry.event for entry in cluster.journal.entries()]


def seen(messages: list[Any]) -> list[tuple[bytes, int]]:
    return [(message.value(), message.delivery_count()) for message in messages]


def finish(consumer: ShareConsumer, messages: list[Any], how: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
    for message in messages:
        consumer.acknowledge(message, how)
    assert set(consumer.commit_sync().values()) == {None}


# ---- a process ends, the next one continues ---------------------------------------------------------------------


def test_the_next_process_continues_with_group_states_and_configurations(world: World) -> None:
    first = world.prepared()
    world.produce("a", "b", "c", "d")
    consumer = world.consumer(first)
    a, b, c, d = take(consumer, 4)
    finish(consumer, [b])
    finish(consumer, [c], AcknowledgeType.RELEASE)
    del a, d
    consumer.close()
    first.close()

    second = world.cluster()
    assert second.image.group_configs[world.group] == {key: str(value) for key, value in GROUP.items()}
    again = take(world.consumer(second), 3)
    assert seen(again) == [(b"a", 2), (b"c", 2), (b"d", 2)]


def test_what_is_accepted_is_so_for_good(world: World) -> None:
    first = world.prepared()
    world.produce("a", "b", "c")
    consumer = world.consumer(first)
    a, b, _ = take(consumer, 3)
    finish(consumer, [a, b])
    assert world.lag(first) == 1
    consumer.close()
    first.close()
    second = world.cluster()
    assert world.lag(second) == 1
    assert seen(take(world.consumer(second), 1)) == [(b"c", 2)]


def test_a_second_process_takes_the_place_of_the_first(world: World) -> None:
    first = world.prepared()
    world.produce("a", "b")
    held = world.consumer(first)
    a, b = take(held, 2)
    second = world.cluster()
    assert seen(take(world.consumer(second), 2)) == [(b"a", 1), (b"b", 1)]
    for message in (a, b):
        held.acknowledge(message)
    (error,) = held.commit_sync().values()
    assert error is not None
    first.close()


# ---- logs and topics of the backend -----------------------------------------------------------------------------


def test_records_of_other_programs_arrive(world: World) -> None:
    consumer = world.consumer(world.prepared())
    world.produce("a")
    finish(consumer, first := take(consumer, 1))
    world.produce("b", "c")
    finish(consumer, rest := take(consumer, 2))
    assert seen(first + rest) == [(b"a", 1), (b"b", 1), (b"c", 1)]


def test_an_aborted_transaction_is_skipped(newest: World) -> None:
    cluster = newest.prepared()
    cluster.configure_group(newest.group, {"share.isolation.level": "read_committed"})
    conf = {"bootstrap.servers": newest.kafka.bootstrap_servers, "transactional.id": newest.topic}
    producer = confluent_kafka.Producer(conf)
    producer.init_transactions(PATIENCE_S)
    for value, end in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(newest.topic, value)
        assert producer.flush(PATIENCE_S) == 0
        end(PATIENCE_S)
    assert seen(take(newest.consumer(cluster), 1)) == [(b"committed", 1)]


def test_deleted_records_move_the_start(newest: World) -> None:
    cluster = newest.prepared()
    newest.produce("a", "b", "c")
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.delete_records({(newest.topic, 0): 2}).check()
        consumer = newest.consumer(cluster)
        assert seen(take(consumer, 1)) == [(b"c", 1)]


def test_a_topic_that_is_deleted_and_created_again_is_a_new_one(newest: World) -> None:
    cluster = newest.prepared()
    newest.produce("old")
    consumer = newest.consumer(cluster)
    finish(consumer, old := take(consumer, 1))
    assert seen(old) == [(b"old", 1)]
    with Admin({"bootstrap.servers": newest.kafka.bootstrap_servers}) as admin:
        admin.delete_topics([newest.topic]).check()
        eventually(lambda: newest.topic in cluster.image.topics, False)
        admin.create_topics([newest.topic]).check()
    newest.produce("new")
    assert seen(take(consumer, 1)) == [(b"new", 1)]
    events = [type(event) for event in events_of(cluster) if getattr(event, "topic", "") == newest.topic]
    assert [kind for kind in events if kind in (TopicCreated, TopicDeleted)] == [
        TopicCreated,
        TopicDeleted,
        TopicCreated,
    ]


def test_new_partitions_are_assigned(newest: World) -> None:
    cluster = newest.prepared()
    consumer = newest.consumer(cluster)
    newest.produce("a")
    finish(consumer, take(consumer, 1))
    with Admin({"bootstrap.servers": newest.kafka.bootstrap_servers}) as admin:
        admin.create_partitions({newest.topic: 3}).check()
    with Producer({"bootstrap.servers": newest.kafka.bootstrap_servers}) as producer:
        eventually(lambda: len(cluster.image.topics[newest.topic].partitions), 3)
        producer.produce(newest.topic, "far", partition=2)
    assert seen(take(consumer, 1)) == [(b"far", 1)]


# ---- views ------------------------------------------------------------------------------------------------------


def test_the_journal_shows_topics_leaders_and_windows(newest: World) -> None:
    cluster = newest.prepared()
    newest.produce("a", "b", "c")
    consumer = newest.consumer(cluster)
    a, _, _ = take(consumer, 3)
    finish(consumer, [a])
    timeline = PartitionTimeline(cluster.journal, newest.group, newest.topic, 0)
    timeline.refresh()
    now = timeline.state(len(timeline.entries))
    assert (now.spso, now.window_end, now.log_end) == (1, 3, 3)
    assert [kind for kind in map(type, events_of(cluster)) if kind is LeaderElected]


# ---- groups of other types --------------------------------------------------------------------------------------


def test_an_id_is_of_one_type_on_both_sides(newest: World) -> None:
    cluster = newest.prepared()
    newest.produce("a")
    take(newest.consumer(cluster), 1)
    server = newest.stack.enter_context(cluster.serve())
    conf = {"bootstrap.servers": server.bootstrap_servers, "group.id": newest.group}
    errors = {"classic": "Inconsistent group protocol", "consumer": "The group id does not exist"}  # as Kafka's
    for protocol, error in errors.items():
        found: list[Any] = []
        other = confluent_kafka.Consumer({**conf, "group.protocol": protocol, "error_cb": found.append})
        newest.stack.callback(other.close)
        other.subscribe([newest.topic])
        eventually(partial(has_failed, other, found), True)
        assert error in str(found[0])


def has_failed(consumer: confluent_kafka.Consumer, errors: list[Any]) -> bool:
    """Poll once; true if the callback or the poll has reported an error."""
    message = consumer.poll(0.1)
    if message is not None and message.error():
        errors.append(message.error())
    return bool(errors)


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param({"brokers": 3}, "brokers=3: brokers and network are those of the backend", id="brokers"),
        pytest.param({"racks": ["a"]}, "racks=['a']: brokers and network are", id="racks"),
        pytest.param({"latency_ms": 5}, "latency_ms=5: brokers and network are", id="latency"),
        pytest.param({"clock": "virtual"}, "clock='virtual': a backend has real time", id="virtual clock"),
        pytest.param({"backend": "nowhere"}, "bootstrap.servers", id="no address"),
        pytest.param({"config": {"share.isolation.level": "x"}}, "configure_group", id="group's key"),
    ],
)
def test_arguments_that_a_backend_does_not_allow(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ConfigException, KafkaException), match=re.escape(text)):
        Cluster(**{"backend": "127.0.0.1:1", **arguments})


def test_a_backend_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "START_S", 0.2)
    with pytest.raises(KafkaException, match=r"backend='127.0.0.1:1': not ready within 0.2 s: .*127.0.0.1:1"):
        Cluster(backend="127.0.0.1:1")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda cluster: cluster.kill_broker(0), id="kill"),
        pytest.param(lambda cluster: cluster.stop_broker(0), id="stop"),
        pytest.param(lambda cluster: cluster.start_broker(0), id="start"),
        pytest.param(lambda cluster: cluster.elect_preferred_leaders(), id="elect"),
        pytest.param(lambda cluster: cluster.fail_appends("orders"), id="fail appends"),
        pytest.param(lambda cluster: cluster.delay_appends("__share_group_state", 5), id="delay appends"),
        pytest.param(lambda cluster: cluster.clean_logs(), id="clean"),
        pytest.param(lambda cluster: cluster.log("orders", 0), id="log"),
    ],
)
def test_what_only_brokers_in_memory_can_do_is_refused(newest: World, call: Callable[[Cluster], object]) -> None:
    cluster = newest.cluster()
    with pytest.raises(IllegalStateException, match=f"are those of {newest.kafka.bootstrap_servers}"):
        call(cluster)


def test_a_topic_that_the_backend_refuses_is_an_error(newest: World) -> None:
    cluster = newest.prepared()
    with pytest.raises(KafkaException, match="already exists"):
        cluster.create_topic(newest.topic)


# ---- the backend fails ------------------------------------------------------------------------------------------


def test_clients_continue_when_the_backend_restarts(fresh: Fresh) -> None:
    with LocalKafka(timeout=START_S) as kafka:
        world = World(kafka, fresh)
        with world.stack:
            cluster = world.prepared()
            world.produce("a", "b")
            consumer = world.consumer(cluster)
            a, b = take(consumer, 2)
            finish(consumer, [a])
            kafka.kill_broker(0)
            consumer.acknowledge(b)
            consumer.commit_async()
            kafka.start_broker(0)
            world.produce("c")
            (c,) = take(consumer, 1)
            assert seen([c]) == [(b"c", 1)]
            finish(consumer, [c])
            eventually(lambda: world.lag(cluster), 0)
