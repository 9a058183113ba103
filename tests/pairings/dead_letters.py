"""Worked examples of dead-letter queues: test bodies for a cluster of shareq on virtual time, and for a real broker.

A body uses a share consumer and an admin as an application does, and returns its observations as plain data. Records of
the queue are read through a share group of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from shareq import Admin, NewTopic, Producer, ShareConsumer
from shareq.model.messages.api_versions import ApiVersionsRequest
from tests.polling import PATIENCE_S, configure, eventually, take
from tests.wire.raw import Raw

ACCEPT, RELEASE, REJECT = 1, 2, 3
REJECTED, TOO_OFTEN = "Offset rejected by client.", "Offset delivery count exceeded the threshold."
COPY = {"errors.deadletterqueue.copy.record.enable": "true"}
ENABLED = {"errors.deadletterqueue.group.enable": "true"}

Value = bytes | str | None
Observation = Any


class Letter(NamedTuple):
    """A record of the queue: its partition, the source offset and delivery count of its headers, its content."""

    offset: int
    delivery_count: int
    key: bytes | None = None
    value: bytes | None = None
    message: str = REJECTED
    queue_partition: int = 0
    partition: int = 0


class DeadLetterStage:
    """A source topic, a group with a dead-letter queue, and clients; `unavailable` is "wait", "archive", or None for a
    broker that lacks the key. `pass_time` is called between two looks at the broker."""

    def __init__(
        self,
        address: str,
        fresh: Callable[[str], str],
        *,
        unavailable: str | None,
        pass_time: Callable[[], object] = lambda: None,
    ) -> None:
        self.address = address
        self.stack = ExitStack()
        self.source, self.group = fresh("source"), fresh("group")
        self.queue = f"dlq.{self.source}"
        self.admin = self.stack.enter_context(Admin({"bootstrap.servers": address}))
        self._unavailable = unavailable
        self._pass_time = pass_time
        self._consumer: Any = None
        self._reader: Any = None
        self._held: dict[tuple[int, int], Any] = {}

    def create(
        self,
        partitions: int = 1,
        *,
        queue: Mapping[str, str] | None = ENABLED,
        queue_partitions: int = 1,
        source: Mapping[str, str] | None = None,
        group: Mapping[str, object] | None = None,
    ) -> None:
        """Create the source and the queue (None: no queue), and configure the group."""
        topics = [NewTopic(self.source, partitions, config=dict(source or {}))]
        if queue is not None:
            topics.append(NewTopic(self.queue, queue_partitions, config=dict(queue)))
        self.admin.create_topics(topics).check()
        first = {"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": self.queue}
        if self._unavailable is not None:
            first["errors.deadletterqueue.unavailable"] = self._unavailable
        self.configure({**first, **(group or {})})

    def configure(self, configs: Mapping[str, object]) -> None:
        configure(self.admin, self.group, configs)

    def set_share_version(self, level: int, *, downgrade: bool = False) -> None:
        """Set the feature, and wait until the broker has it: a controller may be ahead of its brokers."""
        self.admin.update_features({"share.version": level}, downgrade=downgrade)
        if not self.address.startswith("inproc:"):
            with Raw(int(self.address.rpartition(":")[2])) as raw:
                eventually(lambda: _finalized(raw).get("share.version"), level)

    def write(self, *values: Value, partition: int = 0, compression: str = "none", keys: Iterable[Value] = ()) -> None:
        """Produce the values as one batch."""
        given = dict(enumerate(keys))
        conf = {"bootstrap.servers": self.address, "linger.ms": 60_000, "compression.type": compression}
        conf |= {"message.max.bytes": 4_000_000, "batch.size": 4_000_000}
        with Producer(conf) as producer:
            for index, value in enumerate(values):
                producer.produce(self.source, value, given.get(index), partition=partition)
            assert producer.flush(PATIENCE_S) == 0

    # ---- the consumer ------------------------------------------------------------------------------------------------

    def join(self) -> None:
        """Join the group with a new consumer."""
        self._consumer = ShareConsumer(
            {"bootstrap.servers": self.address, "group.id": self.group, "share.acknowledgement.mode": "explicit"}
        )
        self._consumer.subscribe([self.source])

    def leave(self) -> None:
        """Close the consumer: its records are released."""
        self._consumer.close()
        self._consumer = None
        self._held.clear()

    def fall_silent(self) -> None:
        """Leave the consumer as it is, connected and without a further call: the locks of its records run out. The next
        records go to another one."""
        self.stack.callback(self._consumer.close)
        self._consumer = None
        self._held.clear()

    def take(self, count: int) -> list[tuple[int, int]]:
        """Receive `count` records; (offset, delivery count) of each, in order."""
        if self._consumer is None:
            self.join()
        messages = take(self._consumer, count)
        self._held.update({(m.partition(), m.offset()): m for m in messages})
        return sorted((m.offset(), m.delivery_count()) for m in messages)

    def reject_as_they_come(self, count: int) -> None:
        """Receive `count` records of any partitions, and reject those of each poll."""
        while count:
            before = set(self._held)
            self.take(1)
            taken = set(self._held) - before
            for partition, offset in taken:
                self._consumer.acknowledge(self._held.pop((partition, offset)), REJECT)
            assert not any(self._consumer.commit_sync().values())
            count -= len(taken)

    def acknowledge(self, kind: int, *offsets: int) -> None:
        """Acknowledge held records of partition 0, with one commit."""
        self.acknowledge_each(dict.fromkeys(offsets, kind))

    def acknowledge_each(self, kinds: Mapping[int, int]) -> None:
        for offset, kind in kinds.items():
            self._consumer.acknowledge(self._held.pop((0, offset)), kind)
        results = self._consumer.commit_sync()
        assert all(error is None for error in results.values()), results

    # ---- observations ------------------------------------------------------------------------------------------------

    def until_lag(self, lag: int) -> None:
        """Wait for this total lag of the group: the way of letters ends before a record leaves the lag."""
        eventually(self.lag, lag)

    def lag(self) -> int:
        self._pass_time()
        return self.admin.lag(self.group).total

    def letters(self) -> list[Letter]:
        """All records of the queue, those of each partition in order."""
        places = self.admin.describe_topics([self.queue])[self.queue].partitions
        ends = self.admin.list_offsets({(self.queue, place.partition): "latest" for place in places})
        count = sum(row.offset or 0 for row in ends.values())
        group = f"reader-{self.group}"
        configure(self.admin, group, {"share.auto.offset.reset": "earliest"})
        reader = ShareConsumer({"bootstrap.servers": self.address, "group.id": group})
        reader.subscribe([self.queue])
        try:
            return sorted(map(_letter, take(reader, count)), key=lambda letter: letter.queue_partition) if count else []
        finally:
            reader.close()

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self.stack.close()


def _finalized(raw: Raw) -> dict[str, int]:
    """The levels of the features of a broker."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return {feature.name: feature.max_version_level for feature in raw.ask(request, 4).finalized_features}


