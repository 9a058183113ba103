"""Share groups of `shareq serve --backend` beside Apache Kafka's own, on the topics of one broker, in one run.

    make bench ARGS='-k backend'

Broker, shareq and clients (confluent-kafka's) are processes of their own. The figures are the medians of the rounds'
own ratios.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient

from tests.bench.alternating import alternate, rates
from tests.bench.reported import REPORTED
from tests.bench.test_wire_bench import drain, fill, fresh, latencies_s
from tests.bench.wire_brokers import Kafka, Serving

RECORDS = 200_000
LATENCIES = 400
KILLS = 50


@pytest.fixture(scope="module")
def ways() -> Iterator[tuple[Kafka, Serving]]:
    """Kafka itself, and shareq with this Kafka as its backend."""
    kafka = Kafka()
    serving = Serving("--backend", kafka.bootstrap_servers)
    yield kafka, serving
    serving.stop()
    kafka.stop()


@pytest.mark.benchmark(timer=REPORTED)
@pytest.mark.parametrize("others", [0, 10, 1000])
def test_latency(benchmark: Any, ways: tuple[Kafka, Serving], others: int) -> None:
    """From produce to poll, one record at a time, after a topic of so many partitions was consumed. Aim: at most 1.5
    times Kafka's in each row."""
    benchmark.group = f"backend: latency, p50, {others:,} other partitions served before"
    for way in ways if others else ():
        read_all(way, others).close()
    compare_latencies(benchmark, ways)


@pytest.mark.benchmark(timer=REPORTED)
@pytest.mark.parametrize("others", [10, 1000])
def test_latency_beside(benchmark: Any, ways: tuple[Kafka, Serving], others: int) -> None:
    """The same while a member of another group waits for records of so many partitions."""
    benchmark.group = f"backend: latency, p50, {others:,} other partitions served meanwhile"
    ended = threading.Event()
    with ThreadPoolExecutor() as pool:
        for consumer in [read_all(way, others) for way in ways]:
            pool.submit(wait_for_records, consumer, ended)
        try:
            compare_latencies(benchmark, ways)
        finally:
            ended.set()


