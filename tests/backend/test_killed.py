"""`shareq serve --backend` is killed with SIGKILL while clients work: a confirmed acceptance is kept.

The ledger is kept by the clients' side alone. SHAREQ_KILLS is the number of kills.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

import confluent_kafka
import pytest

import shareq
from shareq import Admin
from shareq.kafka import LocalKafka
from tests.polling import PATIENCE_S, QUICK, configure, take

KILLS = int(os.environ.get("SHAREQ_KILLS", "3"))
BURST = 20
"""Records that are produced between two kills."""

CLIENT = {"share.acknowledgement.mode": "explicit", "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200}


class Serving:
    """The command, on one port from one start to the next."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        configs = [f"--config={key}={value}" for key, value in QUICK.items()]
        command = [sys.executable, "-m", "shareq.cli", "serve", "--backend", self._backend, "--port", str(self._port)]
        self._process = subprocess.Popen([*command, *configs], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert first.startswith(f"shareq serves 1 broker of {self._backend} at "), first
        self._port = int(first.rpartition(":")[2])

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def restart(self) -> None:
        """Kill the process, and start it again."""
        self.kill()
        self.start()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextmanager
def serving(backend: str) -> Iterator[Serving]:
    made = Serving(backend)
    try:
        yield made
    finally:
        made.kill()


class Ledger:
    """What the consumers were delivered, and the results of their acknowledgements."""

    def __init__(self) -> None:
        self.accepted: Counter[int] = Counter()
        """Offset -> how often a commit of its acceptance has succeeded."""
        self.unknown: set[int] = set()
        """Offsets with an acceptance that has failed or timed out: it may have been recorded."""
        self.again: list[int] = []
        """Offsets that were delivered after their acceptance had succeeded."""

    def missing(self, count: int) -> set[int]:
        """The offsets below `count` that are not accepted, as far as is known."""
        return set(range(count)) - set(self.accepted) - self.unknown

    def work(self, consumer: Any) -> None:
        """Poll once, accept what arrives, and note the result."""
        messages = list(consumer.poll(0.1))
        offsets = [message.offset() for message in messages]
        self.again += [offset for offset in offsets if offset in self.accepted]
        for message in messages:
            consumer.acknowledge(message)
        if messages:
            try:
                results = consumer.commit_sync(5)
            except (shareq.KafkaException, confluent_kafka.KafkaException):
                self.unknown.update(offsets)
                return
            if set(results.values()) == {None}:
                self.accepted.update(offsets)
            else:
                self.unknown.update(offsets)


class Work:
    """A topic, a share consumer of each library, and their ledger."""

    def __init__(self, kafka: LocalKafka, process: Serving, topic: str, group: str, stack: ExitStack) -> None:
        self.ledger = Ledger()
        self.produced = 0
        self._topic = topic
        self._producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
        with Admin({"bootstrap.servers": process.address}) as admin:
            admin.create_topics([topic]).check()
            configure(admin, group, {"share.auto.offset.reset": "earliest", "share.heartbeat.interval.ms": 100})
        self._consumers: list[Any] = []
        for library in (shareq, confluent_kafka):
            consumer = library.ShareConsumer({"bootstrap.servers": process.address, "group.id": group, **CLIENT})
            stack.callback(consumer.close)
            consumer.subscribe([topic])
            self._consumers.append(consumer)

    def produce(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce(self._topic, str(self.produced), partition=0)
            self.produced += 1
        assert self._producer.flush(PATIENCE_S) == 0

    def turn(self) -> None:
        for consumer in self._consumers:
            self.ledger.work(consumer)

    def until_done(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while missing := self.ledger.missing(self.produced):
            assert time.monotonic() < deadline, f"lost: {missing}"
            self.turn()


def test_accepted_records_stay_accepted_when_the_process_is_killed(
    kafka: LocalKafka, fresh: Callable[[str], str], seed: int
) -> None:
    rng = Random(seed)
    with serving(kafka.bootstrap_servers) as process, ExitStack() as stack:
        work = Work(kafka, process, fresh("topic"), fresh("group"), stack)
        for _ in range(KILLS):
            work.produce(BURST)
            kill = threading.Timer(rng.uniform(0, 0.5), process.restart)  # in the middle of some request
            kill.start()
            while kill.is_alive():
                work.produce(rng.randint(1, 3))
                work.turn()
            kill.join()
            work.until_done()
    ledger = work.ledger
    assert ledger.again == []
    assert set(ledger.accepted.values()) == {1}
    print(f"{KILLS} kills, {work.produced} records, {len(ledger.unknown)} acceptances with an unknown result")


def test_a_process_that_was_paused_cannot_write_when_it_continues(
    kafka: LocalKafka, fresh: Callable[[str], str]
) -> None:
    topic, group = fresh("topic"), fresh("group")

    def consumer(process: Serving) -> shareq.ShareConsumer:
        conf = {"bootstrap.servers": process.address, "group.id": group, **CLIENT}
        made = shareq.ShareConsumer(conf)
        stack.callback(made.close, 1)
        made.subscribe([topic])
        return made

    with serving(kafka.bootstrap_servers) as paused, ExitStack() as stack:
        with Admin({"bootstrap.servers": paused.address}) as admin:
            admin.create_topics([topic]).check()
            configure(admin, group, {"share.auto.offset.reset": "earliest", "share.heartbeat.interval.ms": 100})
        with shareq.Producer({"bootstrap.servers": kafka.bootstrap_servers}) as producer:
            producer.produce(topic, "a")
        held = consumer(paused)
        (message,) = take(held, 1)
        paused.signal(signal.SIGSTOP)
        with serving(kafka.bootstrap_servers) as next_one:
            other = consumer(next_one)
            (again,) = take(other, 1)
            other.acknowledge(again)
            assert set(other.commit_sync().values()) == {None}
            paused.signal(signal.SIGCONT)
            held.acknowledge(message, shareq.AcknowledgeType.RELEASE)
            (error,) = held.commit_sync().values()
            assert error is not None
            with Admin({"bootstrap.servers": next_one.address}) as admin:
                assert admin.list_share_group_offsets(group).total == 0
            other.close()


def test_the_next_run_finds_its_topics(kafka: LocalKafka, fresh: Callable[[str], str]) -> None:
    """`--topic` creates a topic at the first run only."""
    name = fresh("topic")
    command = [sys.executable, "-m", "shareq.cli", "serve", "--backend", kafka.bootstrap_servers, "--port", "0"]
    for _ in range(2):
        with subprocess.Popen([*command, "--topic", f"{name}:3"], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert re.match(r"shareq serves 1 broker of .* at 127\.0\.0\.1:\d+\n", process.stdout.readline())
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
    with Admin({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        (described,) = admin.describe_topics([name]).values()
    assert len(described.partitions) == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["--brokers", "3"], "brokers=3: brokers and network are those of the backend", id="brokers"),
        pytest.param(["--racks", "a"], "racks=['a']: brokers and network are those of the backend", id="racks"),
    ],
)
def test_options_that_a_backend_does_not_allow(arguments: list[str], text: str) -> None:
    command = [sys.executable, "-m", "shareq.cli", "serve", "--backend", "127.0.0.1:1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"Error: {text}\n"
