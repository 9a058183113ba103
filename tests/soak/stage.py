"""The set-up of the soak tests: a cluster behind the proxy, moves of its brokers, contents of its logs.

The environment variable SHAREQ_MOVES sets the number of moves of a run (250 make a run of minutes).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shareq import Cluster
from shareq.log.records import decode
from shareq.model.states import IsolationLevel
from tests.polling import QUICK
from tests.soak.proxy import Proxy, untouched
from tests.soak.team import PARTITIONS, PLAIN, TRANSACTIONAL, Place

MOVES = int(os.environ.get("SHAREQ_MOVES", "12"))
GROUPS = {"p": PLAIN, "t": TRANSACTIONAL}
ATTEMPTS = 10
"""Delivery count limit: many deliveries get lost here."""

CONFIG = QUICK | {
    "group.share.min.session.timeout.ms": 1000,  # allows the short timeout of a group; the others have 45 s
    "transaction.state.log.min.isr": 1,  # two of three brokers can be down
    "share.coordinator.state.topic.min.isr": 1,
    "group.share.delivery.count.limit": ATTEMPTS,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": 10_000,  # the test waits for locks of lost consumers
}


@contextmanager
def new_cluster(latency_ms: int = 0) -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=18, clock="wall", config=CONFIG, latency_ms=latency_ms) as made:
        for group, topic in GROUPS.items():
            prepare(made, topic, group)
        yield made


def prepare(cluster: Cluster, topic: str, group: str) -> None:
    """Create a topic, and configure a group to read it from the beginning; committed records only, except for PLAIN."""
    cluster.create_topic(topic, PARTITIONS)
    isolation = "read_uncommitted" if topic == PLAIN else "read_committed"
    cluster.configure_group(group, {"share.auto.offset.reset": "earliest", "share.isolation.level": isolation})


class Moves:
    """Moves of brokers and connections, one per call; at least one broker stays alive."""

    def __init__(self, cluster: Cluster, proxy: Proxy, rng: random.Random) -> None:
        self._cluster = cluster
        self._proxy = proxy
        self._rng = rng

    def draw(self, count: int) -> list[Callable[[], None]]:
        moves = [self._lose_broker, self._start_broker, self._cluster.elect_preferred_leaders, self._proxy.cut]
        return self._rng.choices(moves, [3, 3, 2, 1], k=count)

    def end_faults(self) -> None:
        """Start all brokers, and inject no further fault."""
        self._proxy.rule = untouched
        while len(self._cluster.brokers_alive) < len(self._cluster.image.brokers):
            self._start_broker()

    def _lose_broker(self) -> None:
        if len(self._cluster.brokers_alive) > 1:
            end = self._rng.choice([self._cluster.kill_broker, self._cluster.stop_broker])
            end(self._rng.choice(self._cluster.brokers_alive))

    def _start_broker(self) -> None:
        away = sorted(set(self._cluster.image.brokers) - set(self._cluster.brokers_alive))
        if away:
            self._cluster.start_broker(self._rng.choice(away))


def read_log(
    cluster: Cluster, topic: str, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
) -> dict[Place, str]:
    """Records of a topic in order, as a consumer reads them. No transaction may be open."""
    found: dict[Place, str] = {}
    for partition in range(PARTITIONS):
        log = cluster.log(topic, partition)
        assert log.last_stable_offset == log.high_watermark, "a transaction is still open"
        read = log.read(0, max_bytes=1 << 30, isolation=isolation)
        for batch in read.batches:
            if not batch.is_control and not any(
                aborted.producer_id == batch.producer_id
                and aborted.first_offset <= batch.base_offset < aborted.last_offset
                for aborted in read.aborted or ()
            ):
                found |= {(topic, partition, one.offset): (one.value or b"").decode() for one in decode(batch)}
    return found
