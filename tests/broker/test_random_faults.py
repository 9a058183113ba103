"""A cluster under random faults: consumers die, brokers are killed, coordinators move, writes fail.

First a phase of trouble, in which nothing wrong may happen; then a phase of peace, in which everything must get done.
The journal is checked line by line by naive books: no record held by two, none accepted twice, none lost.
"""

from __future__ import annotations

import os
import random

import pytest

from shareq.broker import Cluster
from shareq.consumer import ShareConsumer
from shareq.model.errors import Errors, KafkaException
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC
from shareq.model.states import AcknowledgeType
from tests.broker.ledger import TERMINAL, Books
from tests.broker.probe import Probe

RUNS = 24 if os.environ.get("CI") else 8
ACTIONS = 150
PARTITIONS = 3


class Trouble:
    """A cluster, a group that works on it, and everything that can go wrong, by one generator."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster(brokers=3, seed=seed, latency_ms=self.rng.choice([0, 0, 3]))
        self.cluster.create_topic("orders", PARTITIONS)
        self.cluster.configure_group(
            "g", {"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": 100}
        )
        self.probe = Probe(self.cluster)
        self.produced = [0] * PARTITIONS
        self.consumers: list[ShareConsumer] = []
        self.books = Books("g")
        self.read = 0
        for _ in range(2):
            self.join()

    # ---- what can happen ---------------------------------------------------------------------------------------------

    def join(self, max_poll_records: int | None = None) -> None:
        if len(self.consumers) < 5:
            consumer = ShareConsumer(
                {
                    "bootstrap.servers": self.cluster.bootstrap_servers,
                    "group.id": "g",
                    "share.acknowledgement.mode": "explicit",
                    "share.acquire.mode": self.rng.choice(["batch_optimized", "record_limit"]),
                    "max.poll.records": max_poll_records or self.rng.choice([1, 7, 50]),
                }
            )
            consumer.subscribe(["orders"])
            self.consumers.append(consumer)

    def produce(self) -> None:
        partition = self.rng.randrange(PARTITIONS)
        leader = self.cluster.image.topics["orders"].partitions[partition].leader
        if leader >= 0:
            count = self.rng.randrange(1, 40)
            done = self.probe.produce("orders", *["x"] * count, partition=partition)
            if not done.error_code:
                self.produced[partition] += count

    def work(self) -> None:
        if self.consumers:
            consumer = self.rng.choice(self.consumers)
            for message in consumer.poll(self.rng.choice([0, 0.1, 2.0])):
                weights = [80, 15, 5]
                verdict = self.rng.choices(list(AcknowledgeType)[1:4], weights)[0]
                consumer.acknowledge(message, verdict)
            if self.rng.random() < 0.5:
                consumer.commit_sync(5)

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

    def wait(self) -> None:
        self.cluster.advance(self.rng.choice([10, 1000, 20_000, 50_000]))

    # ---- what must hold ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        self.books.read(self.cluster.journal.since(self.read))
        self.read = self.cluster.journal.total
        twice = [place for place, times in self.books.accepted.items() if times > 1]
        assert not twice, f"accepted twice: {twice}"

    def is_done(self) -> bool:
        """Every record that was produced is terminal, or below the SPSO."""
        return all(
            self.books.state.get(("orders", partition, offset)) in TERMINAL
            or offset < self.books.spso.get(("orders", partition), 0)
            for partition, count in enumerate(self.produced)
            for offset in range(count)
        )

    def make_peace(self) -> None:
        """All brokers up, no faults left over, one patient consumer that accepts everything."""
        while len(self.cluster.brokers_alive) < 3:
            self.start_broker()
        self.cluster.clear_faults()
        while self.consumers:
            self.crash()
        self.join(max_poll_records=50)
        consumer = self.consumers[0]
        for _ in range(400):
            for message in consumer.poll(2.0):
                consumer.acknowledge(message)
            consumer.commit_sync(5)
            self.check()
            if self.is_done():
                return
        pytest.fail(f"not done after 400 polls of peace: produced {self.produced}, spso {self.books.spso}")


WEIGHTS = {
    "produce": 8,
    "work": 30,
    "join": 3,
    "leave": 2,
    "crash": 2,
    "kill_broker": 2,
    "start_broker": 3,
    "fail_writes": 2,
    "wait": 3,
}


@pytest.mark.parametrize("run", range(RUNS))
def test_nothing_is_lost_and_nothing_happens_twice(seed: int, run: int) -> None:
    print(f"run {run} of seed {seed}")
    trouble = Trouble(seed + run)
    for _ in range(ACTIONS):
        action = trouble.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        try:
            getattr(trouble, action)()
        except KafkaException as error:  # clients may fail in bad times; the books tell whether that was all
            print(f"{action}: {error}")
        trouble.check()
    trouble.make_peace()
    assert trouble.is_done()
