"""KeyboardInterrupt at any step of any call of a client in process, on the virtual clock.

The test compares the records that `poll` returned with the accepted records of the journal's ledger, which is
independent of clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from shareq import Admin, Cluster, DeserializingShareConsumer, Producer, ShareConsumer
from shareq.model.events import RecordsDelivered
from tests.broker.ledger import Books, Place
from tests.client.interrupting import interrupted, places, steps_of

EARLIEST = {"share.auto.offset.reset": "earliest"}


class InterruptStage:
    """A cluster of one broker, a producer and a consumer, and the records that the application has seen."""

    def __init__(self, kind: Callable[[dict[str, Any]], ShareConsumer] = ShareConsumer, **conf: Any) -> None:
        self.cluster = Cluster(brokers=1, seed=5)
        self.cluster.create_topic("t", partitions=2)
        self.cluster.configure_group("g", EARLIEST)
        self.address = {"bootstrap.servers": self.cluster.bootstrap_servers}
        self.producer = Producer(self.address)
        self.consumer = kind({**self.address, "group.id": "g", **conf})
        self.consumer.subscribe(["t"])
        self.seen: Counter[Place] = Counter()
        self.callbacks: tuple[Any, ...] = ()
        self.batch: Any = ()
        self.produced = 0

    def produce(self, records: int) -> None:
        for _ in range(records):
            self.producer.produce("t", str(self.produced))
            self.produced += 1
        assert self.producer.flush() == 0

    def poll(self) -> None:
        self.batch = self.consumer.poll(1)

    def mark_seen(self) -> None:
        """Mark the records of the last poll as seen."""
        batch, self.batch = self.batch, ()
        self.seen.update((m.topic(), m.partition(), m.offset()) for m in batch)

    def poll_and_mark_seen(self) -> None:
        self.produce(2)
        self.poll()
        self.mark_seen()

    def committed(self, offsets: Any, error: Any) -> None:
        """The acknowledgement callback; a single step, which is executed or not."""
        self.callbacks += ((offsets, error),)

    def called_back(self) -> Counter[Place]:
        return Counter((tp.topic, tp.partition, at) for found, _ in self.callbacks for tp in found for at in found[tp])

    def accepted(self) -> Counter[Place]:
        books = Books("g")
        books.read(self.cluster.journal.entries())
        return books.accepted

    def check(self) -> None:
        """Check that no record is lost and that no unseen record is accepted."""
        self.mark_seen()
        assert not set(self.accepted()) - set(self.seen)
        for _ in range(60):
            if len(self.seen) >= self.produced:
                break
            self.poll()
            self.mark_seen()
        assert len(self.seen) == self.produced, "polls return no records"
        self.consumer.commit_sync()
        assert set(self.accepted()) == set(self.seen)

    def check_each_once(self) -> None:
        """Check that no record was returned twice, either."""
        self.check()
        assert set(self.seen.values()) == {1}


def each_step(prepare: Callable[[], object], call: Callable[[], object], after: Callable[[], object]) -> None:
    """Interrupt a repeated call, one step later each time."""

    def counted() -> int:
        prepare()
        steps = steps_of(call)
        after()
        return steps

    counted()
    hits = 0
    for at in places(min(counted() for _ in range(5))):
        prepare()
        hits += interrupted(call, at)
        after()
    assert hits > 20


def no_operation() -> None: ...


# ---- share consumers -------------------------------------------------------------------------------------------------


def deserialize(value: bytes | None, context: object) -> int:
    return int(value or b"")


@pytest.mark.parametrize("kind", [ShareConsumer, DeserializingShareConsumer])
def test_records_taken_by_an_interrupted_poll_are_returned_by_the_next(kind: type[ShareConsumer]) -> None:
    """The journal has each delivery once."""
    stage = InterruptStage(kind, **({} if kind is ShareConsumer else {"value.deserializer": deserialize}))
    each_step(lambda: stage.produce(2), stage.poll, stage.mark_seen)
    stage.check_each_once()
    delivered = [entry.event for entry in stage.cluster.journal.entries() if isinstance(entry.event, RecordsDelivered)]
    assert Counter((e.topic, e.partition, at) for e in delivered for at in range(e.first, e.end)) == stage.seen


def test_single_acknowledgements_cover_the_seen_records() -> None:
    stage = InterruptStage(ShareConsumer, **{"share.acknowledgement.mode": "explicit"})
    open_places: list[Place] = []

    def seen() -> None:
        stage.mark_seen()
        open_places[:] = [place for place in stage.seen if place not in answered]

    answered: set[Place] = set()

    def answer() -> None:
        while open_places:
            stage.consumer.acknowledge_offset(*open_places[0])
            answered.add(open_places.pop(0))
        stage.poll()

    each_step(lambda: stage.produce(2), answer, seen)
    while len(answered) < stage.produced:
        answer()
        seen()
    stage.check_each_once()


@pytest.mark.parametrize("name", ["commit_sync", "commit_async", "subscribe", "ready"])
def test_interrupted_calls_between_polls_lose_no_callback(name: str) -> None:
    """The callback runs once for each seen record."""
    stage = InterruptStage()
    stage.consumer.set_acknowledgement_commit_callback(stage.committed)
    given: dict[str, tuple[Any, ...]] = {"subscribe": (["t"],)}
    call = getattr(stage.consumer, name)
    each_step(stage.poll_and_mark_seen, lambda: call(*given.get(name, ())), no_operation)
    stage.check_each_once()
    stage.consumer.commit_sync()
    assert stage.called_back() == stage.seen


def test_a_second_close_completes_an_interrupted_one() -> None:
    """The records of the first consumer are accepted or released; none of its callbacks is lost."""
    closing: list[ShareConsumer] = []
    stage = InterruptStage()
    stage.consumer.close()

    def prepare() -> None:
        stage.consumer = ShareConsumer({**stage.address, "group.id": "g", "share.acknowledgement.mode": "explicit"})
        stage.consumer.subscribe(["t"])
        stage.consumer.set_acknowledgement_commit_callback(stage.committed)
        stage.produce(2)
        stage.poll()
        for message in stage.batch:
            stage.consumer.acknowledge(message)
        stage.mark_seen()
        closing.append(stage.consumer)

    def after() -> None:
        stage.consumer.close()
        with pytest.raises(RuntimeError, match="closed"):
            stage.consumer.poll(0)

    def close() -> None:
        stage.consumer.close()

    each_step(prepare, close, after)
    accepted = stage.accepted()
    assert not set(accepted) - set(stage.seen)
    assert set(stage.called_back().values()) == {1}
    late = ShareConsumer({**stage.address, "group.id": "g"})
    late.subscribe(["t"])
    rest: set[Place] = set()
    for _ in range(60):
        rest |= {(m.topic() or "", m.partition() or 0, m.offset() or 0) for m in late.poll(1)}
    assert len(set(accepted) | rest) == stage.produced


# ---- producers -------------------------------------------------------------------------------------------------------


class ReportedProducer:
    """A producer whose values are consecutive numbers, and its delivery reports."""

    def __init__(self, **conf: Any) -> None:
        self.cluster = Cluster(brokers=1, seed=5)
        self.cluster.create_topic("t", partitions=2)
        self.producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers, **conf})
        self.reported: tuple[tuple[Any, Any], ...] = ()
        self.tried = 0
        self.returned: set[int] = set()

    def report(self, error: object, message: Any) -> None:
        self.reported += ((error, message),)

    def produce(self) -> None:
        for _ in range(3):
            self.tried += 1
            self.producer.produce("t", str(self.tried), on_delivery=self.report)
            self.returned.add(self.tried)

    def logged(self) -> Counter[int]:
        consumer = ShareConsumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": "all"})
        self.cluster.configure_group("all", EARLIEST)
        consumer.subscribe(["t"])
        found: Counter[int] = Counter()
        while messages := consumer.poll(10):
            found.update(int(m.value()) for m in messages)
        return found

    def check(self) -> None:
        """Each record that `produce` accepted is in the log once and has one report, and none is open."""
        assert self.producer.flush() == 0
        assert len(self.producer) == 0
        self.reports = Counter(int(message.value()) for _, message in self.reported)
        assert not any(error for error, _ in self.reported)
        assert self.returned <= set(self.reports)
        assert set(self.reports.values()) == {1}
        assert self.logged() == self.reports


@pytest.mark.parametrize("name", ["produce", "poll", "flush", "len"])
def test_each_record_is_delivered_once_and_reported_once(name: str) -> None:
    reported = ReportedProducer()
    calls: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "produce": (no_operation, reported.produce),
        "poll": (reported.produce, lambda: reported.producer.poll(1)),
        "flush": (reported.produce, reported.producer.flush),
        "len": (reported.produce, lambda: (reported.producer.poll(0), len(reported.producer))),
    }
    each_step(*calls[name], no_operation)
    reported.check()


def test_poll_sends_the_record_of_an_interrupted_produce() -> None:
    """Without flush or further produce, the record is sent when its linger time is over."""
    reported = ReportedProducer()
    each_step(
        no_operation,
        lambda: reported.producer.produce("t", "0", on_delivery=reported.report),
        lambda: reported.producer.poll(1),
    )
    assert len(reported.producer) == 0


def again(call: Callable[[], object], at: int) -> int:
    """Call, interrupt, and repeat the call if it has not returned; returns the number of interrupts (0 or 1)."""
    returned = False

    def once() -> None:
        nonlocal returned
        call()
        returned = True

    if not interrupted(once, at):
        return 0
    if not returned:
        call()
    return 1


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
@pytest.mark.parametrize("name", ["begin_transaction", "end", "init_transactions"])
def test_an_interrupted_transaction_call_can_be_repeated(name: str, end: str) -> None:
    reported = ReportedProducer(**{"transactional.id": "x"})
    reported.producer.init_transactions()
    hits = 0
    kept: set[int] = set()

    def step(what: str, at: int) -> int:
        call = getattr(reported.producer, end if what == "end" else what)
        return again(call, at) if what == name else (call(), 0)[1]

    def transact(at: int) -> int:
        hits = 0
        if name == "init_transactions":
            reported.producer.close()
            reported.producer = Producer(
                {"bootstrap.servers": reported.cluster.bootstrap_servers, "transactional.id": "x"}
            )
            hits += step("init_transactions", at)
        hits += step("begin_transaction", at)
        reported.produce()
        return hits + step("end", at)

    transact(1 << 60)
    steps = {"begin_transaction": 1000, "end": 20_000, "init_transactions": 8000}[name]
    for at in places(steps):
        hits += transact(at)
        kept = set(reported.returned)
    assert hits > 5
    reported.cluster.configure_group("all", {**EARLIEST, "share.isolation.level": "read_committed"})
    assert set(reported.logged()) == (kept if end == "commit_transaction" else set())


# ---- admin clients, and the cluster itself ---------------------------------------------------------------------------


def test_an_interrupted_admin_call_can_be_repeated() -> None:
    stage = InterruptStage()
    admin = Admin(stage.address)
    each_step(no_operation, lambda: admin.create_topics(["u"]), lambda: admin.delete_topics(["u"]))
    assert not admin._core._tasks
    each_step(no_operation, lambda: admin.lag("g"), no_operation)
    assert not admin._core._tasks
    stage.produce(2)
    stage.check_each_once()


@pytest.mark.long
@pytest.mark.parametrize("name", ["advance", "step", "create_topic", "restart", "elect_preferred_leaders", "connect"])
def test_a_cluster_continues_after_an_interrupted_call(name: str) -> None:
    """Calls that change the cluster are interrupted while a consumer waits for records."""
    stage = InterruptStage()
    cluster = stage.cluster
    numbers = iter(range(10_000))

    def restart() -> None:
        if cluster.brokers_alive:
            cluster.kill_broker(0)
        cluster.start_broker(0)

    calls: dict[str, Callable[[], object]] = {
        "advance": lambda: cluster.advance(1000),
        "step": lambda: [cluster.step() for _ in range(20)],
        "create_topic": lambda: cluster.create_topic(f"t{next(numbers)}"),
        "restart": restart,
        "elect_preferred_leaders": cluster.elect_preferred_leaders,
        "connect": lambda: Producer(stage.address).close(),
    }

    def after() -> None:
        if not cluster.brokers_alive:
            cluster.start_broker(0)
        stage.poll_and_mark_seen()
        stage.consumer.commit_sync()

    each_step(no_operation, calls[name], after)
    stage.check()


# ---- closing in time -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("timeout", "passed_ms"), [(0, 0), (2.5, 2500), (None, 30_000)], ids=str)
def test_close_ends_at_its_timeout(timeout: float | None, passed_ms: int) -> None:
    """A broker without responses delays close by at most its timeout."""
    cluster = Cluster(brokers=1, latency_ms=10_000)
    cluster.create_topic("t")
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    consumer.subscribe(["t"])
    consumer.poll(300)
    before_ms = cluster.now_ms
    consumer.close() if timeout is None else consumer.close(timeout)
    assert cluster.now_ms - before_ms == passed_ms
    consumer.close()
    assert cluster.now_ms - before_ms == passed_ms


@pytest.mark.parametrize("timeout", ["1", None, True], ids=str)
def test_the_timeout_of_close_must_be_a_number(timeout: Any) -> None:
    cluster = Cluster(brokers=1)
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    with pytest.raises(TypeError, match="timeout must be a real number"):
        consumer.close(timeout)
    consumer.close(-1)
