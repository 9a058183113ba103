"""Beyond the KIP: the experiments of `shareq.experiments.enable` at work, each beside the same work without it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from shareq.consumer import Message
from shareq.lessons.bench import Bench, settle
from shareq.model.experiments import BACKOFF_MS, ENABLE, KEY_MAX_IN_FLIGHT, KEY_ORDERING
from shareq.model.states import AcknowledgeType
from shareq.producer import Producer
from shareq.trace.journal.event_text import count_text

__all__ = ["ENABLED", "Orders", "Outage", "Peek", "times_sent"]

ENABLED: dict[str, object] = {ENABLE: True}
"""The configuration of brokers that offer the experiments."""

_RETRY_S = 120
"""A group that is idle for so long has no record to deliver: more than any rest of these examples."""


@dataclass
class Outage:
    """A worker calls a service with each of `jobs`, and releases the job if the call fails. The service is down for
    `down_ms` from the first call on. `backoff_ms`: the group's `shareq.release.backoff.ms`, 0 for none."""

    backoff_ms: int
    down_ms: int = 4000
    jobs: int = 12
    done: int = 0
    attempts: list[int] = field(default_factory=list)
    """The times of the calls with the first job, in ms since its first one."""

    def __post_init__(self) -> None:
        self.bench = Bench(self.jobs, configs={BACKOFF_MS: self.backoff_ms}, config=ENABLED)
        cluster, worker = self.bench.cluster, self.bench.consumer("worker")
        began_ms: int | None = None
        while messages := worker.poll(_RETRY_S):
            began_ms = cluster.now_ms if began_ms is None else began_ms
            up = cluster.now_ms - began_ms >= self.down_ms
            self.attempts += [cluster.now_ms - began_ms for message in messages if message.offset() == 0]
            settle(worker, messages, AcknowledgeType.ACCEPT if up else AcknowledgeType.RELEASE)
            self.done += len(messages) if up else 0

    @property
    def lost(self) -> int:
        """Jobs that are archived: the delivery count limit ended them."""
        return self.jobs - self.done

    def __str__(self) -> str:
        called = ", ".join(f"{ms / 1000:.1f}" for ms in self.attempts)
        rule = f"back-off {self.backoff_ms / 1000:g} s" if self.backoff_ms else "no back-off"
        return f"{rule:<14} {self.done:>2} jobs done, {self.lost:>2} lost; the first one was tried after {called} s"


CUSTOMERS = ("ann", "bea", "cyd")
EVENTS = ("order", "pay", "ship")


@dataclass
class Orders:
    """Two workers handle the events of three customers, one event in a poll; the first event of bea fails `failures`
    times, is released, and rests for a second, then for two. `in_flight`: 0 for a group without order, else the
    records of a key that one worker may hold."""

    in_flight: int
    failures: int = 2
    handled: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The events of each customer, in the order in which they were accepted."""

    def __post_init__(self) -> None:
        ordered = {KEY_ORDERING: "key", KEY_MAX_IN_FLIGHT: self.in_flight} if self.in_flight else {}
        self.bench = Bench(configs={BACKOFF_MS: 1000, **ordered}, config=ENABLED)
        produce_events(self.bench)
        workers = [self.bench.consumer(name, most=1, share_acquire_mode="record_limit") for name in ("one", "two")]
        failing = self.failures
        while sum(map(len, self.handled.values())) < len(CUSTOMERS) * len(EVENTS):
            for worker, messages in [(worker, worker.poll(0.1)) for worker in workers]:
                for message in messages:
                    customer, event = event_of(message)
                    fails = failing > 0 and (customer, event) == ("bea", EVENTS[0])
                    failing -= fails
                    settle(worker, [message], AcknowledgeType.RELEASE if fails else AcknowledgeType.ACCEPT)
                    if not fails:
                        self.handled[customer].append(event)

    @property
    def overtaken(self) -> int:
        """Events that were accepted before an earlier one of their customer."""
        places = [[EVENTS.index(event) for event in events] for events in self.handled.values()]
        return sum(any(later < place for later in order[at:]) for order in places for at, place in enumerate(order))

    def __str__(self) -> str:
        title = f"{self.in_flight} of a key in flight" if self.in_flight else "without order"
        rows = (f"  {customer}: {', '.join(self.handled[customer])}" for customer in CUSTOMERS)
        return "\n".join([f"{title}: {count_text(self.overtaken, 'event')} out of order", *rows])


BATCH = 60
"""The records of the batch of `times_sent`."""


def times_sent(keys: int, in_flight: int) -> int:
    """How often a record batch of 60 records of `keys` keys is sent until one consumer has accepted all of them.
    `in_flight`: as of `Orders`. Each poll that returns records has the whole batch."""
    ordered = {KEY_ORDERING: "key", KEY_MAX_IN_FLIGHT: in_flight} if in_flight else {}
    bench = Bench(configs=ordered, config=ENABLED)
    with Producer({"bootstrap.servers": bench.cluster.bootstrap_servers}) as producer:
        for number in range(BATCH):
            producer.produce(bench.topic, f"job {number}", key=f"{number % keys}")
    consumer, sent, done = bench.consumer("ann"), 0, 0
    while done < BATCH:
        messages = consumer.poll(1)
        settle(consumer, messages)
        sent, done = sent + 1, done + len(messages)
    return sent


def produce_events(bench: Bench) -> None:
    """The events of all customers, in turn."""
    with Producer({"bootstrap.servers": bench.cluster.bootstrap_servers}) as producer:
        for event in EVENTS:
            for customer in CUSTOMERS:
                producer.produce(bench.topic, event, key=customer)


def event_of(message: Message) -> tuple[str, str]:
    """The customer and the event of a record."""
    key, value = message.key(), message.value()
    return (key or b"").decode(), (value or b"").decode()


class Peek:
    """A window that stands still: of six jobs with keys the first is held by a worker that is silent, the second rests
    for a minute, the third waits for the first one, whose key it has, and one is done."""

    def __init__(self) -> None:
        configs = {BACKOFF_MS: 60_000, KEY_ORDERING: "key", "share.record.lock.duration.ms": 30_000}
        self.bench = Bench(configs=configs, config=ENABLED)
        with Producer({"bootstrap.servers": self.bench.cluster.bootstrap_servers}) as producer:
            for number, key in enumerate(("ann", "bea", "ann", "cyd", "dan", "eve")):
                producer.produce(self.bench.topic, f"job {number}", key=key)
        self.silent = self.bench.consumer("silent", most=4, share_acquire_mode="record_limit")
        held = {message.offset(): message for message in self.silent.poll(1)}
        settle(self.silent, [held[1]], AcknowledgeType.RELEASE)
        settle(self.silent, [held[3]])

    def deliveries(self) -> list[int]:
        """The delivery counts of the records in the window and behind it, by offset."""
        return [record.delivery_count for record in self.bench.admin.browse(self.bench.group, self.bench.topic, 0)]
