"""The backend stands still, is slow, loses a broker or has a full disk: the process continues without a restart.

Clients get at most errors that they may retry; no record is lost, and none is delivered again after its acceptance was
confirmed. The ledger is kept by the clients' side alone.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import confluent_kafka
import pytest

import shareq
from shareq import Admin, Cluster, KafkaError, NewTopic
from shareq.broker.backend.client import BackendClient
from shareq.kafka import LocalKafka
from shareq.model.errors import Errors
from shareq.proxy import tap
from tests.backend.late_answers import late_answers
from tests.backend.serving import CLIENT, Ledger
from tests.kafka.fixtures import START_S
from tests.polling import PATIENCE_S, QUICK, configure, eventually, take

CONFIG = {
    **QUICK,
    "share.coordinator.state.topic.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "share.coordinator.write.timeout.ms": 30_000,
}
VALUE = b"x" * 20_000
DISK_BYTES = 2 << 20
"""The size at which a file of the broker with the full disk grows no further."""

REQUEST_MS = 2_000
"""The time-out of requests to the backend: shorter than that of a commit, and longer than a reconnect waits."""

SLOW_S = 0.2
"""How late the answers of a slow backend are."""

LOCAL = {KafkaError._TRANSPORT, KafkaError._TIMED_OUT}
"""Errors of clients for a lost connection and a response that is late."""

Fresh = Callable[[str], str]


class Work:
    """A cluster on a Kafka, a topic with one partition, a share consumer of each library, and their ledger.

    `backend`: another address of the Kafka.
    """

    def __init__(self, kafka: LocalKafka, fresh: Fresh, stack: ExitStack, backend: str = "") -> None:
        self.kafka, self.topic, self.ledger, self.produced = kafka, fresh("topic"), Ledger(), 0
        self.cluster = stack.enter_context(Cluster(backend=backend or kafka.bootstrap_servers, config=CONFIG))
        self.server: Any = stack.enter_context(self.cluster.serve())
        address = self.address = self.server.bootstrap_servers
        group = self.group = fresh("group")
        with Admin({"bootstrap.servers": address}) as admin:
            admin.create_topics([NewTopic(self.topic, 1, len(kafka.brokers_alive))]).check()
            configure(admin, group, {"share.auto.offset.reset": "earliest"})
        conf: dict[str, Any] = {"bootstrap.servers": address, "linger.ms": 0}
        self._producer = confluent_kafka.Producer(conf)
        self.consumers: list[Any] = []
        for library in (shareq, confluent_kafka):
            consumer = library.ShareConsumer({"bootstrap.servers": address, "group.id": group, **CLIENT})
            stack.callback(consumer.close)
            consumer.subscribe([self.topic])
            self.consumers.append(consumer)

    @property
    def leader(self) -> int:
        return self.cluster.image.topics[self.topic].partitions[0].leader

    @property
    def leader_epoch(self) -> int:
        return self.cluster.image.topics[self.topic].partitions[0].leader_epoch

    def lag(self) -> int:
        with Admin({"bootstrap.servers": self.address}) as admin:
            return admin.list_share_group_offsets(self.group).total

    def send(self, count: int) -> None:
        """Produce, without waiting for the result."""
        for _ in range(count):
            self._producer.produce(self.topic, VALUE, partition=0)
        self.produced += count

    def turn(self) -> None:
        for consumer in self.consumers:
            self.ledger.work(consumer)

    def turn_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < deadline
            self.turn()

    def finish(self) -> None:
        """All that was produced is accepted, and the process has had no failure."""
        assert self._producer.flush(PATIENCE_S) == 0
        self.turn_until(lambda: not self.ledger.missing({(0, offset) for offset in range(self.produced)}))
        self.ledger.check()
        assert not self.server.failures
        assert [error for error in self.ledger.errors if not may_be_repeated(error)] == []


def may_be_repeated(error: Any) -> bool:
    """True for an error of a broker that Kafka calls retriable, a lost connection and a time-out."""
    code = (error.args[0] if isinstance(error, Exception) else error).code()
    return code in LOCAL if code < -1 else Errors(code).retriable


def java_of(kafka: LocalKafka, broker_id: int) -> int:
    """The process of a broker, which is the child of its supervisor."""
    process = kafka._brokers[broker_id]._process
    assert process is not None
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(child)


def states_of_threads(process: int) -> set[str]:
    """As in /proc: T is stopped."""
    stats = (thread / "stat" for thread in Path(f"/proc/{process}/task").iterdir())
    return {stat.read_text().rpartition(")")[2].split()[0] for stat in stats}


@contextmanager
def standing_still(kafka: LocalKafka) -> Iterator[None]:
    """Each of its threads has stopped: a request that a running one still answers would not find the broker still."""
    process = java_of(kafka, 0)
    os.kill(process, signal.SIGSTOP)
    try:
        eventually(lambda: states_of_threads(process), {"T"})
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def test_clients_continue_when_the_backend_has_stood_still(
    kafka: LocalKafka, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For longer than the time-out of requests to it: an append with an unknown result is sent again, so the acceptance
    of which the client does not know the result is recorded once."""
    monkeypatch.setitem(cast(dict[str, Any], BackendClient.call.__kwdefaults__), "timeout_ms", REQUEST_MS)
    with ExitStack() as stack:
        work = Work(kafka, fresh, stack)
        work.send(20)
        first, _ = work.consumers  # the other library's commits have no time-out of their own
        held = take(first, 1)
        with standing_still(kafka):
            work.send(20)
            work.ledger.accept(first, held)
            records = {(0, message.offset()) for message in held}
            assert work.ledger.unknown == records, work.ledger.history_of(records)
            work.ledger.work(first)
        work.send(20)
        work.finish()
        work.turn_until(lambda: work.lag() == 0)
        assert {work.ledger.deliveries[record] for record in records} == {1}


