"""Clients that work in threads, and a naive ledger of the brokers' responses to them."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from shareq import AcknowledgeType, Admin, KafkaError, KafkaException, Message, Producer, ShareConsumer
from tests.polling import PATIENCE_S

Place = tuple[str, int, int]
PARTITIONS = 3
PLAIN, TRANSACTIONAL = "plain", "transactional"

CONF = {"request.timeout.ms": 2000, "retry.backoff.max.ms": 300, "reconnect.backoff.max.ms": 200}
"""Client timeouts under which a lost frame costs two seconds."""

ACKNOWLEDGE_TYPES = {
    AcknowledgeType.ACCEPT: 80,
    AcknowledgeType.RELEASE: 6,
    AcknowledgeType.REJECT: 6,
    AcknowledgeType.RENEW: 8,
}


def place_of(message: Message) -> Place:
    return message.topic() or "", message.partition() or 0, message.offset() or 0


class Progress:
    """Counts completed work, so that a test can wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.done = 0

    def add(self, count: int) -> None:
        with self._changed:
            self.done += count
            self._changed.notify_all()

    def wait_for(self, more: int) -> None:
        with self._changed:
            wanted = self.done + more
            assert self._changed.wait_for(lambda: self.done >= wanted, PATIENCE_S), "the clients make no progress"


class WorkerContext(NamedTuple):
    """What a worker needs from its test."""

    address: str
    rng: random.Random
    progress: Progress


class Worker(ABC, threading.Thread):
    """Takes turns until it is stopped, then finishes. A turn may fail during faults."""

    def __init__(self, name: str, context: WorkerContext) -> None:
        super().__init__(name=name, daemon=True)
        self.conf: dict[str, Any] = {**CONF, "bootstrap.servers": context.address, "client.id": name}
        self.rng = context.rng
        self.progress = context.progress
        self.refused: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self._stopped = threading.Event()

    def run(self) -> None:
        try:
            while not self._stopped.is_set():
                self.attempt(self.turn)
            self.finish()
        except BaseException as failure:  # raised again by the test's thread
            self.failure = failure

    def attempt(self, call: Callable[[], object]) -> KafkaError | None:
        """Call; the error of the KafkaException that it raised, or None."""
        try:
            call()
        except KafkaException as failure:
            error = failure.error
            self.refused[error.name()] += 1
            return error
        return None

    def stop(self) -> None:
        self._stopped.set()

    def end(self) -> None:
        """Wait until the thread has ended."""
        self.join(PATIENCE_S)
        assert not self.is_alive(), f"a call of {self.name} does not return"
        if self.failure is not None:
            raise self.failure

    @abstractmethod
    def turn(self) -> None: ...

    @abstractmethod
    def finish(self) -> None: ...


# ---- producers -------------------------------------------------------------------------------------------------------


class Record(NamedTuple):
    """A produced record: topic and partition, and the reports of its callback."""

    topic: str
    partition: int
    reports: list[tuple[KafkaError | None, int | None]]


class Writer(Worker):
    """Produces numbered records, and keeps the reports of each."""

    topic = PLAIN

    def __init__(self, name: str, context: WorkerContext, **conf: object) -> None:
        super().__init__(name, context)
        self.conf |= {"linger.ms": 2, "enable.idempotence": True}
        self.conf |= {key.replace("_", "."): value for key, value in conf.items()}
        self.records: dict[str, Record] = {}
        self.producer = Producer(self.conf)

    def produce(self) -> str:
        value = f"{self.name}:{len(self.records)}"
        record = Record(self.topic, self.rng.randrange(PARTITIONS), [])
        report = partial(self._report, record)
        self.producer.produce(record.topic, value, partition=record.partition, on_delivery=report)
        self.records[value] = record
        return value

    def _report(self, record: Record, error: KafkaError | None, message: Message) -> None:
        record.reports.append((error, message.offset()))
        self.progress.add(error is None)

    def turn(self) -> None:
        for _ in range(self.rng.choice([1, 10, 40])):
            self.produce()
        self.producer.flush(self.rng.choice([0.05, 1]))

    def finish(self) -> None:
        assert self.producer.flush(PATIENCE_S) == 0
        assert self.producer.close(PATIENCE_S)

    def acknowledged(self) -> dict[Place, str]:
        """Values by place, from the delivery reports. Every record must have one report."""
        counts = {value: len(record.reports) for value, record in self.records.items() if len(record.reports) != 1}
        assert not counts, f"reports: {counts}"
        return {
            (record.topic, record.partition, offset): value
            for value, record in self.records.items()
            for error, offset in record.reports
            if error is None and offset is not None
        }


