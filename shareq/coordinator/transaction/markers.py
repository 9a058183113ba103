"""Decided transactions on their way to completion: markers to the leaders of all partitions, until each has its own.

A leader that is dead or has moved is asked again; a partition whose topic is gone needs no marker. When the last marker
is written the transaction is completed. Source: Kafka's TransactionMarkerChannelManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shareq.coordinator.transaction.records import Transaction, by_topic
from shareq.coordinator.transaction.states import TransactionState
from shareq.model.actor import Answer, Call, Effect
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.image import NO_LEADER, ClusterImage
from shareq.model.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse

RETRY_BACKOFF_MS = 100

_SETTLED = frozenset({Errors.NONE, Errors.INVALID_PRODUCER_EPOCH})
"""A partition that knows the producer at a newer epoch is done with this transaction."""


class Ending:
    """One decided transaction of one shard: the partitions that `wait` for a call, and how many `calls` are open."""

    __slots__ = ("calls", "coordinator_epoch", "shard", "transaction", "wait")

    def __init__(self, shard: int, coordinator_epoch: int, transaction: Transaction) -> None:
        self.shard = shard
        self.coordinator_epoch = coordinator_epoch
        self.transaction = transaction
        self.wait = set(transaction.partitions)
        self.calls = 0

    def request(self, partitions: Iterable[TopicPartition]) -> WriteTxnMarkersRequest:
        transaction = self.transaction
        marker = WriteTxnMarkersRequest.Marker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transaction_result=transaction.state is TransactionState.PREPARE_COMMIT,
            topics=tuple(
                WriteTxnMarkersRequest.Topic(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(partitions)
            ),
            coordinator_epoch=self.coordinator_epoch,
        )
        return WriteTxnMarkersRequest(markers=(marker,))


class Markers:
    """All endings of one broker. `finish(ending, now_ms)` is called when all markers of one are written."""

    def __init__(self, next_id: Callable[[], int], finish: Callable[[Ending, int], list[Effect]]) -> None:
        self._next_id = next_id
        self._finish = finish
        self._image = ClusterImage()
        self._endings: set[Ending] = set()
        self._late: dict[Ending, int] = {}
        self._calls: dict[int, tuple[Ending, frozenset[TopicPartition]]] = {}

    @property
    def wake_at_ms(self) -> int | None:
        """When the next ending that did not get on is tried again."""
        return min(self._late.values(), default=None)

    def begin(self, ending: Ending, now_ms: int) -> list[Effect]:
        """A decision is stored: let it be known."""
        self._endings.add(ending)
        return self._send(ending, now_ms)

    def retry(self, ending: Ending, now_ms: int) -> None:
        """Something went wrong: try again, after a while."""
        self._late[ending] = now_ms + RETRY_BACKOFF_MS

    def done(self, ending: Ending) -> None:
        self._endings.discard(ending)
        self._late.pop(ending, None)

    def resigned(self, shard: int) -> None:
        """Another broker coordinates these: it finds the decisions in the log and sends the markers anew."""
        for ending in [e for e in self._endings if e.shard == shard]:
            self.done(ending)

    def image_changed(self, image: ClusterImage, now_ms: int) -> list[Effect]:
        """Leaders may have come: nobody waits out a back-off."""
        self._image = image
        return [effect for ending in list(self._late) for effect in self._send(ending, now_ms)]

    def tick(self, now_ms: int) -> list[Effect]:
        due = [ending for ending, due_ms in self._late.items() if due_ms <= now_ms]
        return [effect for ending in due for effect in self._send(ending, now_ms)]

    def _send(self, ending: Ending, now_ms: int) -> list[Effect]:
        """Ask the leaders of the partitions that wait; finish where none waits and no call is open."""
        self._late.pop(ending, None)
        nodes: dict[int, set[TopicPartition]] = {}
        for at in list(ending.wait):
            leader = self._leader(at)
            if leader is None:
                ending.wait.discard(at)
            elif leader != NO_LEADER:
                nodes.setdefault(leader, set()).add(at)
        effects: list[Effect] = []
        for node, partitions in sorted(nodes.items()):
            call_id = self._next_id()
            self._calls[call_id] = ending, frozenset(partitions)
            ending.wait -= partitions
            ending.calls += 1
            effects.append(Call(call_id, node, ending.request(partitions)))
        if ending.wait:
            self.retry(ending, now_ms)
        elif not ending.calls:
            effects += self._finish(ending, now_ms)
        return effects

    def _leader(self, at: TopicPartition) -> int | None:
        """Who leads the partition; None where there is no such partition any more."""
        topic = self._image.topics.get(at.topic)
        if topic is None or at.partition >= len(topic.partitions):
            return None
        return topic.partitions[at.partition].leader

    def answered(self, answer: Answer, now_ms: int) -> list[Effect]:
        """A leader has written its markers, or some of them, or broke away. Answers to others are none of ours."""
        found = self._calls.pop(answer.id, None)
        if found is None or found[0] not in self._endings:
            return []
        ending, partitions = found
        ending.calls -= 1
        results = _results(answer)
        if Errors.TRANSACTION_COORDINATOR_FENCED in results.values():  # a newer coordinator is at work
            self.done(ending)
            return []
        failed = {at for at in partitions if results.get(at, Errors.NETWORK_EXCEPTION) not in _SETTLED}
        ending.wait |= failed
        if failed:
            self.retry(ending, now_ms)
        elif not ending.wait and not ending.calls:
            return self._finish(ending, now_ms)
        return []


def _results(answer: Answer) -> dict[TopicPartition, Errors]:
    """What became of each partition; nothing where there was no answer."""
    response = answer.response
    if not isinstance(response, WriteTxnMarkersResponse):
        return {}
    return {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
