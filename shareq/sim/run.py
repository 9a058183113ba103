"""One run: a cluster on virtual time, producers that follow an arrival process, consumers with service times.

Everything is an event of the cluster's loop, whose time jumps to the next one: an arrival, the end of a consumer's
work, an expiring lock, a response that makes a waiting consumer ready.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, cycle, repeat
from typing import Self

from shareq.broker import Cluster
from shareq.consumer import Messages, ShareConsumer
from shareq.model.errors import KafkaError, KafkaException
from shareq.model.events import WindowMoved
from shareq.model.experiments import (
    ASSIGNOR,
    BACKOFF_MAX_MS,
    BACKOFF_MS,
    ENABLE,
    KEY_MAX_IN_FLIGHT,
    KEY_ORDERING,
    LAG_INTERVAL_MS,
    TTL_MS,
)
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.states import AcknowledgeType
from shareq.producer import Producer
from shareq.sim.faults import REPLICAS, TOPIC, faults_of
from shareq.sim.result import FinishedRun, Result, WorkInterval, measure
from shareq.sim.scenario import Scenario, check_seed
from shareq.team import LoopPoller

GROUP = "group"
POISON, SLOW, SOUND = b"poison", b"slow", b"sound"


def run(scenario: Scenario, seed: int = 0) -> Result:
    """Run the scenario. The same scenario and seed give the same result, to the last digit.

    AssertionError if a record was accepted twice or lost: a defect of the cluster.
    """
    with Simulation(scenario, seed) as simulation:
        simulation.go()
        return measure(simulation.outcome())


class Simulation:
    """A run whose cluster (`cluster.journal`, `view`, ...) can be inspected afterwards."""

    def __init__(self, scenario: Scenario, seed: int = 0) -> None:
        seed = check_seed(seed)
        self.scenario = scenario
        self.seed = seed
        self._rng = random.Random(seed)
        self.cluster = Cluster(
            brokers=scenario.brokers, seed=self._rng.getrandbits(32), config=_broker_config(scenario)
        )
        self.cluster.create_topic(TOPIC, scenario.partitions, replication_factor=min(REPLICAS, scenario.brokers))
        self.cluster.configure_group(GROUP, _group_config(scenario))
        self.work: list[list[WorkInterval]] = [[] for _ in range(scenario.consumers)]
        self._service = scenario.service_time()
        self._seen = 0
        self._spsos: dict[int, int] = {}
        self._batches_to_come = 0
        self._producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "batch.num.messages": scenario.batch_records,
                "enable.idempotence": bool(scenario.message_loss or scenario.faults),
                "linger.ms": 5,
            }
        )
        self._assemble()
        self.started_ms = self.cluster.now_ms
        self._end_ms = self.started_ms + scenario.max_duration_s * 1000
        self._arrange_arrivals()

    # ---- setup -------------------------------------------------------------------------------------------------------

    def _assemble(self) -> None:
        """Let all consumers join and get their assignments before the clock of the run starts."""
        consumers = [self._join(number) for number in range(self.scenario.consumers)]
        assert self.cluster.wait(lambda: all(c.assignment() for c in consumers), 3600)

    def _join(self, number: int) -> ShareConsumer:
        """Let a consumer join. One that replaces a crashed one keeps its number."""
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": GROUP,
                "client.id": f"consumer-{number}",
                "share.acknowledgement.mode": "explicit",
                "share.acquire.mode": self.scenario.acquire_mode,
                "max.poll.records": self.scenario.max_poll_records,
                "max.poll.interval.ms": 86_400_000,
            }
        )
        consumer.subscribe([TOPIC])
        worker = LoopPoller(
            self.cluster, consumer, lambda messages: self._work(number, worker, consumer, messages), _poll_again
        )
        worker.poll()
        return consumer

    def _arrange_arrivals(self) -> None:
        """Schedule record batches for the partitions, at once or at exponential intervals."""
        scenario, at_ms = self.scenario, float(self.cluster.now_ms)
        partitions = _partitions(scenario)
        for first in range(0, scenario.records, scenario.batch_records):
            count = min(scenario.batch_records, scenario.records - first)
            partition = next(partitions)
            self._batches_to_come += 1
            if scenario.arrival_rate is not None:
                at_ms += self._rng.expovariate(scenario.arrival_rate / count) * 1000
            self._at(int(at_ms), partial(self._arrive, partition, count))

    # ---- the run -----------------------------------------------------------------------------------------------------

    def go(self) -> None:
        """Run until every record is finished, or the time is over. The network is faulty from now on."""
        scenario = self.scenario
        if scenario.message_loss or scenario.message_delay_ms:
            self.cluster.messages.disturb(loss=scenario.message_loss, delay_ms=scenario.message_delay_ms)
        if scenario.state_write_delay_ms:
            self.cluster.delay_appends(SHARE_STATE_TOPIC, scenario.state_write_delay_ms)
        for fault in faults_of(scenario.faults):
            self._at(self.started_ms + fault.at_ms, partial(fault.inject, self.cluster))
        self.cluster.wait(self._done, scenario.max_duration_s)

    def _at(self, due_ms: int, call: Callable[[], object]) -> None:
        """Run `call` as an event, unless the time is over by then."""
        loop = self.cluster.loop
        loop.at(due_ms, lambda: loop.as_event(call) if loop.time_ms() < self._end_ms else None)

    def _done(self) -> bool:
        """True once all records have arrived and every SPSO is at the end of its log. Offsets without a record, such as
        markers, count, too."""
        for entry in self.cluster.journal.since(self._seen):
            if isinstance(entry.event, WindowMoved):
                self._spsos[entry.event.partition] = entry.event.spso
        self._seen = self.cluster.journal.total
        if self._batches_to_come or len(self._producer):
            return False
        logs = (self.cluster.log(TOPIC, partition) for partition in range(self.scenario.partitions))
        return all(self._spsos.get(partition, 0) >= log.log_end_offset for partition, log in enumerate(logs))

    def _arrive(self, partition: int, count: int) -> None:
        for _ in range(count):
            self._producer.produce(TOPIC, self._value(), self._key(), partition=partition)
        self._producer.flush()
        self._batches_to_come -= 1

    def _value(self) -> bytes:
        """The value of the next record, which decides how consumers work on it."""
        scenario, rng = self.scenario, self._rng
        if scenario.poison_rate and rng.random() < scenario.poison_rate:
            return POISON
        return SLOW if scenario.slow_rate and rng.random() < scenario.slow_rate else SOUND

    def _key(self) -> str | None:
        keys = self.scenario.keys
        return None if keys is None else str(self._rng.randrange(keys))

    def _work_ms(self, messages: Messages) -> int:
        """The time that a consumer works on the records of a poll."""
        draw, factor = self._service, self.scenario.slow_factor
        if not self.scenario.slow_rate:
            return round(sum(draw(self._rng) for _ in range(len(messages))))
        return round(sum(draw(self._rng) * (factor if message.value() == SLOW else 1) for message in messages))

    def _work(self, number: int, worker: LoopPoller, consumer: ShareConsumer, messages: Messages) -> None:
        """Work on the records of a poll; the end of the work, or a crash half-way, is a later event."""
        takes_ms = self._work_ms(messages)
        now_ms = self.cluster.now_ms
        if self.scenario.crash_rate and self._rng.random() < self.scenario.crash_rate:
            takes_ms //= 2
            self._at(now_ms + takes_ms, lambda: self._crash(number, consumer))
        else:
            self._at(now_ms + takes_ms, lambda: self._finish(worker, consumer, messages))
        self.work[number].append(WorkInterval(now_ms, now_ms + takes_ms))

    def _finish(self, worker: LoopPoller, consumer: ShareConsumer, messages: Messages) -> None:
        """The work is done: acknowledge each record, then poll again."""
        failure_rate, rng = self.scenario.failure_rate, self._rng
        for message in messages:
            failed = message.value() == POISON or (failure_rate and rng.random() < failure_rate)
            consumer.acknowledge(message, AcknowledgeType.RELEASE if failed else AcknowledgeType.ACCEPT)
        worker.poll()

    def _crash(self, number: int, consumer: ShareConsumer) -> None:
        self.cluster.crash(consumer)
        self._at(self.cluster.now_ms + self.scenario.restart_ms, lambda: self._join(number))

    def outcome(self) -> FinishedRun:
        """The data to measure."""
        journal, ended_ms = self.cluster.journal, self.cluster.now_ms
        return FinishedRun(self.scenario, self.seed, journal, GROUP, TOPIC, self.started_ms, ended_ms, self.work)

    # ---- close -------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()


BOUNDS: dict[str, object] = {
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.max.record.lock.duration.ms": 3_600_000,
    "group.share.max.delivery.count.limit": 25,
    "group.share.max.partition.max.record.locks": 10_000,
    "group.share.max.size": 1000,
    "group.share.assignment.interval.ms": 0,
}
"""The broker's limits, as wide as Kafka allows: a scenario has its own."""


