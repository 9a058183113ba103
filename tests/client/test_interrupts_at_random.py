"""Signals at random times: clients in process on the wall clock and over TCP, checked by a ledger.

The environment variable SHAREQ_STOPS sets the number of signals of each run.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq import Admin, Cluster, Producer, ShareConsumer
from tests.broker.ledger import Books
from tests.polling import QUICK, eventually

STOPS = int(os.environ.get("SHAREQ_STOPS", "40"))
QUIET_S = 20


class SignalSender:
    """Sends a signal to the main thread after a random delay."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        main = threading.main_thread().ident
        assert main is not None
        self._main = main

    def interrupt(self, number: int, call: Callable[[], object]) -> None:
        """Repeat the call until the signal arrives."""
        delay_s = self._rng.choice((0.001, 0.005, 0.03)) * self._rng.random()
        timer = threading.Timer(delay_s, signal.pthread_kill, (self._main, number))
        try:
            timer.start()
            while True:
                call()
        except KeyboardInterrupt:
            pass
        timer.join()


class Session:
    """The clients of a notebook. Their results are stored in single steps, which no signal can divide."""

    def __init__(self, address: str, rng: random.Random) -> None:
        self.rng = rng
        conf = {"bootstrap.servers": address}
        self.admin = Admin(conf)
        self.producer = Producer(conf)
        self.consumer = ShareConsumer({**conf, "group.id": "g", "max.poll.records": 20})
        self.consumer.subscribe(["t"])
        self.tried = 0
        self.produced: tuple[int, ...] = ()
        self.reports: tuple[Any, ...] = ()
        self.polls: tuple[Any, ...] = ()

    def report(self, error: Any, message: Any) -> None:
        self.reports += ((error, message),)

    def produce(self) -> None:
        for _ in range(self.rng.randrange(8)):
            self.tried += 1
            self.producer.produce("t", str(self.tried), on_delivery=self.report)
            self.produced += (self.tried,)

    def poll(self) -> None:
        self.polls += (self.consumer.poll(self.rng.choice((0, 0.02, 0.1))),)

    def work(self) -> None:
        self.rng.choice(
            (
                self.produce,
                lambda: self.producer.poll(0.02),
                self.producer.flush,
                self.poll,
                self.poll,
                self.consumer.commit_sync,
                self.consumer.commit_async,
                lambda: self.admin.lag("g"),
            )
        )()

    @property
    def seen(self) -> Counter[tuple[str, int, int]]:
        return Counter((m.topic(), m.partition(), m.offset()) for messages in self.polls for m in messages)


@pytest.fixture(params=["in process", "over TCP"])
def address(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, str]]:
    with Cluster(brokers=2, clock="wall", config=QUICK) as cluster:
        cluster.create_topic("t", partitions=3)
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        if request.param == "in process":
            yield cluster, cluster.bootstrap_servers
        else:
            with cluster.serve() as server:
                yield cluster, server.bootstrap_servers


@pytest.fixture
def handlers() -> Iterator[None]:
    """SIGTERM and SIGUSR1 raise KeyboardInterrupt, as the stop button does."""
    numbers = (signal.SIGTERM, signal.SIGUSR1)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def accepted(cluster: Cluster) -> Counter[tuple[str, int, int]]:
    books = Books("g")
    books.read(cluster.journal.entries())
    return books.accepted


def test_clients_continue_after_random_signals(address: tuple[Cluster, str], handlers: None, seed: int) -> None:
    """No record is lost, returned twice or accepted unseen; each callback runs once."""
    cluster, where = address
    rng = random.Random(seed)
    session, button = Session(where, rng), SignalSender(rng)
    for _ in range(STOPS):
        button.interrupt(rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)), session.work)
    assert session.producer.flush(QUIET_S) == 0
    assert len(session.producer) == 0
    reported = Counter(int(message.value()) for _, message in session.reports)
    assert not [error for error, _ in session.reports if error is not None]
    assert set(session.produced) <= set(reported)
    assert set(reported.values()) <= {1}

    written = sum(cluster.log("t", partition).high_watermark for partition in range(3))
    assert written == len(reported)
    while sum(session.seen.values()) < written:
        messages = session.consumer.poll(QUIET_S)
        assert len(messages), "polls return no records"
        session.polls += (messages,)
    session.consumer.commit_sync(QUIET_S)

    def unaccepted() -> Counter[tuple[str, int, int]]:
        """What a poll has acknowledged may be on its way when a later commit has its results."""
        session.polls += (session.consumer.poll(0.1),)
        return session.seen - accepted(cluster)

    eventually(unaccepted, Counter())
    assert set(session.seen.values()) == {1}
    assert accepted(cluster) == session.seen
    session.consumer.close()
    session.producer.close()
    session.admin.close()
    print(f"{STOPS} signals, {written} records, {len(session.polls)} polls")