def _letter(message: Any) -> Letter:
    headers = message.headers()
    names = ["topic", "partition", "offset", "group", "delivery.count", "message"]
    assert [name for name, _ in headers] == [f"__dlq.errors.{name}" for name in names]
    topic, partition, offset, group, count, text = (value.decode() for _, value in headers)
    assert message.topic() == f"dlq.{topic}"
    assert group.startswith("group")
    return Letter(int(offset), int(count), message.key(), message.value(), text, message.partition(), int(partition))


# ---- bodies ----------------------------------------------------------------------------------------------------------

Body = Callable[[DeadLetterStage], Observation]
EXAMPLES: dict[str, tuple[Body, Observation]] = {}
"""Name -> the body, and what it observes on every broker."""


def example(expected: Observation) -> Callable[[Body], Body]:
    """Register a body with its expected observation."""

    def registered(body: Body) -> Body:
        EXAMPLES[body.__name__] = body, expected
        return body

    return registered


def ten(stage: DeadLetterStage) -> None:
    """Ten records, acquired as one batch."""
    stage.create()
    stage.write(*(f"value {n}" for n in range(10)))
    stage.take(10)


@example(
    [
        Letter(0, 1),
        *(Letter(offset, 1) for offset in range(5, 10)),
        Letter(4, 1),
        Letter(3, 5, message=TOO_OFTEN),
    ]
)
def examples_1_to_4_reject_and_release(stage: DeadLetterStage) -> Observation:
    """Records are rejected alone and together, beside accepted ones; one is released up to the limit."""
    ten(stage)
    stage.acknowledge(REJECT, 0)
    stage.until_lag(9)
    stage.acknowledge(REJECT, *range(5, 10))
    stage.until_lag(4)
    stage.acknowledge_each({1: RELEASE, 2: RELEASE, 3: RELEASE, 4: REJECT})
    stage.until_lag(3)
    taken = stage.take(3)
    assert taken == [(1, 2), (2, 2), (3, 2)]
    stage.acknowledge_each({1: ACCEPT, 2: ACCEPT, 3: RELEASE})
    for delivery_count in (3, 4, 5):
        assert stage.take(1) == [(3, delivery_count)]
        stage.acknowledge(RELEASE, 3)
    stage.until_lag(0)
    return stage.letters()


@example([Letter(offset, 1) for offset in range(10)])
def example_5_a_whole_batch_in_order(stage: DeadLetterStage) -> Observation:
    ten(stage)
    stage.acknowledge(REJECT, *range(10))
    stage.until_lag(0)
    return stage.letters()


@example([Letter(offset, 2, message=TOO_OFTEN) for offset in range(4)])
def example_7_a_session_ends_at_the_limit(stage: DeadLetterStage) -> Observation:
    stage.create(group={"share.delivery.count.limit": 2})
    stage.write("a", "b", "c", "d")
    stage.take(4)
    stage.leave()
    assert stage.take(4) == [(offset, 2) for offset in range(4)]
    stage.leave()
    stage.until_lag(0)
    return stage.letters()