EXPERIMENTS = {
    "assignor": ASSIGNOR,
    "lag_interval_ms": LAG_INTERVAL_MS,
    "release_backoff_ms": BACKOFF_MS,
    "release_backoff_max_ms": BACKOFF_MAX_MS,
    "key_ordering": KEY_ORDERING,
    "key_max_in_flight": KEY_MAX_IN_FLIGHT,
    "record_ttl_ms": TTL_MS,
}
"""The parameters that only brokers with experiments have, and the group's configurations that they are."""


def _experiments(scenario: Scenario) -> dict[str, object]:
    """The experiments of the group; empty if all parameters are Kafka's."""
    usual, chosen = Scenario(), {name: getattr(scenario, name) for name in EXPERIMENTS}
    return {EXPERIMENTS[name]: value for name, value in chosen.items() if value != getattr(usual, name)}


def _broker_config(scenario: Scenario) -> dict[str, object]:
    return {**BOUNDS, ENABLE: True} if _experiments(scenario) else BOUNDS


def _group_config(scenario: Scenario) -> dict[str, object]:
    return {
        **_experiments(scenario),
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": scenario.lock_duration_ms,
        "share.delivery.count.limit": scenario.delivery_count_limit,
        "share.partition.max.record.locks": scenario.record_locks,
    }


def _poll_again(error: KafkaException) -> None:
    """A consumer that reaches no broker polls on, as an application does. Any other error ends the run."""
    if error.args[0].code() != KafkaError._TRANSPORT:
        raise error


def _partitions(scenario: Scenario) -> Iterator[int]:
    """The partition of each record batch: in turn, or a share to the first one, as evenly as it can be spread."""
    others = cycle(range(1, scenario.partitions)) if scenario.partitions > 1 else repeat(0)
    if scenario.hot_share is None:
        yield from cycle(range(scenario.partitions))
        return
    for place in count():
        is_hot = round((place + 1) * scenario.hot_share) > round(place * scenario.hot_share)
        yield 0 if is_hot else next(others)
