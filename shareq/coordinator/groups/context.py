"""What the parts of the group coordinator share: the image, the shards, the deadlines."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from shareq.coordinator.groups.deadlines import Deadlines, Due
from shareq.coordinator.groups.metadata_hash import MetadataHash
from shareq.coordinator.groups.shard import GroupShard
from shareq.coordinator.runtime import ShardRuntime
from shareq.coordinator.turn import NO_PARTITION, BackgroundTurn, Turn, no_result
from shareq.model.errors import Errors
from shareq.model.events import Event
from shareq.model.ids import GROUP_METADATA_TOPIC, partition_for
from shareq.model.image import ClusterImage

_partition_for = lru_cache(maxsize=1 << 14)(partition_for)


class Context:
    """Shared by all parts of one coordinator; every part gets it and keeps nothing itself."""

    def __init__(self, runtime: ShardRuntime[GroupShard], rng: random.Random, *, traced: bool) -> None:
        self.runtime = runtime
        self.rng = rng
        self.traced = traced
        self.image = ClusterImage()
        self.deadlines = Deadlines()
        self.metadata_hash = MetadataHash()

    @property
    def now_ms(self) -> int:
        """The time of the message that is being handled."""
        return self.runtime.now_ms

    # ---- shards ------------------------------------------------------------------------------------------------------

    def partition_count(self) -> int:
        """How many partitions the coordinator's topic has; 0 as long as it does not exist."""
        topic = self.image.topics.get(GROUP_METADATA_TOPIC)
        return len(topic.partitions) if topic else 0

    def partition_of(self, group_id: str) -> int:
        """The partition of the coordinator's topic that holds the group; NO_PARTITION as long as there is no topic."""
        count = self.partition_count()
        return _partition_for(group_id, count) if count else NO_PARTITION

    def keeps(self, group_id: str) -> bool:
        """True if this broker keeps the group now: its shard is loaded here."""
        return not self.runtime.refusal(self.partition_of(group_id))

    def shard_of(self, group_id: str) -> GroupShard | None:
        """The committed state around the group, where this broker keeps it now."""
        return self.runtime.shard(self.partition_of(group_id))

    def turn(self, group_id: str, failure: Callable[[Errors], Any]) -> Turn:
        """A turn at the shard of the group."""
        return Turn(self.partition_of(group_id), failure)

    def background_turn(self, group_id: str, failure: Callable[[Errors], Any] = no_result) -> BackgroundTurn:
        """A turn at the shard of the group, of a workflow that no client waits for."""
        return BackgroundTurn(self.partition_of(group_id), failure)

    def turn_when_due(self, due: Due) -> BackgroundTurn:
        """A turn for what a deadline leads to. Where it cannot be had the deadline is forgotten: the coordinator that
        loads the group next begins its deadlines anew."""

        def ended(error: Errors) -> None:
            del error
            self.deadlines.forget(due)

        return BackgroundTurn(self.partition_of(due.group_id), ended)

    def is_over(self, due: Due) -> bool:
        """True if the deadline has passed, and has not been put off since."""
        return self.deadlines.is_over(due, self.runtime.now_ms)

    def trace(self, *events: Event) -> None:
        """Put events into the journal, where there is one."""
        if self.traced:
            self.runtime.effects += events

    def trace_all(self, events: Iterable[Event]) -> None:
        """Put events into the journal; they are made only where there is one."""
        if self.traced:
            self.runtime.effects += events
