"""A cluster under random faults: consumers crash, brokers are killed, coordinators move, writes fail, logs lose
records.

A fault phase is followed by a quiet phase. Invariants hold in both: no record is held by two members, accepted twice or
lost; `tests/broker/ledger.py` checks them at every event of the journal. In the quiet phase everything must complete:
faults stop, members stay, every lock ends, every record reaches a terminal state, and no poll waits while records are
available. `tests/consumer/watched.py` checks the rules of client calls.

The environment variable `SHAREQ_SEEDS` sets the number of runs.
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from shareq.admin import Admin
from shareq.broker import Cluster
from shareq.log.records import decode
from shareq.model.errors import Errors, IllegalStateException, KafkaException
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC
from shareq.model.states import AcknowledgeType, IsolationLevel
from tests.broker.ledger import TERMINAL, Books
from tests.broker.probe import Probe
from tests.budgets import cases
from tests.consumer.watched import WatchedConsumer

RUNS = cases(4, 12, "SHAREQ_SEEDS")
ACTIONS = 150
TOPICS = {"orders": 3, "facts": 2}
"""Number of partitions by topic. Records of `orders` may be deleted, `facts` is compacted."""

COMPACTED = {"cleanup.policy": "compact", "segment.bytes": 14, "min.cleanable.dirty.ratio": 0}
SMALL_SEGMENTS = {"share.coordinator.state.topic.segment.bytes": 1000}
"""A compacted state topic is compacted up to its last segment."""

PLACES = [(topic, partition) for topic, partitions in TOPICS.items() for partition in range(partitions)]

UNSETTLED_MS = 150_000
"""Milliseconds after the last fault within which its effects end: locks of 30 s, heartbeats and back-offs."""

ACCEPT, RELEASE, REJECT, RENEW = list(AcknowledgeType)[1:]
VERDICTS = {ACCEPT: 65, RELEASE: 12, REJECT: 5, RENEW: 18}


class FaultyCluster:
    """A cluster, a group that works on it, and random faults from one generator."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        latency_ms = self.rng.choice([0, 0, 3])
        self.cluster = Cluster(brokers=3, seed=seed, latency_ms=latency_ms, config=SMALL_SEGMENTS)
        self.cluster.create_topic("orders", TOPICS["orders"])
        self.cluster.create_topic("facts", TOPICS["facts"], configs=COMPACTED)
        self.cluster.configure_group(
            "g", {"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": 100}
        )
        self.probe = Probe(self.cluster)
        self.admin = Admin({"bootstrap.servers": self.cluster.bootstrap_servers})
        self.consumers: list[WatchedConsumer] = []
        self.books = Books("g", self.offsets)
        self.read = 0
        for _ in range(2):
            self.join()

    # ---- actions -----------------------------------------------------------------------------------------------------

    def join(self) -> None:
        if len(self.consumers) < 5:
            consumer = WatchedConsumer(
                {
                    "bootstrap.servers": self.cluster.bootstrap_servers,
                    "group.id": "g",
                    "share.acknowledgement.mode": "explicit",
                    "share.acquire.mode": self.rng.choice(["batch_optimized", "record_limit"]),
                    "max.poll.records": self.rng.choice([1, 7, 50]),
                },
                virtual=True,
            )
            consumer.subscribe(list(TOPICS))
            self.consumers.append(consumer)

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

    def commit(self, consumer: WatchedConsumer) -> None:
        self.rng.choice([lambda: consumer.commit_sync(5), consumer.commit_async, lambda: None])()

    def subscribe(self) -> None:
        if self.consumers:
            consumer = self.rng.choice(self.consumers)
            if self.rng.random() < 0.3:
                consumer.unsubscribe()
            consumer.subscribe(self.rng.choice([["orders"], ["facts"], list(TOPICS)]))

    def leave(self) -> None:
        if self.consumers:
            self.consumers.pop(self.rng.randrange(len(self.consumers))).close()

    def crash(self) -> None:
        if self.consumers:
            self.cluster.crash(self.consumers.pop(self.rng.randrange(len(self.consumers))))

    def kill_broker(self) -> None:
        if len(self.cluster.brokers_alive) > 1:
            broker = self.rng.choice(self.cluster.brokers_alive)
            self.rng.choice([self.cluster.kill_broker, self.cluster.stop_broker])(broker)

    def start_broker(self) -> None:
        dead = set(self.cluster.image.brokers) - set(self.cluster.brokers_alive)
        if dead:
            self.cluster.start_broker(self.rng.choice(sorted(dead)))
            if self.rng.random() < 0.5:
                self.cluster.elect_preferred_leaders()

    def fail_writes(self) -> None:
        topic = self.rng.choice([SHARE_STATE_TOPIC, GROUP_METADATA_TOPIC])
        error = self.rng.choice([Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR, Errors.REQUEST_TIMED_OUT])
        self.cluster.fail_appends(topic, error, times=self.rng.randrange(1, 4))

    def cut(self) -> None:
        partition = self.rng.randrange(TOPICS["orders"])
        end = self.cluster.log("orders", partition).log_end_offset
        self.admin.delete_records({("orders", partition): self.rng.randrange(end + 1)}, timeout=5)

    def compact(self) -> None:
        storage = self.cluster._runtime.storage
        self.cluster.loop.enter(lambda: storage.clean(self.cluster.now_ms))

    def wait(self) -> None:
        self.cluster.advance(self.rng.choice([10, 1000, 20_000, 50_000]))

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
        while len(self.cluster.brokers_alive) < 3:
            self.start_broker()
        self.cluster.clear_faults()
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

    def accept_everything(self, consumer: WatchedConsumer) -> None:
        for message in consumer.poll(2.0):
            consumer.acknowledge(message)
        consumer.commit_sync(5)

    def check_locks(self) -> None:
        """Every lock has ended; the journal has no later event of a record below the window."""
        held = [place for place in self.books.holder if place[2] >= self.books.spso.get(place[:2], 0)]
        assert not held, f"still locked: {held}"


WEIGHTS = {
    "produce": 8,
    "work": 28,
    "renew": 2,
    "subscribe": 2,
    "join": 3,
    "leave": 2,
    "crash": 2,
    "kill_broker": 2,
    "start_broker": 3,
    "fail_writes": 2,
    "cut": 1,
    "compact": 1,
    "wait": 3,
}


@pytest.mark.every_persister
@pytest.mark.parametrize("run", range(RUNS))
def test_no_record_is_lost_or_accepted_twice_under_random_faults(seed: int, run: int) -> None:
    print(f"run {run} of seed {seed}")
    faulty = FaultyCluster(seed + run)
    for _ in range(ACTIONS):
        action = faulty.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        try:
            getattr(faulty, action)()
        except KafkaException as error:  # client calls can fail under faults; the ledger checks the records
            print(f"{action}: {error}")
        faulty.check()
    faulty.complete_all()
    faulty.cluster.advance(60_000)
    faulty.check()
    faulty.check_locks()