@example([Letter(0, 1, b"k", b"v"), Letter(1, 1, None, b""), Letter(2, 1, b"", None)])
def copies_have_key_and_value(stage: DeadLetterStage) -> Observation:
    """With copy, null stays null and empty stays empty."""
    stage.create(group=COPY)
    stage.write("v", "", None, keys=["k", None, ""])
    stage.take(3)
    stage.acknowledge(REJECT, 0, 1, 2)
    stage.until_lag(0)
    return stage.letters()


@example(([Letter(0, 1)], "true", "CreateTime"))
def example_11_the_first_reject_creates_the_queue(stage: DeadLetterStage) -> Observation:
    stage.admin.incremental_alter_configs("broker", "", {AUTO_CREATE: "true"})
    stage.create(queue=None)
    stage.write("a")
    stage.take(1)
    stage.acknowledge(REJECT, 0)
    stage.until_lag(0)
    found = stage.admin.describe_configs("topic", stage.queue)
    return (
        stage.letters(),
        found["errors.deadletterqueue.group.enable"].value,
        found["message.timestamp.type"].value,
    )


AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable"


@example([(0, 0), (0, 2), (0, 4), (1, 1), (1, 3)])
def example_13_partitions_of_the_queue(stage: DeadLetterStage) -> Observation:
    """The partition of the queue is that of the source, modulo the count of the queue."""
    stage.create(5, queue_partitions=2)
    for partition in range(5):
        stage.write("a", partition=partition)
    stage.reject_as_they_come(5)
    stage.until_lag(0)
    return sorted((letter.queue_partition, letter.partition) for letter in stage.letters())


@example([Letter(offset, 1) for offset in range(12)])
def example_16_rounds_of_a_small_queue(stage: DeadLetterStage) -> Observation:
    stage.create(queue={**ENABLED, "max.message.bytes": "1000"})
    stage.write(*map(str, range(12)))
    stage.take(12)
    stage.acknowledge(REJECT, *range(12))
    stage.until_lag(0)
    return stage.letters()


@example([Letter(offset, 1) for offset in range(15)] + [Letter(15, 1, None, b"x"), Letter(16, 1, None, b"y")])
def example_17_a_batch_that_is_too_large_after_decompression(stage: DeadLetterStage) -> Observation:
    """1.5 MB in one lz4 batch: its records go without their content; those of a small batch are copied."""
    stage.create(source={"max.message.bytes": "4000000"}, group=COPY)
    stage.write(*["0" * 100_000] * 15, compression="lz4")
    stage.write("x", "y", compression="lz4")
    stage.take(17)
    stage.acknowledge(REJECT, *range(17))
    stage.until_lag(0)
    return stage.letters()


@example([Letter(0, 3, message=TOO_OFTEN)])
def example_18_the_limit_is_lowered_and_the_queue_taken_away(stage: DeadLetterStage) -> Observation:
    stage.create()
    stage.write("a", "b")
    for _ in range(2):
        stage.take(2)
        stage.acknowledge(RELEASE, 0, 1)
    stage.take(2)
    stage.configure({"share.delivery.count.limit": 2})
    stage.acknowledge(RELEASE, 0)
    stage.until_lag(1)
    stage.configure({"errors.deadletterqueue.topic.name": ""})
    stage.acknowledge(REJECT, 1)
    stage.until_lag(0)
    return stage.letters()


@example([Letter(1, 1)])
def example_27_share_version_is_switched(stage: DeadLetterStage) -> Observation:
    """Only what is rejected at level 2 gets into the queue; nothing is loaded anew."""
    ten(stage)
    try:
        stage.set_share_version(1, downgrade=True)
        stage.acknowledge(REJECT, 0)
        stage.until_lag(9)
        stage.set_share_version(2)
        stage.acknowledge(REJECT, 1)
        stage.until_lag(8)
        stage.set_share_version(1, downgrade=True)
        stage.acknowledge(REJECT, 2)
        stage.until_lag(7)
    finally:
        stage.set_share_version(2)
    return stage.letters()


@example([])
def example_10_a_queue_that_is_not_enabled_is_given_up(stage: DeadLetterStage) -> Observation:
    stage.create(queue={})
    stage.write("a")
    stage.take(1)
    stage.acknowledge(REJECT, 0)
    stage.until_lag(0)
    return stage.letters()


@example([Letter(2, 1, b"k", b"c")])
def example_14_a_compacted_queue_refuses_records_without_a_key(stage: DeadLetterStage) -> Observation:
    stage.create(queue={**ENABLED, "cleanup.policy": "compact"}, group=COPY)
    stage.write("a", "b")
    stage.write("c", keys=["k"])
    stage.take(3)
    stage.acknowledge(REJECT, 0, 1)
    stage.until_lag(1)
    stage.acknowledge(REJECT, 2)
    stage.until_lag(0)
    return stage.letters()
