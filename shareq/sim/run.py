"""One run: a cluster on virtual time, producers that follow an arrival process, consumers with service times.

Everything runs in one thread. Time advances to the next event: an arrival, the end of a consumer's work, an expiring
lock, a response that makes a waiting consumer ready.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from functools import partial
from typing import Self

from shareq.broker import Cluster
from shareq.consumer import Messages, ShareConsumer
from shareq.model.errors import ConfigException
from shareq.model.events import WindowMoved
from shareq.model.states import AcknowledgeType
from shareq.producer import Producer
from shareq.sim.result import FinishedRun, Result, WorkInterval, measure
from shareq.sim.scenario import Scenario

GROUP, TOPIC = "group", "work"
POISON, SOUND = b"poison", b"sound"


def run(scenario: Scenario, seed: int = 0) -> Result:
    """Run the scenario. The same scenario and seed give the same result, to the last digit.

    AssertionError if a record was accepted twice or lost: a defect of the cluster.
    """
    with Simulation(scenario, seed) as simulation:
        simulation.go()
        return measure(simulation.outcome())


def check_seed(seed: object) -> None:
    """ConfigException unless it is a whole number >= 0; `random.Random` would accept others, and treat -7 as 7."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigException(f"seed={seed!r}: must be a whole number >= 0")


