"""`shareq serve` and Apache Kafka with growing numbers of consumers and partitions, in one run.

    make bench ARGS='-k growth_wire'

1, 10 and 100 of confluent-kafka's share consumers, in two processes, read a topic of 1, 10 and 100 partitions in one
group:

    records/s   200,000 records of 100 bytes, in batches of 500, are produced before the joined consumers start to poll
    p50, p99    from produce to the return of the poll, of 100 records per second that are produced one by one

Medians of three rounds; the brokers are measured in turn, so that other load of the machine affects both.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from typing import Any, NamedTuple, Self

import pytest

from shareq import Admin, NewTopic
from tests.bench.wire_brokers import ROOT, START, Broker
from tests.bench.wire_clients import VALUE
from tests.bench.wire_team import SENT

GROWTH = (1, 10, 100)
ROUNDS = 3
RECORDS = 200_000
BATCH_RECORDS = 500
PACED_RECORDS, PACE_S = 300, 0.01
PROCESSES = 2
PATIENCE_S = 60
FETCH_ENDS_S = 0.75
"""Seconds to wait after `hold`: a fetch in flight waits for 0.5 s, and its records would not be measured."""

_numbers = count(1)


class Measured(NamedTuple):
    """Records per second; milliseconds from produce to poll."""

    rate: float
    p50_ms: float
    p99_ms: float


class Process:
    """A process with some of the consumers; see `wire_team`."""

    def __init__(self, broker: Broker, topic: str, group: str, size: int) -> None:
        command = [sys.executable, "-m", "tests.bench.wire_team", broker.bootstrap_servers, topic, group, str(size)]
        self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def send(self, line: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(f"{line}\n")
        self._popen.stdin.flush()

    def read_line(self) -> str:
        assert self._popen.stdout is not None
        return self._popen.stdout.readline()

    def end(self) -> None:
        self._popen.communicate(timeout=PATIENCE_S)
        assert self._popen.returncode == 0


class Stage:
    """A topic, a producer, and consumers that have joined: the set-up of one measurement."""

    def __init__(self, broker: Broker, consumers: int, partitions: int) -> None:
        from confluent_kafka import Producer

        number = next(_numbers)
        self._topic, self._partitions = f"grown-{number}", partitions
        group = f"grown-{number}"
        with closing(Admin({"bootstrap.servers": broker.bootstrap_servers})) as admin:
            admin.create_topics([NewTopic(self._topic, partitions)]).check()
            admin.alter_group_configs(group, {"share.auto.offset.reset": "earliest"})
            sizes = [(consumers + i) // PROCESSES for i in range(PROCESSES)]
            self._team = [Process(broker, self._topic, group, size) for size in sizes if size]
            _until(lambda: _all_have_joined(admin, group, consumers, partitions))
        settings = {"batch.num.messages": BATCH_RECORDS, "queue.buffering.max.messages": RECORDS}
        self._filler = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 100, **settings})
        self._pacer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self._team:
            process.end()

    def rate(self, records: int) -> float:
        """Records per second of consumers that start to poll records produced before."""
        self._send("hold")
        for process in self._team:
            assert process.read_line() == "\n"
        time.sleep(FETCH_ENDS_S)
        for i in range(records):
            self._filler.produce(self._topic, VALUE, partition=i // BATCH_RECORDS % self._partitions)
        assert self._filler.flush(PATIENCE_S) == 0
        began = time.monotonic()
        self._send("run")
        return records / (self._last_of(records) - began)

    def latencies_ms(self) -> list[float]:
        """Latency of each record in milliseconds, at a rate far below the capacity."""
        self._send("time")
        began = time.monotonic()
        for i in range(PACED_RECORDS):
            time.sleep(max(0, began + i * PACE_S - time.monotonic()))
            value = SENT.pack(time.monotonic()) + VALUE[SENT.size :]
            self._pacer.produce(self._topic, value, partition=i % self._partitions)
            self._pacer.poll(0)
        self._last_of(PACED_RECORDS)
        return [latency * 1000 for report in self._report() for latency in report["latencies"]]

    def _last_of(self, records: int) -> float:
        """Time at which the last of `records` records arrived."""
        _until(lambda: sum(report["count"] for report in self._report()) >= records)
        return float(max(report["last"] for report in self._report()))

    def _send(self, line: str) -> None:
        for process in self._team:
            process.send(line)

    def _report(self) -> list[dict[str, Any]]:
        self._send("report")
        return [json.loads(process.read_line()) for process in self._team]


def _until(done: Any) -> None:
    """Wait until the condition holds; it is checked rarely, so that checking is no load."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _all_have_joined(admin: Admin, group: str, consumers: int, partitions: int) -> bool:
    """True if every member has a partition and every partition has a member."""
    (described,) = admin.describe_share_groups([group]).values()
    if described.error is not None:
        return False
    given = [member.assignment for member in described.members]
    return len(given) == consumers and all(given) and len({at for one in given for at in one}) == partitions


def measure(broker: Broker, consumers: int, partitions: int) -> Measured:
    with Stage(broker, consumers, partitions) as stage:
        stage.rate(RECORDS)  # warm-up: metadata is loaded, and Java has compiled
        rates = [stage.rate(RECORDS) for _ in range(ROUNDS)]
        latencies = [statistics.quantiles(stage.latencies_ms(), n=100) for _ in range(ROUNDS)]
    p50, p99 = (statistics.median(way[percentile - 1] for way in latencies) for percentile in (50, 99))
    return Measured(statistics.median(rates), p50, p99)


@pytest.fixture(scope="module")
def brokers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    _print(request, HEAD)
    with ExitStack() as stack:
        started = {}
        for name, start in START.items():
            started[name] = start()
            stack.callback(started[name].stop)
        yield started


HEAD = """\
                              records/s                   p50, ms                   p99, ms
consumers partitions    shareq     Kafka  ratio    shareq    Kafka  ratio    shareq    Kafka  ratio"""


def _line(consumers: int, partitions: int, shareq_: Measured, kafka: Measured) -> str:
    rates = f"{shareq_.rate:10,.0f}{kafka.rate:10,.0f}{shareq_.rate / kafka.rate:7.2f}"
    latencies = [(shareq_.p50_ms, kafka.p50_ms), (shareq_.p99_ms, kafka.p99_ms)]
    return f"{consumers:9}{partitions:11}{rates}" + "".join(f"{a:10.2f}{b:9.2f}{a / b:7.2f}" for a, b in latencies)


def _print(request: pytest.FixtureRequest, text: str) -> None:
    """Print past pytest's capture, so that a row is visible as soon as it is measured."""
    plugin = request.config.pluginmanager.getplugin
    reporter: Any = plugin("terminalreporter")
    capture: Any = plugin("capturemanager")
    with capture.global_and_fixture_disabled():
        reporter.write(f"\n{text} ")


@pytest.mark.benchmark(group="growth: consumers x partitions")
@pytest.mark.parametrize("partitions", GROWTH)
@pytest.mark.parametrize("consumers", GROWTH)
def test_growth_wire(
    benchmark: Any, request: pytest.FixtureRequest, brokers: dict[str, Broker], consumers: int, partitions: int
) -> None:
    """Aim: as many records/s as Kafka, half of its latency."""

    def run() -> dict[str, Measured]:
        return {name: measure(broker, consumers, partitions) for name, broker in brokers.items()}

    measured = benchmark.pedantic(run, rounds=1)
    _print(request, _line(consumers, partitions, measured["shareq"], measured["kafka"]))
    for name, figures in measured.items():
        benchmark.extra_info[name] = figures._asdict()
