"""A loop that reads a job, writes its result and acknowledges it: in a transaction, and without, in one run.

    make bench ARGS='-k exactly_once'

The server is a process of its own, with the experiments on; the loop has shareq's clients, over TCP.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from shareq import Admin, NewTopic, Producer, ShareConsumer
from tests.bench.alternating import alternate
from tests.bench.reported import REPORTED
from tests.bench.wire_brokers import Serving

TURNS = 200
RESULTS = "results"


class Loop(NamedTuple):
    """The clients of one way: `jobs` is its topic, and the name of its group."""

    transactional: bool
    jobs: str
    source: Producer
    consumer: ShareConsumer
    producer: Producer

    @classmethod
    def of(cls, bootstrap_servers: str, jobs: str, *, transactional: bool) -> Loop:
        conf = {"bootstrap.servers": bootstrap_servers}
        with Admin(conf) as admin:
            admin.create_topics([NewTopic(jobs, 1)])
            admin.alter_group_configs(jobs, {"share.auto.offset.reset": "earliest"})
        mode = {"share.acknowledgement.mode": "explicit", "share.acquire.mode": "record_limit"}
        consumer = ShareConsumer({**conf, "group.id": jobs, **mode})
        consumer.subscribe([jobs])
        producer = Producer({**conf, "transactional.id": jobs} if transactional else conf)
        if transactional:
            producer.init_transactions()
        return cls(transactional, jobs, Producer(conf), consumer, producer)

    def turn(self, jobs: int) -> float:
        """Seconds from the production of jobs until all their results are written and the jobs acknowledged."""
        begun = time.perf_counter()
        for _ in range(jobs):
            self.source.produce(self.jobs, b"x" * 100)
        self.source.flush()
        done = 0
        while done < jobs:
            done += self._answer(self.consumer.poll(10))
        return time.perf_counter() - begun

    def _answer(self, messages: Sequence[Any]) -> int:
        if not messages:
            return 0
        if self.transactional:
            self.producer.begin_transaction()
        for message in messages:
            self.producer.produce(RESULTS, message.value())
        if self.transactional:
            self.producer.send_share_acknowledgements_to_transaction(messages, self.consumer.share_group_metadata())
            self.producer.commit_transaction()
        else:
            self.producer.flush()
            for message in messages:
                self.consumer.acknowledge(message)
            self.consumer.commit_sync()
        return len(messages)

    def close(self) -> None:
        for client in (self.source, self.consumer, self.producer):
            client.close()


@pytest.fixture(scope="module")
def loops() -> Iterator[tuple[Loop, Loop]]:
    serving = Serving("--config=shareq.experiments.enable=true")
    with Admin({"bootstrap.servers": serving.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(RESULTS, 1)])
    plain = Loop.of(serving.bootstrap_servers, "plain", transactional=False)
    transactional = Loop.of(serving.bootstrap_servers, "transactional", transactional=True)
    yield plain, transactional
    plain.close()
    transactional.close()
    serving.stop()


@pytest.mark.benchmark(timer=REPORTED)
@pytest.mark.parametrize("jobs", [1, 100])
def test_loop(benchmark: Any, loops: tuple[Loop, Loop], jobs: int) -> None:
    benchmark.group = f"exactly once: from {jobs} produced jobs to acknowledged results, p50"
    for loop in loops:
        loop.turn(jobs)
    rounds = alternate(benchmark, loops, lambda loop: statistics.median(loop.turn(jobs) for _ in range(TURNS)))
    benchmark.extra_info["plain p50, ms"] = round(1000 * statistics.median(plain for plain, _ in rounds), 2)
    benchmark.extra_info["times"] = round(statistics.median(ours / plain for plain, ours in rounds), 2)
