"""The test environment of a group's clients: a cluster on a virtual clock, which can be under random faults."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import Any, ClassVar

import pytest

from shareq.admin import Admin
from shareq.broker import Cluster
from shareq.consumer import ShareConsumer
from shareq.log.records import decode
from shareq.model.errors import Errors, IllegalStateException, KafkaException
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC
from shareq.model.states import AcknowledgeType, IsolationLevel
from tests.broker.ledger import TERMINAL, Books
from tests.broker.probe import Probe
from tests.consumer.watched import WatchedConsumer

GROUP = "g"

COMPACTED = {"cleanup.policy": "compact", "segment.bytes": 14, "min.cleanable.dirty.ratio": 0}
TOPICS: dict[str, dict[str, Any]] = {"orders": {"partitions": 3}, "facts": {"partitions": 2, "configs": COMPACTED}}
"""Records of `orders` may be deleted, `facts` is compacted."""

SMALL_SEGMENTS = {"share.coordinator.state.topic.segment.bytes": 1000}
"""A compacted state topic is compacted up to its last segment."""

PLACES = [(topic, partition) for topic, given in TOPICS.items() for partition in range(given["partitions"])]

UNSETTLED_MS = 150_000
"""Milliseconds after the last fault within which its effects end: locks of 30 s, heartbeats and back-offs."""

ACCEPT, RELEASE, REJECT, RENEW = list(AcknowledgeType)[1:]
VERDICTS = {ACCEPT: 65, RELEASE: 12, REJECT: 5, RENEW: 18}


class Stage:
    """A cluster, topics, and a group that reads them. `topics`: the arguments of `Cluster.create_topic` by name."""

    def __init__(self, *, topics: Mapping[str, Mapping[str, Any]], group: Mapping[str, object], **cluster: Any) -> None:
        self.cluster = Cluster(**cluster)
        self.topics = list(topics)
        for name, given in topics.items():
            self.cluster.create_topic(name, **given)
        self.cluster.configure_group(GROUP, group)
        self.conf = {"bootstrap.servers": self.cluster.bootstrap_servers}
        self.admin = Admin(self.conf)

    def consumer(self, **conf: Any) -> ShareConsumer:
        return self.subscribed(ShareConsumer({**self.conf, "group.id": GROUP, **conf}))

    def subscribed(self, consumer: ShareConsumer) -> ShareConsumer:
        consumer.subscribe(self.topics)
        return consumer


class FaultyStage(Stage):
    """Members that come and go on three brokers, and faults: the actions of a run. All of them are chosen by `rng`."""

    WEIGHTS: ClassVar[Mapping[str, int]]
    """How often `step` takes each action, which is the name of a method."""

    MEMBERS: ClassVar[int]
    """The most members at a time."""

    BROKERS = 3

    def __init__(self, rng: Random, **given: Any) -> None:
        self.rng = rng
        self.consumers: list[ShareConsumer] = []
        super().__init__(brokers=self.BROKERS, latency_ms=rng.choice([0, 0, 3]), **given)

    def step(self) -> None:
        self.take(self.rng.choices(list(self.WEIGHTS), list(self.WEIGHTS.values()))[0])

    def take(self, action: str) -> None:
        """Client calls can fail under faults."""
        try:
            getattr(self, action)()
        except KafkaException as error:
            print(f"{action}: {error}")

    def join(self) -> None:
        if len(self.consumers) < self.MEMBERS:
            conf = {
                "share.acknowledgement.mode": "explicit",
                "share.acquire.mode": self.rng.choice(["batch_optimized", "record_limit"]),
                "max.poll.records": self.rng.choice([1, 7, 50]),
            }
            self.consumers.append(self.consumer(**conf))

    def leave(self) -> None:
        if self.consumers:
            self.part(self.consumers.pop(self.rng.randrange(len(self.consumers))), crash=False)

    def crash(self) -> None:
        if self.consumers:
            self.part(self.consumers.pop(self.rng.randrange(len(self.consumers))), crash=True)

    def part(self, consumer: ShareConsumer, *, crash: bool) -> None:
        if crash:
            self.cluster.crash(consumer)
        else:
            consumer.close()

    def commit(self, consumer: ShareConsumer) -> None:
        self.rng.choice([lambda: consumer.commit_sync(5), consumer.commit_async, lambda: None])()

    def wait(self) -> None:
        self.cluster.advance(self.rng.choice([10, 1000, 20_000, 50_000]))

    def leaders_change(self) -> None:
        """A broker is about to stop or to start."""

    def kill_broker(self) -> None:
        if len(self.cluster.brokers_alive) > 1:
            self.leaders_change()
            broker = self.rng.choice(self.cluster.brokers_alive)
            self.rng.choice([self.cluster.kill_broker, self.cluster.stop_broker])(broker)

    def start_broker(self) -> None:
        dead = sorted(set(self.cluster.image.brokers) - set(self.cluster.brokers_alive))
        if dead:
            self.leaders_change()
            self.cluster.start_broker(self.rng.choice(dead))
            if self.rng.random() < 0.5:
                self.cluster.elect_preferred_leaders()

    def fail_writes(self) -> None:
        topic = self.rng.choice([SHARE_STATE_TOPIC, GROUP_METADATA_TOPIC])
        error = self.rng.choice([Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR, Errors.REQUEST_TIMED_OUT])
        self.cluster.fail_appends(topic, error, times=self.rng.randrange(1, 4))

    def end_faults(self) -> None:
        """Start all brokers and clear all faults. At least one member is left."""
        while len(self.cluster.brokers_alive) < self.BROKERS:
            self.start_broker()
        self.cluster.clear_faults()


class LedgerStage(FaultyStage):
    """The ledger checks the records of the group at every event of the journal."""

    WEIGHTS: ClassVar = {
        "produce": 8, "work": 28, "renew": 2, "subscribe": 2, "join": 3, "leave": 2, "crash": 2,
        "kill_broker": 2, "start_broker": 3, "fail_writes": 2, "cut": 1, "compact": 1, "wait": 3,
    }  # fmt: skip
    MEMBERS = 5

    def __init__(self, seed: int) -> None:
        group = {"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": 100}
        super().__init__(Random(seed), topics=TOPICS, group=group, seed=seed, config=SMALL_SEGMENTS)
        self.probe = Probe(self.cluster)
        self.books = Books(GROUP, self.offsets)
        self.read = 0
        for _ in range(2):
            self.join()

    def consumer(self, **conf: Any) -> ShareConsumer:
        return self.subscribed(WatchedConsumer({**self.conf, "group.id": GROUP, **conf}, virtual=True))

    # ---- actions -----------------------------------------------------------------------------------------------------

    def produce(self) -> None:
        topic, partition = self.rng.choice(PLACES)
        leader = self.cluster.image.topics[topic].partitions[partition].leader
        if leader >= 0:
            values = [str(self.rng.randrange(20)) for _ in range(self.rng.randrange(1, 40))]
            self.probe.produce(topic, *values, partition=partition, keyed=True)

    def work(self) -> None:
        """Poll, pause (sometimes for longer than locks last), acknowledge, and commit by one of several calls."""
        if not self.consumers:
            return
        consumer = self.rng.choice(self.consumers)
        messages = consumer.poll(self.rng.choice([0, 0.1, 2.0]))
        if messages and self.rng.random() < 0.1:
            with pytest.raises(IllegalStateException):
                consumer.poll(0)
        self.cluster.advance(self.rng.choices([0, 10_000, 40_000], [18, 1, 1])[0])
        for message in messages:
            consumer.acknowledge(message, self.rng.choices(list(VERDICTS), list(VERDICTS.values()))[0])
        self.commit(consumer)

    def renew(self) -> None:
        """Renew all records and pause for longer than locks last: a waiting fetch acquires the records again."""
        if not self.consumers:
            return
        consumer = self.rng.choice(self.consumers)
        for message in consumer.poll(0.1):
            consumer.acknowledge(message, RENEW)
        self.commit(consumer)
        again = consumer.poll(self.rng.choice([0, 0.1]))
        self.cluster.advance(40_000)
        for message in again:
            consumer.acknowledge(message, self.rng.choices(list(VERDICTS), list(VERDICTS.values()))[0])

    def subscribe(self) -> None:
        if self.consumers:
            consumer = self.rng.choice(self.consumers)
            if self.rng.random() < 0.3:
                consumer.unsubscribe()
            consumer.subscribe(self.rng.choice([["orders"], ["facts"], list(TOPICS)]))

    def cut(self) -> None:
        partition = self.rng.randrange(TOPICS["orders"]["partitions"])
        end = self.cluster.log("orders", partition).log_end_offset
        self.admin.delete_records({("orders", partition): self.rng.randrange(end + 1)}, timeout=5)

    def compact(self) -> None:
        self.cluster.clean_logs()

    # ---- invariants --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        self.books.read(self.cluster.journal.since(self.read))
        self.read = self.cluster.journal.total
        twice = [place for place, times in self.books.accepted.items() if times > 1]
        assert not twice, f"accepted twice: {twice}"

    def open_records(self) -> list[tuple[str, int, int]]:
        """Records that exist and are neither terminal nor below the SPSO."""
        return [
            (topic, partition, offset)
            for topic, partition in PLACES
            for offset in sorted(self.offsets(topic, partition))
            if offset >= self.books.spso.get((topic, partition), 0)
            and self.books.state.get((topic, partition, offset)) not in TERMINAL
        ]

    def remaining_work(self) -> int:
        """Remaining work: records that are open, and offsets that the SPSO has not passed."""
        ahead = [self.cluster.log(*at).high_watermark - self.books.spso.get(at, 0) for at in PLACES]
        return sum(ahead) + len(self.open_records())

    def offsets(self, topic: str, partition: int) -> set[int]:
        log = self.cluster.log(topic, partition)
        start = log.log_start_offset
        batches = log.read(start, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED).batches
        return {record.offset for batch in batches for record in decode(batch) if record.offset >= start}

    # ---- the quiet phase ---------------------------------------------------------------------------------------------

    def complete_all(self) -> None:
        """Start all brokers and clear all faults; the remaining members accept every record."""
        self.end_faults()
        if not self.consumers:
            self.join()
        for consumer in self.consumers:
            consumer.subscribe(list(TOPICS))
            with suppress(KafkaException):  # an error that a fault left for the next poll
                self.accept_everything(consumer)
        for topic, partition in PLACES:  # new records must be delivered, too
            self.probe.produce(topic, "last", partition=partition, keyed=True)
        began_ms = self.cluster.now_ms
        before = self.remaining_work()
        while self.open_records():
            for consumer in self.consumers:
                self.accept_everything(consumer)
            self.check()
            after = self.remaining_work()
            progress = after < before or self.cluster.now_ms - began_ms <= UNSETTLED_MS
            assert progress, f"polls wait while records are available: {self.open_records()[:20]}: {self.books.spso}"
            before = after
            self.cluster.advance(1)  # a round without waiting takes no time

    def accept_everything(self, consumer: ShareConsumer) -> None:
        for message in consumer.poll(2.0):
            consumer.acknowledge(message)
        consumer.commit_sync(5)

    def check_locks(self) -> None:
        """Every lock has ended; the journal has no later event of a record below the window."""
        held = [place for place in self.books.holder if place[2] >= self.books.spso.get(place[:2], 0)]
        assert not held, f"still locked: {held}"