class Transactor(Writer):
    """Produces transactions, and keeps the result of each: None if no call returned it."""

    topic = TRANSACTIONAL

    def __init__(self, name: str, context: WorkerContext, transactional_id: str | None = None) -> None:
        super().__init__(name, context, transactional_id=transactional_id or name)
        self.transactions: list[tuple[list[str], bool | None]] = []
        self.ready = False

    def turn(self) -> None:
        if not self.ready:
            self.ready = self._settle(self.producer.init_transactions) is None
            if not self.ready:
                return
        self.producer.begin_transaction()
        values: list[str] = []
        self.transactions.append((values, None))
        committed = self._end_well(values) if self.rng.random() < 0.75 else None
        if committed is None and self._settle(self.producer.abort_transaction) is None:
            committed = False
        self.transactions[-1] = (values, committed)
        if committed is None:
            self.replace()

    def _end_well(self, values: list[str]) -> bool | None:
        """Produce and commit; None if the transaction must be aborted."""
        more = (self.produce() for _ in range(self.rng.randrange(1, 30)))
        self.attempt(partial(values.extend, more))  # after a failed record the producer refuses the others
        if self.rng.random() < 0.5:
            self.producer.flush(1)
        return True if self._settle(self.producer.commit_transaction) is None else None

    def _settle(self, step: Callable[[float], None]) -> KafkaError | None:
        """Repeat the call while it times out, as clients do."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            error = self.attempt(partial(step, 1))
            if error is None or error.code() != KafkaError._TIMED_OUT:
                return error
            assert time.monotonic() < deadline, f"{step.__name__} does not end"

    def replace(self) -> None:
        """Replace a producer that has a fatal error."""
        self.producer.close(PATIENCE_S)
        self.producer = Producer(self.conf)
        self.ready = False


# ---- share consumers -------------------------------------------------------------------------------------------------


class Reader(Worker):
    """A member of a share group. Each record in hand has acknowledge types, and each sent one has a callback."""

    def __init__(self, name: str, context: WorkerContext, topic: str, group: str, *, explicit: bool) -> None:
        super().__init__(name, context)
        self.explicit = explicit
        self.group = group
        mode = "explicit" if explicit else "implicit"
        self.conf |= {"group.id": group, "share.acknowledgement.mode": mode, "max.poll.records": 30}
        self.consumer = ShareConsumer(self.conf)
        self.consumer.set_acknowledgement_commit_callback(self._callback)
        self.consumer.subscribe([topic])
        self.deliveries: Counter[Place] = Counter()
        self.values: dict[Place, str] = {}
        self.types: defaultdict[Place, deque[AcknowledgeType]] = defaultdict(deque)
        self.accepted: set[Place] = set()
        """Places whose ACCEPT was reported without an error."""
        self.ambiguous: set[Place] = set()
        """Places with different acknowledge types that wait for callbacks, each sent to the leader of its time. A
        callback has offsets but no delivery, in Kafka's clients too, so which type it reports is open until all have
        arrived.
        """
        self.gaps: set[Place] = set()
        """Places with a callback but without an acknowledgement of this member: offsets without a record."""

    def turn(self) -> None:
        messages = self.consumer.poll(self.rng.choice([0.02, 0.3]))
        for message in messages:
            self._take(message)
        self.progress.add(len(messages))
        match self.rng.randrange(4):
            case 0:
                self.consumer.commit_sync(self.rng.choice([0.05, 3]))
            case 1:
                self.consumer.commit_async()

    def _take(self, message: Message) -> None:
        place = place_of(message)
        assert message.error() is None
        assert place not in self.accepted, f"{self.name} received {place} again after its ACCEPT was reported"
        self.deliveries[place] += 1
        self.values[place] = (message.value() or b"").decode()
        verdict = AcknowledgeType.ACCEPT
        if self.explicit:
            (verdict,) = self.rng.choices(list(ACKNOWLEDGE_TYPES), list(ACKNOWLEDGE_TYPES.values()))
            self.consumer.acknowledge(message, verdict)
        self.types[place].append(verdict)
        if len(set(self.types[place])) > 1:
            self.ambiguous.add(place)

    def _callback(self, offsets: dict[Any, set[int]], error: KafkaException | None) -> None:
        for at, every in offsets.items():
            for offset in every:
                self._settle((at.topic, at.partition, offset), error is None)

    def _settle(self, place: Place, succeeded: bool) -> None:
        types = self.types[place]
        if not types:
            self.gaps.add(place)
        elif types.popleft() is AcknowledgeType.ACCEPT and succeeded and place not in self.ambiguous:
            self.accepted.add(place)
        if not types:
            self.ambiguous.discard(place)

    def finish(self) -> None:
        self.attempt(partial(self.consumer.commit_sync, PATIENCE_S))
        self.consumer.close(PATIENCE_S)
        open_places = {place for place, types in self.types.items() if types}
        assert not open_places, f"no callback for {sorted(open_places)}"


class AdminReader(Worker):
    """An admin client that lists and describes."""

    def __init__(self, name: str, context: WorkerContext) -> None:
        super().__init__(name, context)
        self.admin = Admin(self.conf)

    def turn(self) -> None:
        call: Callable[[], Any] = self.rng.choice(
            [
                lambda: self.admin.describe_share_groups(["p", "t"]).check(),
                lambda: self.admin.list_share_group_offsets("p"),
                self.admin.list_groups,
                lambda: self.admin.describe_topics([PLAIN, TRANSACTIONAL]).check(),
            ]
        )
        call()

    def finish(self) -> None:
        self.admin.close()
