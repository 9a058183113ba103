"""Five incidents for the lab "on call": groups that have come to a stop, and work again when the cause is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from shareq.consumer import Message, ShareConsumer
from shareq.lessons.bench import Bench, attempt, settle
from shareq.lessons.letters import name_queue
from shareq.lessons.transactions import transactional, write
from shareq.model.errors import IllegalStateException
from shareq.model.events import DeadLettersWaiting
from shareq.model.states import AcknowledgeType

TICK_MS = 1_000
RENEW_EVERY_S = 20
_NO_RECORD = ("gap", "aborted")

KEPT: Final = "a consumer keeps a record for ever"
OPEN: Final = "a transaction is open"
SLOW: Final = "the work takes longer than the lock"
LEADERLESS: Final = "the leader's broker is dead"
NO_QUEUE: Final = "the dead-letter queue is missing"
CAUSES: Final = (KEPT, OPEN, SLOW, LEADERLESS, NO_QUEUE, "a poisonous record", "the assignment is empty")
"""What a learner chooses from: the causes of the incidents, and two that are none."""


@dataclass(slots=True)
class Incident:
    """A bench with its consumers by name. `service_s`: the time that a record takes. `poison`: offsets that are
    rejected. `hoarder`: the consumer that keeps its records by renewals, and those records."""

    bench: Bench
    consumers: dict[str, ShareConsumer]
    service_s: float = 0.0
    poison: frozenset[int] = frozenset()
    hoarder: str = ""
    hoard: list[Message] = field(default_factory=list)

    def work(self, seconds: int) -> Incident:
        """Let the consumers work for a time of the cluster."""
        cluster = self.bench.cluster
        end_ms = cluster.now_ms + seconds * 1000
        while cluster.now_ms < end_ms:
            for name in [name for name in self.consumers if name != self.hoarder]:
                self._turn(name, self._work_off)
            if (cluster.now_ms - cluster.origin_ms) // 1000 % RENEW_EVERY_S == 0:
                self._turn(self.hoarder, self._keep)
            cluster.advance(TICK_MS)
        return self

    def crash(self, name: str) -> None:
        """End a consumer, as a kill of its process does."""
        self.bench.cluster.crash(self.consumers.pop(name))

    @property
    def lag(self) -> int:
        """Records that are not done."""
        return self.bench.view.snapshot()["lag"] or 0

    @property
    def lost(self) -> list[int]:
        """The records that were given up: archived, and neither poison, nor aborted, nor without content."""
        lives = map(self.bench.life, range(self.bench.cluster.log(self.bench.topic, 0).log_end_offset))
        given_up = [life for life in lives if life.state == "archived" and life.events[-1] not in _NO_RECORD]
        return [life.offset for life in given_up if life.offset not in self.poison]

    def _turn(self, name: str, work: Callable[[ShareConsumer], None]) -> None:
        """Let a consumer work. A program that uses a closed consumer, or records that it no longer holds, ends."""
        if name in self.consumers:
            try:
                work(self.consumers[name])
            except IllegalStateException:
                self.consumers.pop(name)

    def _work_off(self, consumer: ShareConsumer) -> None:
        messages = consumer.poll(0)
        if len(messages):
            self.bench.cluster.advance(self.service_s * 1000 * len(messages))
            for kind in (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT):
                bad = kind is AcknowledgeType.REJECT
                attempt(consumer, [message for message in messages if (message.offset() in self.poison) is bad], kind)

    def _keep(self, consumer: ShareConsumer) -> None:
        if attempt(consumer, self.hoard, AcknowledgeType.RENEW) == "ok":
            kept, messages = {message.offset() for message in self.hoard}, list(consumer.poll(1))
            self.hoard = [message for message in messages if message.offset() in kept]
            attempt(consumer, [message for message in messages if message.offset() not in kept])


def reports() -> Incident:
    """Three reports, of which each takes 40 seconds."""
    bench = Bench(1, 1, 1)
    return Incident(bench, {"printer": bench.consumer("printer", most=1)}, service_s=40).work(60)


def orders() -> Incident:
    """Two hundred orders, and workers with nothing to do."""
    bench = Bench(*[10] * 20, configs={"share.partition.max.record.locks": 100})
    keeper = bench.consumer("keeper", most=1)
    first = keeper.poll(1)
    settle(keeper, first[1:])
    settle(keeper, first[:1], AcknowledgeType.RENEW)
    consumers = {"keeper": keeper, "worker-1": bench.consumer("worker-1", most=1)}
    return Incident(bench, consumers, hoarder="keeper", hoard=list(keeper.poll(1))).work(60)


def payments() -> Incident:
    """Payments of a bank whose process has died."""
    bench = Bench(2, configs={"share.isolation.level": "read_committed"})
    bank = transactional(bench, "bank")
    bank.begin_transaction()
    write(bench, bank, "pay 1", "pay 2")
    bench.cluster.crash(bank)
    bench.produce(6)
    return Incident(bench, {"booker": bench.consumer("booker")}).work(20)


def pictures() -> Incident:
    """Pictures, of which one cannot be read."""
    bench = Bench(*[5] * 30, configs={"share.partition.max.record.locks": 100})
    name_queue(bench)
    return Incident(bench, {"painter": bench.consumer("painter", most=1)}, poison=frozenset({7})).work(60)


def letters_home() -> Incident:
    """Letters on a broker that does not run."""
    bench = Bench(5, 5, brokers=3, config={"default.replication.factor": 1})
    incident = Incident(bench, {"postman": bench.consumer("postman", most=1)}).work(1)
    bench.produce(*[5] * 4)
    bench.cluster.kill_broker(bench.leader)
    return incident.work(60)


def diagnosis(case: Incident) -> str:
    """The cause of an incident, found in its run as the table at the end of the lab says."""
    cluster, topic = case.bench.cluster, case.bench.topic
    if case.bench.leader not in cluster.brokers_alive:
        return LEADERLESS
    if cluster.journal.select(DeadLettersWaiting):
        return NO_QUEUE
    log = cluster.log(topic, 0)
    if log.last_stable_offset < log.log_end_offset:
        return OPEN
    events = case.bench.life(case.bench.view.snapshot()["spso"]).events
    assert {"renew", "lock_timeout"} & set(events), f"none of the causes: {case.bench}"
    return KEPT if "renew" in events else SLOW
