"""Loops that read, process and write in transactions, under random faults, and their checker.

The checker looks from outside: at what the loops have polled, staged and committed, at the input, and at the output as
readers of committed records see it.

X1: an offset is in at most one committed transaction.
X2: a record is acknowledged if and only if its output is committed.
X3: a staged record is delivered to no member.
X4: nothing is staged any more when all transactions are over.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

from shareq import Admin, Cluster, Message, Producer, ShareConsumer
from shareq.model.errors import Errors, IllegalStateException, KafkaException
from shareq.model.events import RecordsChanged
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from shareq.model.states import RecordEvent, RecordState
from tests.log.committed import committed_values

ACTIONS = 120
PARTITIONS = 2
LOOPS = 3
LOCK_MS = 30_000
LIMIT = 25
"""The most deliveries of a record. Hardly any record reaches it, and is archived without an output."""

CONFIG: dict[str, object] = {
    "shareq.experiments.enable": True,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.snapshot.update.records.per.snapshot": 5,
    "share.coordinator.state.topic.prune.interval.ms": 10_000,
    "share.coordinator.cold.partition.snapshot.interval.ms": 15_000,
    "group.share.max.delivery.count.limit": LIMIT,
}

Place = tuple[int, int]
"""A partition and an offset of the input."""


class Loop:
    """One client of the run. `open`: what it has staged in its open transaction, with the delivery counts; `held`: the
    records of its last poll that it has to acknowledge."""

    def __init__(self, cluster: Cluster, number: int, timeout_ms: int) -> None:
        conf = {"bootstrap.servers": cluster.bootstrap_servers}
        explicit = {"share.acknowledgement.mode": "explicit", "max.poll.records": 5}
        self.number = number
        self.open: dict[Place, int] = {}
        self.held: list[Message] = []
        self.in_transaction = False
        self.timeout_ms = timeout_ms
        self.begun_ms = 0
        self.consumer = ShareConsumer({**conf, **explicit, "group.id": "g"})
        self.consumer.subscribe(["in"])
        timeouts = {"transaction.timeout.ms": timeout_ms, "message.timeout.ms": timeout_ms}
        self.producer = Producer({**conf, **timeouts, "transactional.id": f"loop-{number}"})
        self.ready = False


class TransactionRun:
    """The loops on a cluster, and faults, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster(brokers=3, seed=seed, config=CONFIG, latency_ms=self.rng.choice([0, 0, 2]))
        for topic in ("in", "out"):
            self.cluster.create_topic(topic, PARTITIONS, replication_factor=3)
        self.group = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": LIMIT}
        self.group |= self.rng.choice([{}, {}, {"shareq.release.backoff.ms": 50}, {"shareq.key.ordering": "key"}])
        self.cluster.configure_group("g", self.group)
        self.loops: dict[int, Loop] = {}
        self.done: Counter[str] = Counter()
        self.moved_ms = 0
        self.produce()

    # ---- actions -----------------------------------------------------------------------------------------------------

    def produce(self) -> None:
        with Producer({"bootstrap.servers": self.cluster.bootstrap_servers}) as producer:
            for _ in range(self.rng.randrange(1, 20)):
                producer.produce("in", key=self.rng.choice("abcdef"), partition=self.rng.randrange(PARTITIONS))
            producer.flush(600)

    def turn(self) -> None:
        """One turn of a loop: poll, write, acknowledge, end. It may stop in between."""
        number = self.rng.randrange(LOOPS)
        loop = self.loops.get(number)
        if loop is None:
            loop = self.loops[number] = Loop(self.cluster, number, self.rng.choice([10_000, 40_000]))
        try:
            if not loop.ready:
                loop.producer.init_transactions(600)
                loop.ready = True
            self.work(loop)
        except KafkaException as error:
            self.done[error.error.name()] += 1
            self.recover(loop, error)

    def work(self, loop: Loop) -> None:
        if loop.in_transaction:
            self.end(loop)
            return
        loop.held = messages = list(loop.consumer.poll(2))
        self.check_delivery(loop, messages)
        taken = [message for message in messages if self.rng.random() < 0.8]
        self.release(loop, [message for message in messages if message not in taken])
        if not taken:
            return
        loop.producer.begin_transaction()
        loop.in_transaction = True
        loop.begun_ms = self.cluster.now_ms
        pairs = []
        for message in taken:
            loop.producer.produce("out", f"{place_of(message)}", partition=self.rng.randrange(PARTITIONS))
            pairs.append((message, self.rng.choice(["ACCEPT", "ACCEPT", "REJECT"])))
        cut = self.rng.choice([len(pairs), len(pairs), self.rng.randrange(len(pairs) + 1)])
        for part in (pairs[:cut], pairs[cut:]):
            metadata = loop.consumer.share_group_metadata()
            loop.producer.send_share_acknowledgements_to_transaction(part, metadata, 120)
            loop.held = [message for message in loop.held if message not in [taken for taken, _ in part]]
            loop.open |= {place_of(message): message.delivery_count() or 0 for message, _ in part}
        self.done["staged"] += len(pairs)
        if self.rng.random() < 0.6:
            self.end(loop)

    def release(self, loop: Loop, messages: list[Message]) -> None:
        for message in messages:
            loop.held.remove(message)
            with suppress(IllegalStateException):  # it was handed over before the call failed
                loop.consumer.acknowledge(message, "RELEASE")

    def end(self, loop: Loop) -> None:
        loop.open.clear()
        if self.rng.random() < 0.8:
            loop.producer.commit_transaction(120)
            self.done["committed"] += 1
        else:
            loop.producer.abort_transaction(120)
            self.done["aborted"] += 1
        loop.in_transaction = False

    def recover(self, loop: Loop, error: KafkaException) -> None:
        """After a failure the producer can only abort, and after a fatal one not even that."""
        was_open, loop.in_transaction = loop.in_transaction, False
        if not loop.ready:
            self.crash(loop.number)
            return
        loop.open.clear()
        self.release(loop, list(loop.held))
        try:
            if not error.error.fatal():
                if was_open:
                    loop.producer.abort_transaction(120)
                return
        except KafkaException:
            pass
        self.crash(loop.number)

    def crash(self, number: int | None = None) -> None:
        loop = self.loops.pop(self.rng.randrange(LOOPS) if number is None else number, None)
        if loop is not None:
            self.cluster.crash(loop.producer)
            self.cluster.crash(loop.consumer)
            self.done["crashed"] += 1

    def kill_broker(self) -> None:
        if len(self.cluster.brokers_alive) > 1:
            broker = self.rng.choice(self.cluster.brokers_alive)
            self.rng.choice([self.cluster.kill_broker, self.cluster.stop_broker])(broker)
            self.done["killed"] += 1
            self.moved_ms = self.cluster.now_ms

    def start_broker(self) -> None:
        dead = sorted(set(self.cluster.image.brokers) - set(self.cluster.brokers_alive))
        if dead:
            self.cluster.start_broker(self.rng.choice(dead))
        if self.rng.random() < 0.5:
            self.cluster.elect_preferred_leaders()
        self.moved_ms = self.cluster.now_ms

    def disturb(self) -> None:
        topic = self.rng.choice([SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC])
        kind = self.rng.randrange(4)
        if kind == 0:
            error = self.rng.choice([Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR])
            self.cluster.fail_appends(topic, error, times=self.rng.randrange(1, 4))
        elif kind == 1:
            self.cluster.delay_appends(topic, self.rng.choice([10, 700, 6_000]))
        elif kind == 2:
            self.cluster.messages.disturb(loss=self.rng.choice([0, 0.02]), delay_ms=self.rng.choice([5, 300]))
        else:
            self.cluster.clear_faults()

    def wait(self) -> None:
        self.cluster.advance(self.rng.choice([10, 500, 12_000, 35_000]))

    # ---- the run -----------------------------------------------------------------------------------------------------

    def faults(self) -> None:
        actions = [self.turn, self.produce, self.crash, self.kill_broker, self.start_broker, self.disturb, self.wait]
        for action in self.rng.choices(actions, [50, 4, 4, 4, 8, 6, 6], k=ACTIONS):
            try:
                action()
            except KafkaException as error:
                self.done[error.error.name()] += 1

    def complete_all(self) -> None:
        """Faults end, and loops that only commit work on until nothing is left."""
        self.cluster.clear_faults()
        while len(self.cluster.brokers_alive) < 3:
            self.start_broker()
        for number in list(self.loops):
            self.crash(number)
        self.cluster.advance(120_000)
        self.loops[0] = loop = Loop(self.cluster, 0, 40_000)
        loop.producer.init_transactions()
        for _ in range(200):
            messages = list(loop.consumer.poll(5))
            self.check_delivery(loop, messages)
            if not messages and self.lag() == 0:
                break
            if messages:
                loop.producer.begin_transaction()
                for message in messages:
                    loop.producer.produce("out", f"{place_of(message)}", partition=0)
                metadata = loop.consumer.share_group_metadata()
                loop.producer.send_share_acknowledgements_to_transaction(messages, metadata)
                loop.producer.commit_transaction()
                self.done["staged"] += len(messages)
        self.cluster.advance(5_000)

    def lag(self) -> int | None:
        """None until the group has a start offset in each partition: a loop may be its first member."""
        with Admin({"bootstrap.servers": self.cluster.bootstrap_servers}) as admin:
            lags = [found.lag for found in admin.list_share_group_offsets("g").values()]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if len(known) == PARTITIONS else None

    # ---- the checker -------------------------------------------------------------------------------------------------

    def check_delivery(self, loop: Loop, messages: list[Message]) -> None:
        """X3. A copy of an earlier delivery may still be in a client's buffer until its lock ends: it has a lower
        delivery count, or is of a former leader. After its time-out a transaction is aborted, which its producer finds
        out later."""
        if self.cluster.now_ms - self.moved_ms < LOCK_MS:
            return
        for other in self.loops.values():
            if other is not loop and self.cluster.now_ms < other.begun_ms + other.timeout_ms:
                for message in messages:
                    count = other.open.get(place_of(message), LIMIT)
                    assert (message.delivery_count() or 0) <= count, f"X3: {place_of(message)} is staged"

    def check(self) -> None:
        seen = Counter(value for p in range(PARTITIONS) for value in committed_values(self.cluster.log("out", p)))
        assert {value: count for value, count in seen.items() if count > 1} == {}, "X1"
        ends = [self.cluster.log("in", p).high_watermark for p in range(PARTITIONS)]
        places = {f"{(p, offset)}" for p in range(PARTITIONS) for offset in range(ends[p])}
        assert sorted(places - set(seen) - self.used_up()) == [], "X2: acknowledged, and the output is not committed"
        assert self.lag() == 0, "X2: the output is committed, and the record is not acknowledged; X4"
        for partition in range(PARTITIONS):
            log = self.cluster.log("in", partition)
            with Admin({"bootstrap.servers": self.cluster.bootstrap_servers}) as admin:
                first = admin.browse("g", "in", partition).first
            assert (first.spso, list(first.runs)) == (log.high_watermark, []), "X4"
        for topic, partitions in ((SHARE_STATE_TOPIC, 50), ("out", PARTITIONS)):
            for partition in range(partitions):
                log = self.cluster.log(topic, partition)
                assert log.last_stable_offset == log.high_watermark, "X4: a transaction is open"

    def used_up(self) -> set[str]:
        """The records whose last delivery ended without an acknowledgement that archives it: their lock or their share
        session ended, they were released, or the transaction that they were staged in was aborted."""
        events = [entry.event for entry in self.cluster.journal.select(RecordsChanged, group="g", topic="in")]
        ended = [
            event
            for event in events
            if isinstance(event, RecordsChanged)
            and event.delivery_count == LIMIT
            and RecordState.ARCHIVED in (event.state, event.to_state)
            and RecordEvent.REJECT not in (event.cause, event.why)
        ]
        return {f"{(event.partition, offset)}" for event in ended for offset in range(event.first, event.end)}


def place_of(message: Message) -> Place:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset
