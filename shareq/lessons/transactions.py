"""Producers for lessons about transactions: one with a transactional id, and one record batch at a time."""

from __future__ import annotations

from shareq.lessons.bench import Bench
from shareq.producer import Producer


def transactional(bench: Bench, name: str) -> Producer:
    """A producer with this transactional id, ready to begin a transaction."""
    producer = Producer(
        {"bootstrap.servers": bench.cluster.bootstrap_servers, "linger.ms": 60_000, "transactional.id": name}
    )
    producer.init_transactions()
    return producer


def write(bench: Bench, producer: Producer, *values: str, keys: tuple[str | None, ...] = (None,)) -> None:
    """Append one record batch of these values; `keys` are repeated in turn."""
    for number, value in enumerate(values):
        producer.produce(bench.topic, value, key=keys[number % len(keys)])
    producer.flush()
