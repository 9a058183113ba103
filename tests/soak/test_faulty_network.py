"""Whole clients on a network that drops, cuts, delays, doubles and loses frames, while leaders and coordinators move.

After the faults a quiet time, in which everything has to get done. Then the books: the logs, the journal, and what the
clients were told.
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
    Around,
    Onlooker,
    Place,
    Progress,
    Reader,
    Transactor,
    Worker,
    Writer,
    place_of,
)

W = TypeVar("W", bound=Worker)


# ---- clients at work while everything moves --------------------------------------------------------------------------


class Trouble:
    """Clients of every kind, and what happens to their cluster."""

    def __init__(self, cluster: Cluster, proxy: Proxy, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = cluster
        self.proxy = proxy
        self.moves = Moves(cluster, proxy, self.rng)
        self.progress = Progress()
        self.writers = [self.made(Writer, "w0"), self.made(Writer, "w1", message_timeout_ms=1500)]
        self.transactors = [self.made(Transactor, "t0"), self.made(Transactor, "t1")]
        self.readers = [
            self.made(Reader, f"{group}{number}", topic, group, explicit=bool(number))
            for group, topic in GROUPS.items()
            for number in range(2)
        ]
        self.workers: list[Worker] = [*self.writers, *self.transactors, *self.readers, self.made(Onlooker, "a")]

    def made(self, kind: type[W], name: str, *args: Any, **conf: Any) -> W:
        around = Around(self.proxy.bootstrap_servers, random.Random(self.rng.random()), self.progress)
        return kind(name, around, *args, **conf)

    def run(self) -> None:
        """A move whenever the clients have got something done."""
        for worker in self.workers:
            worker.start()
        with Admin({"bootstrap.servers": self.cluster.bootstrap_servers}) as admin:
            for group in GROUPS:  # a share-partition that is not initialised when its coordinator dies waits for long
                eventually(partial(begun, admin, group), PARTITIONS)
        self.proxy.rule = Plan(self.rng, 0.03)
        for move in self.moves.draw(MOVES):
            self.progress.wait_for(100)
            move()

    def make_peace(self) -> None:
        self.moves.make_peace()
        for worker in self.workers:
            worker.stop()
        for worker in self.workers:
            worker.end()

    def drain(self, group: str) -> dict[Place, str]:
        """What the group has not read yet, by a patient member; then the group has no lag."""
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


def begun(admin: Admin, group: str) -> int:
    """How many share-partitions of a group are initialised."""
    return sum(row.start_offset is not None for row in admin.lag(group).values())


class Audit:
    """What has to hold, from the logs, the journal and what the clients were told."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble
        self.cluster = trouble.cluster
        self.delivered = {group: trouble.drain(group) for group in GROUPS}
        for reader in trouble.readers:
            self.delivered[reader.group] |= reader.values
        self.books = {group: Books(group) for group in GROUPS}
        for books in self.books.values():
            books.read(self.cluster.journal.since(0))

    def check(self) -> None:
        written = read_log(self.cluster, PLAIN, IsolationLevel.READ_UNCOMMITTED)
        for writer in self.trouble.writers:
            self.check_writer(writer, written)
        self.check_group("p", written)
        everything = read_log(self.cluster, TRANSACTIONAL, IsolationLevel.READ_UNCOMMITTED)
        committed = read_log(self.cluster, TRANSACTIONAL, IsolationLevel.READ_COMMITTED)
        for transactor in self.trouble.transactors:
            self.check_writer(transactor, everything)
            check_transactions(transactor, set(committed.values()))
        self.check_group("t", committed)

    def check_writer(self, writer: Writer, written: dict[Place, str]) -> None:
        """Acknowledged records are where the broker said, none is there twice, and a partition keeps their order."""
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
        assert delivered.items() <= readable.items(), "what is not in the log, or not committed, was delivered"
        for place in readable.keys() - delivered.keys():
            assert books.deliveries[place] >= ATTEMPTS, f"{place} was never delivered"
        twice = [place for place, times in books.accepted.items() if times > 1]
        assert not twice, f"accepted twice: {twice}"
        for reader in self.trouble.readers:
            if reader.group == group:
                told = {place for place in reader.accepted if books.accepted[place] != 1}
                assert not told, f"{reader.name} was told that these are accepted: {told}"
                assert not reader.gaps & readable.keys(), "a verdict has two callbacks"


