"""`shareq serve --backend` as processes, clients at work, and the ledger that is kept by the clients' side alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import MappingProxyType
from typing import Any

import confluent_kafka

import shareq
from shareq import Admin, NewTopic
from shareq.kafka import LocalKafka
from tests.backend import evidence, witness
from tests.polling import PATIENCE_S, QUICK, configure

CLIENT = {"share.acknowledgement.mode": "explicit", "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200}

TIMEOUTS = {shareq: {"request.timeout.ms": 3_000}, confluent_kafka: {"socket.timeout.ms": 3_000}}
"""How soon a client notices that a process is paused, by library."""


class Serving:
    """The command with `options`, on one port from one start to the next."""

    def __init__(self, backend: str, *options: str) -> None:
        self._backend = backend
        self._options = options
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self._errors = NamedTemporaryFile("a")  # noqa: SIM115  # as long as this object
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def errors(self) -> str:
        """What the process has written to its standard error."""
        return Path(self._errors.name).read_text()

    def start(self) -> None:
        configs = [f"--config={key}={value}" for key, value in QUICK.items()]
        command = [sys.executable, witness.__file__, "serve", "--backend", self._backend, "--port", str(self._port)]
        words = [*command, *configs, *self._options]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert first.startswith(f"shareq serves 1 broker of {self._backend} at "), first
        self._port = int(first.rpartition(":")[2])

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    @contextmanager
    def standing_still(self, seconds: float) -> Iterator[None]:
        """The process is stopped, and continues after this time, which the block waits for at its end."""
        self.signal(signal.SIGSTOP)
        end = threading.Timer(seconds, self.signal, [signal.SIGCONT])
        end.start()
        try:
            yield
        finally:
            end.join()

    def restart(self) -> None:
        """Kill the process, and start it again."""
        self.kill()
        self.start()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def forget(self) -> None:
        """Delete what the process has written."""
        self._errors.close()

    def end(self) -> None:
        """Let the process end in an orderly way."""
        if self._process is not None:
            self._process.terminate()
            self._process.communicate(timeout=PATIENCE_S)
            self._process = None


@contextmanager
def serving(backend: str, *options: str) -> Iterator[Serving]:
    made = Serving(backend, *options)
    try:
        yield made
    finally:
        made.kill()
        print(made.errors, file=sys.stderr)
        made.forget()


Record = tuple[int, int]
"""Partition and offset."""

NO_RESULT = object()

RECOVERY_S = 10
"""How soon after a kill work goes on."""


class Ledger:
    """What the consumers were delivered, and the results of their acknowledgements."""

    def __init__(self) -> None:
        self.accepted: Counter[Record] = Counter()
        """How often a commit of a record's acceptance has succeeded."""
        self.unknown: set[Record] = set()
        """Records with an acceptance that has failed or timed out: it may have been recorded."""
        self.again: list[Record] = []
        """Records that were delivered after their acceptance had succeeded."""
        self.held_twice: list[Record] = []
        """Records that a consumer has accepted although they had been delivered to another one after it."""
        self.refused: dict[Record, Any] = {}
        """The last error of a record's acceptance; None: the commit has no result for its partition."""
        self.takers: Counter[Any] = Counter()
        """How many records each consumer has accepted."""
        self.errors: list[Any] = []
        """The errors of commits, and those that calls have raised."""
        self.deliveries: Counter[Record] = Counter()
        self.shared: list[Record] = []
        """Records that were delivered to a consumer while another one had neither acknowledged them nor lost them: its
        process may have died."""
        self.empty: Counter[Any] = Counter()
        """How many polls of each consumer have returned nothing."""
        self.history: dict[Record, list[str]] = defaultdict(list)
        """What has happened to each record, for people."""
        self._started = time.monotonic()
        self._first_s: dict[Record, float] = {}
        """When a record was delivered for the first time."""
        self._judged = [0, 0, 0]
        """How many entries of each list of faults are judged."""
        self._holders: dict[Record, Any] = {}
        self._open: dict[Record, Any] = {}
        self._lock = threading.Condition()

    def missing(self, produced: set[Record]) -> set[Record]:
        """The records that are not accepted, as far as is known."""
        with self._lock:
            return produced - set(self.accepted) - self.unknown

    def wait(self) -> None:
        """Wait until a consumer has got records, or the result of a commit."""
        with self._lock:
            self._lock.wait(1)

    def work(self, consumer: Any) -> None:
        """Poll once, and accept what arrives. A consumer of shareq that no broker has answered yet says so, and goes
        on: its process may stand still."""
        try:
            found = list(consumer.poll(0.1))
        except shareq.KafkaException as failure:
            if failure.error.code() != shareq.KafkaError._TRANSPORT:
                raise
            found = []
        self.empty[consumer] += not found
        self.accept(consumer, found)

    @property
    def held(self) -> dict[Record, Any]:
        """The records that are not acknowledged yet, with the consumers that have them."""
        with self._lock:
            return dict(self._open)

    def accept(self, consumer: Any, messages: list[Any]) -> None:
        """Accept what a poll has returned, and note the result."""
        self.deliver(consumer, messages)
        self.acknowledge(consumer, messages)

    def deliver(self, consumer: Any, messages: list[Any]) -> None:
        """Note what a poll has returned."""
        records = [(message.partition(), message.offset()) for message in messages]
        with self._lock:
            self.again += [record for record in records if record in self.accepted]
            self.shared += [record for record in records if self._open.get(record, consumer) is not consumer]
            for record, message in zip(records, messages, strict=True):
                self._note(record, consumer, f"gets it, delivery {message.delivery_count()}")
                self._first_s.setdefault(record, time.monotonic())
            self._holders.update(dict.fromkeys(records, consumer))
            self._open.update(dict.fromkeys(records, consumer))
            self.deliveries.update(records)
            if records:
                self._lock.notify_all()

    def acknowledge(self, consumer: Any, messages: list[Any]) -> None:
        """Accept what was delivered, and note the results. An acceptance has succeeded if the commit says so of the
        record's partition: a partition without a result has not."""
        records = [(message.partition(), message.offset()) for message in messages]
        for message in messages:
            consumer.acknowledge(message)
        if not messages:
            return
        try:
            results = {at.partition: error for at, error in consumer.commit_sync(5).items()}
            errors = [error for error in results.values() if error is not None]
        except (shareq.KafkaException, confluent_kafka.KafkaException) as failure:
            results = dict.fromkeys({partition for partition, _ in records}, failure.args[0])
            errors = [failure.args[0]]
        accepted = [record for record in records if results.get(record[0], NO_RESULT) is None]
        refused = {record: results.get(record[0]) for record in records if record not in accepted}
        with self._lock:
            for record in records:
                if self._open.get(record) is consumer:
                    del self._open[record]
                self._note(record, consumer, f"accepts it: {refused.get(record, 'done')}")
            self.errors += errors
            self.refused |= refused
            self.unknown.update(refused)
            self.accepted.update(accepted)
            self.takers[consumer] += len(accepted)
            self.held_twice += [record for record in accepted if self._holders[record] is not consumer]
            self._lock.notify_all()

    def _note(self, record: Record, consumer: Any, what: str) -> None:
        self.history[record].append(f"{time.monotonic() - self._started:.3f} s: {consumer} {what}")

    def history_of(self, records: Iterable[Record]) -> str:
        """What has happened to these records."""
        return "\n".join(f"{record}: {'; '.join(self.history[record])}" for record in sorted(set(records)))

    def first_delivery(self, records: Iterable[Record]) -> float:
        """When the first one of these records was delivered, by the monotonic clock."""
        with self._lock:
            return min(self._first_s[record] for record in records if record in self._first_s)

    def judge(self, moved: Collection[int], what: str = "in quiet time") -> None:
        """What was noted since the last call. Only a record of a partition that has moved to another leader may have
        two holders: the first one's lock has ended, or a client returns what it had fetched from the former leader. No
        more than one of them can accept it (`check`)."""
        faults = {"two holders": self.shared, "delivered after": self.again, "accepted after": self.held_twice}
        for number, (name, records) in enumerate(faults.items()):
            wrong = {record for record in records[self._judged[number] :] if record[0] not in moved}
            assert wrong == set(), f"{what}: {name}: {self.history_of(wrong)}"
            self._judged[number] = len(records)

    def check(self, *, moved: bool = False) -> None:
        """Nothing that is accepted was delivered again, or accepted twice, or held by two consumers. `moved`:
        partitions have got other leaders, so a client may have returned records that it had fetched from the former
        one; it must not have accepted them."""
        self.judge(set())
        assert self.accepted, "no acceptance has a known result"
        twice = [record for record, times in self.accepted.items() if times > 1]
        assert not twice, f"accepted twice: {self.history_of(twice)}"
        assert moved or not self.again, f"delivered again: {self.history_of(self.again)}"
        assert moved or not self.held_twice, f"held twice: {self.history_of(self.held_twice)}"


