"""confluent-kafka's clients in their own processes, for comparisons of brokers.

    python -m tests.bench.wire_clients ROLE BOOTSTRAP_SERVERS TOPIC GROUP COUNT

A client prints `ready`, starts at a line on its standard input, and prints its measurement as JSON; `turns` does so for
each line. Times are of the monotonic clock that all processes of a machine share, in seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

VALUE = b"x" * 100
POLL_S = 0.5
PATIENCE_S = 10
"""Seconds that a client waits for its first record: of two, one may take all before the other has joined."""


def _wait_for_go() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def produce(address: str, topic: str, group: str, count: int) -> dict[str, Any]:
    """Produce `count` records as fast as possible; the time ends when all are acknowledged."""
    del group
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.list_topics(topic, timeout=10)
    _wait_for_go()
    began = time.monotonic()
    sent = 0
    while sent < count:
        try:
            producer.produce(topic, VALUE)
            sent += 1
        except BufferError:  # the queue is full
            producer.poll(0.1)
    assert producer.flush(120) == 0
    return {"seconds": time.monotonic() - began}


def _share_consumer(address: str, group: str, topic: str) -> Any:
    from confluent_kafka import ShareConsumer

    consumer = ShareConsumer({"bootstrap.servers": address, "group.id": group, "log_level": 0})
    consumer.subscribe([topic])
    return consumer


def consume(address: str, topic: str, group: str, count: int) -> dict[str, Any]:
    """Poll until no record arrives for a while; times of the first and last record, and the count."""
    del count
    _wait_for_go()
    consumer = _share_consumer(address, group, topic)
    seen, first, last = 0, 0.0, time.monotonic()
    while time.monotonic() - last < (1.5 if seen else PATIENCE_S):
        messages = consumer.poll(POLL_S)
        if messages:
            last = time.monotonic()
            first = first or last
            seen += len(messages)
    consumer.close()
    return {"first": first, "last": last, "count": seen}


def latency(address: str, topic: str, group: str, count: int) -> dict[str, Any]:
    """One record at a time: seconds from produce to the return of the poll that has it."""
    with _one_at_a_time(address, topic, group) as measure:
        _wait_for_go()
        return {"seconds": [measure() for _ in range(count)]}


def turns(address: str, topic: str, group: str, count: int) -> dict[str, Any]:
    """As `latency`, with `count` records for each line of the standard input, until its end."""
    with _one_at_a_time(address, topic, group) as measure:
        print("ready", flush=True)
        for _ in sys.stdin:
            print(json.dumps([measure() for _ in range(count)]), flush=True)
    return {}


@contextmanager
def _one_at_a_time(address: str, topic: str, group: str) -> Iterator[Callable[[], float]]:
    """A producer and a consumer that has joined; a call produces a record and waits for it."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    consumer = _share_consumer(address, group, topic)
    producer.produce(topic, VALUE)
    producer.flush(10)
    while not consumer.poll(POLL_S):
        pass

    def measure() -> float:
        began = time.monotonic()
        producer.produce(topic, VALUE)
        producer.poll(0)
        while not consumer.poll(POLL_S):
            pass
        return time.monotonic() - began

    yield measure
    consumer.close()
    producer.flush(10)


ROLES: dict[str, Callable[[str, str, str, int], dict[str, Any]]] = {
    "produce": produce,
    "consume": consume,
    "latency": latency,
    "turns": turns,
}

if __name__ == "__main__":
    role, address, topic, group, count = sys.argv[1:]
    print(json.dumps(ROLES[role](address, topic, group, int(count))), flush=True)
