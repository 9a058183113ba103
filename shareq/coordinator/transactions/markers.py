"""Writes the markers of decided transactions to all their partitions, then completes the transactions.

Markers of partitions whose leader is unavailable or has moved are sent again; partitions of deleted topics need none.
Source: Kafka's TransactionMarkerChannelManager.
"""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.runtime.turn import Append, BackgroundTurn, Retry
from shareq.coordinator.transactions.context import TransactionContext
from shareq.coordinator.transactions.records import Transaction, by_topic, encode_transaction
from shareq.coordinator.transactions.state import TransactionShard
from shareq.coordinator.transactions.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.image import NO_LEADER, ClusterImage
from shareq.model.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from shareq.model.records import NO_PRODUCER_ID, CoordinatorRecord
from shareq.model.workflow import Pause, Promise, Reply, Send, Workflow

RETRY_BACKOFF_MS = 100

_SETTLED = frozenset({Errors.NONE, Errors.INVALID_PRODUCER_EPOCH})
"""The errors after which a partition needs no marker; INVALID_PRODUCER_EPOCH: it has a newer epoch of the producer."""


class Ending:
    """One decided transaction whose markers are being written, by one workflow for each leader.

    `written` resolves to True when all markers are written, to False if another coordinator writes them.
    """

    __slots__ = ("_context", "_coordinator_epoch", "_is_over", "_open", "shard", "transaction", "written")

    def __init__(self, context: TransactionContext, shard: int, transaction: Transaction) -> None:
        self._context = context
        self._coordinator_epoch = context.epochs[shard]
        self._is_over = False
        self._open = 0
        self.shard = shard
        self.transaction = transaction
        self.written: Promise[bool] = Promise()

    def give_up(self) -> None:
        """Stop: another broker coordinates the transaction now, and sends its markers again from the recorded
        decision."""
        self._is_over = True
        self.written.keep(False)

    def write_markers(self, partitions: Iterable[TopicPartition]) -> Workflow[None]:
        """Send markers until every partition has one. Partitions of other leaders get a workflow of their own."""
        self._open += 1
        waiting = frozenset(partitions)
        while by_leader := self._by_leader(waiting):
            *others, (leader, waiting) = sorted(by_leader.items())
            for _, elsewhere in others:
                self._context.runtime.start(self.write_markers(elsewhere))
            if leader != NO_LEADER:
                waiting = self._failed((yield Send(leader, self._request(waiting))), waiting)
            if waiting:
                yield Pause(RETRY_BACKOFF_MS)
        self._open -= 1
        if not self._open:
            self.written.keep(True)

    def _by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, frozenset[TopicPartition]]:
        """The existing partitions by leader; none after `give_up`."""
        found: dict[int, set[TopicPartition]] = {}
        for at in () if self._is_over else partitions:
            leader = _leader(at, self._context.image)
            if leader is not None:
                found.setdefault(leader, set()).add(at)
        return {leader: frozenset(led) for leader, led in found.items()}

    def _request(self, partitions: Iterable[TopicPartition]) -> WriteTxnMarkersRequest:
        transaction = self.transaction
        marker = WriteTxnMarkersRequest.Marker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transaction_result=transaction.state is TransactionState.PREPARE_COMMIT,
            topics=tuple(
                WriteTxnMarkersRequest.Topic(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(partitions)
            ),
            coordinator_epoch=self._coordinator_epoch,
        )
        return WriteTxnMarkersRequest(markers=(marker,))

    def _failed(self, reply: Reply, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """The partitions whose marker must be sent again; none if a newer coordinator has fenced this one."""
        results = _results(reply)
        if Errors.TRANSACTION_COORDINATOR_FENCED in results.values():
            self.give_up()
            return frozenset()
        return frozenset(at for at in partitions if results.get(at, Errors.NETWORK_EXCEPTION) not in _SETTLED)


def _leader(at: TopicPartition, image: ClusterImage) -> int | None:
    """The leader of the partition; None if the partition does not exist."""
    topic = image.topics.get(at.topic)
    if topic is None or at.partition >= len(topic.partitions):
        return None
    return topic.partitions[at.partition].leader


def _results(reply: Reply) -> dict[TopicPartition, Errors]:
    """The error of each partition; empty if there was no response."""
    response = reply.response
    if not isinstance(response, WriteTxnMarkersResponse):
        return {}
    return {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    }


class Endings:
    """The decided transactions of one coordinator."""

    def __init__(self, context: TransactionContext) -> None:
        self._context = context
        self._endings: set[Ending] = set()

    def start(self, decided: Transaction) -> None:
        """Start the end of a transaction whose decision is recorded."""
        self._context.runtime.start(self.end(self._context.partition_of(decided.transactional_id), decided))

    def resigned(self, shard: int) -> None:
        """Give up the endings of a shard that this broker no longer leads."""
        for ending in [ending for ending in self._endings if ending.shard == shard]:
            ending.give_up()

    def end(self, shard: int, decided: Transaction) -> Workflow[None]:
        """Write the markers, then complete the transaction. A failed append is repeated until the shard resigns."""
        ending = Ending(self._context, shard, decided)
        self._endings.add(ending)
        try:
            self._context.runtime.start(ending.write_markers(decided.partitions))
            if (yield ending.written):
                state = yield BackgroundTurn(shard)
                while (yield Append(completion(decided, state, self._context.day_ms))):
                    state = yield Retry()
        finally:
            self._endings.discard(ending)


def completion(decided: Transaction, shard: TransactionShard, now_ms: int) -> list[CoordinatorRecord]:
    """The record that completes the transaction; none if the state is no longer `decided`: an earlier append that was
    reported as failed may have been committed."""
    known = shard.transactions.get(decided.transactional_id)
    if known != decided:
        return []
    producer_id, producer_epoch = known.next_pair()
    completed = known._replace(
        state=TRANSITIONS[known.state, TransactionEvent.MARKED],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        previous_producer_id=known.previous_producer_id if producer_id == known.producer_id else known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        last_update_ms=now_ms,
    )
    return [encode_transaction(completed)]
