"""Clients over TCP: the same scenarios on a served shareq cluster and on Apache Kafka, with equal results.

What both shareq's and confluent-kafka's consumers show is in `tests/pairings/`.
The fixtures of tests/kafka start the brokers; every test has its own topics and groups. Consumers check the rules of
their calls (`tests/consumer/watched.py`).
"""

from __future__ import annotations

import multiprocessing
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from shareq import (
    AcknowledgeType,
    Admin,
    Errors,
    KafkaError,
    KafkaException,
    Message,
    NewTopic,
    ShareConsumer,
    TopicPartition,
    WakeupException,
)
from tests.consumer.watched import WatchedConsumer
from tests.kafka.fixtures import Reachable
from tests.pairings.stage import Fresh, Stage
from tests.polling import PATIENCE_S, eventually, take


@pytest.fixture
def stage(broker: Reachable, fresh: Fresh) -> Iterator[Stage]:
    made = Stage("shareq", broker, fresh)
    made.client = SimpleNamespace(ShareConsumer=WatchedConsumer)
    with made.stack:
        yield made


def values(messages: list[Message]) -> list[str]:
    return [message.value().decode() for message in messages]


def counts(messages: list[Message]) -> list[int | None]:
    return [message.delivery_count() for message in messages]


# ---- records ---------------------------------------------------------------------------------------------------------


def test_a_thousand_records_over_several_partitions(stage: Stage) -> None:
    stage.create(partitions=3)
    producer = stage.producer(linger_ms=5)
    for i in range(1000):
        producer.produce(stage.topic, str(i), key=str(i % 7))
    assert producer.flush(PATIENCE_S) == 0
    found = take(stage.consumer(max_poll_records=100), 1000)
    assert sorted(map(int, values(found))) == list(range(1000))
    by_partition: dict[Any, list[int]] = {}
    for message in found:
        by_partition.setdefault(message.partition(), []).append(message.offset() or 0)
    assert all(offsets == list(range(len(offsets))) for offsets in by_partition.values())


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_produce_with_each_acks_setting(stage: Stage, acks: object) -> None:
    stage.create()
    stage.write("first")  # acks=0 loses records that reach a leader before it is ready
    producer = stage.producer(acks=acks)
    producer.produce(stage.topic, "a")
    assert producer.flush(PATIENCE_S) == 0
    assert values(take(stage.consumer(), 2)) == ["first", "a"]


def test_idempotent_batches_are_delivered_once_and_in_order(stage: Stage) -> None:
    stage.create()
    producer = stage.producer(enable_idempotence=True)
    for round_ in range(5):
        producer.produce(stage.topic, str(round_))
        assert producer.flush(PATIENCE_S) == 0
    assert values(take(stage.consumer(), 5)) == list("01234")


