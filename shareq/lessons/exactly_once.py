"""A loop that reads, processes and writes, and a kill in the middle of it: lesson 18's outputs, once or twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from shareq.consumer import ShareConsumer
from shareq.lessons.bench import Bench, settle
from shareq.lessons.beyond import ENABLED
from shareq.producer import Producer

__all__ = ["Copying"]

JOBS, AT_A_TIME = 12, 3
RESULTS, READERS = "results", "readers"
_RETRY_S = 120
"""A group that is idle for so long has no record to deliver: more than the lock duration."""


@dataclass
class Copying:
    """A worker takes `JOBS` jobs, three at a time, and writes a result for each to another topic. It is killed in its
    second turn, with its results written and its jobs not acknowledged yet; another worker takes over. Without `killed`
    one worker does all.

    `transactional`: the results and the acknowledgements of a turn are one transaction; else the results are flushed,
    and then the jobs are acknowledged. `latency_ms`: the time of a message from one program to another.
    """

    transactional: bool
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
        self._read()

    def _worker(self, name: str) -> tuple[ShareConsumer, Producer]:
        consumer = self.bench.consumer(name, most=AT_A_TIME, share_acquire_mode="record_limit")
        conf = {"bootstrap.servers": self.bench.cluster.bootstrap_servers, "client.id": name}
        producer = Producer({**conf, "transactional.id": "copying"} if self.transactional else conf)
        if self.transactional:
            producer.init_transactions()  # aborts a transaction that a killed worker has left open
        return consumer, producer

    def _turn(self, consumer: ShareConsumer, producer: Producer, *, killed: bool = False) -> bool:
        """Take jobs, write their results, and acknowledge them; a worker that is killed gets as far as it can without
        that. False if there are no jobs."""
        messages = consumer.poll(_RETRY_S)
        if not messages:
            return False
        if self.transactional:
            producer.begin_transaction()
        for message in messages:
            producer.produce(RESULTS, message.value())
        if self.transactional:
            producer.send_share_acknowledgements_to_transaction(messages, consumer.share_group_metadata())
            if not killed:
                producer.commit_transaction()
        else:
            producer.flush()
            if not killed:
                settle(consumer, messages)
        return True

    def _read(self) -> None:
        cluster = self.bench.cluster
        configs = {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"}
        cluster.configure_group(READERS, {"share.assignment.interval.ms": 0, **configs})
        with ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": READERS}) as reader:
            reader.subscribe([RESULTS])
            while messages := reader.poll(_RETRY_S):
                self.results.update((message.value() or b"").decode() for message in messages)

    def __str__(self) -> str:
        rule = "one transaction" if self.transactional else "write, then acknowledge"
        twice = sum(count > 1 for count in self.results.values())
        lost = JOBS - len(self.results)
        return f"{rule:<24} {self.results.total():>2} results: {twice} jobs have two, {lost} have none"
