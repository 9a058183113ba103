"""Cost of a cluster in process: end to end, per consumer, per share-partition, at start-up.

    make bench ARGS='-k cluster'

The journal is off unless the id has it on; every figure is per delivered record, and `extra_info` has the rate.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import pytest

from shareq.broker import Cluster
from shareq.consumer import ShareConsumer
from shareq.model.actor import Effect, Message
from shareq.producer import Producer

TOUR_RECORDS = 336_776
VALUE = b"x" * 100
BATCH_RECORDS = 500
QUEUE_RECORDS = 50_000


def filled(records: int, partitions: int, **arguments: Any) -> Cluster:
    """A cluster with a topic of `records` records of 100 bytes, in batches of 500."""
    cluster = Cluster(brokers=3, seed=1, **arguments)
    cluster.create_topic("work", partitions)
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
    produce(cluster, records, partitions, **{"batch.num.messages": BATCH_RECORDS})
    return cluster


def produce(cluster: Cluster, records: int, partitions: int, **config: Any) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5, **config})
    for first in range(0, records, BATCH_RECORDS):
        partition = first // BATCH_RECORDS % partitions
        for _ in range(min(BATCH_RECORDS, records - first)):
            producer.produce("work", VALUE, partition=partition)
        if len(producer) >= QUEUE_RECORDS:
            producer.flush()
    assert producer.flush() == 0


def group_of(cluster: Cluster, members: int) -> list[ShareConsumer]:
    """Consumers that have their assignment."""
    consumers = [
        ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"}) for _ in range(members)
    ]
    for consumer in consumers:
        consumer.subscribe(["work"])
        consumer.poll(0)
    assert cluster.wait(lambda: all(consumer.assignment() for consumer in consumers), 120)
    return consumers


def reached(consumers: list[ShareConsumer]) -> set[ShareConsumer]:
    """A set that receives each consumer for which a message arrives.

    Checking a thousand members for messages would cost more than what is measured.
    """
    active: set[ShareConsumer] = set()

    def watch(consumer: ShareConsumer) -> None:
        core = consumer._core
        handle = core.handle

        def handle_and_note(message: Message, now_ms: int) -> list[Effect]:
            active.add(consumer)
            return handle(message, now_ms)

        core.handle = handle_and_note  # type: ignore[method-assign]

    for consumer in consumers:
        watch(consumer)
    return active


def consume(cluster: Cluster, consumers: list[ShareConsumer], records: int) -> int:
    """Poll the members in turn until they have returned `records` records; every value is read.

    A member is polled when a message has arrived for it, and once more after a poll with records, which sends the
    acknowledgements: as if each slept in `poll` in its own thread.
    """
    seen = size = 0
    active = reached(consumers)
    turn = consumers
    while seen < records:
        busy = []
        for consumer in turn:
            messages = consumer.poll(0)
            if messages:
                busy.append(consumer)
                seen += len(messages)
                size += sum(map(len, messages))
        cluster.advance(1)
        turn = busy + [c for c in active.difference(busy) if c._core.poll_ready()]
        active.clear()
    for consumer in consumers:
        del consumer._core.handle  # restores the method of the class
    assert size == records * len(VALUE)
    return seen


@pytest.mark.parametrize("journal", [False, True], ids=["journal off", "journal on"])
def test_end_to_end(benchmark: Any, journal: bool) -> None:
    """As many records as the tour has, through producer, share group and consumer."""

    def setup() -> tuple[tuple[Cluster, list[ShareConsumer]], dict[str, Any]]:
        cluster = filled(4, 4, journal=journal)
        consumers = group_of(cluster, 6)
        consume(cluster, consumers, 4)
        return (cluster, consumers), {}

    def run(cluster: Cluster, consumers: list[ShareConsumer]) -> None:
        produce(cluster, TOUR_RECORDS, 4)
        assert consume(cluster, consumers, TOUR_RECORDS) == TOUR_RECORDS

    benchmark.pedantic(run, setup=setup, rounds=3)
    benchmark.extra_info["records/s"] = round(TOUR_RECORDS / benchmark.stats.stats.median)


GROWTH_CONFIG = {"group.share.max.size": 1000, "group.share.assignment.interval.ms": 0}


@pytest.mark.parametrize("collector", ["off", "on"])
@pytest.mark.parametrize("partitions", [1, 10, 100, 1000])
@pytest.mark.parametrize("members", [1, 10, 100, 1000])
def test_growth(benchmark: Any, members: int, partitions: int, collector: str) -> None:
    """The cost of a delivered record must not grow with the group or the topic.

    The measurement starts after members have joined and the first record batch of each partition is done: opening a
    share-partition and a share session costs once, not per record. With the garbage collector on, CPython walks through
    all records that a thousand clients in one process hold at once. Clients in separate processes do not have that
    cost, so both figures are measured.
    """
    records = max(400, partitions) * BATCH_RECORDS

    def setup() -> tuple[tuple[Cluster, list[ShareConsumer]], dict[str, Any]]:
        first = partitions * BATCH_RECORDS
        cluster = filled(first, partitions, journal=False, config=GROWTH_CONFIG)
        consumers = group_of(cluster, members)
        consume(cluster, consumers, first)
        produce(cluster, records, partitions, **{"batch.num.messages": BATCH_RECORDS})
        gc.collect()
        if collector == "off":
            gc.disable()
        return (cluster, consumers), {}

    def run(cluster: Cluster, consumers: list[ShareConsumer]) -> None:
        assert consume(cluster, consumers, records) == records
        gc.enable()

    benchmark.pedantic(run, setup=setup, rounds=3)
    benchmark.extra_info["us/record"] = round(benchmark.stats.stats.median / records * 1e6, 2)


def test_a_cluster_of_three_brokers_starts(benchmark: Any) -> None:
    benchmark(lambda: Cluster(brokers=3).close())


def test_import(benchmark: Any) -> None:
    """`import shareq` in a new process; subtract `test_empty_process`."""
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", "import shareq"], check=True), rounds=10)


def test_empty_process(benchmark: Any) -> None:
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), rounds=10)
