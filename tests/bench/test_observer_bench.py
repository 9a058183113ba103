"""Cost of a poll of 100 share groups with 100 partitions each, on the observer and on the broker.

The table shows the observer's processor time of a poll; `extra_info` has the broker's, the requests and the bytes in
both directions. `one topic`: all groups read the same 100 logs; `own topics`: each group has a topic, 10,000 logs in
all. `idle`: nothing has changed since the last poll; `one group moves`: 100 SPSOs have moved, and records wait; `all
wait`: records wait in all share-partitions, and no SPSO has moved.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq import Admin, Monitor, NewTopic, Producer, TopicPartition, monitor
from shareq.observer.health import Verdict
from shareq.wire.client.frame_socket import FrameSocket
from shareq.wire.frames import FrameReader
from tests.bench.wire_brokers import START, Broker
from tests.observer.health.stage import Spy

GROUPS, PARTITIONS, RECORDS = 100, 100, 10
ROUNDS = 10
TICKS = os.sysconf("SC_CLK_TCK")

SHAPES = [
    pytest.param(("shareq", "one topic"), id="shareq, one topic"),
    pytest.param(("shareq", "own topics"), id="shareq, own topics"),
    pytest.param(("kafka", "one topic"), id="Apache Kafka, one topic"),
]


class Fleet:
    """A broker with all groups at the ends of their logs."""

    def __init__(self, broker: Broker, shape: str) -> None:
        self.broker = broker
        self.groups = [f"group-{number}" for number in range(GROUPS)]
        self.topic_of = {name: "work" if shape == "one topic" else f"work-{name}" for name in self.groups}
        self.conf: dict[str, object] = {"bootstrap.servers": broker.bootstrap_servers}
        self.admin = Admin(self.conf)
        for topic in sorted(set(self.topic_of.values())):
            self.admin.create_topics([NewTopic(topic, PARTITIONS)]).check()
            with Producer(self.conf) as producer:
                for number in range(PARTITIONS * RECORDS):
                    producer.produce(topic, b"x" * 100, partition=number % PARTITIONS)
        for name in self.groups:
            self.move(name, RECORDS)

    def move(self, group: str, offset: int) -> None:
        places: dict[TopicPartition | tuple[str, int] | str, int | str | datetime] = {
            (self.topic_of[group], partition): offset for partition in range(PARTITIONS)
        }
        self.admin.alter_share_group_offsets(group, places).check()

    def cpu_s(self) -> float:
        """Processor time of the broker so far."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.broker.pids]
        return sum(int(one[11]) + int(one[12]) for one in fields) / TICKS

    def close(self) -> None:
        self.admin.close()
        self.broker.stop()


@pytest.fixture(scope="module", params=SHAPES)
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    name, shape = request.param
    made = Fleet(START[name](), shape)
    yield made
    made.close()


class Traffic:
    """What monitors send and receive."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spy = Spy()
        self.sent = self.received = 0
        write, feed = FrameSocket.write, FrameReader.feed

        def counted_write(sock: FrameSocket, data: bytes) -> None:
            self.sent += len(data)
            write(sock, data)

        def counted_feed(reader: FrameReader, data: bytes) -> list[bytes]:
            self.received += len(data)
            return feed(reader, data)

        monkeypatch.setattr("shareq.observer.core.AdminCore", self.spy.admin_core)
        monkeypatch.setattr(FrameSocket, "write", counted_write)
        monkeypatch.setattr(FrameReader, "feed", counted_feed)


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Traffic:
    return Traffic(monkeypatch)


@pytest.fixture
def watching(fleet: Fleet, traffic: Traffic) -> Iterator[Monitor]:
    """A monitor that has read everything, and polls only when it must."""
    with monitor(fleet.broker.bootstrap_servers, fleet.groups, interval_ms=3_600_000) as opened:
        assert opened.wait(lambda: opened.polls > 0, 60)
        for _ in range(5):
            report = opened.refresh()
            if not report.trouble and all(group.partitions for group in report.groups):
                break
        assert [group.verdict for group in report.groups] == [Verdict.IDLE] * GROUPS
        assert sum(len(group.partitions) for group in report.groups) == GROUPS * PARTITIONS
        yield opened


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("load", ["idle", "one group moves", "all wait"])
def test_a_poll(benchmark: BenchmarkFixture, fleet: Fleet, traffic: Traffic, watching: Monitor, load: str) -> None:
    rounds = 0
    brokers_s = 0.0
    requests: Counter[str] = Counter()
    sent = received = 0

    moved = {"idle": [], "one group moves": fleet.groups[:1], "all wait": fleet.groups}[load]
    for name in moved:
        fleet.move(name, 0)
    watching.refresh()

    def setup() -> None:
        nonlocal rounds
        rounds += 1
        if load == "one group moves":
            fleet.move(fleet.groups[0], rounds % RECORDS)
        traffic.spy.take()
        traffic.sent = traffic.received = 0

    def poll() -> None:
        nonlocal brokers_s, sent, received
        before_s = fleet.cpu_s()
        watching.refresh()
        brokers_s += fleet.cpu_s() - before_s
        requests.update(type(request).__name__.removesuffix("Request") for request in traffic.spy.take())
        sent, received = sent + traffic.sent, received + traffic.received

    benchmark.pedantic(poll, setup=setup, rounds=ROUNDS)
    for name in moved:
        fleet.move(name, RECORDS)
    assert watching.report.trouble == ""
    benchmark.extra_info["broker, ms a poll"] = round(brokers_s / rounds * 1000, 1)
    benchmark.extra_info["requests a poll"] = {name: round(count / rounds, 1) for name, count in requests.items()}
    benchmark.extra_info["KB sent a poll"] = round(sent / rounds / 1000, 1)
    benchmark.extra_info["KB received a poll"] = round(received / rounds / 1000, 1)
