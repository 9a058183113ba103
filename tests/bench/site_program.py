"""In Pyodide and on CPython: records per second of a producer, and of three consumers that share a partition."""

from __future__ import annotations

import json
from time import perf_counter

import ipywidgets  # noqa: F401 loaded by the lock, because this cell imports it

from shareq import Cluster, Producer, ShareConsumer

RECORDS = 20_000

with Cluster(brokers=3, seed=7) as cluster:
    cluster.create_topic("orders")
    cluster.configure_group("payments", {"share.auto.offset.reset": "earliest"})
    address = {"bootstrap.servers": cluster.bootstrap_servers}
    began = perf_counter()
    producer = Producer(address)
    for number in range(RECORDS):
        producer.produce("orders", f"order {number}")
    producer.flush()
    produced = perf_counter()
    team = [ShareConsumer({**address, "group.id": "payments"}) for _ in range(3)]
    for consumer in team:
        consumer.subscribe(["orders"])
    delivered = 0
    while delivered < RECORDS:
        delivered += sum(len(consumer.poll(1)) for consumer in team)
    consumed = perf_counter()

print(json.dumps({"produced": RECORDS / (produced - began), "consumed": RECORDS / (consumed - produced)}))
