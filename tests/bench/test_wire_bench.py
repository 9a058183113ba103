"""confluent-kafka's clients with `shareq serve` and with Apache Kafka, in one run.

    make bench ARGS='-k wire'

Brokers and clients are separate processes. Every figure is a median of three; the table of pytest-benchmark for each
group has the ratio. The table shows what a client measures, not the duration of its process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from shareq import Admin, NewTopic
from tests.bench.reported import REPORTED
from tests.bench.wire_brokers import ROOT, START, Broker, resident_mb
from tests.bench.wire_clients import VALUE

RECORDS = 500_000
ROUNDS = 3
BROKERS = list(START)
_numbers = count(1)


@pytest.fixture(scope="module", params=BROKERS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    running = START[request.param]()
    yield running
    running.stop()


class Client:
    """A process with one of confluent-kafka's clients."""

    def __init__(self, role: str, broker: Broker, topic: str, group: str, records: int) -> None:
        given = [role, broker.bootstrap_servers, topic, group, str(records)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.wire_clients", *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def wait_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def turn(self) -> list[float]:
        """The seconds of the records of one more turn, in the role `turns`."""
        self.go()
        assert self.process.stdout is not None
        found: list[float] = json.loads(self.process.stdout.readline())
        return found

    def result(self) -> Any:
        out, _ = self.process.communicate(timeout=300)
        assert self.process.returncode == 0
        return json.loads(out)


def fresh(broker: Broker, partitions: int) -> tuple[str, str]:
    """A new topic, and a group that starts at its beginning."""
    number = next(_numbers)
    topic, group = f"work-{number}", f"group-{number}"
    admin = Admin({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions)]).check()
    admin.alter_group_configs(group, {"share.auto.offset.reset": "earliest"})
    admin.close()
    return topic, group


def fill(broker: Broker, topic: str, records: int) -> float:
    producer = Client("produce", broker, topic, "", records)
    producer.wait_ready()
    producer.go()
    return float(producer.result()["seconds"])


def latencies_s(broker: Broker, records: int) -> list[float]:
    """Seconds from produce to poll, of one record after the other."""
    topic, group = fresh(broker, 1)
    client = Client("latency", broker, topic, group, records)
    client.wait_ready()
    client.go()
    found: list[float] = client.result()["seconds"]
    return found


@pytest.mark.benchmark(group="produce 500,000 x 100 B", timer=REPORTED)
def test_produce(benchmark: Any, broker: Broker) -> None:
    """Aim: at least 0.8 of Kafka's rate."""

    def run() -> None:
        topic, _ = fresh(broker, 1)
        REPORTED.now += fill(broker, topic, RECORDS)

    benchmark.pedantic(run, rounds=ROUNDS)
    benchmark.extra_info["records/s"] = round(RECORDS / benchmark.stats.stats.median)


def drain(broker: Broker, consumers: int, partitions: int, records: int) -> float:
    """Seconds from the first delivered record to the last; the consumers join before records are delivered."""
    topic, group = fresh(broker, partitions)
    fill(broker, topic, records)
    team = [Client("consume", broker, topic, group, records) for _ in range(consumers)]
    for client in team:
        client.wait_ready()
    for client in team:
        client.go()
    results = [client.result() for client in team]
    assert sum(result["count"] for result in results) == records
    return float(max(r["last"] for r in results) - min(r["first"] for r in results if r["count"]))


@pytest.mark.benchmark(timer=REPORTED)
@pytest.mark.parametrize("consumers", [1, 2])
def test_consume(benchmark: Any, broker: Broker, consumers: int) -> None:
    """Aim: level with Kafka."""
    benchmark.group = f"consume 500,000 x 100 B, {consumers} ShareConsumer processes, 1 partition"

    def run() -> None:
        REPORTED.now += drain(broker, consumers, 1, RECORDS)

    benchmark.pedantic(run, rounds=ROUNDS)
    benchmark.extra_info["records/s"] = round(RECORDS / benchmark.stats.stats.median)
    benchmark.extra_info["resident MB"] = resident_mb(broker)


@pytest.mark.benchmark(timer=REPORTED)
@pytest.mark.parametrize("percentile", [50, 99])
def test_latency(benchmark: Any, broker: Broker, percentile: int) -> None:
    """From produce to poll, one record at a time. Aim: half of Kafka's latency."""
    benchmark.group = f"latency, p{percentile}"

    def run() -> None:
        REPORTED.now += statistics.quantiles(latencies_s(broker, 1000), n=100)[percentile - 1]

    benchmark.pedantic(run, rounds=ROUNDS)


@pytest.mark.benchmark(group="from the start to the first response")
@pytest.mark.parametrize("name", BROKERS)
def test_start(benchmark: Any, name: str) -> None:
    """Aim: a tenth of Kafka's time. `resident MB`: memory after the first response."""
    started: list[Broker] = []

    def run() -> None:
        started.append(START[name]())
        admin = Admin({"bootstrap.servers": started[-1].bootstrap_servers})
        admin.list_topics()
        admin.close()

    def stop() -> None:
        while started:
            benchmark.extra_info["resident MB"] = resident_mb(started[-1])
            started.pop().stop()

    benchmark.pedantic(run, setup=stop, rounds=ROUNDS)
    stop()


assert len(VALUE) == 100
