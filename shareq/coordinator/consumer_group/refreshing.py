"""Refreshes the regular expressions of a group.

All expressions of a group are resolved together, so that one change of topics causes one rebalance. Source: Kafka's
GroupMetadataManager, "maybeUpdateRegularExpressions".
"""

from __future__ import annotations

from shareq.coordinator.consumer_group.expressions import BATCH_INTERVAL_MS, has_new_match, resolve
from shareq.coordinator.consumer_group.records import Metadata, encode
from shareq.coordinator.consumer_group.state import ConsumerGroup
from shareq.coordinator.group.context import Context, TopicsChanged
from shareq.coordinator.runtime.turn import Append, no_result
from shareq.model.actor import ClientContext
from shareq.model.configs import INT_MAX
from shareq.model.events import GroupEpochBumped
from shareq.model.image import ClusterImage
from shareq.model.workflow import Workflow


def needs_refresh(group: ConsumerGroup, image: ClusterImage, now_ms: int) -> bool:
    """True if the group has expressions that are unresolved, may match new topics, or were resolved too long ago."""
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


def refresh_expressions(context: Context, group_id: str, client: ClientContext) -> Workflow[None]:
    """Resolve all expressions of the group with the rights of a client, and raise the group epoch if they match other
    topics than before."""
    shard = yield context.turn(group_id, no_result)
    group, image, now_ms = shard.find(ConsumerGroup, group_id), context.image, context.day_ms
    if group is None or not needs_refresh(group, image, now_ms):
        return
    resolved = {regex: resolve(regex, image, now_ms, client) for regex in sorted(group.regex_counts)}
    records = [encode(group_id, value, regex) for regex, value in resolved.items()]
    names = frozenset(group.topic_counts).union(*(value.topics for value in resolved.values()))
    metadata_hash = context.metadata_hash.of(names, image)
    changed = any(set(value.topics) != set(group.resolved(regex)) for regex, value in resolved.items())
    bumped = changed or metadata_hash != group.metadata_hash
    epoch = group.group_epoch + bumped
    if bumped:
        records.append(encode(group_id, Metadata(epoch, metadata_hash)))
    if (yield Append(records)):
        return
    group = shard.find(ConsumerGroup, group_id)
    if group and context.image is image:
        group.topics_are_new = False
        group.refresh_at_ms = context.now_ms + INT_MAX
    if bumped:
        context.trace(GroupEpochBumped(group_id, epoch, "expressions resolved"))


def topics_changed(context: Context, group: ConsumerGroup, change: TopicsChanged) -> None:
    """Let the next heartbeat of a group compute the metadata hash if its topics changed, and resolve its expressions if
    they match a new topic."""
    if change.affects_all or any(group.subscribes(name) for name in change.names):
        group.refresh_at_ms = 0
    existing = [name for name in change.names if name in context.image.topics]
    if any(has_new_match(regex, group.resolved(regex), existing) for regex in group.regex_counts):
        group.topics_are_new = True
