"""A loop that reads, processes and writes, and a kill in its middle: the outputs of lesson 18, once, twice or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from shareq.broker import Cluster
from shareq.consumer import Message, Messages, ShareConsumer
from shareq.lessons.bench import Bench, settle
from shareq.lessons.beyond import ENABLED
from shareq.producer import Producer

__all__ = ["Copying"]

Way = Literal["write, then acknowledge", "acknowledge, then write", "one transaction"]
"""The steps of a turn."""

JOBS, AT_A_TIME = 12, 3
RESULTS, READERS = "results", "readers"
_RETRY_S = 120
"""A group that is idle for so long has no record to deliver: more than the lock duration."""


@dataclass
class Copying:
    """A worker takes `JOBS` jobs, three at a time, and writes a result for each to another topic. It is killed in its
    second turn, between the two steps of it; another worker takes over. Without `killed` one worker does all.

    `way`: the steps. In one transaction these are: write and stage the acknowledgements, then commit. `latency_ms`: the
    time of a message from one program to another.
    """

    way: Way
    killed: bool = True
    latency_ms: int = 0
    duration_ms: int = 0
    """From the first job that is taken until the last one is acknowledged."""
    results: Counter[str] = field(default_factory=Counter)
    """How often each job has a result, for a reader that reads what is committed."""

    def __post_init__(self) -> None:
        self.bench = Bench(JOBS, config=ENABLED, latency_ms=self.latency_ms)
        cluster = self.bench.cluster
        cluster.create_topic(RESULTS)
        worker = self._worker("ann")
        began_ms = cluster.now_ms
        if self.killed:
            self._turn(*worker)
            self._turn(*worker, killed=True)
            for client in worker:
                cluster.crash(client)
            worker = self._worker("ben")
        while self._turn(*worker):
            self.duration_ms = cluster.now_ms - began_ms
        self.results.update((message.value() or b"").decode() for message in committed(cluster, RESULTS))

    def _worker(self, name: str) -> tuple[ShareConsumer, Producer]:
        consumer = self.bench.consumer(name, most=AT_A_TIME, share_acquire_mode="record_limit")
        conf = {"bootstrap.servers": self.bench.cluster.bootstrap_servers, "client.id": name}
        transactional = self.way == "one transaction"
        producer = Producer({**conf, "transactional.id": "copying"} if transactional else conf)
        if transactional:
            producer.init_transactions()  # aborts a transaction that a killed worker has left open
        return consumer, producer

    def _turn(self, consumer: ShareConsumer, producer: Producer, *, killed: bool = False) -> bool:
        """Take jobs and do the two steps with them, a worker that is killed only the first one. False if there are no
        jobs."""
        messages = consumer.poll(_RETRY_S)
        if not messages:
            return False
        first, second = self._steps(consumer, producer, messages)
        first()
        if not killed:
            second()
        return True

    def _steps(self, consumer: ShareConsumer, producer: Producer, messages: Messages) -> list[Callable[[], object]]:
        def write(*, flush: bool = True) -> None:
            for message in messages:
                producer.produce(RESULTS, message.value())
            if flush:
                producer.flush()

        def stage() -> None:
            producer.begin_transaction()
            write(flush=False)  # the commit does it
            producer.send_share_acknowledgements_to_transaction(messages, consumer.share_group_metadata())

        def acknowledge() -> None:
            settle(consumer, messages)

        if self.way == "one transaction":
            return [stage, producer.commit_transaction]
        return [write, acknowledge] if self.way == "write, then acknowledge" else [acknowledge, write]

    def __str__(self) -> str:
        twice = sum(count > 1 for count in self.results.values())
        lost = JOBS - len(self.results)
        return f"{self.way:<24} {self.results.total():>2} results: {twice} jobs have two, {lost} have none"


def committed(cluster: Cluster, topic: str) -> list[Message]:
    """All records of a topic, for a reader of committed ones."""
    configs = {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"}
    cluster.configure_group(READERS, {"share.assignment.interval.ms": 0, **configs})
    found: list[Message] = []
    with ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": READERS}) as reader:
        reader.subscribe([topic])
        while messages := reader.poll(_RETRY_S):
            found += messages
    return found