class _Worker:
    """A consumer's number, and the consumer. One that replaces a crashed one keeps the number."""

    __slots__ = ("consumer", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.consumer: ShareConsumer | None = None


class Simulation:
    """A run whose cluster (`cluster.journal`, `view`, ...) can be inspected afterwards."""

    def __init__(self, scenario: Scenario, seed: int = 0) -> None:
        check_seed(seed)
        self.scenario = scenario
        self.seed = seed
        self._rng = random.Random(seed)
        self.cluster = Cluster(brokers=1, seed=self._rng.getrandbits(32), config=BOUNDS)
        self.cluster.create_topic(TOPIC, scenario.partitions)
        self.cluster.configure_group(GROUP, _group_config(scenario))
        self.work: list[list[WorkInterval]] = [[] for _ in range(scenario.consumers)]
        self._service = scenario.service_time()
        self._agenda: list[tuple[int, int, Callable[[], object]]] = []
        self._asked = self._seen = 0
        self._idle: dict[_Worker, ShareConsumer] = {}
        self._ends: dict[int, int] = {}
        self._spsos: dict[int, int] = {}
        self._batches_to_come = 0
        self._producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "batch.num.messages": scenario.batch_records,
                "linger.ms": 5,
            }
        )
        self._assemble()
        self.started_ms = self.cluster.now_ms
        self._at(self.started_ms + scenario.max_duration_s * 1000, lambda: None)
        self._arrange_arrivals()

    # ---- setup -------------------------------------------------------------------------------------------------------

    def _assemble(self) -> None:
        """Let all consumers join and get their assignments before the clock of the run starts."""
        team = [_Worker(number) for number in range(self.scenario.consumers)]
        for worker in team:
            self._join(worker)
        consumers = list(self._idle.values())
        assert self.cluster.wait(lambda: all(c.assignment() for c in consumers), 3600)

    def _join(self, worker: _Worker) -> None:
        worker.consumer = consumer = ShareConsumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": GROUP,
                "client.id": f"consumer-{worker.number}",
                "share.acknowledgement.mode": "explicit",
                "share.acquire.mode": self.scenario.acquire_mode,
                "max.poll.records": self.scenario.max_poll_records,
                "max.poll.interval.ms": 86_400_000,
            }
        )
        consumer.subscribe([TOPIC])
        self._poll(worker)

    def _arrange_arrivals(self) -> None:
        """Schedule record batches for the partitions in turn, at once or at exponential intervals."""
        scenario, at_ms = self.scenario, float(self.cluster.now_ms)
        for place, first in enumerate(range(0, scenario.records, scenario.batch_records)):
            count = min(scenario.batch_records, scenario.records - first)
            partition = place % scenario.partitions
            self._batches_to_come += 1
            if scenario.arrival_rate is not None:
                at_ms += self._rng.expovariate(scenario.arrival_rate / count) * 1000
            self._at(int(at_ms), partial(self._arrive, partition, count))

    # ---- the run -----------------------------------------------------------------------------------------------------

    def go(self) -> None:
        """Run until every record is finished, or the time is over."""
        cluster = self.cluster
        end_ms = self.started_ms + self.scenario.max_duration_s * 1000
        while cluster.now_ms < end_ms and not self._done():
            cluster.wait(lambda: self._any_ready() or self._done(), max(self._agenda[0][0] - cluster.now_ms, 0) / 1000)
            for worker in [w for w, consumer in self._idle.items() if consumer.ready()]:
                self._poll(worker)
            while self._agenda[0][0] <= cluster.now_ms < end_ms:
                heapq.heappop(self._agenda)[2]()

    def _at(self, due_ms: int, call: Callable[[], object]) -> None:
        self._asked += 1
        heapq.heappush(self._agenda, (due_ms, self._asked, call))

    def _any_ready(self) -> bool:
        return any(consumer.ready() for consumer in self._idle.values())

    def _done(self) -> bool:
        """True once all records have arrived and every SPSO is at the end of its log. Offsets without a record, such as
        markers, count, too."""
        for entry in self.cluster.journal.since(self._seen):
            if isinstance(entry.event, WindowMoved):
                self._spsos[entry.event.partition] = entry.event.spso
        self._seen = self.cluster.journal.total
        if self._batches_to_come:
            return False
        return all(self._spsos.get(partition, 0) >= end for partition, end in self._ends.items())

    def _arrive(self, partition: int, count: int) -> None:
        poison_rate, rng = self.scenario.poison_rate, self._rng
        for _ in range(count):
            value = POISON if poison_rate and rng.random() < poison_rate else SOUND
            self._producer.produce(TOPIC, value, partition=partition)
        self._producer.flush()
        self._batches_to_come -= 1
        self._ends[partition] = self.cluster.log(TOPIC, partition).log_end_offset

    def _poll(self, worker: _Worker) -> None:
        """Send acknowledgements and take available records. Without any, the consumer waits for some."""
        assert worker.consumer is not None
        messages = worker.consumer.poll(0)
        if not messages:
            self._idle[worker] = worker.consumer
            return
        self._idle.pop(worker, None)
        takes_ms = round(sum(self._service(self._rng) for _ in range(len(messages))))
        now_ms = self.cluster.now_ms
        if self.scenario.crash_rate and self._rng.random() < self.scenario.crash_rate:
            takes_ms //= 2
            self._at(now_ms + takes_ms, lambda: self._crash(worker))
        else:
            self._at(now_ms + takes_ms, lambda: self._finish(worker, messages))
        self.work[worker.number].append(WorkInterval(now_ms, now_ms + takes_ms))

    def _finish(self, worker: _Worker, messages: Messages) -> None:
        """The work is done: acknowledge each record, then poll again."""
        assert worker.consumer is not None
        failure_rate, rng = self.scenario.failure_rate, self._rng
        for message in messages:
            failed = message.value() == POISON or (failure_rate and rng.random() < failure_rate)
            worker.consumer.acknowledge(message, AcknowledgeType.RELEASE if failed else AcknowledgeType.ACCEPT)
        self._poll(worker)

    def _crash(self, worker: _Worker) -> None:
        if worker.consumer is not None:
            self.cluster.crash(worker.consumer)
        worker.consumer = None
        self._at(self.cluster.now_ms + self.scenario.restart_ms, lambda: self._join(worker))

    def outcome(self) -> FinishedRun:
        """The data to measure."""
        return FinishedRun(self.scenario, self.seed, self.cluster.journal, GROUP, TOPIC, self.started_ms, self.work)

    # ---- close -------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()


BOUNDS = {
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.max.record.lock.duration.ms": 3_600_000,
    "group.share.max.delivery.count.limit": 25,
    "group.share.max.partition.max.record.locks": 10_000,
    "group.share.max.size": 1000,
    "group.share.assignment.interval.ms": 0,
}
"""The broker's limits, as wide as Kafka allows: a scenario has its own."""


def _group_config(scenario: Scenario) -> dict[str, object]:
    return {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": scenario.lock_duration_ms,
        "share.delivery.count.limit": scenario.delivery_count_limit,
        "share.partition.max.record.locks": scenario.record_locks,
    }
