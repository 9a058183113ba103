"""Apache Kafka through `shareq tap`, beside the same broker without it, in one run.

    make bench ARGS='-k tap'

Broker, tap and clients (confluent-kafka's) are processes of their own; the tap uses one core. The figures are the
medians of the rounds' own differences and ratios.
"""

from __future__ import annotations

import select
import socket
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.bench.alternating import alternate, rates
from tests.bench.reported import REPORTED
from tests.bench.test_wire_bench import Client, fill, fresh, latencies_s
from tests.bench.wire_brokers import Kafka, Relaying, Tapping, resident_mb
from tests.proxy.sockets import Upstream, framed

PRODUCED = 3_000_000
"""Seconds of producing: a third of a second depends on where the connections land on the processors."""
CONSUMED = 300_000
TURN = 300
"""Records of a turn: what the tap reads of them 50 ms later is nearly all in the same turn."""
TURNS = 40
WARM_TURNS = 10
"""Turns that are not measured, of both ways: the broker's code for this topic and group is compiled in them."""
WARM_UP = 20_000
"""Records before the first measurement: Kafka's code is compiled while it runs, and its compiler takes the processor
from the process between."""
PUSHED_BYTES = 256 << 20


@pytest.fixture(scope="module")
def ways() -> Iterator[tuple[Kafka, Tapping]]:
    """Kafka itself, and the tap in front of it."""
    kafka = Kafka()
    latencies_s(kafka, WARM_UP)
    tapping = Tapping(kafka.bootstrap_servers)
    yield kafka, tapping
    tapping.stop()
    kafka.stop()


@pytest.mark.benchmark(group="tap: latency, p50", timer=REPORTED)
def test_latency(benchmark: Any, ways: tuple[Kafka, Tapping]) -> None:
    """From produce to poll, one record at a time. Aim: at most 0.3 ms more."""
    added(benchmark, ways)


@pytest.mark.benchmark(group="tap: latency, p50", timer=REPORTED)
def test_latency_of_a_bare_relay(benchmark: Any, ways: tuple[Kafka, Tapping]) -> None:
    """A second process alone, without what the tap does: the floor of the row above."""
    relaying = Relaying(ways[0].bootstrap_servers)
    added(benchmark, (ways[0], relaying))
    relaying.process.terminate()
    assert relaying.process.wait(20) == 0


def added(benchmark: Any, ways: tuple[Any, Any]) -> None:
    """Measure what the second way adds to the first one's median. Both clients stay, and work in turns: the broker
    and the machine change more from minute to minute than the ways differ."""
    direct, through = clients = tuple(Client("turns", way, *fresh(way, 1), TURN) for way in ways)
    for client in clients:
        client.wait_ready()
    for client in clients * WARM_TURNS:
        client.turn()
    rounds = alternate(benchmark, (direct, through), lambda client: statistics.median(client.turn()), TURNS)
    for client in clients:
        assert client.result() == {}
    benchmark.extra_info["direct p50, ms"] = round(1000 * statistics.median(one for one, _ in rounds), 2)
    benchmark.extra_info["added, ms"] = round(1000 * statistics.median(other - one for one, other in rounds), 2)


@pytest.mark.benchmark(group=f"tap: produce {PRODUCED:,} x 100 B", timer=REPORTED)
def test_produce(benchmark: Any, ways: tuple[Kafka, Tapping]) -> None:
    """Aim: at least 0.8 of the direct rate."""

    def measure(way: Any) -> float:
        topic, _ = fresh(way, 1)
        return fill(way, topic, PRODUCED)

    rates(benchmark, alternate(benchmark, ways, measure), PRODUCED, "direct")


@pytest.mark.benchmark(group=f"tap: consume {CONSUMED:,} x 100 B, 1 ShareConsumer", timer=REPORTED)
def test_consume(benchmark: Any, ways: tuple[Kafka, Tapping]) -> None:
    """Aim: at least 0.8 of the direct rate."""

    def measure(way: Any) -> float:
        topic, group = fresh(way, 1)
        fill(ways[0], topic, CONSUMED)
        client = Client("consume", way, topic, group, CONSUMED)
        client.wait_ready()
        client.go()
        result = client.result()
        assert result["count"] == CONSUMED
        return float(result["last"] - result["first"])

    rates(benchmark, alternate(benchmark, ways, measure), CONSUMED, "direct")


@pytest.mark.benchmark(group="tap: memory while a peer does not read")
@pytest.mark.parametrize("slow", ["client", "broker"])
def test_memory(benchmark: Any, slow: str) -> None:
    """The other peer sends until it blocks: at most some MB are read from it."""
    upstream = Upstream()
    with upstream.door, ThreadPoolExecutor(1) as pool:
        answered = pool.submit(upstream.answer_metadata)
        tapping = Tapping(f"127.0.0.1:{upstream.port}")
        answered.result()
        before = resident_mb(tapping)
        port = int(tapping.bootstrap_servers.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client, upstream.accept() as broker:
            sent = benchmark.pedantic(push, (broker if slow == "client" else client,), rounds=1)
            benchmark.extra_info["grown, MB"] = resident_mb(tapping) - before
        tapping.stop()
    benchmark.extra_info["sent until it blocks, MB"] = sent >> 20
    assert sent < PUSHED_BYTES


def push(sending: socket.socket) -> int:
    """Send one frame until the peer has not read for a second; the bytes that were sent."""
    stream = memoryview(framed(bytes(PUSHED_BYTES)))
    sending.setblocking(False)
    sent = 0
    while sent < len(stream) and select.select([], [sending], [], 1)[1]:
        sent += sending.send(stream[sent : sent + (1 << 20)])
    return sent