def test_produce_to_a_missing_topic_fails(stage: Stage) -> None:
    producer = stage.producer(topic_metadata_propagation_max_ms=300)
    errors: list[Any] = []
    producer.produce("no.such.topic", "a", on_delivery=lambda error, message: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [KafkaError._UNKNOWN_TOPIC]


# ---- acknowledging ---------------------------------------------------------------------------------------------------


def test_renewed_records_are_returned_with_the_same_delivery_count(stage: Stage) -> None:
    """W4: a renewed record stays with its consumer; the next poll returns it with the same delivery count."""
    stage.create()
    stage.write("slow")
    consumer = stage.consumer(share_acknowledgement_mode="explicit")
    (message,) = take(consumer, 1)
    for _ in range(3):
        consumer.acknowledge(message, AcknowledgeType.RENEW)
        assert consumer.commit_sync() == {TopicPartition(stage.topic, 0): None}
        (message,) = take(consumer, 1)
        assert message.delivery_count() == 1
    consumer.acknowledge(message)
    assert consumer.commit_sync() == {TopicPartition(stage.topic, 0): None}
    assert consumer.acquisition_lock_timeout_ms() == 600_000


def test_a_renewed_record_whose_lock_expires_is_returned_once(stage: Stage) -> None:
    """The waiting fetch acquires the record again: the new copy replaces the old one."""
    stage.create()
    stage.write("slow")
    consumer, place = stage.consumer(share_acknowledgement_mode="explicit"), TopicPartition(stage.topic, 0)
    (message,) = take(consumer, 1)
    stage.configure(share_record_lock_duration_ms=3000)  # longer than the next three lines take
    consumer.acknowledge(message, AcknowledgeType.RENEW)
    assert consumer.commit_sync() == {place: None}
    stage.configure()
    (message,) = consumer.poll(0)  # the renewed record; the fetch continues
    eventually(lambda: bool(consumer._core._buffer), True)
    consumer.acknowledge(message, AcknowledgeType.RENEW)
    assert consumer.commit_sync() == {place: None}
    (again,) = consumer.poll(0)
    assert (again.value(), again.delivery_count()) == (b"slow", 2)
    consumer.acknowledge(again)
    assert consumer.commit_sync() == {place: None}
    assert not consumer.poll(0.3)


@pytest.mark.parametrize("how", ["commit_sync", "commit_async", "poll alone"])
def test_a_consumer_that_renews_a_record_in_each_poll_receives_the_others(stage: Stage, how: str) -> None:
    stage.create()
    stage.write(*map(str, range(10)))
    consumer = stage.consumer(share_acknowledgement_mode="explicit", max_poll_records=1)
    calls: dict[str, Callable[[], object]] = {
        "commit_sync": consumer.commit_sync,
        "commit_async": consumer.commit_async,
        "poll alone": lambda: None,
    }
    others: list[str] = []
    while len(others) < 9:
        for message in take(consumer, 1):
            kept = message.value() == b"0"
            consumer.acknowledge(message, AcknowledgeType.RENEW if kept else AcknowledgeType.ACCEPT)
            others += [] if kept else values([message])
        calls[how]()
    assert others == [str(i) for i in range(1, 10)]


def test_record_limit_mode_bounds_a_poll(stage: Stage) -> None:
    """W7: without record_limit a poll returns whole batches."""
    stage.create()
    producer = stage.producer(linger_ms=100)
    for i in range(10):
        producer.produce(stage.topic, str(i))
    assert producer.flush(PATIENCE_S) == 0
    limited = stage.consumer(share_acquire_mode="record_limit", max_poll_records=4)
    polls: list[int] = []
    while sum(polls) < 10:
        polls.append(len(take(limited, 1)))
    assert polls == [4, 4, 2]


def test_wakeup_ends_a_poll(stage: Stage) -> None:
    stage.create()
    consumer = stage.consumer()
    threading.Timer(0.1, consumer.wakeup).start()
    with pytest.raises(WakeupException):
        consumer.poll(PATIENCE_S)
    stage.write("a")
    assert values(take(consumer, 1)) == ["a"]


# ---- groups ----------------------------------------------------------------------------------------------------------


def consume(address: str, group: str, topic: str, done: Any, taken: Any) -> None:
    """A member of a group: puts its records into the queue until the test sets `done`."""
    with ShareConsumer({"bootstrap.servers": address, "group.id": group, "max.poll.records": 10}) as consumer:
        consumer.subscribe([topic])
        while not done.is_set():
            for message in consumer.poll(0.1):
                taken.put(message.value().decode())


@pytest.mark.long
def test_processes_share_the_work_on_one_partition(stage: Stage) -> None:
    """With more members than partitions, each record is delivered to one member."""
    stage.create()
    context: Any = multiprocessing.get_context("spawn")
    done, taken = context.Event(), context.Queue()
    args = (stage.address, stage.group, stage.topic, done, taken)
    members = [context.Process(target=consume, args=args, daemon=True) for _ in range(3)]
    for member in members:
        member.start()
    wanted = [str(i) for i in range(200)]
    producer = stage.producer(linger_ms=0)
    for value in wanted:
        producer.produce(stage.topic, value)
        producer.flush(PATIENCE_S)
    found = [taken.get(timeout=PATIENCE_S) for _ in wanted]
    done.set()
    for member in members:
        member.join(PATIENCE_S)
    assert sorted(found, key=int) == wanted


def test_an_unsubscribed_topic_is_no_longer_delivered(stage: Stage) -> None:
    """The waiting fetch receives records of the unsubscribed topic; they are released to the group."""
    stage.create()
    former, stage.topic = stage.topic, stage.fresh("other")
    stage.create()
    stage.write("new")
    consumer = stage.consumer()
    consumer.subscribe([former])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.poll(0.1)
    consumer.subscribe([stage.topic])
    stage.topic, other = former, stage.topic
    stage.write("old")
    assert [(message.topic(), message.value()) for message in take(consumer, 1)] == [(other, b"new")]
    consumer.close()
    assert values(take(stage.consumer(), 1)) == ["old"]


class RandomActions:
    """Random actions of consumers of two topics."""

    def __init__(self, stage: Stage, rng: random.Random) -> None:
        self.stage, self.rng = stage, rng
        self.topics = [stage.topic, stage.fresh("other")]
        stage.create(partitions=2, share_record_lock_duration_ms=1000, share_delivery_count_limit=10)
        stage.admin.create_topics([NewTopic(self.topics[1], 1, config={"retention.ms": "-1"})]).check()
        self.producer = stage.producer()
        self.consumers = [
            stage.consumer(share_acknowledgement_mode="explicit", max_poll_records=limit, share_acquire_mode=mode)
            for limit, mode in [(1, "batch_optimized"), (5, "record_limit"), (50, "batch_optimized")]
        ]

    def work(self) -> None:
        consumer = self.rng.choice(self.consumers)
        for message in consumer.poll(self.rng.choice([0, 0.05, 0.2])):
            consumer.acknowledge(message, self.rng.choice([1, 1, 1, 1, 2, 3, 4, 4]))
        commits: list[Callable[[], object]] = [consumer.commit_sync, consumer.commit_async, lambda: None]
        self.rng.choice(commits)()

    def write(self) -> None:
        for _ in range(self.rng.randrange(1, 20)):
            self.producer.produce(self.rng.choice(self.topics), "x")
        assert self.producer.flush(PATIENCE_S) == 0

    def delete(self) -> None:
        place = TopicPartition(self.stage.topic, self.rng.randrange(2))
        end = self.stage.admin.list_offsets({place: "latest"}).check()[place].offset
        self.stage.admin.delete_records({place: self.rng.randrange((end or 0) + 1)}).check()

    def subscribe(self) -> None:
        self.rng.choice(self.consumers).subscribe(self.rng.choice([self.topics, self.topics[:1], self.topics[1:]]))

    def cut(self) -> None:
        cut(self.rng.choice(self.consumers))

    def complete_all(self) -> None:
        """All members subscribe and accept every record, until the lag is 0."""
        self.write()
        for consumer in self.consumers:
            consumer.subscribe(self.topics)
        deadline = time.monotonic() + PATIENCE_S
        while (lag := self.stage.admin.lag(self.stage.group)).total != 0:
            assert time.monotonic() < deadline, f"the lag stays above 0: {lag}"
            for consumer in self.consumers:
                for message in consumer.poll(0.1):
                    consumer.acknowledge(message)


@pytest.mark.long
def test_random_calls_leave_no_record_behind(stage: Stage, seed: int) -> None:
    actions = RandomActions(stage, random.Random(seed))
    weights = {"work": 12, "write": 3, "delete": 1, "subscribe": 1, "cut": 1}
    for _ in range(120):
        getattr(actions, actions.rng.choices(list(weights), list(weights.values()))[0])()
    actions.complete_all()


def test_clients_reconnect_after_a_lost_connection(stage: Stage) -> None:
    """Clients reconnect and continue, whatever requests are in flight."""
    stage.create()
    consumer, producer = stage.consumer(), stage.producer(enable_idempotence=True)
    for round_ in range(3):
        producer.produce(stage.topic, str(round_))
        assert producer.flush(PATIENCE_S) == 0
        found: list[str] = []
        while str(round_) not in found:  # records that were not accepted before the cut are delivered again
            found += values(take(consumer, 1))
        cut(consumer)
        cut(producer)


def cut(client: Any) -> None:
    """Shut down all connections of the client, as a network failure would."""
    host = client._connection._host
    with host.lock:
        for link in host._links.values():
            if link._frame_socket is not None:
                with suppress(OSError):
                    link._frame_socket._socket.shutdown(socket.SHUT_RDWR)


# ---- transactions ----------------------------------------------------------------------------------------------------


def test_a_second_initialization_of_a_transactional_id_fences_its_producer(stage: Stage) -> None:
    stage.create()
    name = stage.fresh("id")
    earlier, later = stage.producer(transactional_id=name), stage.producer(transactional_id=name)
    earlier.init_transactions(PATIENCE_S)
    earlier.begin_transaction()
    earlier.produce(stage.topic, "lost")
    assert earlier.flush(PATIENCE_S) == 0
    later.init_transactions(PATIENCE_S)
    with pytest.raises(KafkaException) as raised:
        earlier.commit_transaction(PATIENCE_S)
    assert raised.value.error == Errors.PRODUCER_FENCED
    assert raised.value.error.fatal()
    later.begin_transaction()
    later.produce(stage.topic, "kept")
    later.commit_transaction(PATIENCE_S)


# ---- administration --------------------------------------------------------------------------------------------------


def test_admin_creates_describes_grows_and_deletes_topics(stage: Stage) -> None:
    admin, name = stage.admin, stage.topic
    created = admin.create_topics([NewTopic(name, 2, 1, {"retention.ms": "1000000"})]).check()[name]
    assert (created.partitions, created.replication_factor) == (2, 1)
    assert admin.create_topics([name])[name].error == Errors.TOPIC_ALREADY_EXISTS
    described = admin.describe_topics([name]).check()[name]
    assert (described.topic_id, len(described.partitions)) == (created.topic_id, 2)
    assert admin.list_topics()[name].topic_id == created.topic_id
    admin.create_partitions({name: 3}).check()
    assert admin.create_partitions({name: 3})[name].error == Errors.INVALID_PARTITIONS
    admin.delete_topics([name]).check()
    assert admin.delete_topics([stage.fresh("nothing")]).popitem()[1].error == Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_admin_lists_log_offsets(stage: Stage) -> None:
    stage.create()
    producer = stage.producer()
    for i, value in enumerate("abc"):
        producer.produce(stage.topic, value, timestamp=1_000_000_000_000 + i * 1000)
        producer.flush(PATIENCE_S)
    place = TopicPartition(stage.topic, 0)

    def offset(spec: object) -> int | None:
        return stage.admin.list_offsets({place: spec}).check()[place].offset

    moment = datetime.fromtimestamp(1_000_000_000, UTC)
    specs = ["earliest", "latest", moment, moment + timedelta(seconds=1.5), moment + timedelta(days=1)]
    assert [offset(spec) for spec in specs] == [0, 3, 0, 2, None]
    assert stage.admin.delete_records({place: 2}).check()[place].low_watermark == 2
    assert offset("earliest") == 2


def test_admin_describes_groups_and_alters_their_offsets(stage: Stage) -> None:
    stage.create()
    stage.write("a", "b", "c")
    admin, place = stage.admin, TopicPartition(stage.topic, 0)
    with stage.consumer(client_id="reader") as consumer:
        assert len(take(consumer, 3)) == 3
        consumer.commit_sync()
        group = admin.describe_share_groups([stage.group]).check()[stage.group]
        assert (group.state, group.assignor) == ("Stable", "simple")
        (member,) = group.members
        assert (member.client_id, member.member_id, member.assignment) == ("reader", consumer.member_id(), (place,))
        assert admin.list_groups(["share"], ["Stable"])[stage.group].state == "Stable"
        assert admin.delete_share_groups([stage.group])[stage.group].error == Errors.NON_EMPTY_GROUP
        with pytest.raises(KafkaException) as raised:
            admin.alter_share_group_offsets(stage.group, {place: 0})
        assert raised.value.error == Errors.NON_EMPTY_GROUP
    assert admin.list_share_group_offsets(stage.group).check()[place].lag == 0
    assert admin.alter_share_group_offsets(stage.group, {place: 1}).check()[place].start_offset == 1
    assert admin.lag(stage.group)[place].start_offset == 1
    assert values(take(stage.consumer(), 2)) == ["b", "c"]
    stage.stack.close()
    with Admin({"bootstrap.servers": stage.address}) as admin:
        admin.delete_share_group_offsets(stage.group, [stage.topic]).check()
        assert place not in admin.list_share_group_offsets(stage.group)
        admin.delete_share_groups([stage.group]).check()
        missing = admin.describe_share_groups([stage.group])[stage.group]
        assert missing.error == Errors.GROUP_ID_NOT_FOUND
        assert admin.lag(stage.group) == {}


def test_admin_alters_and_describes_configurations(stage: Stage) -> None:
    stage.create()
    admin, key = stage.admin, "share.record.lock.duration.ms"

    def value_and_source(kind: str, name: str, key: str) -> tuple[str | None, str]:
        entry = admin.describe_configs(kind, name, [key])[key]
        return entry.value, entry.source

    admin.alter_group_configs(stage.group, {key: 20000})
    eventually(lambda: value_and_source("group", stage.group, key), ("20000", "group"))
    admin.alter_group_configs(stage.group, {key: None})
    eventually(lambda: value_and_source("group", stage.group, key), ("30000", "default"))
    admin.incremental_alter_configs("topic", stage.topic, {"retention.ms": 5000})
    eventually(lambda: value_and_source("topic", stage.topic, "retention.ms"), ("5000", "topic"))
    broker = str(admin.describe_topics([stage.topic])[stage.topic].partitions[0].leader)
    assert admin.describe_configs("broker", broker, ["group.share.delivery.count.limit"])
    with pytest.raises(KafkaException) as raised:
        admin.alter_group_configs(stage.group, {"share.no.such.key": 1})
    assert raised.value.error == Errors.INVALID_CONFIG