def test_clients_work_on_a_slow_backend(kafka: LocalKafka, fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer is late, but earlier than the time-out of its request: no client gets an error."""
    with ExitStack() as stack:
        slow = stack.enter_context(late_answers(kafka, monkeypatch))
        work = Work(kafka, fresh, stack, slow.address)
        with slow.late_by(SLOW_S):
            work.send(20)
            work.finish()
            assert work.ledger.errors == []
            assert slow.delayed > 0
        work.turn_until(lambda: work.lag() == 0)
        assert set(work.ledger.deliveries.values()) == {1}


class Held:
    """Five records that a consumer holds, while another one consumes what follows."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._holder, self.other = work.consumers
        work.send(5)
        self._messages = take(self._holder, 5)
        self.follow()

    def follow(self) -> None:
        """Send a record: the other consumer gets this one, and none of those that are held."""
        offset = self._work.produced
        self._work.send(1)
        got = take(self.other, 1)
        assert [(message.offset(), message.delivery_count()) for message in got] == [(offset, 1)]
        self._work.ledger.accept(self.other, got)

    def accept(self) -> None:
        self._work.ledger.accept(self._holder, self._messages)
        assert not self._work.ledger.unknown
        self._work.finish()


def test_locks_outlast_a_cut_of_the_link(kafka: LocalKafka, fresh: Fresh) -> None:
    """All connections to the backend break, while the process and the backend run on."""
    with ExitStack() as stack:
        link = stack.enter_context(tap(kafka.bootstrap_servers))
        port = int(link.bootstrap_servers.rpartition(":")[2])
        work = Work(kafka, fresh, stack, link.bootstrap_servers)
        held = Held(work)
        link.close()
        runtime: Any = work.cluster._runtime
        while not runtime.mirror.trouble:
            assert list(held.other.poll(0.1)) == []
        stack.enter_context(tap(kafka.bootstrap_servers, port=port))
        held.follow()
        held.accept()


@pytest.mark.kafka
def test_locks_outlast_a_restart_of_the_backend(fresh: Fresh) -> None:
    """The leader epoch grows, and the same process leads on. The session of the broker is short: a broker that starts
    again is refused until it has ended."""
    with LocalKafka(timeout=START_S) as kafka, ExitStack() as stack:
        work = Work(kafka, fresh, stack)
        held = Held(work)
        before = work.leader_epoch
        kafka.kill_broker(0)
        kafka.start_broker(0)
        eventually(lambda: work.leader_epoch > before, True)
        held.follow()
        held.accept()


def kill(kafka: LocalKafka, broker_id: int, work: Work) -> None:
    kafka.kill_broker(broker_id)


def fill_disk(kafka: LocalKafka, broker_id: int, work: Work) -> None:
    """Files grow no further than a limit: Kafka's writes fail as on a full disk, and the broker ends itself."""
    resource.prlimit(java_of(kafka, broker_id), resource.RLIMIT_FSIZE, (DISK_BYTES, resource.RLIM_INFINITY))
    work.send(2 * DISK_BYTES // len(VALUE))
    work.turn_until(lambda: broker_id not in kafka.brokers_alive)
    assert "all log dirs" in kafka.tail(500, broker_id)


@pytest.mark.parametrize("end", [kill, fill_disk], ids=["killed", "its disk is full"])
def test_clients_continue_without_one_of_three_brokers(
    kafka_of_three: LocalKafka, end: Callable[[LocalKafka, int, Work], None], fresh: Fresh
) -> None:
    """The leader of the records ends, and starts again later: both times shards and records get other leaders."""
    with ExitStack() as stack:
        work = Work(kafka_of_three, fresh, stack)
        work.send(20)
        work.turn_until(lambda: len(work.ledger.accepted) > 0)
        ended = work.leader
        try:
            end(kafka_of_three, ended, work)
            work.send(20)
            work.turn_until(lambda: work.leader not in {ended, -1})
            work.finish()
        finally:
            if ended not in kafka_of_three.brokers_alive:
                kafka_of_three.start_broker(ended)
        eventually(lambda: ended in work.cluster.brokers_alive, True)
        work.send(20)
        work.finish()


@pytest.mark.parametrize("library", [shareq, confluent_kafka], ids=lambda library: library.__name__)
def test_a_producer_may_begin_while_the_broker_of_its_records_is_down(
    kafka_of_three: LocalKafka, library: Any, fresh: Fresh
) -> None:
    """The metadata name that broker until the backend has elected another leader."""
    with ExitStack() as stack:
        work = Work(kafka_of_three, fresh, stack)
        ended = work.leader
        kafka_of_three.kill_broker(ended)
        try:
            results: list[Any] = []
            producer = library.Producer({"bootstrap.servers": work.address, "linger.ms": 0})
            for _ in range(3):
                producer.produce(work.topic, VALUE, partition=0, on_delivery=lambda error, _: results.append(error))
            assert producer.flush(PATIENCE_S) == 0
            assert results == [None] * 3
            eventually(lambda: work.leader != ended, True)
        finally:
            kafka_of_three.start_broker(ended)


@pytest.mark.kafka
def test_work_goes_on_when_the_disk_of_the_only_broker_has_room_again(fresh: Fresh) -> None:
    """Kafka ends itself when its disk is full. Until it is started again, clients get errors that they may retry."""
    with LocalKafka(timeout=START_S) as kafka, ExitStack() as stack:
        work = Work(kafka, fresh, stack)
        runtime: Any = work.cluster._runtime
        work.send(20)
        work.turn_until(lambda: len(work.ledger.accepted) > 0)
        fill_disk(kafka, 0, work)
        work.turn_until(lambda: bool(runtime.mirror.trouble))
        kafka.start_broker(0)
        work.send(20)
        work.finish()
        work.turn_until(lambda: work.lag() == 0)
