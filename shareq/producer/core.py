"""The producer as a state machine: records become batches, batches requests, answers delivery reports.

`inbox` is where the application's thread leaves records without taking the actor's lock; it is emptied by the hundred.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable

from shareq.client.callbacks import Unserved
from shareq.client.calls import Backoff, Calls, earliest
from shareq.client.config import ClientConfig
from shareq.client.metadata import Metadata
from shareq.client.topic_partition import OFFSET_INVALID
from shareq.model.actor import Answer, Effect, Message
from shareq.model.errors import Errors, KafkaError
from shareq.producer.lane import Batch, Delivery, Lane, Produced
from shareq.producer.partitioner import Partitioner
from shareq.producer.sender import Sender
from shareq.producer.transaction import ProducerIdentity, TransactionEvent, TransactionState


class _Topic:
    """A topic that records go to: its partitioner, its lanes, and the records that cannot be placed yet."""

    __slots__ = ("homeless", "lanes", "partitioner", "since_ms")

    def __init__(self, now_ms: int) -> None:
        self.partitioner: Partitioner | None = None
        self.lanes: list[Lane] = []
        self.homeless: deque[Produced] = deque()
        self.since_ms = now_ms

    def lane(self, partition: int, key: bytes | None) -> Lane | None:
        """Where a record goes; None while that is not known."""
        if 0 <= partition < len(self.lanes):
            return self.lanes[partition]
        if partition >= 0 or self.partitioner is None:
            return None
        return self.lanes[self.partitioner.place(key)]


class ProducerCore:
    """A producer without I/O."""

    def __init__(self, config: ClientConfig, rng: random.Random) -> None:
        self.client_id: str = config["client.id"]
        self.inbox: deque[Produced] = deque()
        self.deliveries: Unserved[Delivery] = Unserved()
        self.settled_count = 0
        """Records whose fate is known and whom nobody wants to hear of."""
        self.scheduled = False
        """Whether somebody will look into the inbox."""
        self.calls = Calls(config["request.timeout.ms"])
        backoff = Backoff(rng, config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self._config = config
        self._rng = rng
        self._metadata = Metadata(self.calls, backoff, self._metadata_changed)
        self._topics: dict[str, _Topic] = {}
        self._flush_at_ms: int | None = None
        self.identity = ProducerIdentity(
            self.calls,
            backoff,
            transactional_id=config["transactional.id"] or None,
            idempotent=config["enable.idempotence"] or bool(config["transactional.id"]),
            timeout_ms=config["transaction.timeout.ms"],
            on_change=self._restart_sequences,
        )
        self._sender = Sender(self.calls, backoff, self._metadata, self.identity, config, on_settled=self._settled)
        self._batch_bytes: int = config["batch.size"]
        self._batch_records: int = config["batch.num.messages"]
        self._now_ms = 0

    # ---- the actor ---------------------------------------------------------------------------------------------------

    @property
    def wake_at_ms(self) -> int | None:
        homeless = [topic.since_ms for topic in self._topics.values() if topic.homeless]
        patience_ms: int = self._config["topic.metadata.propagation.max.ms"]
        given_up = min(homeless) + patience_ms if homeless else None
        identity = self.identity.wake_at_ms(wanted=self._sender.busy, drained=not self.undelivered)
        return earliest(self._flush_at_ms, given_up, identity, self._metadata.wake_at_ms, self._sender.wake_at_ms)

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
        self._give_up(now_ms)
        self._sender.give_up(now_ms, self._config["message.timeout.ms"])
        if self.identity.error is not None and not self.identity.known:
            self._sender.fail(self.identity.error, now_ms)
        self.identity.pump(now_ms, wanted=self._sender.busy, drained=not self.undelivered)
        self._sender.pump(now_ms)
        self._metadata.pump(now_ms)

    # ---- records come in ---------------------------------------------------------------------------------------------

    def schedule(self, now_ms: int) -> None:
        """There is a first record in the inbox: look at it when it has lingered."""
        self.scheduled = True
        self._flush_at_ms = now_ms + int(self._config["linger.ms"])
        if self._flush_at_ms == now_ms:
            self.flush(now_ms)

    def drain(self, now_ms: int) -> None:
        """Move the inbox into batches, and send those that are full."""
        self._now_ms = now_ms
        inbox, topics, max_records = self.inbox, self._topics, self._batch_records
        while inbox:
            record = inbox.popleft()
            name, partition, key, _, _, _, on_delivery, size = record
            topic = topics.get(name) or self._new_topic(name)
            lane = topic.lane(partition, key)
            if lane is None:
                self._keep(topic, record)
                continue
            batch = lane.filling
            if batch is None or batch.room_bytes < size or len(batch.records) >= max_records:
                batch = self._roomy_batch(topic, lane, partition, key, size)
            batch.records.append(record)
            batch.room_bytes -= size
            if on_delivery is not None:
                batch.wants_reports = True
        self._pump(now_ms)

    def _roomy_batch(self, topic: _Topic, lane: Lane, partition: int, key: bytes | None, size: int) -> Batch:
        """A batch with room: of the same partition, or where the partitioner goes when that one's batch is full."""
        full = lane.filling
        while full is not None and (full.room_bytes < size or len(full.records) >= self._batch_records):
            self._close(topic, lane)
            found = topic.lane(partition, key)
            assert found is not None
            lane, full = found, found.filling
        if lane.filling is None:
            lane.filling = Batch(self._now_ms, self._batch_bytes)
        return lane.filling

    def flush(self, now_ms: int) -> None:
        """Send everything, full or not."""
        self.scheduled = False
        self._flush_at_ms = None
        self.drain(now_ms)
        for topic in self._topics.values():
            for lane in topic.lanes:
                if lane.filling is not None:
                    self._close(topic, lane)
        self._pump(now_ms)

    def _close(self, topic: _Topic, lane: Lane) -> None:
        if lane.filling is not None:
            lane.close()
            self._sender.ready(lane)
            assert topic.partitioner is not None
            topic.partitioner.closed(lane.partition)

    # ---- topics ------------------------------------------------------------------------------------------------------

    def _keep(self, topic: _Topic, record: Produced) -> None:
        """Nobody knows where the record belongs: it waits for metadata."""
        if not topic.homeless:
            topic.since_ms = self._now_ms
        topic.homeless.append(record)
        self._metadata.want_names((record[0],))

    def _new_topic(self, name: str) -> _Topic:
        topic = self._topics[name] = _Topic(self._now_ms)
        self._meet(name, topic)
        return topic

    def _meet(self, name: str, topic: _Topic) -> None:
        """Take in what metadata says of the topic, which may have grown or been made anew."""
        known = self._metadata.topics.get(name)
        if known is None:
            return
        count = len(known.leaders)
        if topic.partitioner is None:
            topic.partitioner = Partitioner(self._config["partitioner"], count, self._rng)
        topic.partitioner.partition_count = max(count, len(topic.lanes))
        topic.lanes += [Lane(name, partition) for partition in range(len(topic.lanes), count)]

    def _metadata_changed(self) -> None:
        for name, topic in self._topics.items():
            self._meet(name, topic)
            error = self._metadata.errors.get(name)
            waiting, topic.homeless = topic.homeless, deque()
            at_home: list[Produced] = []
            for record in waiting:
                if error is Errors.INVALID_TOPIC_EXCEPTION:
                    self._fail_record(record, KafkaError(error, f"{name!r} is no name of a topic"))
                elif topic.partitioner is not None and record[1] >= topic.partitioner.partition_count:
                    text = f"topic {name!r} has no partition {record[1]}"
                    self._fail_record(record, KafkaError(KafkaError._UNKNOWN_PARTITION, text))
                elif topic.partitioner is None:
                    topic.homeless.append(record)
                    self._metadata.want_names((name,))
                else:
                    at_home.append(record)
            self.inbox.extendleft(reversed(at_home))  # before what has come meanwhile
            if waiting and not topic.homeless and self._flush_at_ms is None:
                self._flush_at_ms = self._now_ms

    def _give_up(self, now_ms: int) -> None:
        """A topic that stays unknown for too long does not exist."""
        patience_ms = self._config["topic.metadata.propagation.max.ms"]
        for name, topic in self._topics.items():
            if topic.homeless and now_ms - topic.since_ms >= patience_ms:
                error = KafkaError(KafkaError._UNKNOWN_TOPIC, f"topic {name!r} is unknown")
                while topic.homeless:
                    self._fail_record(topic.homeless.popleft(), error)

    # ---- what becomes of records -------------------------------------------------------------------------------------

    def _fail_record(self, record: Produced, error: KafkaError) -> None:
        self.identity.record_failed()
        if record[6] is None:
            self.settled_count += 1
        else:
            self.deliveries.append(Delivery(record, record[1], OFFSET_INVALID, error, self._now_ms, 0.0))

    def _settled(self, lane: Lane, batch: Batch, base_offset: int, error: KafkaError | None, now_ms: int) -> None:
        if error is not None:
            self.identity.record_failed()
        if not batch.wants_reports:
            self.settled_count += batch.record_count
            return
        latency = (now_ms - batch.created_ms) / 1000
        for position, record in enumerate(batch.records):
            if record[6] is None:
                self.settled_count += 1
            else:
                offset = base_offset + position if base_offset >= 0 else OFFSET_INVALID
                self.deliveries.append(Delivery(record, lane.partition, offset, error, batch.created_ms, latency))

    def _restart_sequences(self) -> None:
        for lane in self._lanes():
            lane.sequence = 0

    def _lanes(self) -> Iterable[Lane]:
        return (lane for topic in self._topics.values() for lane in topic.lanes)

    @property
    def undelivered(self) -> bool:
        """Whether records are still on their way."""
        if self.inbox or self._sender.busy:
            return True
        return any(topic.homeless or any(lane.filling for lane in topic.lanes) for topic in self._topics.values())

    def purge(self, now_ms: int, *, in_queue: bool, in_flight: bool) -> None:
        """Give up records on purpose: those that wait, those that are under way, or both."""
        self._now_ms = now_ms
        if in_queue:
            error = KafkaError(KafkaError._PURGE_QUEUE, "purged in queue")
            while self.inbox:
                self._fail_record(self.inbox.popleft(), error)
            for topic in self._topics.values():
                while topic.homeless:
                    self._fail_record(topic.homeless.popleft(), error)
                for lane in topic.lanes:
                    self._close(topic, lane)
        self._sender.purge(now_ms, in_queue=in_queue, in_flight=in_flight)
        self._pump(now_ms)

    def abandon(self, error: KafkaError) -> None:
        """This machine has failed, and may be torn: every record that is still open fails with `error`."""
        records: list[Produced] = [*self.inbox]
        self.inbox.clear()
        for topic in self._topics.values():
            records += topic.homeless
            topic.homeless.clear()
            for lane in topic.lanes:
                for batch in (lane.under_way, *lane.waiting, lane.filling):
                    records += batch.records if batch is not None else ()
                lane.under_way = lane.filling = None
                lane.waiting.clear()
        for record in records:
            self._fail_record(record, error)

    # ---- transactions ------------------------------------------------------------------------------------------------

    def transaction(self, event: TransactionEvent) -> Callable[[int], None]:
        """A step of a transaction: committing sends what waits, aborting throws it away."""

        def step(now_ms: int) -> None:
            self.identity.move(event)
            if self.identity.state is TransactionState.ABORTING:
                self.purge(now_ms, in_queue=True, in_flight=False)
            self.flush(now_ms)

        return step
