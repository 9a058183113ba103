"""The cluster of the picture in the README: three consumers that have acknowledged a part of their records."""

from __future__ import annotations

from typing import Any

from shareq.admin import Admin
from shareq.broker import Cluster
from shareq.consumer import AcknowledgeType, ShareConsumer
from shareq.producer import Producer

ACKNOWLEDGE_TYPES = {"✓": AcknowledgeType.ACCEPT, "○": AcknowledgeType.RELEASE, "✕": AcknowledgeType.REJECT}


def payments() -> Cluster:
    """Group `payments` on `orders`: accepted, released and rejected records, a last attempt, and a write under way."""
    cluster = Cluster(brokers=3, seed=7, latency_ms=2)
    cluster.create_topic("orders")
    cluster.configure_group("payments", {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": 5})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(130):
        producer.produce("orders", f"order {number}")
        if number in (99, 119):
            producer.flush()  # ends the record batch
    producer.flush()
    Admin({"bootstrap.servers": cluster.bootstrap_servers}).delete_records({("orders", 0): 97})
    first, second, third = (member(cluster, f"consumer-{n}", most) for n, most in ((1, 7), (2, 4), (3, 8)))
    for consumer in (first, second, third):
        consumer.poll(0)
    cluster.advance(5500)
    acknowledge(first, "✓✓○✓✕○○")
    acknowledge(second, "✓✓○○")
    second.poll(1)
    acknowledge(third, "○○○○○○○○")
    cluster.advance(9_000)
    for _ in range(2):
        acknowledge(third, "○✓○○○○✓○")
    third.poll(1)
    cluster.advance(16_300)
    for message in first.poll(1)[:2]:
        first.acknowledge(message)
    first.commit_async()
    cluster.advance(3)
    return cluster


def member(
    cluster: Cluster, name: str, max_poll_records: int, *, group: str = "payments", topic: str = "orders"
) -> ShareConsumer:
    conf: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "client.id": name,
        "share.acknowledgement.mode": "explicit",
        "share.acquire.mode": "record_limit",
        "max.poll.records": max_poll_records,
    }
    consumer = ShareConsumer(conf)
    consumer.subscribe([topic])
    return consumer


def acknowledge(consumer: ShareConsumer, types: str) -> None:
    """Poll, acknowledge each record with its type, commit."""
    for message, kind in zip(consumer.poll(1), types, strict=False):
        consumer.acknowledge(message, ACKNOWLEDGE_TYPES[kind])
    consumer.commit_sync()