class Work:
    """A topic, share consumers, and their ledger. `servers`: where clients find shareq. `configs`: of the group.
    `processes`: those that testify if records are not delivered."""

    def __init__(
        self,
        kafka: LocalKafka,
        servers: str,
        topic: str,
        group: str,
        stack: ExitStack,
        *,
        partitions: int = 1,
        libraries: Sequence[Any] = (shareq, confluent_kafka),
        processes: Sequence[Serving] = (),
        configs: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self.ledger = Ledger()
        self.group = group
        self.produced: set[Record] = set()
        self.topic = topic
        self._partitions = partitions
        self._processes = processes
        self._stack = stack
        self._running = False
        self._failures: list[Exception] = []
        self._conf = {"bootstrap.servers": servers, "group.id": group, **CLIENT}
        self._backend, self._servers = kafka.bootstrap_servers, servers
        self._producers: dict[str, confluent_kafka.Producer] = {}
        with Admin({"bootstrap.servers": servers}) as admin:
            admin.create_topics([NewTopic(topic, partitions)]).check()
            common = {"share.auto.offset.reset": "earliest", "share.heartbeat.interval.ms": 100}
            configure(admin, group, {**common, **configs})
        self._consumers: list[Any] = []
        for library in libraries:
            self.consumer(library)

    def consumer(self, library: Any) -> Any:
        """One more consumer, of this library."""
        consumer = self.opened(library)
        self.add(consumer)
        return consumer

    def opened(self, library: Any, conf: Mapping[str, object] = MappingProxyType({})) -> Any:
        """A consumer of this library that is subscribed to the topic, and does not work yet."""
        consumer = library.ShareConsumer({**self._conf, "client.id": library.__name__, **TIMEOUTS[library], **conf})
        self._stack.callback(consumer.close)
        consumer.subscribe([self.topic])
        return consumer

    def add(self, consumer: Any) -> None:
        """Let a consumer work that has subscribed to the topic."""
        self._consumers.append(consumer)

    def produce(self, count: int, through: str = "") -> None:
        """Produce records to all partitions in turn, with a client of the backend or of another server."""

        def stored(error: Any, message: Any) -> None:
            assert error is None
            self.produced.add((message.partition(), message.offset()))

        servers = through or self._backend
        if servers not in self._producers:
            conf = {"bootstrap.servers": servers, "linger.ms": 0}
            self._producers[servers] = confluent_kafka.Producer(conf)
        producer = self._producers[servers]
        for number in range(count):
            partition = number % self._partitions
            producer.produce(self.topic, str(number), partition=partition, on_delivery=stored)
        assert producer.flush(PATIENCE_S) == 0

    def turn(self) -> None:
        for consumer in self._consumers:
            self.ledger.work(consumer)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the consumers work, each in a thread of its own."""
        ended = threading.Event()
        failures = self._failures

        def run(consumer: Any) -> None:
            try:
                while not ended.is_set():
                    self.ledger.work(consumer)
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=run, args=(consumer,)) for consumer in self._consumers]
        for thread in threads:
            thread.start()
        self._running = True
        try:
            yield
        finally:
            self._running = False
            ended.set()
            for thread in threads:
                thread.join()
        assert not failures, failures

    def wait(self) -> None:
        """Wait until a consumer has got records, or the result of a commit; AssertionError if a consumer has failed."""
        self.ledger.wait()
        assert not self._failures, self._failures

    def drain(self) -> None:
        """Wait until no client has records left that it has fetched before: their locks may have ended."""
        before = self.ledger.empty.copy()
        deadline = time.monotonic() + PATIENCE_S
        while any(self.ledger.empty[consumer] < before[consumer] + 2 for consumer in self._consumers):
            assert time.monotonic() < deadline, "a consumer does not poll"
            self.wait()

    def until_done(self) -> float:
        """Wait until all records are accepted; return how long, in seconds."""
        started, before = time.monotonic(), self.ledger.empty.copy()
        while missing := self.ledger.missing(self.produced):
            assert time.monotonic() - started < PATIENCE_S, self._undelivered(missing, before)
            if self._running:
                self.wait()
            else:
                self.turn()
        return time.monotonic() - started

    def _undelivered(self, missing: set[Record], before: Counter[Any]) -> str:
        """`before`: the empty polls until the wait began."""
        polls = {str(one): self.ledger.empty[one] - before[one] for one in self._consumers}
        sides = (self._backend, self._servers, self.topic, self.group)
        found = evidence.collected(*sides, missing, processes=self._processes)
        return f"lost: {sorted(missing)}, held: {self.ledger.held}, empty polls meanwhile: {polls}\n{found}"