def compare_latencies(benchmark: Any, ways: tuple[Kafka, Serving]) -> None:
    p99s_s: dict[Any, list[float]] = {way: [] for way in ways}

    def p50_s(way: Kafka | Serving) -> float:
        found = sorted(latencies_s(way, LATENCIES))
        p99s_s[way].append(found[len(found) * 99 // 100])
        return statistics.median(found)

    rounds = alternate(benchmark, ways, p50_s)
    benchmark.extra_info["Kafka p50, ms"] = round(1000 * statistics.median(native for native, _ in rounds), 2)
    benchmark.extra_info["times"] = round(statistics.median(ours / native for native, ours in rounds), 2)
    for name, way in zip(("Kafka p99, ms", "p99, ms"), ways, strict=True):
        benchmark.extra_info[name] = round(1000 * statistics.median(p99s_s[way]), 1)


def read_all(way: Kafka | Serving, partitions: int) -> ShareConsumer:
    """A consumer that has read a new topic of so many partitions."""
    topic, group = fresh(way, partitions)
    left = 10 * partitions
    fill(way, topic, left)
    consumer = ShareConsumer({"bootstrap.servers": way.bootstrap_servers, "group.id": group, "log_level": 0})
    consumer.subscribe([topic])
    while left > 0:
        left -= len([message for message in consumer.poll(1.0) if not message.error()])
    return consumer


def wait_for_records(consumer: ShareConsumer, ended: threading.Event) -> None:
    while not ended.is_set():
        consumer.poll(0.5)
    consumer.close()


@pytest.mark.benchmark(timer=REPORTED)
@pytest.mark.parametrize("consumers", [1, 2])
def test_consume(benchmark: Any, ways: tuple[Kafka, Serving], consumers: int) -> None:
    """Aim: at least 0.7 of Kafka's rate."""
    benchmark.group = f"backend: consume {RECORDS:,} x 100 B, {consumers} ShareConsumer processes, 1 partition"
    rounds = alternate(benchmark, ways, lambda way: drain(way, consumers, 1, RECORDS))
    rates(benchmark, rounds, RECORDS, "Kafka")


@pytest.mark.benchmark(group="backend: from a kill to the next record", timer=REPORTED)
def test_recovery(benchmark: Any) -> None:
    """The process is killed and started again while a consumer polls. Aim: at most 10 s, at the worst of 50."""
    kafka = Kafka()
    serving = Serving("--backend", kafka.bootstrap_servers)
    topic, group = fresh(serving, 1)
    fill(serving, topic, 10_000)
    consumer = impatient(serving.bootstrap_servers, topic, group)
    receive(consumer, 0)

    def run() -> None:
        nonlocal serving
        kill(serving)
        serving = started_again(serving, kafka)
        receive(consumer, 0)

    recoveries(benchmark, run)
    consumer.close()
    serving.stop()
    kafka.stop()


@pytest.mark.timeout(900)
@pytest.mark.benchmark(group="backend: from a kill of one of three to the next record of its partition", timer=REPORTED)
def test_recovery_of_three(benchmark: Any) -> None:
    """The processes are killed in turn, and the others lead on. Aim: at most 10 s, at the worst of 50."""
    kafka = Kafka()
    fleet = [Serving("--backend", kafka.bootstrap_servers) for _ in range(3)]
    servers = ",".join(serving.bootstrap_servers for serving in fleet)
    topic, group = fresh(fleet[0], 3)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
    consumer = impatient(servers, topic, group)

    def produce_to(partition: int) -> None:
        producer.produce(topic, b"x", partition=partition)
        producer.flush()
        receive(consumer, partition)

    def all_lead() -> tuple[tuple[int], dict[str, object]]:
        """Wait until each leads a partition; that of the process to kill next."""
        for number, serving in enumerate(fleet):
            if serving.process.poll() is not None:
                fleet[number] = started_again(serving, kafka)
        while len(led := leaders(servers, topic)) < 3:
            continue
        for partition in led.values():
            produce_to(partition)
        fleet.append(fleet.pop(0))
        return (led[fleet[0].bootstrap_servers],), {}

    def run(partition: int) -> None:
        kill(fleet[0])
        produce_to(partition)

    recoveries(benchmark, run, all_lead)
    consumer.close()
    for serving in fleet[1:]:
        serving.stop()
    kafka.stop()


def recoveries(benchmark: Any, run: Callable[..., None], setup: Callable[[], object] | None = None) -> None:
    waits: list[float] = []

    def timed(*arguments: Any) -> None:
        begun = time.perf_counter()
        run(*arguments)
        waits.append(time.perf_counter() - begun)
        REPORTED.now += waits[-1]

    benchmark.pedantic(timed, setup=setup, rounds=KILLS)
    benchmark.extra_info["median, s"] = round(statistics.median(waits), 2)
    benchmark.extra_info["worst, s"] = round(max(waits), 2)


def kill(serving: Serving) -> None:
    serving.process.kill()
    serving.process.communicate()


def started_again(serving: Serving, kafka: Kafka) -> Serving:
    """A process at the port of one that was killed."""
    port = int(serving.bootstrap_servers.rpartition(":")[2])
    return Serving("--backend", kafka.bootstrap_servers, port=port)


def leaders(servers: str, topic: str) -> dict[str, int]:
    """Address of a process -> a partition that it leads."""
    found = AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(topic)
    brokers = {node: f"{broker.host}:{broker.port}" for node, broker in found.brokers.items()}
    led = found.topics[topic].partitions.items()
    return {brokers[at.leader]: partition for partition, at in led if at.leader in brokers}


def impatient(servers: str, topic: str, group: str) -> ShareConsumer:
    """A consumer that connects again at once."""
    quick = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200, "max.poll.records": 10, "log_level": 0}
    consumer = ShareConsumer({"bootstrap.servers": servers, "group.id": group, **quick})
    consumer.subscribe([topic])
    return consumer


def receive(consumer: ShareConsumer, partition: int) -> None:
    """Poll until a record of the partition arrives; errors of a broken connection are passed."""
    while True:
        try:
            found = [message.partition() for message in consumer.poll(0.1) if not message.error()]
        except KafkaException:
            continue
        if partition in found:
            return