def check_transactions(transactor: Transactor, committed: set[str]) -> None:
    """Committed transactions are whole, aborted ones are invisible; the others are one of both."""
    for values, ended in transactor.transactions:
        visible = committed & set(values)
        legal = [set(values)] if ended else [set[str]()]
        if ended is None:
            legal.append(set(values))
        assert visible in legal, (ended, values)


@pytest.mark.parametrize("latency_ms", [0, 8], ids=["", "brokers 8 ms apart"])
def test_nothing_is_lost_and_nothing_happens_twice(cluster: Cluster, proxy: Proxy, seed: int, latency_ms: int) -> None:
    """Where brokers are apart, leaders and coordinators move between a request and its answer."""
    trouble = Trouble(cluster, proxy, seed + latency_ms)
    trouble.run()
    trouble.make_peace()
    Audit(trouble).check()
    print(figures(trouble))


def figures(trouble: Trouble) -> str:
    ends = Counter(ended for each in trouble.transactors for _, ended in each.transactions)
    records = sum(len(each.acknowledged()) for each in [*trouble.writers, *trouble.transactors])
    deliveries = sum(each.deliveries.total() for each in trouble.readers)
    accepted = sum(len(each.accepted) for each in trouble.readers)
    refused = sum((each.refused for each in trouble.workers), Counter[str]())
    faults = {str(fault): count for fault, count in trouble.proxy.injected.items()}
    return (
        f"{records} records, {ends[True]} transactions committed, {ends[False]} aborted, {ends[None]} unknown, "
        f"{deliveries} deliveries, {accepted} accepted, {trouble.proxy.frames} frames, faults {faults}, "
        f"calls refused {dict(refused)}"
    )


# ---- one fault at a time ---------------------------------------------------------------------------------------------


class Once:
    """A rule that harms the first frame of each request, or of each answer, that is sent from now on."""

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


HARMED = {"EndTxn", "FindCoordinator", "Metadata", "Produce", "ShareAcknowledge", "ShareFetch"}


@pytest.mark.parametrize("is_request", [True, False], ids=["request", "answer"])
@pytest.mark.parametrize("fault", Fault)
def test_each_request_survives_each_fault(
    warm: tuple[Cluster, Proxy], fresh: Callable[[str], str], fault: Fault, is_request: bool
) -> None:
    """A transaction is written and read; the first frame of each API suffers the fault."""
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
    assert rule.seen >= HARMED


# ---- two producers of one transactional.id ---------------------------------------------------------------------------


class Rival(threading.Thread):
    """Writes a transaction with a transactional.id that another one takes as well, and commits it."""

    def __init__(self, name: str, proxy: Proxy, meeting: threading.Barrier) -> None:
        super().__init__(name=name, daemon=True)
        self.producer = Producer(CONF | {"bootstrap.servers": proxy.bootstrap_servers, "transactional.id": "x"})
        self.values = {f"{name}:{number}" for number in range(10)}
        self.reports: list[object] = []
        self.error: KafkaError | None = None
        self._meeting = meeting

    def run(self) -> None:
        self._attempt(self._write)
        self._meeting.wait(PATIENCE_S)  # both have begun: the second one has fenced the first
        if self.error is None:
            self._attempt(partial(self.producer.commit_transaction, PATIENCE_S))
        if self.error is not None and not self.error.fatal():  # a leader refused a record; the coordinator says why
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


def test_of_two_producers_that_fence_each_other_one_wins(cluster: Cluster, proxy: Proxy, seed: int) -> None:
    """A broker dies between what they write and their commits, which may be the leader or the coordinator of both."""
    rng = random.Random(seed)
    proxy.rule = Plan(rng, 0.05)
    winners: set[str] = set()
    for round_ in range(max(3, MOVES // 4)):
        meeting = threading.Barrier(3)
        rivals = [Rival(f"{name}{round_}", proxy, meeting) for name in "ab"]
        for rival in rivals:
            rival.start()
        meeting.wait(PATIENCE_S)
        lost = rng.choice(cluster.brokers_alive)
        cluster.kill_broker(lost)
        for rival in rivals:
            rival.join(PATIENCE_S)
        cluster.start_broker(lost)
        errors = [rival.error for rival in rivals if rival.error is not None]
        assert len(errors) == 1, f"round {round_}: {errors}"
        assert errors[0].fatal(), errors[0]
        for rival in rivals:
            assert len(rival.reports) == len(rival.values), "each record has one report"
            winners |= rival.values if rival.error is None else set()
    assert set(read_log(cluster, TRANSACTIONAL, IsolationLevel.READ_COMMITTED).values()) == winners
