"""Rounds of faults on two `shareq serve --backend`: one is killed, stands still for longer than its session, or loses
its connections to the backend for a second, while Java's and confluent-kafka's share consumers work.

The ledger is kept by the clients' side alone. One consumer holds its records during each fault. SHAREQ_KILLS is the
number of rounds; the kinds of faults take turns. `make kills` runs them; they are in no ring.
"""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

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
from tests.backend.serving import Record, Serving, Work, serving
from tests.polling import PATIENCE_S, eventually
from tests.proxy.members import ACCEPT, Got, JavaError, JavaMember, java_client

ROUNDS = int(os.environ.get("SHAREQ_KILLS", "3"))
BURST = 30
PARTITIONS = 6
CUT_S = 1.0
STILL_S = 1.5 * SESSION_MS / 1000

Fresh = Callable[[str], str]

pytestmark = pytest.mark.skipif("SHAREQ_KILLS" not in os.environ, reason="rounds of faults: make kills")


class At(NamedTuple):
    partition: int


class JavaConsumer:
    """Java's share consumer with the interface that the ledger uses."""

    def __init__(self, member: JavaMember) -> None:
        self._member = member
        self._polled: set[int] = set()

    def poll(self, timeout_s: float) -> list[Any]:
        return [_message(got) for got in self._member.poll(timeout_s)]

    def acknowledge(self, message: Any) -> None:
        self._polled.add(message.partition())
        self._member.acknowledge(message.got, ACCEPT)

    def commit_sync(self, timeout_s: float) -> dict[Any, str | None]:
        """The errors of the partitions; a call that throws has one for all of them."""
        del timeout_s
        partitions, self._polled = self._polled, set()
        try:
            found = self._member.commit_sync()
        except JavaError as problem:
            found = dict.fromkeys(partitions, str(problem))
        return {At(partition): None if error == "NONE" else error for partition, error in found.items()}


def _message(got: Got) -> Any:
    return SimpleNamespace(got=got, partition=lambda: got.partition, offset=lambda: got.offset)


class Holder:
    """A consumer whose records wait for `gate` before they are acknowledged."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self.gate = threading.Event()
        self.gate.set()

    def poll(self, timeout_s: float) -> list[Any]:
        return list(self._consumer.poll(timeout_s))

    def acknowledge(self, message: Any) -> None:
        self.gate.wait()
        self._consumer.acknowledge(message)

    def commit_sync(self, timeout_s: float) -> Any:
        return self._consumer.commit_sync(timeout_s)


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

    def __init__(self, kafka: LocalKafka, stack: ExitStack) -> None:
        self.links = [Link(kafka) for _ in range(2)]
        for link in self.links:
            stack.callback(link.cut)
        self.processes = [stack.enter_context(serving(link.address)) for link in self.links]

    @property
    def servers(self) -> str:
        return ",".join(process.address for process in self.processes)

    def await_shared(self, topic: str) -> list[int]:
        """Wait until both lead half of the partitions, in the metadata of each; the slots of the leaders."""
        for process in self.processes:
            eventually(lambda asked=process: sorted(leaders(topic, asked)), [0, 0, 0, 1, 1, 1])  # type: ignore[misc]
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
    two.processes[slot].signal(signal.SIGSTOP)
    end = threading.Timer(STILL_S, two.processes[slot].signal, [signal.SIGCONT])
    end.start()
    yield
    end.join()


@contextmanager
def cut(two: Two, slot: int) -> Iterator[None]:
    two.links[slot].cut()
    end = threading.Timer(CUT_S, two.links[slot].mend)
    end.start()
    yield
    end.join()


FAULTS = (killed, standing_still, cut)


def test_no_record_is_lost_doubled_or_shared_by_two_holders(kafka: LocalKafka, fresh: Fresh, seed: int) -> None:
    rng = Random(seed)
    took: dict[str, list[float]] = defaultdict(list)
    lost_locks = 0
    with ExitStack() as stack:
        two = Two(kafka, stack)
        topic, group = fresh("topic"), fresh("group")
        work = Work(kafka, two.servers, topic, group, stack, partitions=PARTITIONS, libraries=(confluent_kafka,))
        holder = Holder(work.opened(confluent_kafka))
        work.add(holder)
        java = stack.enter_context(java_client(KafkaCommand(find_java(), kafka_jars())))
        member = java.open("java", two.servers, group, topic)
        work.add(JavaConsumer(member))
        ledger = work.ledger
        with work.running():
            for number in range(ROUNDS):
                fault, slot = FAULTS[number % len(FAULTS)], rng.randrange(2)
                led = two.await_shared(topic)
                moved = {index for index, one in enumerate(led) if one == slot} if fault is not cut else set()
                with holding(work, holder) as held:
                    before, started = len(ledger.shared), time.monotonic()
                    with fault(two, slot):
                        work.produce(BURST)
                work.until_done()
                took[fault.__name__].append(time.monotonic() - started)
                shared = {record for record in ledger.shared[before:] if record[0] not in moved}
                assert shared == set(), f"{fault.__name__} of {slot}: two holders"
                kept = {record for record in held if record[0] not in moved}
                assert kept <= set(ledger.accepted), f"{fault.__name__} of {slot}: a lock was lost"
                lost_locks += len(held) - len(kept)
            with Admin({"bootstrap.servers": two.servers}) as admin:
                eventually(lambda: admin.list_share_group_offsets(group).total, 0)
        member.close()
    ledger.check()
    again = sum(times - 1 for times in ledger.deliveries.values())
    print(f"{len(work.produced)} records, {again} redeliveries, {len(ledger.unknown)} acceptances with unknown results")
    print(f"{lost_locks} held records whose leader was away")
    for name, times in took.items():
        print(
            f"{name}: {len(times)} rounds, {statistics.median(times):.1f} s in the middle, {max(times):.1f} s at most"
        )


@contextmanager
def holding(work: Work, holder: Holder) -> Iterator[set[Record]]:
    """Produce until the holder has got records; it keeps them to the end of the block."""
    deadline = time.monotonic() + PATIENCE_S
    holder.gate.clear()
    try:
        while not (held := work.ledger.held_by(holder)):
            assert time.monotonic() < deadline, "the holder gets nothing"
            work.produce(BURST)
            work.ledger.wait()
        yield held
    finally:
        holder.gate.set()
