"""The stage of dead-letter queues, on a cluster of shareq on virtual time or on a real broker: topics, a group, and
clients that are used as an application uses them. Records of the queue are read through a share group of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
NAME = "errors.deadletterqueue.topic.name"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable"

Value = bytes | str | None


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
    broker that lacks the key. `pass_time` is called between two looks at the broker. `lock_ms`: the duration of the
    locks of a body that lets them run out."""

    def __init__(
        self,
        address: str,
        fresh: Callable[[str], str],
        *,
        unavailable: str | None,
        pass_time: Callable[[], object] = lambda: None,
        lock_ms: int = 30_000,
    ) -> None:
        self.address = address
        self.lock_ms = lock_ms
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
        brokers: Sequence[int] = (),
    ) -> None:
        """Create the source and the queue (None: no queue), and configure the group. `brokers`: those of the replicas
        of a source with one partition."""
        placed: dict[str, Any] = {"replica_assignment": [brokers]} if brokers else {"num_partitions": partitions}
        topics = [NewTopic(self.source, config=dict(source or {}), **placed)]
        if queue is not None:
            topics.append(NewTopic(self.queue, queue_partitions, config=dict(queue)))
        self.admin.create_topics(topics).check()
        first = {"share.auto.offset.reset": "earliest", NAME: self.queue}
        if self._unavailable is not None:
            first["errors.deadletterqueue.unavailable"] = self._unavailable
        self.configure({**first, **(group or {})})

    def configure(self, configs: Mapping[str, object]) -> None:
        configure(self.admin, self.group, configs)

    def configure_brokers(self, configs: Mapping[str, str]) -> None:
        """Set configurations of all brokers, and wait until the broker has them."""
        self.admin.incremental_alter_configs("broker", "", configs)
        broker = str(self.admin.describe_cluster().nodes[0].id)
        rows = self.admin.describe_configs
        eventually(lambda: {key: rows("broker", broker, list(configs))[key].value for key in configs}, dict(configs))

    def set_share_version(self, level: int, *, downgrade: bool = False) -> None:
        """Set the feature, and wait until the broker has it: a controller may be ahead of its brokers."""
        self.admin.update_features({"share.version": level}, downgrade=downgrade)
        if not self.address.startswith("inproc:"):
            with Raw(int(self.address.rpartition(":")[2])) as raw:
                eventually(lambda: _finalized(raw).get("share.version"), level)

    def write(
        self,
        *values: Value,
        partition: int = 0,
        compression: str = "none",
        keys: Iterable[Value] = (),
        topic: str | None = None,
        timestamp: int = 0,
    ) -> None:
        """Produce the values as one batch, to the source unless a topic is given. A timestamp of 0 is the time now."""
        topic = self.source if topic is None else topic
        given = dict(enumerate(keys))
        conf = {"bootstrap.servers": self.address, "linger.ms": 60_000, "compression.type": compression}
        conf |= {"message.max.bytes": 4_000_000, "batch.size": 4_000_000}
        with Producer(conf) as producer:
            for index, value in enumerate(values):
                producer.produce(topic, value, given.get(index), partition=partition, timestamp=timestamp)
            assert producer.flush(PATIENCE_S) == 0

    def write_in_transaction(self, *values: Value, commit: bool) -> None:
        """Produce the values to partition 0 in a transaction that ends so."""
        with Producer({"bootstrap.servers": self.address, "transactional.id": f"writer-{self.source}"}) as producer:
            producer.init_transactions(PATIENCE_S)
            producer.begin_transaction()
            for value in values:
                producer.produce(self.source, value, partition=0)
            assert producer.flush(PATIENCE_S) == 0
            (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_S)

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

    def nothing_comes(self) -> bool:
        """True if a poll of a second returns no records."""
        return not self._consumer.poll(1)

    # ---- observations ------------------------------------------------------------------------------------------------

    def until_lag(self, lag: int) -> None:
        """Wait for this total lag of the group: the way of letters ends before a record leaves the lag."""
        eventually(self.lag, lag)

    def lag(self) -> int:
        self._pass_time()
        return self.admin.lag(self.group).total

    def start(self) -> int | None:
        """The start offset of the group in a source with one partition."""
        self._pass_time()
        (row,) = self.admin.lag(self.group).values()
        return row.start_offset

    def letters(self) -> list[Letter]:
        """All records of the queue, those of each partition in order."""
        return sorted(map(as_letter, self.read_queue()), key=lambda letter: letter.queue_partition)

    def read_queue(self) -> list[Any]:
        """The messages of the queue, those of a partition in order."""
        places = self.admin.describe_topics([self.queue])[self.queue].partitions
        ends = self.admin.list_offsets({(self.queue, place.partition): "latest" for place in places})
        count = sum(row.offset or 0 for row in ends.values())
        group = f"reader-{self.group}"
        configure(self.admin, group, {"share.auto.offset.reset": "earliest"})
        reader = ShareConsumer({"bootstrap.servers": self.address, "group.id": group})
        reader.subscribe([self.queue])
        try:
            return take(reader, count) if count else []
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


def as_letter(message: Any) -> Letter:
    headers = message.headers()
    names = ["topic", "partition", "offset", "group", "delivery.count", "message"]
    assert [name for name, _ in headers] == [f"__dlq.errors.{name}" for name in names]
    topic, partition, offset, group, count, text = (value.decode() for _, value in headers)
    assert message.topic() == f"dlq.{topic}"
    assert group.startswith("group")
    return Letter(int(offset), int(count), message.key(), message.value(), text, message.partition(), int(partition))
