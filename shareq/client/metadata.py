"""The topics that this client needs, and the leaders of their partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shareq.client.calls import Backoff, Calls
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.messages.base import Response
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.share_fetch import LeaderIdAndEpoch

NO_LEADER = -1
CALM_MS = 5000
"""A refresh so long after the last one starts a new series of back-offs."""


class Topic:
    """A topic: its leaders by partition index, (node, leader epoch) each."""

    __slots__ = ("leaders", "name", "topic_id")

    def __init__(self, answer: MetadataResponse.Topic) -> None:
        assert answer.name is not None
        self.name = answer.name
        self.topic_id = answer.topic_id
        partitions = sorted(answer.partitions, key=lambda p: p.partition_index)
        self.leaders = [(p.leader_id, p.leader_epoch) for p in partitions]


class Metadata:
    """A cache that is refreshed when a topic is wanted; it never polls by itself.

    `want_*` may be called as often as one likes: refreshes keep a growing distance from each other, so that an answer
    that does not help cannot make a client spin. `on_update()` follows every answer and every error that is final.
    """

    def __init__(self, calls: Calls, backoff: Backoff, on_update: Callable[[], None]) -> None:
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[TopicId, Topic] = {}
        self.errors: dict[str, Errors] = {}
        """Why a wanted name is unknown."""
        self.reason = ""
        """Why the last refresh has failed for good, in words."""
        self._calls = calls
        self._backoff = backoff
        self._on_update = on_update
        self._names: set[str] = set()
        self._ids: set[TopicId] = set()
        self._under_way = False
        self._series = 0
        self._answered_at_ms: int | None = None
        self._not_before_ms = 0

    def want_names(self, names: Iterable[str]) -> None:
        self._names.update(names)

    def want_ids(self, topic_ids: Iterable[TopicId]) -> None:
        self._ids.update(topic_ids)

    def leader(self, key: TopicIdPartition) -> int:
        """The node that leads the partition, NO_LEADER where unknown or none is alive."""
        topic = self.by_id.get(key.topic_id)
        if topic is None or key.partition >= len(topic.leaders):
            return NO_LEADER
        return topic.leaders[key.partition][0]

    def moved(self, key: TopicIdPartition, leader: LeaderIdAndEpoch) -> bool:
        """Use a hint to a new leader (KIP-951). False if the hint is not newer: then metadata must be requested."""
        topic = self.by_id.get(key.topic_id)
        if topic is None or key.partition >= len(topic.leaders):
            return False
        if leader.leader_epoch <= topic.leaders[key.partition][1]:
            return False
        topic.leaders[key.partition] = (leader.leader_id, leader.leader_epoch)
        return True

    # ---- requests ----------------------------------------------------------------------------------------------------

    @property
    def wake_at_ms(self) -> int | None:
        return self._not_before_ms if (self._names or self._ids) and not self._under_way else None

    def pump(self, now_ms: int) -> None:
        """Request what is wanted, by id before by name: a request can only do one of the two."""
        if self._under_way or now_ms < self._not_before_ms:
            return
        if self._ids:
            topics = tuple(MetadataRequest.Topic(topic_id=topic_id) for topic_id in sorted(self._ids))
            self._ids.clear()
        elif self._names:
            topics = tuple(MetadataRequest.Topic(name=name) for name in sorted(self._names))
            self._names.clear()
        else:
            return
        self._under_way = True
        self._calls.send(ANY_NODE, MetadataRequest(topics=topics), lambda *answer: self._answered(topics, *answer))

    def _answered(
        self, topics: tuple[MetadataRequest.Topic, ...], response: Response | None, error: Errors, now_ms: int
    ) -> None:
        self._under_way = False
        if self._answered_at_ms is None or now_ms - self._answered_at_ms > CALM_MS:
            self._series = 0
        self._series += 1
        self._answered_at_ms = now_ms
        self._not_before_ms = now_ms + self._backoff.delay_ms(self._series)
        if response is None and error.retriable:
            for topic in topics:
                self._add(topic)
            return
        if response is None:  # no retry mends this: the request cannot be encoded, or the broker is too old
            self.reason = self._calls.reason
            self.errors |= {topic.name: error for topic in topics if topic.name is not None}
            self._on_update()
            return
        assert isinstance(response, MetadataResponse)
        self.reason = ""
        for answer in response.topics:
            self._learn(answer)
        self._on_update()

    def _add(self, topic: MetadataRequest.Topic) -> None:
        if topic.name is None:
            self._ids.add(topic.topic_id)
        else:
            self._names.add(topic.name)

    def _learn(self, answer: MetadataResponse.Topic) -> None:
        if answer.error_code:
            if answer.name is not None:
                self.errors[answer.name] = answer.error_code
                self._drop(self.topics.get(answer.name))
            else:
                self._drop(self.by_id.get(answer.topic_id))
            return
        topic = Topic(answer)
        self._drop(self.topics.get(topic.name))
        self.errors.pop(topic.name, None)
        self.topics[topic.name] = self.by_id[topic.topic_id] = topic

    def _drop(self, topic: Topic | None) -> None:
        if topic is not None:
            del self.topics[topic.name], self.by_id[topic.topic_id]
