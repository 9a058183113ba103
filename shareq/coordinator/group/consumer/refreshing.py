"""When the regular expressions of a group are resolved again, and what follows from it.

All of a group are resolved together, so that one change of topics makes one rebalance. Source: Kafka's
GroupMetadataManager, "maybeUpdateRegularExpressions".
"""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.consumer.expressions import BATCH_INTERVAL_MS, has_new_match, resolve
from shareq.coordinator.group.consumer.records import Metadata, encode
from shareq.coordinator.group.consumer.state import ConsumerGroup
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.kind import TopicsChanged
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.shard import Outcome
from shareq.model.actor import Effect
from shareq.model.configs import INT_MAX
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped
from shareq.model.image import ClusterImage


def needs_refresh(group: ConsumerGroup, image: ClusterImage, now_ms: int) -> bool:
    """Whether the group has expressions that are not resolved yet, may match new topics, or were resolved long ago."""
    if not group.regex_counts:
        return False
    last_ms = max((resolved.timestamp for resolved in group.expressions.values()), default=None)
    if last_ms is None:
        return True
    if now_ms <= last_ms + BATCH_INTERVAL_MS:
        return False
    interval_ms: int = image.broker_config["group.consumer.regex.refresh.interval.ms"]
    unresolved = len(group.regex_counts) != len(group.expressions)
    return unresolved or group.topics_are_new or now_ms > last_ms + interval_ms


def refresh_expressions(context: Context, group_id: str, now_ms: int) -> list[Effect]:
    """Resolve all expressions of the group; the group epoch is raised where they match other topics than before."""

    def compute(shard: GroupShard, now_ms: int) -> Outcome[Errors]:
        group, image = shard.find(ConsumerGroup, group_id), context.image
        if group is None or not needs_refresh(group, image, now_ms):
            return Outcome(Errors.NONE)
        resolved = {regex: resolve(regex, image, now_ms) for regex in sorted(group.regex_counts)}
        records = [encode(group_id, value, regex) for regex, value in resolved.items()]
        names = frozenset(group.topic_counts).union(*(value.topics for value in resolved.values()))
        metadata_hash = context.metadata_hash.of(names, image)
        changed = any(set(value.topics) != set(group.resolved(regex)) for regex, value in resolved.items())
        epoch = group.group_epoch + (changed or metadata_hash != group.metadata_hash)
        if epoch != group.group_epoch:
            records.append(encode(group_id, Metadata(epoch, metadata_hash)))

        def after(now_ms: int) -> Iterable[Effect]:
            group = shard.find(ConsumerGroup, group_id)
            if group and context.image is image:
                group.topics_are_new = False
                group.refresh_at_ms = now_ms + INT_MAX
            return context.trace((GroupEpochBumped(group_id, epoch, "expressions resolved"),)) if bumped else ()

        bumped = epoch != group.group_epoch
        return Outcome(Errors.NONE, records, after)

    return context.attempt(group_id, compute, now_ms)


def topics_changed(context: Context, group: ConsumerGroup, change: TopicsChanged, now_ms: int) -> list[Effect]:
    """Groups whose topics changed, or that may match new ones, look again at their next heartbeat."""
    del now_ms
    if change.everybody or any(group.subscribes(name) for name in change.names):
        group.refresh_at_ms = 0
    existing = [name for name in change.names if name in context.image.topics]
    if any(has_new_match(regex, group.resolved(regex), existing) for regex in group.regex_counts):
        group.topics_are_new = True
    return []
