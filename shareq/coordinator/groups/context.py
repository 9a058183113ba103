"""The state that all modules of the group coordinator share: the image, the shards, the deadlines."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from shareq.coordinator.groups.deadlines import DeadlineKey, GroupDeadlines
from shareq.coordinator.groups.metadata_hash import MetadataHash
from shareq.coordinator.groups.shard import GroupShard
from shareq.coordinator.runtime import ShardRuntime
from shareq.coordinator.share_group.attempts import InitializationAttempts
from shareq.coordinator.share_group.experiments.partition_weights import PartitionWeights
from shareq.coordinator.turn import NO_PARTITION, BackgroundTurn, Turn, no_result
from shareq.model.errors import Errors
from shareq.model.events import Event
from shareq.model.ids import GROUP_METADATA_TOPIC, partition_for
from shareq.model.image import ClusterImage

_partition_for = lru_cache(maxsize=1 << 14)(partition_for)


class Context:
    """Shared by all modules of one coordinator, which have no state of their own."""

    def __init__(self, runtime: ShardRuntime[GroupShard], rng: random.Random, *, traced: bool) -> None:
        self.runtime = runtime
        self.rng = rng
        self.traced = traced
        self.image = ClusterImage()
        self.deadlines = GroupDeadlines()
        self.metadata_hash = MetadataHash()
        self.initializations = InitializationAttempts()
        self.weights = PartitionWeights()

    @property
    def now_ms(self) -> int:
        """The time of the message that is being handled."""
        return self.runtime.now_ms

    @property
    def day_ms(self) -> int:
        """The time of day, for records."""
        return self.runtime.day_ms

    # ---- shards ------------------------------------------------------------------------------------------------------

    def partition_count(self) -> int:
        """The partition count of the coordinator's topic; 0 until it exists."""
        topic = self.image.topics.get(GROUP_METADATA_TOPIC)
        return len(topic.partitions) if topic else 0

    def partition_of(self, group_id: str) -> int:
        """The partition of the coordinator's topic that holds the group; NO_PARTITION until the topic exists."""
        count = self.partition_count()
        return _partition_for(group_id, count) if count else NO_PARTITION

    def keeps(self, group_id: str) -> bool:
        """True if this broker coordinates the group now: its shard is loaded here."""
        return not self.runtime.refusal(self.partition_of(group_id))

    def shard_of(self, group_id: str) -> GroupShard | None:
        """The shard of the group, if this broker coordinates the group now; else None."""
        return self.runtime.shard(self.partition_of(group_id))

    def turn(self, group_id: str, failure: Callable[[Errors], Any]) -> Turn:
        """A turn at the shard of the group."""
        return Turn(self.partition_of(group_id), failure)

    def background_turn(self, group_id: str, failure: Callable[[Errors], Any] = no_result) -> BackgroundTurn:
        """A turn at the shard of the group, of a workflow that no client waits for."""
        return BackgroundTurn(self.partition_of(group_id), failure)

    def turn_when_due(self, due: DeadlineKey) -> BackgroundTurn:
        """A turn for the workflow of a deadline. If the shard is not active, the deadline is removed: the next
        coordinator of the group starts its deadlines anew when it loads the group."""

        def ended(error: Errors) -> None:
            del error
            self.deadlines.forget(due)

        return BackgroundTurn(self.partition_of(due.group_id), ended)

    def is_over(self, due: DeadlineKey) -> bool:
        """True if the deadline has passed and was not restarted."""
        return self.deadlines.is_over(due, self.runtime.now_ms)

    def trace(self, *events: Event) -> None:
        """Append events to the journal, if there is one."""
        if self.traced:
            self.runtime.effects += events

    def trace_all(self, events: Iterable[Event]) -> None:
        """Append events to the journal; without a journal, `events` is not evaluated."""
        if self.traced:
            self.runtime.effects += events
