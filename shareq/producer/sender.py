"""Sending of batches: one request per node, at most one batch per partition in flight, retries until a time-out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shareq.client.calls import Backoff, Calls, earliest
from shareq.client.config import ClientConfig
from shareq.client.metadata import NO_LEADER, Metadata
from shareq.model.errors import Errors, KafkaError
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.messages.base import Response
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.producer.partition_queue import NEVER_MS, PartitionQueue, ProducerBatch, timed_out
from shareq.producer.transaction import ProducerIdentity

NO_SEQUENCE = -1
MAX_SEQUENCE = (1 << 31) - 1

OnSettled = Callable[[PartitionQueue, ProducerBatch, int, KafkaError | None, int], None]
"""(queue, batch, base_offset, error, now_ms)."""


class Sender:
    """Sends the batches of all queues with finished batches."""

    def __init__(
        self,
        calls: Calls,
        backoff: Backoff,
        metadata: Metadata,
        identity: ProducerIdentity,
        config: ClientConfig,
        *,
        on_settled: OnSettled,
    ) -> None:
        self._calls = calls
        self._backoff = backoff
        self._metadata = metadata
        self._identity = identity
        self._acks: int = config["acks"]
        self._compression: str = config["compression.type"]
        self._timeout_ms: int = config["message.timeout.ms"] or NEVER_MS
        self._on_settled = on_settled
        self._queues: dict[tuple[str, int], PartitionQueue] = {}

    @property
    def busy(self) -> bool:
        """True if finished batches wait or are in flight."""
        return bool(self._queues)

    def ready(self, queue: PartitionQueue) -> None:
        """Register a queue with a finished batch."""
        self._queues[queue.topic, queue.partition] = queue

    def withdraw(self, queue: PartitionQueue) -> None:
        """Forget the waiting batches of a removed partition; the caller removes them from the queue."""
        if queue.under_way is None:
            self._queues.pop((queue.topic, queue.partition), None)
        self._given_up(queue.waiting)

    @property
    def wake_at_ms(self) -> int | None:
        """The end of the earliest back-off, or the time-out of the oldest batch."""
        if not self._queues:
            return None
        queues = self._queues.values()
        deadlines = [head.created_ms + self._timeout_ms for queue in queues if (head := queue.head) is not None]
        if not self._identity.known:
            return earliest(*deadlines)
        return earliest(*deadlines, *(queue.not_before_ms for queue in queues if queue.under_way is None))

    def pump(self, now_ms: int) -> None:
        """Send one batch of each queue that may send, grouped by leader."""
        if not self._queues or not self._identity.known:
            return
        nodes: dict[int, list[tuple[TopicIdPartition, PartitionQueue]]] = {}
        for queue in self._queues.values():
            if not queue.sendable(now_ms):
                continue
            topic = self._metadata.topics.get(queue.topic)
            key = TopicIdPartition(topic.topic_id, queue.partition) if topic else None
            leader = self._metadata.leader(key) if key else NO_LEADER
            if key is None or leader == NO_LEADER:
                self._wait_for_leader(queue, now_ms)
            else:
                nodes.setdefault(leader, []).append((key, queue))
        for node, queues in nodes.items():
            self._send(node, queues, now_ms)

    def _wait_for_leader(self, queue: PartitionQueue, now_ms: int) -> None:
        batch = queue.waiting[0]
        batch.attempts += 1
        queue.not_before_ms = now_ms + self._backoff.delay_ms(batch.attempts)
        self._metadata.want_names((queue.topic,))

    def _send(self, node: int, queues: list[tuple[TopicIdPartition, PartitionQueue]], now_ms: int) -> None:
        topics: dict[tuple[TopicId, str], list[ProduceRequest.Partition]] = {}
        for key, queue in queues:
            batch = queue.waiting.popleft()
            queue.under_way = batch
            if not batch.built:
                self._build(queue, batch)
            partition = ProduceRequest.Partition(index=key.partition, records=batch.encoded)
            topics.setdefault((key.topic_id, queue.topic), []).append(partition)
        request = ProduceRequest(
            transactional_id=self._identity.transactional_id,
            acks=self._acks,
            topics=tuple(
                ProduceRequest.Topic(topic_id=topic_id, name=name, partitions=tuple(partitions))
                for (topic_id, name), partitions in topics.items()
            ),
        )
        sent = [(key, queue, queue.under_way) for key, queue in queues]
        self._calls.send(node, request, lambda *answer: self._answered(sent, *answer))
        if self._acks == 0:  # there is no response; sent records count as written
            for _, queue, under_way in sent:
                assert under_way is not None
                self._settle(queue, under_way, -1, None, now_ms)

    def _build(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        identity = self._identity
        batch.build(
            compression=self._compression,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            sequence=queue.sequence if identity.idempotent else NO_SEQUENCE,
            transactional=identity.transactional_id is not None,
        )
        queue.sequence = (queue.sequence + batch.record_count) & MAX_SEQUENCE
        identity.wrote = True

    def _answered(
        self,
        sent: list[tuple[TopicIdPartition, PartitionQueue, ProducerBatch | None]],
        response: Response | None,
        error: Errors,
        now_ms: int,
    ) -> None:
        assert response is None or isinstance(response, ProduceResponse)
        results = {
            (topic.name or topic.topic_id, partition.index): partition  # by name before version 13
            for topic in (response.responses if response else ())
            for partition in topic.partitions
        }
        for key, queue, batch in sent:
            if batch is None or queue.under_way is not batch:  # purged, or acks=0
                continue
            result = results.get((key.topic_id, key.partition)) or results.get((queue.topic, key.partition))
            failure = result.error_code if result else error or Errors.UNKNOWN_SERVER_ERROR
            if failure.retriable:
                moved = result is not None and self._metadata.moved(key, result.current_leader)
                self._retry(queue, batch, now_ms, at_once=moved)
            else:
                text = result.error_message if result else self._calls.reason or None
                offset = result.base_offset if result and not failure else -1
                self._settle(queue, batch, offset, KafkaError(failure, text) if failure else None, now_ms)

    def _retry(self, queue: PartitionQueue, batch: ProducerBatch, now_ms: int, *, at_once: bool) -> None:
        """Return the batch to the head of the queue. Any retriable failure may mean that the leader has moved; if the
        response names the new leader, the retry is immediate."""
        queue.under_way = None
        queue.waiting.appendleft(batch)
        if not at_once:
            self._wait_for_leader(queue, now_ms)

    def _settle(
        self, queue: PartitionQueue, batch: ProducerBatch, base_offset: int, error: KafkaError | None, now_ms: int
    ) -> None:
        """Report the result of the batch at the queue's head, then remove it."""
        self._on_settled(queue, batch, base_offset, error, now_ms)
        if queue.under_way is batch:
            queue.under_way = None
        else:
            queue.waiting.popleft()
        if not queue.waiting and queue.under_way is None:
            self._queues.pop((queue.topic, queue.partition), None)
        if error is not None:
            self._given_up((batch,))

    def _given_up(self, batches: Iterable[ProducerBatch]) -> None:
        """Raise the epoch if a dropped batch has a sequence: a broker may lack it, which leaves a gap."""
        if any(batch.built for batch in batches):
            self._identity.bump()

    def expire_batches(self, now_ms: int) -> None:
        """Fail batches that are too old, also those in flight: a later response to them is ignored."""
        for queue in list(self._queues.values()):
            while (head := queue.head) is not None and now_ms - head.created_ms >= self._timeout_ms:
                self._settle(queue, head, -1, timed_out(self._timeout_ms), now_ms)

    def fail(self, error: KafkaError, now_ms: int) -> None:
        """Fail all waiting batches: the producer can send no more."""
        for queue in list(self._queues.values()):
            while queue.under_way is None and queue.waiting:
                self._settle(queue, queue.waiting[0], -1, error, now_ms)

    def purge(self, now_ms: int, *, in_queue: bool, in_flight: bool) -> None:
        """Drop waiting batches, batches in flight, or both."""
        for queue in list(self._queues.values()):
            if in_queue:
                error = KafkaError(KafkaError._PURGE_QUEUE, "purged in queue")
                waiting = list(queue.waiting)
                while queue.waiting:
                    self._on_settled(queue, queue.waiting[0], -1, error, now_ms)
                    queue.waiting.popleft()
                self._given_up(waiting)
            if in_flight and queue.under_way is not None:
                error = KafkaError(KafkaError._PURGE_INFLIGHT, "purged in flight")
                self._settle(queue, queue.under_way, -1, error, now_ms)
            if not queue.waiting and queue.under_way is None:
                self._queues.pop((queue.topic, queue.partition), None)
