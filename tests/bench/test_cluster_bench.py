"""What a cluster in process costs: end to end, per consumer, per share-partition, at start-up.

    make bench ARGS='-k cluster'

Journal off unless said; every figure is per delivered record, and `extra_info` holds the rate.
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
    """A cluster whose topic holds `records` records of 100 bytes, in batches of 500."""
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
    """Members that have their assignment."""
    consumers = [
        ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"}) for _ in range(members)
    ]
    for consumer in consumers:
        consumer.subscribe(["work"])
        consumer.poll(0)
    assert cluster.wait(lambda: all(consumer.assignment() for consumer in consumers), 120)
    return consumers


def reached(consumers: list[ShareConsumer]) -> set[ShareConsumer]:
    """A set that each consumer enters when a message reaches it: to ask a thousand members whether they have something
    would cost more than what is measured, and threads that sleep in `poll` need not be asked either.
    """
    heard: set[ShareConsumer] = set()

    def listen(consumer: ShareConsumer) -> None:
        core = consumer._core
        handle = core.handle

        def listening(message: Message, now_ms: int) -> list[Effect]:
            heard.add(consumer)
            return handle(message, now_ms)

        core.handle = listening  # type: ignore[method-assign]

    for consumer in consumers:
        listen(consumer)
    return heard


def consume(cluster: Cluster, consumers: list[ShareConsumer], records: int) -> int:
    """Let the members take turns until they have had so many records; every value is looked at.

    A member takes a turn when it has something, and after that once more, which sends what it accepts: as where each
    has a thread of its own that sleeps in `poll`.
    """
    seen = size = 0
    heard = reached(consumers)
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
        turn = busy + [c for c in heard.difference(busy) if c._core.poll_ready()]
        heard.clear()
    for consumer in consumers:
        del consumer._core.handle  # the listener of this call
    assert size == records * len(VALUE)
    return seen


@pytest.mark.parametrize("journal", [False, True], ids=["journal off", "journal on"])
def test_end_to_end(benchmark: Any, journal: bool) -> None:
    """The tour's number of records through producer, share group and consumer."""

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

    Measured when members have joined and a first record batch of each partition is done: what opening a share-partition
    and a share session costs is paid once, not by the record. With the garbage collector on, CPython walks through all
    records that a thousand clients hold at once in one process: clients with a process each do not meet that, hence
    both figures.
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
    """`import shareq` in a process of its own, less what an empty process takes (see `empty process`)."""
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", "import shareq"], check=True), rounds=10)


def test_empty_process(benchmark: Any) -> None:
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), rounds=10)
