"""The partitions to fetch, by node: the assignment by leader, without topics outside the subscription and without
partitions that have just failed."""

from __future__ import annotations

from typing import NamedTuple

from shareq.client.calls import Backoff, earliest
from shareq.client.metadata import NO_LEADER, Metadata
from shareq.consumer.session_handler import NO_PARTITIONS
from shareq.model.ids import TopicIdPartition

CALM_MS = 5000
"""Time without an error after which the back-off of a partition starts from the beginning."""


class BlockedPartition(NamedTuple):
    """A partition that is not fetched for a time, after an error."""

    until_ms: int
    attempts: int


class FetchPlan:
    """The cost follows the assignment, so the plan is computed only when it is `stale` or a block ends."""

    def __init__(self, metadata: Metadata, backoff: Backoff) -> None:
        self.stale = False
        self.topics: frozenset[str] = frozenset()
        self.wake_at_ms: int | None = None
        self._metadata = metadata
        self._backoff = backoff
        self._assigned: frozenset[TopicIdPartition] = NO_PARTITIONS
        self._blocked: dict[TopicIdPartition, BlockedPartition] = {}

    def subscribe(self, topics: frozenset[str]) -> None:
        """Exclude partitions of other topics at once: until the coordinator unassigns them, each fetch would acquire
        and release their records, and each release counts as a delivery attempt."""
        self.topics = topics
        self.stale = True

    def assign(self, assigned: frozenset[TopicIdPartition]) -> None:
        self._assigned = assigned
        self.stale = True

    def block(self, key: TopicIdPartition, now_ms: int) -> None:
        """Exclude the partition for a time that grows with each failure. The session forgets it and later adds it as a
        new partition."""
        before = self._blocked.get(key)
        attempts = before.attempts + 1 if before and now_ms - before.until_ms < CALM_MS else 1
        self._blocked[key] = BlockedPartition(now_ms + self._backoff.delay_ms(attempts), attempts)
        self.stale = True

    def due(self, now_ms: int) -> bool:
        return self.stale or (self.wake_at_ms is not None and self.wake_at_ms <= now_ms)

    def by_node(self, now_ms: int) -> dict[int, frozenset[TopicIdPartition]]:
        """The partitions to fetch from each node. Requests metadata of partitions without a known leader."""
        self.stale = False
        self.wake_at_ms = None
        nodes: dict[int, set[TopicIdPartition]] = {}
        for key in sorted(self._assigned):  # the order of a set of strings differs between processes
            topic = self._metadata.by_id.get(key.topic_id)
            if topic is not None and topic.name not in self.topics:
                continue
            leader = self._metadata.leader(key)
            block = self._blocked.get(key)
            if leader == NO_LEADER:
                self._metadata.want_ids((key.topic_id,))
            elif block is not None and block.until_ms > now_ms:
                self.wake_at_ms = earliest(self.wake_at_ms, block.until_ms)
            else:
                nodes.setdefault(leader, set()).add(key)
        return {node: frozenset(partitions) for node, partitions in nodes.items()}
