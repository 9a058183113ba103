"""The state that all modules of the group coordinator share: the image, the shards, the deadlines; and the hooks of a
group type, its reactions to loading, resignation, changes of metadata, commits and deletion."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from shareq.coordinator.group.deadlines import OFFSET_EXPIRY, DeadlineKey, GroupDeadlines
from shareq.coordinator.group.group import GroupType
from shareq.coordinator.group.metadata_hash import MetadataHash
from shareq.coordinator.group.owned import Owned
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.runtime.turn import NO_PARTITION, BackgroundTurn, Turn, no_result
from shareq.model.errors import Errors
from shareq.model.events import Event
from shareq.model.ids import GROUP_METADATA_TOPIC, partition_for
from shareq.model.image import ClusterImage
from shareq.model.workflow import Workflow

_partition_for = lru_cache(maxsize=1 << 14)(partition_for)


class Context(Owned):
    """Shared by all modules of one coordinator, which have no state of their own."""

    def __init__(
        self,
        runtime: ShardRuntime[GroupShard],
        rng: random.Random,
        hooks: Mapping[GroupType, GroupHooks],
        *,
        traced: bool,
    ) -> None:
        super().__init__()
        self.runtime = runtime
        self.rng = rng
        self.hooks = hooks
        self.traced = traced
        self.image = ClusterImage()
        self.deadlines = GroupDeadlines()
        self.metadata_hash = MetadataHash()

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

    def schedule_expiry(self) -> None:
        """Start the deadline of the next check for expired offsets, unless it is running."""
        if OFFSET_EXPIRY not in self.deadlines:
            interval_ms: int = self.image.broker_config["offsets.retention.check.interval.ms"]
            self.deadlines.restart(OFFSET_EXPIRY, self.now_ms + interval_ms)

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


# ---- what a room does when something happens to its groups -----------------------------------------------------------


class TopicsChanged(NamedTuple):
    """The difference between two images: names of topics that were created, changed or deleted. `affects_all`: True if
    racks or configurations changed, which affects all groups."""

    names: frozenset[str]
    affects_all: bool


def _nothing_to_load(context: Context, group: Any) -> Iterable[Workflow[object]]:
    del context, group
    return ()


def _nothing_to_do(context: Context, group: Any) -> None:
    del context, group


def _nothing_changed(context: Context, group: Any, change: TopicsChanged) -> None:
    del context, group, change


def _nothing_configured(context: Context, group: Any, before: ClusterImage) -> None:
    del context, group, before


def _not_interested(context: Context, group: Any, member_id: str) -> None:
    del context, group, member_id


def _nothing_before(context: Context, group: Any) -> Workflow[Errors]:
    del context, group
    return Errors.NONE
    yield


class GroupHooks(NamedTuple):
    """Called for each group of the type, with `Any` being its class.

    `loaded`: the shard has been loaded; the returned workflows have the first turns. `resigned`: another broker leads
    the shard; requests that wait at the group are answered. `topics_changed`: the metadata image has changed.
    `configured`: configurations of the brokers or of groups have changed since the image that is passed. `committed`: a
    member has committed offsets, outside of a transaction. `before_delete`: the group will be deleted unless there is
    an error; runs in a turn.
    """

    loaded: Callable[[Context, Any], Iterable[Workflow[object]]] = _nothing_to_load
    resigned: Callable[[Context, Any], None] = _nothing_to_do
    topics_changed: Callable[[Context, Any, TopicsChanged], None] = _nothing_changed
    configured: Callable[[Context, Any, ClusterImage], None] = _nothing_configured
    committed: Callable[[Context, Any, str], None] = _not_interested
    before_delete: Callable[[Context, Any], Workflow[Errors]] = _nothing_before
