"""A served cluster with a group of its clients, and the loop of a part of the tap."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Iterator
from contextlib import contextmanager

from shareq import Cluster, Producer, ShareConsumer
from tests.polling import QUICK

CONFIG = {**QUICK, "group.share.max.record.lock.duration.ms": 600_000}
GROUP = "crew"


@contextmanager
def served(brokers: int) -> Iterator[Cluster]:
    """A cluster on ports, with a partition of the topic for each broker."""
    with Cluster(brokers=brokers, clock="wall", config=CONFIG) as cluster, cluster.serve():
        cluster.create_topic("orders", brokers)
        cluster.configure_group(
            GROUP, {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 600_000}
        )
        yield cluster


def address(cluster: Cluster) -> str:
    assert cluster._server is not None
    return cluster._server.bootstrap_servers


def produce(servers: str, partition: int, count: int) -> None:
    with Producer({"bootstrap.servers": servers}) as producer:
        for number in range(count):
            producer.produce("orders", f"{number}", partition=partition)


def consumer(servers: str, name: str, **conf: object) -> ShareConsumer:
    given = {"bootstrap.servers": servers, "group.id": GROUP, "client.id": name, "max.poll.records": 7}
    made = ShareConsumer({**given, "share.acknowledgement.mode": "explicit", **conf})
    made.subscribe(["orders"])
    return made


class Loop(asyncio.SelectorEventLoop):
    """A loop whose clock the test sets."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.now_ms = 0
        super().__init__(selector)

    def time(self) -> float:
        return self.now_ms / 1000

    def turns(self, at_ms: int) -> None:
        """Some turns of the loop at a time."""
        self.now_ms = at_ms
        for _ in range(20):
            self.run_until_complete(asyncio.sleep(0))
