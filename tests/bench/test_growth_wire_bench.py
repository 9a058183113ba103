"""How `shareq serve` and Apache Kafka bear more consumers and more partitions, side by side in one run.

    make bench ARGS='-k growth_wire'

1, 10 and 100 of confluent's share consumers, in two processes, read one group's topic of 1, 10 and 100 partitions:

    records/s   they have joined and wait; 200,000 records of 100 bytes, in batches of 500, lie there; they are let go
    p50, p99    from produce to the return of the poll, of 100 records a second that are produced one by one

Medians of three rounds; the two brokers take turns, so that what else the machine does befalls both.
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
"""A fetch that a consumer has sent before it was held waits for 0.5 s; what it gets would be had for nothing."""

_numbers = count(1)


class Measured(NamedTuple):
    """Records a second; milliseconds from produce to poll."""

    rate: float
    p50_ms: float
    p99_ms: float


class Process:
    """Some consumers; see `wire_team`."""

    def __init__(self, broker: Broker, topic: str, group: str, size: int) -> None:
        command = [sys.executable, "-m", "tests.bench.wire_team", broker.bootstrap_servers, topic, group, str(size)]
        self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def say(self, line: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(f"{line}\n")
        self._popen.stdin.flush()

    def heard(self) -> str:
        assert self._popen.stdout is not None
        return self._popen.stdout.readline()

    def end(self) -> None:
        self._popen.communicate(timeout=PATIENCE_S)
        assert self._popen.returncode == 0


class Scene:
    """A topic, a producer, and consumers that have joined: what one figure is measured on."""

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
        """Records a second of a team that is let go on what lies there."""
        self._say("hold")
        for process in self._team:
            assert process.heard() == "\n"
        time.sleep(FETCH_ENDS_S)
        for i in range(records):
            self._filler.produce(self._topic, VALUE, partition=i // BATCH_RECORDS % self._partitions)
        assert self._filler.flush(PATIENCE_S) == 0
        began = time.monotonic()
        self._say("run")
        return records / (self._last_of(records) - began)

    def ways_ms(self) -> list[float]:
        """How long each record was on its way, at a pace that leaves everybody time."""
        self._say("time")
        began = time.monotonic()
        for i in range(PACED_RECORDS):
            time.sleep(max(0, began + i * PACE_S - time.monotonic()))
            value = SENT.pack(time.monotonic()) + VALUE[SENT.size :]
            self._pacer.produce(self._topic, value, partition=i % self._partitions)
            self._pacer.poll(0)
        self._last_of(PACED_RECORDS)
        return [way * 1000 for told in self._tell() for way in told["ways"]]

    def _last_of(self, records: int) -> float:
        """When the last of so many had come."""
        _until(lambda: sum(told["count"] for told in self._tell()) >= records)
        return float(max(told["last"] for told in self._tell()))

    def _say(self, line: str) -> None:
        for process in self._team:
            process.say(line)

    def _tell(self) -> list[dict[str, Any]]:
        self._say("tell")
        return [json.loads(process.heard()) for process in self._team]


def _until(done: Any) -> None:
    """The answer is not asked for so often that asking becomes the load."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _all_have_joined(admin: Admin, group: str, consumers: int, partitions: int) -> bool:
    """Every member has something, and everything has somebody."""
    (described,) = admin.describe_share_groups([group]).values()
    if described.error is not None:
        return False
    given = [member.assignment for member in described.members]
    return len(given) == consumers and all(given) and len({at for one in given for at in one}) == partitions


def measure(broker: Broker, consumers: int, partitions: int) -> Measured:
    with Scene(broker, consumers, partitions) as scene:
        scene.rate(RECORDS)  # everybody has found everybody, and Java has compiled
        rates = [scene.rate(RECORDS) for _ in range(ROUNDS)]
        ways = [statistics.quantiles(scene.ways_ms(), n=100) for _ in range(ROUNDS)]
    p50, p99 = (statistics.median(way[percentile - 1] for way in ways) for percentile in (50, 99))
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


def _line(consumers: int, partitions: int, ours: Measured, theirs: Measured) -> str:
    rates = f"{ours.rate:10,.0f}{theirs.rate:10,.0f}{ours.rate / theirs.rate:7.2f}"
    ways = [(ours.p50_ms, theirs.p50_ms), (ours.p99_ms, theirs.p99_ms)]
    return f"{consumers:9}{partitions:11}{rates}" + "".join(f"{a:10.2f}{b:9.2f}{a / b:7.2f}" for a, b in ways)


def _print(request: pytest.FixtureRequest, text: str) -> None:
    """A row can be read when it is there."""
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
    """Aim: level with Kafka in records/s, half of its latency."""

    def run() -> dict[str, Measured]:
        return {name: measure(broker, consumers, partitions) for name, broker in brokers.items()}

    measured = benchmark.pedantic(run, rounds=1)
    _print(request, _line(consumers, partitions, measured["shareq"], measured["kafka"]))
    for name, figures in measured.items():
        benchmark.extra_info[name] = figures._asdict()
