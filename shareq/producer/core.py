"""The producer as a state machine: records become batches, batches requests, responses delivery reports.

The application's thread appends records to `inbox` without the actor's lock; the actor empties it in bulk.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from itertools import repeat
from math import ceil
from typing import TypeVar

from shareq.client.callbacks import CallbackQueue
from shareq.client.calls import Backoff, Calls, earliest
from shareq.client.config import ClientConfig
from shareq.client.message import Origin
from shareq.client.metadata import Metadata
from shareq.client.topic_partition import OFFSET_INVALID
from shareq.model.actor import Answer, Effect, Message
from shareq.model.errors import Errors, KafkaError
from shareq.model.ids import illegal_topic_name
from shareq.model.time_of_day import TimeOfDay, same_time
from shareq.producer.partition_queue import NEVER_MS, Delivery, PartitionQueue, ProducedRecord, ProducerBatch
from shareq.producer.produced_topic import ProducedTopic
from shareq.producer.sender import Sender
from shareq.producer.transaction import ProducerIdentity, ProducerTransactionEvent, ProducerTransactionState
from shareq.producer.transaction_additions import TransactionAdditions

A = TypeVar("A")

PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""Errors of records that the application itself has purged."""


class ProducerCore:
    """A producer without I/O."""

    def __init__(self, config: ClientConfig, rng: random.Random) -> None:
        self.client_id: str = config["client.id"]
        self.inbox: deque[ProducedRecord] = deque()
        self.deliveries: CallbackQueue[Delivery] = CallbackQueue()
        self.settled_count: int = 0
        """The number of records with a result and without a callback."""
        self.lost: dict[tuple[str, str], int] = {}
        """(topic, error text) -> records that failed without a callback, for the next call to report."""
        self.settled_bytes: int = 0
        """The size of all records with a result."""
        self.scheduled = False
        """True if a flush of the inbox is scheduled."""
        self.calls = Calls(config["request.timeout.ms"])
        self._backoff = backoff = Backoff(rng, config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self._config = config
        self._rng = rng
        self._metadata = Metadata(self.calls, backoff, self._metadata_changed)
        self._topics: dict[str, ProducedTopic] = {}
        self._filling: dict[PartitionQueue, ProducedTopic] = {}
        """The queues with an unfinished batch: few, even if a topic has thousands of partitions."""
        self._flush_at_ms: int | None = None
        self._refresh_at_ms: int | None = None
        self._linger_ms = ceil(config["linger.ms"])
        self._timeout_ms: int = config["message.timeout.ms"] or NEVER_MS
        self._unknown_ms: int = config["topic.metadata.propagation.max.ms"]
        self.identity = ProducerIdentity(
            self.calls,
            backoff,
            transactional_id=config["transactional.id"] or None,
            idempotent=config["enable.idempotence"] or bool(config["transactional.id"]),
            timeout_ms=config["transaction.timeout.ms"],
            on_change=self._restart_sequences,
        )
        self.additions = TransactionAdditions(self.calls, backoff, self.identity, self._metadata)
        self._sender = Sender(self.calls, backoff, self._metadata, self.identity, config, on_settled=self._settled)
        self._batch_bytes: int = config["batch.size"]
        self._batch_records: int = config["batch.num.messages"]
        self._now_ms = 0
        self.time_of_day: TimeOfDay = same_time
        """For the timestamps of records."""

    # ---- the actor ---------------------------------------------------------------------------------------------------

    @property
    def wake_at_ms(self) -> int | None:
        return earliest(
            self._flush_at_ms,
            self._refresh_at_ms,
            *[topic.expires_at_ms for topic in self._topics.values() if topic.unplaced],
            self.identity.wake_at_ms(wanted=self._sender.busy, drained=self._drained),
            self._metadata.wake_at_ms,
            self._sender.wake_at_ms,
            self.additions.wake_at_ms,
        )

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        self._now_ms = now_ms
        if isinstance(message, Answer):
            self.calls.answered(message, now_ms)
        if self._flush_at_ms is not None and now_ms >= self._flush_at_ms:
            self.flush(now_ms)
        else:
            self._pump(now_ms)
        return self.calls.take_effects()

    def _pump(self, now_ms: int) -> None:
        if self._refresh_at_ms is not None and now_ms >= self._refresh_at_ms:
            self._metadata.want_names(self._topics)
            self._refresh_at_ms = now_ms + self._config["topic.metadata.refresh.interval.ms"]
        self._expire_unplaced(now_ms)
        self._sender.expire_batches(now_ms)
        if self.identity.error is not None and not self.identity.known:
            self._sender.fail(self.identity.error, now_ms)
        self.identity.pump(now_ms, wanted=self._sender.busy, drained=self._drained)
        self._sender.pump(now_ms)
        self.additions.pump(now_ms)
        self._metadata.pump(now_ms)

    # ---- records -----------------------------------------------------------------------------------------------------

    def schedule(self, now_ms: int) -> None:
        """Schedule a flush for the first record in the inbox, after `linger.ms`."""
        self.scheduled = True
        self._flush_at_ms = now_ms + self._linger_ms
        if self._flush_at_ms == now_ms:
            self.flush(now_ms)

    def drain(self, now_ms: int) -> None:
        """Move the inbox into batches, and send those that are full."""
        self._sort(now_ms)
        self._pump(now_ms)

    def _sort(self, now_ms: int) -> None:
        """Move the inbox into batches."""
        self._now_ms = now_ms
        inbox, topics, max_records = self.inbox, self._topics, self._batch_records
        topic: ProducedTopic | None = None
        last = ""
        while inbox:
            record = inbox[0]  # it stays in the inbox, for `abandon`, until it is in a batch
            name, partition, key, _, _, _, on_delivery, size = record
            if topic is None or name is not last:
                topic, last = topics.get(name) or self._new_topic(name), name
            queue = topic.queue(partition, key)
            if queue is None:
                self._hold(topic)
                continue
            batch = queue.filling
            if batch is None or batch.room_bytes < size or len(batch.records) >= max_records:
                batch = self._batch_with_room(topic, queue, record, now_ms)
            batch.records.append(inbox.popleft())
            batch.room_bytes -= size
            if on_delivery is not None:
                batch.wants_reports = True

    def _batch_with_room(
        self, topic: ProducedTopic, queue: PartitionQueue, record: ProducedRecord, since_ms: int
    ) -> ProducerBatch:
        """A batch with room: of the same partition, or of another one that the partitioner chooses after a full
        batch."""
        _, partition, key, _, _, _, _, size = record
        full = queue.filling
        while full is not None and (full.room_bytes < size or len(full.records) >= self._batch_records):
            self._close(topic, queue)
            found = topic.queue(partition, key)
            assert found is not None
            queue, full = found, found.filling
        if queue.filling is None:
            queue.filling = ProducerBatch(since_ms, self._batch_bytes, self.time_of_day(since_ms))
            self._filling[queue] = topic
        return queue.filling

    def _place(self, topic: ProducedTopic, queue: PartitionQueue) -> None:
        """Put the first waiting record into a batch."""
        record, since_ms = topic.unplaced[0]
        batch = self._batch_with_room(topic, queue, record, since_ms)
        topic.unplaced.popleft()
        batch.records.append(record)
        batch.room_bytes -= record[7]
        if since_ms < batch.created_ms:
            batch.created_ms, batch.timestamp_ms = since_ms, self.time_of_day(since_ms)
        batch.wants_reports = batch.wants_reports or record[6] is not None
        if len(batch.records) >= self._batch_records and queue.filling is batch:
            self._close(topic, queue)

    def flush(self, now_ms: int) -> None:
        """Send all batches, even unfinished ones."""
        self.scheduled = False
        self._flush_at_ms = None
        self._sort(now_ms)
        while self._filling:
            queue, topic = next(iter(self._filling.items()))
            self._close(topic, queue)
        self._pump(now_ms)

    def _close(self, topic: ProducedTopic, queue: PartitionQueue) -> None:
        if self._filling.pop(queue, None) is not None:
            queue.close()
            self._sender.ready(queue)
            assert topic.partitioner is not None
            topic.partitioner.closed(queue.partition)

    # ---- topics ------------------------------------------------------------------------------------------------------

    def _hold(self, topic: ProducedTopic) -> None:
        """Keep the first record of the inbox without a partition until the topic's metadata arrives."""
        self._metadata.want_names((topic.name,))
        topic.unplaced.append((self.inbox.popleft(), self._now_ms))

    def _new_topic(self, name: str) -> ProducedTopic:
        topic = self._topics[name] = ProducedTopic(name, self._timeout_ms, self._unknown_ms)
        known = self._metadata.topics.get(name)
        if known is not None:
            topic.learn(known, self._config["partitioner"], self._rng)
        return topic

    def _metadata_changed(self) -> None:
        """Update topics: they may have been created, have grown, or have been created again."""
        interval_ms: int = self._config["topic.metadata.refresh.interval.ms"]
        if self._refresh_at_ms is None and interval_ms > 0:
            self._refresh_at_ms = self._now_ms + interval_ms
        for name, topic in self._topics.items():
            known = self._metadata.topics.get(name)
            error = self._metadata.errors.get(name)
            if known is not None:
                topic.learn(known, self._config["partitioner"], self._rng)
                self._unplace_removed(topic)
            elif error is Errors.UNKNOWN_TOPIC_OR_PARTITION and topic.unknown_since_ms is None:
                topic.unknown_since_ms = self._now_ms
            if topic.unplaced:
                self._place_unplaced(topic, error)

    def _unplace_removed(self, topic: ProducedTopic) -> None:
        """Return the records of removed partitions to the records without a partition."""
        for queue in topic.removed_queues:
            self._filling.pop(queue, None)
            queue.close()
            self._sender.withdraw(queue)
            for batch in queue.waiting:
                topic.unplaced += zip(batch.records, repeat(batch.created_ms))
            queue.waiting.clear()

    def _place_unplaced(self, topic: ProducedTopic, error: Errors | None) -> None:
        """Place the records that waited for metadata; fail those that cannot be placed."""
        for _ in range(len(topic.unplaced)):
            record, _ = topic.unplaced[0]
            queue = topic.queue(record[1], record[2])
            if error is not None and not error.retriable:
                why = f"topic {topic.name!r}: {self._metadata.reason or error.name}"
                self._fail_unplaced(topic, KafkaError(error, illegal_topic_name(topic.name) or why))
            elif queue is not None:
                self._place(topic, queue)
            elif topic.partitioner is not None:
                text = f"topic {topic.name!r} has no partition {record[1]}"
                self._fail_unplaced(topic, KafkaError(KafkaError._UNKNOWN_PARTITION, text))
            else:
                topic.unplaced.rotate(-1)
        if topic.unplaced:
            self._metadata.want_names((topic.name,))
        elif self._flush_at_ms is None:
            self._flush_at_ms = self._now_ms

    def _expire_unplaced(self, now_ms: int) -> None:
        for topic in self._topics.values():
            while topic.waits and (error := topic.expiry_error(now_ms)) is not None:
                self._fail_unplaced(topic, error)

    # ---- results -----------------------------------------------------------------------------------------------------
    # A record is reported before it is removed: `abandon` reports each record once, even if a turn fails halfway.

    def _fail_unplaced(self, topic: ProducedTopic, error: KafkaError) -> None:
        self._fail_record(topic.unplaced[0][0], error)
        topic.unplaced.popleft()

    def _fail_record(self, record: ProducedRecord, error: KafkaError) -> None:
        self.identity.record_failed()
        self._report(record, error)

    def _report(self, record: ProducedRecord, error: KafkaError) -> None:
        if record[6] is None:
            self._count_lost(record[0], error, 1)
        self.settled_bytes += record[7]
        if record[6] is None:
            self.settled_count += 1
        else:
            origin = Origin(record[0], record[1], None, None, error, 0.0)
            self.deliveries.append(Delivery(record, OFFSET_INVALID, self.time_of_day(self._now_ms), origin))

    def _settled(
        self, queue: PartitionQueue, batch: ProducerBatch, base_offset: int, error: KafkaError | None, now_ms: int
    ) -> None:
        if error is not None:
            self.identity.record_failed()
            self._count_lost(queue.topic, error, sum([record[6] is None for record in batch.records]))
        records, batch.records = batch.records, []
        self.settled_bytes += self._batch_bytes - batch.room_bytes
        if not batch.wants_reports:
            self.settled_count += len(records)
            return
        timestamp_ms = batch.timestamp_ms
        origin = Origin(queue.topic, queue.partition, None, None, error, (now_ms - batch.created_ms) / 1000)
        for position, record in enumerate(records):
            if record[6] is None:
                self.settled_count += 1
            else:
                offset = base_offset + position if base_offset >= 0 else OFFSET_INVALID
                self.deliveries.append(Delivery(record, offset, timestamp_ms, origin))

    def _count_lost(self, topic: str, error: KafkaError, count: int) -> None:
        if count and error.code() not in PURGED:
            at = topic, error.str()
            self.lost[at] = self.lost.get(at, 0) + count

    @property
    def unknown_topics(self) -> list[str]:
        """Topics that have waiting records and do not exist according to a broker."""
        return [name for name, topic in self._topics.items() if topic.unplaced and topic.unknown_since_ms is not None]

    def _restart_sequences(self) -> None:
        for queue in self._queues():
            queue.sequence = 0

    def _queues(self) -> Iterable[PartitionQueue]:
        return (queue for topic in self._topics.values() for queue in topic.queues)

    @property
    def undelivered(self) -> bool:
        """True if there are records without a result."""
        if self.inbox or self._filling or self._sender.busy:
            return True
        return any(topic.unplaced for topic in self._topics.values())

    def _drained(self) -> bool:
        return not self.undelivered and self.additions.settled

    def purge(self, now_ms: int, *, in_queue: bool, in_flight: bool) -> None:
        """Fail waiting records, records in flight, or both, on behalf of the application."""
        self._now_ms = now_ms
        if in_queue:
            error = KafkaError(KafkaError._PURGE_QUEUE, "purged in queue")
            while self.inbox:
                self._fail_record(self.inbox[0], error)
                self.inbox.popleft()
            for topic in self._topics.values():
                while topic.unplaced:
                    self._fail_unplaced(topic, error)
                for queue in topic.queues:
                    self._close(topic, queue)
        self._sender.purge(now_ms, in_queue=in_queue, in_flight=in_flight)
        self._pump(now_ms)

    def abandon(self, error: KafkaError) -> None:
        """Fail every open record with `error`. The actor has failed, so its state may be inconsistent."""
        records: list[ProducedRecord] = [*self.inbox]
        self.inbox.clear()
        for topic in self._topics.values():
            records += [record for record, _ in topic.unplaced]
            topic.unplaced.clear()
            for queue in topic.queues:
                for batch in (queue.under_way, *queue.waiting, queue.filling):
                    records += batch.records if batch is not None else ()
                queue.under_way = queue.filling = None
                queue.waiting.clear()
        self._filling.clear()
        for record in records:
            self._report(record, error)

    # ---- transactions ------------------------------------------------------------------------------------------------

    def transaction(self, event: ProducerTransactionEvent) -> Callable[[int], None]:
        """A step of a transaction: a commit sends the waiting records, an abort purges them."""

        def step(now_ms: int) -> None:
            self.identity.move(event)
            self.additions.step()
            if self.identity.state is ProducerTransactionState.ABORTING:
                self.purge(now_ms, in_queue=True, in_flight=False)
            self.flush(now_ms)

        return step

    def adding(self, add: Callable[[], A]) -> Callable[[int], A]:
        """A step that adds something to the open transaction, by a method of `additions`, and sends it."""

        def step(now_ms: int) -> A:
            added = add()
            self._pump(now_ms)
            return added

        return step
