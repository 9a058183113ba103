"""Rounds of faults on two `shareq serve --backend`: one is killed, stands still for longer than its session, or loses
its connections to the backend for a second, while Java's and confluent-kafka's share consumers work.

The ledger is kept by the clients' side alone. Consumers hold their records during each fault. SHAREQ_KILLS is the
number of rounds with each persister; the kinds of faults take turns.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

import confluent_kafka
import pytest

from shareq import Admin
from shareq.broker.backend.lease import SESSION_MS
from shareq.broker.backend.processes import NODES
from shareq.jvm import find_java
from shareq.kafka import LocalKafka
from shareq.kafka.broker_process import KafkaCommand
from shareq.kafka.jars import kafka_jars
from shareq.proxy import Tap, tap
from tests.backend.java_consumer import JavaConsumer
from tests.backend.serving import RECOVERY_S, Record, Serving, Work, serving
from tests.polling import PATIENCE_S, eventually
from tests.proxy.members import java_client

ROUNDS = int(os.environ.get("SHAREQ_KILLS", "3"))
BURST = 30
PARTITIONS = 2
"""The assignor gives each to two of the four members: a record that becomes free gets another holder."""

MAX_POLL_RECORDS = 500
"""That of Java's: more than a fetch finds, so that it keeps none back for a later poll. A record that it had kept while
another member accepted it could be accepted again without an error, once it is below the SPSO (as in Kafka)."""

PATIENT_S = 30
"""The time-out of all members but one, which is that of Java's requests."""

LOCK, LOCK_MS = "share.record.lock.duration.ms", 60_000
CUT_S = 1.0
STILL_S = 1.5 * SESSION_MS / 1000

PERSISTERS = {"kafka": "state-topic", "compacting_kafka": "compacted-topic"}
"""The fixture of a backend -> the persister there."""

Fresh = Callable[[str], str]


class Gated:
    """A consumer that can be made to hold its records: they wait for `gate` before they are acknowledged.
    `timeout_s`: of its commits; one that is longer than a process stands still gets the answer of that process."""

    def __init__(self, name: str, consumer: Any, timeout_s: float) -> None:
        self.name = name
        self._consumer = consumer
        self.timeout_s = timeout_s
        self._polled: frozenset[Record] = frozenset()
        self.gate = threading.Event()
        self.gate.set()
        self.held: frozenset[Record] = frozenset()
        """The records that wait at the gate."""

    def __str__(self) -> str:
        return self.name

    def poll(self, timeout_s: float) -> list[Any]:
        found = list(self._consumer.poll(timeout_s))
        self._polled = frozenset((message.partition(), message.offset()) for message in found)
        return found

    def acknowledge(self, message: Any) -> None:
        if not self.gate.is_set():
            self.held = self._polled
            self.gate.wait()
            self.held = frozenset()
        self._consumer.acknowledge(message)

    def commit_sync(self, timeout_s: float) -> Any:
        del timeout_s
        return self._consumer.commit_sync(self.timeout_s)


class Link:
    """The connections of a process to the backend."""

    def __init__(self, kafka: LocalKafka) -> None:
        self._kafka = kafka
        self._tap: Tap = tap(kafka.bootstrap_servers)
        self.address = self._tap.bootstrap_servers

    def cut(self) -> None:
        self._tap.close()

    def mend(self) -> None:
        self._tap = tap(self._kafka.bootstrap_servers, port=int(self.address.rpartition(":")[2]))


