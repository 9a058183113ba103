"""Clients on a network that drops, cuts, delays, duplicates and loses frames, while leaders and coordinators move.

After the faults comes a time without faults in which everything must complete. Then the logs, the journal and the
results of the clients are compared.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest

from shareq import Admin, Cluster, KafkaError, KafkaException, Producer, ShareConsumer
from shareq.model.states import IsolationLevel
from tests.broker.ledger import Books
from tests.polling import PATIENCE_S, eventually, take
from tests.soak.proxy import UNREPEATED, Fault, Frame, Plan, Proxy
from tests.soak.stage import ATTEMPTS, GROUPS, MOVES, Moves, prepare, read_log
from tests.soak.team import (
    CONF,
    PARTITIONS,
    PLAIN,
    TRANSACTIONAL,
    AdminReader,
    Place,
    Progress,
    Reader,
    Transactor,
    Worker,
    WorkerContext,
    Writer,
    place_of,
)

W = TypeVar("W", bound=Worker)


# ---- clients at work during faults -----------------------------------------------------------------------------------


class FaultyNetwork:
    """Clients of every kind, and the moves of their cluster."""

    def __init__(self, cluster: Cluster, proxy: Proxy, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = cluster
        self.proxy = proxy
        self.moves = Moves(cluster, proxy, self.rng)
        self.progress = Progress()
        self.writers = [self.start_worker(Writer, "w0"), self.start_worker(Writer, "w1", message_timeout_ms=1500)]
        self.transactors = [self.start_worker(Transactor, "t0"), self.start_worker(Transactor, "t1")]
        self.readers = [
            self.start_worker(Reader, f"{group}{number}", topic, group, explicit=bool(number))
            for group, topic in GROUPS.items()
            for number in range(2)
        ]
        self.workers: list[Worker] = [
            *self.writers,
            *self.transactors,
            *self.readers,
            self.start_worker(AdminReader, "a"),
        ]

    def start_worker(self, kind: type[W], name: str, *args: Any, **conf: Any) -> W:
        context = WorkerContext(self.proxy.bootstrap_servers, random.Random(self.rng.random()), self.progress)
        return kind(name, context, *args, **conf)

    def run(self) -> None:
        """Make a move each time the clients have made progress."""
        for worker in self.workers:
            worker.start()
        with Admin({"bootstrap.servers": self.cluster.bootstrap_servers}) as admin:
            for group in GROUPS:  # a share-partition that is initializing when its coordinator dies waits for long
                eventually(partial(initialized, admin, group), PARTITIONS)
        self.proxy.rule = Plan(self.rng, 0.03)
        for move in self.moves.draw(MOVES):
            self.progress.wait_for(100)
            move()

    def end_faults(self) -> None:
        self.moves.end_faults()
        for worker in self.workers:
            worker.stop()
        for worker in self.workers:
            worker.end()

    def drain(self, group: str) -> dict[Place, str]:
        """Records that the group has not read yet, read by one member until the group has no lag."""
        found: dict[Place, str] = {}
        conf = {"bootstrap.servers": self.proxy.bootstrap_servers}
        with Admin(conf) as admin, ShareConsumer({**conf, "group.id": group}) as consumer:
            consumer.subscribe([GROUPS[group]])

            def lag() -> set[int | None]:
                for message in consumer.poll(0.2):
                    found[place_of(message)] = (message.value() or b"").decode()
                consumer.commit_sync(PATIENCE_S)
                return {row.lag for row in admin.list_share_group_offsets(group).values()}

            eventually(lag, {0})
        return found


def initialized(admin: Admin, group: str) -> int:
    """Number of initialized share-partitions of a group."""
    return sum(row.start_offset is not None for row in admin.lag(group).values())


class Audit:
    """The invariants of logs, journal and client results."""

    def __init__(self, network: FaultyNetwork) -> None:
        self.network = network
        self.cluster = network.cluster
        self.delivered = {group: network.drain(group) for group in GROUPS}
        for reader in network.readers:
            self.delivered[reader.group] |= reader.values
        self.books = {group: Books(group) for group in GROUPS}
        for books in self.books.values():
            books.read(self.cluster.journal.since(0))

    def check(self) -> None:
        written = read_log(self.cluster, PLAIN, IsolationLevel.READ_UNCOMMITTED)
        for writer in self.network.writers:
            self.check_writer(writer, written)
        self.check_group("p", written)
        everything = read_log(self.cluster, TRANSACTIONAL, IsolationLevel.READ_UNCOMMITTED)
        committed = read_log(self.cluster, TRANSACTIONAL, IsolationLevel.READ_COMMITTED)
        for transactor in self.network.transactors:
            self.check_writer(transactor, everything)
            check_transactions(transactor, set(committed.values()))
        self.check_group("t", committed)

    def check_writer(self, writer: Writer, written: dict[Place, str]) -> None:
        """Acknowledged records are at their reported places, none is there twice, and a partition keeps their order."""
        acknowledged = writer.acknowledged()
        assert acknowledged.items() <= written.items(), f"lost: {acknowledged.items() - written.items()}"
        for partition in range(PARTITIONS):
            own = [
                int(v.split(":")[1])
                for p, v in written.items()
                if p[1] == partition and v.startswith(f"{writer.name}:")
            ]
            assert own == sorted(set(own)), f"{writer.name} in partition {partition}: {own}"

    def check_group(self, group: str, readable: dict[Place, str]) -> None:
        books, delivered = self.books[group], self.delivered[group]
        assert delivered.items() <= readable.items(), "a record that is not in the log, or not committed, was delivered"
        for place in readable.keys() - delivered.keys():
            assert books.deliveries[place] >= ATTEMPTS, f"{place} was never delivered"
        twice = [place for place, times in books.accepted.items() if times > 1]
        assert not twice, f"accepted twice: {twice}"
        for reader in self.network.readers:
            if reader.group == group:
                wrong = {place for place in reader.accepted if books.accepted[place] != 1}
                assert not wrong, f"{reader.name} has reports of acceptance for records that are not: {wrong}"
                assert not reader.gaps & readable.keys(), "an acknowledgement has two callbacks"


def check_transactions(transactor: Transactor, committed: set[str]) -> None:
    """Committed transactions are complete, aborted ones invisible; the others are one of both."""
    for values, ended in transactor.transactions:
        visible = committed & set(values)
        legal = [set(values)] if ended else [set[str]()]
        if ended is None:
            legal.append(set(values))
        assert visible in legal, (ended, values)


@pytest.mark.parametrize("latency_ms", [0, 8], ids=["", "8 ms latency"])
def test_no_record_is_lost_or_accepted_twice(cluster: Cluster, proxy: Proxy, seed: int, latency_ms: int) -> None:
    """With latency between brokers, leaders and coordinators move between a request and its response."""
    network = FaultyNetwork(cluster, proxy, seed + latency_ms)
    network.run()
    network.end_faults()
    Audit(network).check()
    print(figures(network))


def figures(network: FaultyNetwork) -> str:
    ends = Counter(ended for each in network.transactors for _, ended in each.transactions)
    records = sum(len(each.acknowledged()) for each in [*network.writers, *network.transactors])
    deliveries = sum(each.deliveries.total() for each in network.readers)
    accepted = sum(len(each.accepted) for each in network.readers)
    refused = sum((each.refused for each in network.workers), Counter[str]())
    faults = {str(fault): count for fault, count in network.proxy.injected.items()}
    return (
        f"{records} records, {ends[True]} transactions committed, {ends[False]} aborted, {ends[None]} unknown, "
        f"{deliveries} deliveries, {accepted} accepted, {network.proxy.frames} frames, faults {faults}, "
        f"calls refused {dict(refused)}"
    )


# ---- one fault at a time ---------------------------------------------------------------------------------------------


class Once:
    """A rule that injects a fault into the first frame of each request, or of each response, from now on."""

    def __init__(self, fault: Fault, *, is_request: bool) -> None:
        self._fault = fault
        self._is_request = is_request
        self.seen: set[str] = set()

    def __call__(self, frame: Frame) -> Fault | None:
        spared = self._fault is Fault.DOUBLE and frame in UNREPEATED
        if frame.is_request is not self._is_request or frame.api in self.seen or spared:
            return None
        self.seen.add(frame.api)
        return self._fault


EXPECTED_APIS = {"EndTxn", "FindCoordinator", "Metadata", "Produce", "ShareAcknowledge", "ShareFetch"}


@pytest.mark.parametrize("is_request", [True, False], ids=["request", "answer"])
@pytest.mark.parametrize("fault", Fault)
def test_each_request_survives_each_fault(
    warm: tuple[Cluster, Proxy], fresh: Callable[[str], str], fault: Fault, is_request: bool
) -> None:
    """A transaction is written and read; the first frame of each API has the fault."""
    cluster, proxy = warm
    topic, name = fresh("topic"), fresh("x")
    prepare(cluster, topic, name)
    rule = proxy.rule = Once(fault, is_request=is_request)
    before = proxy.injected[fault]
    conf = CONF | {"bootstrap.servers": proxy.bootstrap_servers, "request.timeout.ms": 600}
    reports: list[object] = []
    with Producer({**conf, "transactional.id": name}) as producer:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for value in "abc":
            producer.produce(topic, value, partition=0, on_delivery=lambda *report: reports.append(report[0]))
        producer.commit_transaction(PATIENCE_S)
    assert reports == [None] * 3
    with ShareConsumer({**conf, "group.id": name}) as consumer:
        consumer.subscribe([topic])
        messages = take(consumer, 3)
        assert [message.value() for message in messages] == [b"a", b"b", b"c"]
        consumer.commit_sync(PATIENCE_S)
    assert proxy.injected[fault] - before == len(rule.seen)
    assert rule.seen >= EXPECTED_APIS


# ---- two producers of one transactional.id ---------------------------------------------------------------------------


class RivalProducer(threading.Thread):
    """Writes and commits a transaction with a transactional.id that another producer uses, too."""

    def __init__(self, name: str, proxy: Proxy, meeting: threading.Barrier) -> None:
        super().__init__(name=name, daemon=True)
        self.producer = Producer(CONF | {"bootstrap.servers": proxy.bootstrap_servers, "transactional.id": "x"})
        self.values = {f"{name}:{number}" for number in range(10)}
        self.reports: list[object] = []
        self.error: KafkaError | None = None
        self._meeting = meeting

    def run(self) -> None:
        self._attempt(self._write)
        self._meeting.wait(PATIENCE_S)  # both have begun: the second has fenced the first
        if self.error is None:
            self._attempt(partial(self.producer.commit_transaction, PATIENCE_S))
        # A leader refused a record; the abort has the coordinator's error, which is the reason.
        if self.error is not None and not self.error.fatal():
            self._attempt(partial(self.producer.abort_transaction, PATIENCE_S))
        self.producer.close(PATIENCE_S)

    def _attempt(self, call: Callable[[], object]) -> None:
        try:
            call()
        except KafkaException as failure:
            self.error = failure.error

    def _write(self) -> None:
        self.producer.init_transactions(PATIENCE_S)
        self.producer.begin_transaction()
        for number, value in enumerate(sorted(self.values)):
            at = number % PARTITIONS
            self.producer.produce(TRANSACTIONAL, value, partition=at, on_delivery=lambda *_: self.reports.append(_[0]))
        self.producer.flush(PATIENCE_S)


def test_one_of_two_producers_with_one_transactional_id_commits(cluster: Cluster, proxy: Proxy, seed: int) -> None:
    """A broker is killed between the records and the commits; it can be the leader or the coordinator of both."""
    rng = random.Random(seed)
    proxy.rule = Plan(rng, 0.05)
    winners: set[str] = set()
    for round_ in range(max(3, MOVES // 4)):
        meeting = threading.Barrier(3)
        producers = [RivalProducer(f"{name}{round_}", proxy, meeting) for name in "ab"]
        for producer in producers:
            producer.start()
        meeting.wait(PATIENCE_S)
        lost = rng.choice(cluster.brokers_alive)
        cluster.kill_broker(lost)
        for producer in producers:
            producer.join(PATIENCE_S)
        cluster.start_broker(lost)
        errors = [producer.error for producer in producers if producer.error is not None]
        assert len(errors) == 1, f"round {round_}: {errors}"
        assert errors[0].fatal(), errors[0]
        for producer in producers:
            assert len(producer.reports) == len(producer.values), "each record has one report"
            winners |= producer.values if producer.error is None else set()
    assert set(read_log(cluster, TRANSACTIONAL, IsolationLevel.READ_COMMITTED).values()) == winners
