"""Batches on their way: one request a node, at most one batch a partition, retries until the record is too old."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shareq.client.calls import Backoff, Calls, earliest
from shareq.client.config import ClientConfig
from shareq.client.metadata import NO_LEADER, Metadata
from shareq.model.errors import Errors, KafkaError
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.messages.base import Response
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.producer.lane import NEVER_MS, Batch, Lane, timed_out
from shareq.producer.transaction import ProducerIdentity

NO_SEQUENCE = -1
MAX_SEQUENCE = (1 << 31) - 1

OnSettled = Callable[[Lane, Batch, int, KafkaError | None, int], None]
"""(lane, batch, base_offset, error, now_ms)."""


class Sender:
    """Knows the lanes that have something to send."""

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
        self._lanes: dict[tuple[str, int], Lane] = {}

    @property
    def busy(self) -> bool:
        """Whether closed batches wait or are under way."""
        return bool(self._lanes)

    def ready(self, lane: Lane) -> None:
        """The lane has a closed batch."""
        self._lanes[lane.topic, lane.partition] = lane

    def withdraw(self, lane: Lane) -> None:
        """Forget the lane's batches that wait, which the caller takes away: their partition is gone."""
        if lane.under_way is None:
            self._lanes.pop((lane.topic, lane.partition), None)
        self._given_up(lane.waiting)

    @property
    def wake_at_ms(self) -> int | None:
        """The end of the earliest back-off, or when the oldest batch is given up."""
        if not self._lanes:
            return None
        lanes = self._lanes.values()
        deadlines = [head.created_ms + self._timeout_ms for lane in lanes if (head := lane.head) is not None]
        if not self._identity.known:
            return earliest(*deadlines)
        return earliest(*deadlines, *(lane.not_before_ms for lane in lanes if lane.under_way is None))

    def pump(self, now_ms: int) -> None:
        """Send one batch of each lane that may, together by leader."""
        if not self._lanes or not self._identity.known:
            return
        nodes: dict[int, list[tuple[TopicIdPartition, Lane]]] = {}
        for lane in self._lanes.values():
            if not lane.sendable(now_ms):
                continue
            topic = self._metadata.topics.get(lane.topic)
            key = TopicIdPartition(topic.topic_id, lane.partition) if topic else None
            leader = self._metadata.leader(key) if key else NO_LEADER
            if key is None or leader == NO_LEADER:
                self._wait_for_leader(lane, now_ms)
            else:
                nodes.setdefault(leader, []).append((key, lane))
        for node, lanes in nodes.items():
            self._send(node, lanes, now_ms)

    def _wait_for_leader(self, lane: Lane, now_ms: int) -> None:
        batch = lane.waiting[0]
        batch.attempts += 1
        lane.not_before_ms = now_ms + self._backoff.delay_ms(batch.attempts)
        self._metadata.want_names((lane.topic,))

    def _send(self, node: int, lanes: list[tuple[TopicIdPartition, Lane]], now_ms: int) -> None:
        topics: dict[tuple[TopicId, str], list[ProduceRequest.Partition]] = {}
        for key, lane in lanes:
            batch = lane.waiting.popleft()
            lane.under_way = batch
            if not batch.built:
                self._build(lane, batch)
            partition = ProduceRequest.Partition(index=key.partition, records=batch.encoded)
            topics.setdefault((key.topic_id, lane.topic), []).append(partition)
        request = ProduceRequest(
            transactional_id=self._identity.transactional_id,
            acks=self._acks,
            topics=tuple(
                ProduceRequest.Topic(topic_id=topic_id, name=name, partitions=tuple(partitions))
                for (topic_id, name), partitions in topics.items()
            ),
        )
        sent = [(key, lane, lane.under_way) for key, lane in lanes]
        self._calls.send(node, request, lambda *answer: self._answered(sent, *answer))
        if self._acks == 0:  # nobody answers; what is sent counts as written
            for _, lane, under_way in sent:
                assert under_way is not None
                self._settle(lane, under_way, -1, None, now_ms)

    def _build(self, lane: Lane, batch: Batch) -> None:
        identity = self._identity
        batch.build(
            compression=self._compression,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            sequence=lane.sequence if identity.idempotent else NO_SEQUENCE,
            transactional=identity.transactional_id is not None,
        )
        lane.sequence = (lane.sequence + batch.record_count) & MAX_SEQUENCE
        identity.wrote = True

    def _answered(
        self,
        sent: list[tuple[TopicIdPartition, Lane, Batch | None]],
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
        for key, lane, batch in sent:
            if batch is None or lane.under_way is not batch:  # purged, or not waited for
                continue
            result = results.get((key.topic_id, key.partition)) or results.get((lane.topic, key.partition))
            failure = result.error_code if result else error or Errors.UNKNOWN_SERVER_ERROR
            if failure.retriable:
                moved = result is not None and self._metadata.moved(key, result.current_leader)
                self._retry(lane, batch, now_ms, at_once=moved)
            else:
                text = result.error_message if result else self._calls.reason or None
                offset = result.base_offset if result and not failure else -1
                self._settle(lane, batch, offset, KafkaError(failure, text) if failure else None, now_ms)

    def _retry(self, lane: Lane, batch: Batch, now_ms: int, *, at_once: bool) -> None:
        """Back to the head of the lane. Any retriable failure may mean that the leader has moved; where the broker has
        named the new one there is nothing to wait for."""
        lane.under_way = None
        lane.waiting.appendleft(batch)
        if not at_once:
            self._wait_for_leader(lane, now_ms)

    def _settle(self, lane: Lane, batch: Batch, base_offset: int, error: KafkaError | None, now_ms: int) -> None:
        """Report the batch at the lane's head, then take it away."""
        self._on_settled(lane, batch, base_offset, error, now_ms)
        if lane.under_way is batch:
            lane.under_way = None
        else:
            lane.waiting.popleft()
        if not lane.waiting and lane.under_way is None:
            self._lanes.pop((lane.topic, lane.partition), None)
        if error is not None:
            self._given_up((batch,))

    def _given_up(self, batches: Iterable[Batch]) -> None:
        """Batches that have a sequence, and that no answer has accounted for, leave a hole in it."""
        if any(batch.built for batch in batches):
            self._identity.bump()

    def give_up(self, now_ms: int) -> None:
        """Fail batches that are too old, also one that is under way: a late answer to it is ignored."""
        for lane in list(self._lanes.values()):
            while (head := lane.head) is not None and now_ms - head.created_ms >= self._timeout_ms:
                self._settle(lane, head, -1, timed_out(self._timeout_ms), now_ms)

    def fail(self, error: KafkaError, now_ms: int) -> None:
        """Nothing can be sent any more."""
        for lane in list(self._lanes.values()):
            while lane.under_way is None and lane.waiting:
                self._settle(lane, lane.waiting[0], -1, error, now_ms)

    def purge(self, now_ms: int, *, in_queue: bool, in_flight: bool) -> None:
        """Give up batches on purpose."""
        for lane in list(self._lanes.values()):
            if in_queue:
                error = KafkaError(KafkaError._PURGE_QUEUE, "purged in queue")
                waiting = list(lane.waiting)
                while lane.waiting:
                    self._on_settled(lane, lane.waiting[0], -1, error, now_ms)
                    lane.waiting.popleft()
                self._given_up(waiting)
            if in_flight and lane.under_way is not None:
                error = KafkaError(KafkaError._PURGE_INFLIGHT, "purged in flight")
                self._settle(lane, lane.under_way, -1, error, now_ms)
            if not lane.waiting and lane.under_way is None:
                self._lanes.pop((lane.topic, lane.partition), None)