class Two:
    """Two processes, each with a link of its own to the backend."""

    def __init__(self, kafka: LocalKafka, persister: str, stack: ExitStack) -> None:
        self.links = [Link(kafka) for _ in range(2)]
        for link in self.links:
            stack.callback(link.cut)
        self.processes = [stack.enter_context(serving(link.address, "--persister", persister)) for link in self.links]

    @property
    def servers(self) -> str:
        return ",".join(process.address for process in self.processes)

    def await_shared(self, topic: str) -> list[int]:
        """Wait until both lead half of the partitions, in the metadata of each; the slots of the leaders."""
        half = [slot for slot in range(2) for _ in range(PARTITIONS // 2)]
        for process in self.processes:
            eventually(lambda asked=process: sorted(leaders(topic, asked)), half)  # type: ignore[misc]
        return leaders(topic, self.processes[0])


def leaders(topic: str, asked: Serving) -> list[int]:
    with Admin({"bootstrap.servers": asked.address}) as admin:
        described = admin.describe_topics([topic])[topic]
    return [partition.leader // NODES for partition in described.partitions]


@contextmanager
def killed(two: Two, slot: int) -> Iterator[None]:
    two.processes[slot].kill()
    yield
    two.processes[slot].start()


@contextmanager
def standing_still(two: Two, slot: int) -> Iterator[None]:
    with two.processes[slot].standing_still(STILL_S):
        yield


@contextmanager
def cut(two: Two, slot: int) -> Iterator[None]:
    two.links[slot].cut()
    end = threading.Timer(CUT_S, two.links[slot].mend)
    end.start()
    yield
    end.join()


FAULTS = (killed, standing_still, cut)


class Judge:
    """Fault after fault, and what the clients may see of each.

    In each round a consumer of each process's partition holds records, while the others, which share the partitions,
    work on. The one whose leader is away accepts them meanwhile: a process that stands still finds the request when
    it goes on, and its successor may have handed out the records by then.
    """

    def __init__(self, two: Two, work: Work, consumers: list[Gated], rng: Random) -> None:
        self._two, self._work, self._consumers, self._rng = two, work, consumers, rng
        self.took: dict[str, list[float]] = defaultdict(list)
        """Kind of fault -> seconds from its begin until all records are accepted."""
        self.lost_locks = self.kept_locks = 0

    def round(self, fault: Any, slot: int) -> None:
        """One fault of one process. Locks may end only of partitions that get another leader by it."""
        led = self._two.await_shared(self._work.topic)
        moved = {index for index, one in enumerate(led) if one == slot} if fault is not cut else set()
        what = f"{fault.__name__} of {slot}, which leads {[index for index, one in enumerate(led) if one == slot]}"
        with self._holding(led) as chosen:
            held = {record for one in chosen.values() for record in one.held}
            started = time.monotonic()
            with fault(self._two, slot):
                if moved:
                    chosen[slot].gate.set()
                before = set(self._work.produced)
                self._work.produce(BURST)
                new = {record for record in self._work.produced - before if record[0] in moved}
            kept = {record for record in held if record[0] not in moved}
            assert kept, "no lock is to be kept"
            self._let_others_pass(kept)
            self.lost_locks += len(held) - len(kept)
            self.kept_locks += len(kept)
        self._work.until_done()
        self.took[fault.__name__].append(time.monotonic() - started)
        if fault is killed:
            assert self._work.ledger.first_delivery(new) - started < RECOVERY_S
        self._two.await_shared(self._work.topic)  # a process that has begun again leads its partition again
        self._work.drain()
        self._work.ledger.judge(moved, what)
        refused = {record: error for record, error in self._work.ledger.refused.items() if record in kept}
        lost = {record: error for record, error in refused.items() if not is_local(error)}
        assert lost == {}, f"{what}: locks were lost: {self._work.ledger.history_of(lost)}"

    @contextmanager
    def _holding(self, led: list[int]) -> Iterator[dict[int, Gated]]:
        """Let a consumer of each process hold records of its partition to the end of the block."""
        deadline = time.monotonic() + PATIENCE_S
        for consumer in self._consumers:
            consumer.gate.clear()
        try:
            chosen: dict[int, Gated] = {}
            while len(chosen) < 2:
                assert time.monotonic() < deadline, f"the consumers hold {[one.held for one in self._consumers]}"
                self._work.produce(BURST)
                self._work.wait()
                waiting = sorted(self._rng.sample(self._consumers, len(self._consumers)), key=lambda one: one.timeout_s)
                chosen = {led[partition]: one for one in waiting for partition, _ in one.held}  # patient ones at last
            for consumer in self._consumers:
                if consumer not in chosen.values():
                    consumer.gate.set()
            yield chosen
        finally:
            for consumer in self._consumers:
                consumer.gate.set()

    def _let_others_pass(self, kept: set[Record]) -> None:
        """Wait until another consumer has accepted a new record of each partition in which records are held: it would
        have got these, too, if they were free."""
        before = set(self._work.produced)
        self._work.produce(BURST)
        partitions = {partition for partition, _ in kept}
        deadline = time.monotonic() + PATIENCE_S
        while partitions - {partition for partition, _ in set(self._work.ledger.accepted) - before}:
            assert time.monotonic() < deadline, f"other consumers accept nothing of {partitions}: {self._assigned()}"
            self._work.wait()

    def _assigned(self) -> str:
        """The members of the group with their partitions, and how many polls of each consumer have been empty."""
        with Admin({"bootstrap.servers": self._two.servers}) as admin:
            members = admin.describe_share_groups([self._work.group])[self._work.group].members
        return f"{members}; empty polls: {[(one.name, self._work.ledger.empty[one]) for one in self._consumers]}"

    def end(self) -> None:
        """All that was produced has ended, and a start of both processes from the logs alone changes nothing."""
        work, ledger = self._work, self._work.ledger
        with Admin({"bootstrap.servers": self._two.servers}) as admin:
            eventually(lambda: admin.list_share_group_offsets(work.group).total, 0)
        before = dict(ledger.deliveries)
        for process in self._two.processes:
            process.kill()
        for process in self._two.processes:
            process.start()
        work.produce(PARTITIONS)
        work.until_done()
        work.drain()
        ledger.judge(range(PARTITIONS), "both were killed")
        again = {record for record, times in before.items() if ledger.deliveries[record] > times}
        assert again == set(), "delivered again after all was accepted"


def is_local(error: Any) -> bool:
    """True if a client has not got the broker's answer."""
    if isinstance(error, str):
        return "TimeoutException" in error or error == "REQUEST_TIMED_OUT"
    return error is not None and error.code() < 0


@pytest.fixture(params=PERSISTERS, ids=list(PERSISTERS.values()))
def kept(request: pytest.FixtureRequest) -> tuple[LocalKafka, str]:
    """A backend, and the persister there."""
    return request.getfixturevalue(request.param), PERSISTERS[request.param]


def test_no_record_is_lost_doubled_or_shared_by_two_holders(
    kept: tuple[LocalKafka, str], fresh: Fresh, seed: int
) -> None:
    kafka, persister = kept
    rng = Random(seed)
    with ExitStack() as stack:
        two = Two(kafka, persister, stack)
        topic, group = fresh("topic"), fresh("group")
        work = Work(
            kafka,
            two.servers,
            topic,
            group,
            stack,
            partitions=PARTITIONS,
            libraries=(),
            processes=two.processes,
            configs={LOCK: LOCK_MS},
        )
        java = stack.enter_context(java_client(KafkaCommand(find_java(), kafka_jars())))
        member = java.open("java", two.servers, group, topic, MAX_POLL_RECORDS)
        patient = {"socket.timeout.ms": PATIENT_S * 1000}
        consumers = [
            Gated("Java's", JavaConsumer(member), PATIENT_S),
            Gated("the first", work.opened(confluent_kafka), timeout_s=5),
            Gated("the second", work.opened(confluent_kafka, patient), PATIENT_S),
            Gated("the third", work.opened(confluent_kafka, patient), PATIENT_S),
        ]
        for consumer in consumers:
            work.add(consumer)
        judge = Judge(two, work, consumers, rng)
        with work.running():
            for number in range(ROUNDS):
                judge.round(FAULTS[number % len(FAULTS)], rng.randrange(2))
            judge.end()
        member.close()
    work.ledger.check(moved=True)
    assert all(work.ledger.takers[consumer] for consumer in consumers), "a consumer has accepted nothing"
    report(work, judge)


def report(work: Work, judge: Judge) -> None:
    ledger = work.ledger
    again = sum(times - 1 for times in ledger.deliveries.values())
    print(f"{len(work.produced)} records, {again} redeliveries, {len(ledger.unknown)} acceptances with unknown results")
    print(f"{len(ledger.again)} stale deliveries, such as {ledger.history_of(ledger.again[:1])}")
    print(f"{judge.kept_locks} locks were kept, {judge.lost_locks} held records had a leader that was away")
    for name, times in judge.took.items():
        print(
            f"{name}: {len(times)} rounds, {statistics.median(times):.1f} s in the middle, {max(times):.1f} s at most"
        )
