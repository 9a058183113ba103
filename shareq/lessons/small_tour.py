"""The tour with few records: the exercises run it again and again, each time with one thing changed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from shareq.broker import Cluster
from shareq.consumer import Message, ShareConsumer
from shareq.model.events import SharePartitionLoaded, WindowMoved
from shareq.producer import Producer
from shareq.trace import Ledger, ledger, view
from shareq.workload import Incident, Report, failing_once, work_off

GROUP, TOPIC, PARTITIONS = "desk", "flights", 4
RECORDS, BATCH = 40_000, 500
POISON_EACH = 41
POISON = -(-RECORDS // POISON_EACH)
"""The number of records that the clerks reject."""
CLERK_DIES, BROKER_DIES = 12_000, 28_000
ROUND_MS = 500


class Toured(NamedTuple):
    """The cluster after a tour, the clerks' report, and the ledger."""

    cluster: Cluster
    report: Report
    books: Ledger

    @property
    def standstill_s(self) -> float:
        """The longest time for which the SPSO of a partition did not move while the group had work, in seconds."""
        return max(map(self._standstill_s, range(PARTITIONS)))

    def _standstill_s(self, partition: int) -> float:
        where = {"group": GROUP, "topic": TOPIC, "partition": partition}
        entries = self.cluster.journal.select(SharePartitionLoaded, WindowMoved, **where)  # type: ignore[arg-type]
        moves = [(entry.time_ms, entry.event.spso) for entry in entries if isinstance(entry.event, WindowMoved)]
        first = {spso: time_ms for time_ms, spso in reversed(moves)}
        times = [entries[0].time_ms, *sorted(first.values())]
        return max(after - before for before, after in pairwise(times)) / 1000


def small_tour(configs: Mapping[str, object] | None = None, *, dead_clerks: int = 1) -> Toured:
    """Six clerks work off the records; `dead_clerks` of them crash at the same moment, later broker 1 is killed.

    `configs`: further configurations of the group; KafkaException for one that a broker refuses.
    """
    cluster = Cluster(brokers=3, seed=2013)
    cluster.create_topic(TOPIC, partitions=PARTITIONS)
    cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest", **(configs or {})})
    _produce(cluster)
    team = [_clerk(cluster, number) for number in range(1, 7)]
    cluster.advance(10_000)
    watches = [view(cluster, GROUP, TOPIC, partition) for partition in range(PARTITIONS)]

    def lose_clerks() -> None:
        for _ in range(dead_clerks):
            cluster.crash(team.pop(-2))

    report = work_off(
        team,
        failing_once(_is_poison, failure_rate=0.05, rng=random.Random(7)),
        done=lambda: all(watch.snapshot()["lag"] == 0 for watch in watches),
        every_round=lambda: cluster.advance(ROUND_MS),
        incidents=[Incident(CLERK_DIES, lose_clerks), Incident(BROKER_DIES, lambda: cluster.kill_broker(1))],
    )
    return Toured(cluster, report, ledger(cluster, GROUP, TOPIC))


def _produce(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 60_000, "batch.size": 1_000_000})
    for first in range(0, RECORDS, BATCH):
        for number in range(first, first + BATCH):
            producer.produce(TOPIC, str(number), partition=first // BATCH % PARTITIONS)
        producer.flush()


def _clerk(cluster: Cluster, number: int) -> ShareConsumer:
    clerk = ShareConsumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": GROUP,
            "client.id": f"clerk-{number}",
            "share.acknowledgement.mode": "explicit",
        }
    )
    clerk.subscribe([TOPIC])
    clerk.poll(0)
    return clerk


def _is_poison(message: Message) -> bool:
    return int(message.value() or 0) % POISON_EACH == 0
