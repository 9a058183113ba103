"""The expiry of offsets that are unused for longer than their retention, and of empty groups without offsets.

All shards are checked every `offsets.retention.check.interval.ms` as long as they have groups that may expire. Source:
Kafka's GroupCoordinatorShard, cleanupGroupMetadata.
"""

from __future__ import annotations

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import DeadlineKey
from shareq.coordinator.group.group import Group, GroupType
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.offsets.records import NO_EXPIRY, OffsetCommit, OffsetKey, tombstone
from shareq.coordinator.offsets.state import Offsets
from shareq.coordinator.runtime.turn import Append, Turn, no_result
from shareq.model.events import GroupDeleted
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Workflow

MINUTE_MS = 60_000


def expire_offsets(context: Context, due: DeadlineKey) -> Workflow[None]:
    """Check all active shards. The deadline restarts if any group may expire, which also repeats a failed append."""
    context.deadlines.forget(due)
    passes = []
    for partition, shard in context.runtime.active():
        if any(may_expire(group) for group in shard.groups.values()):
            context.schedule_expiry()
            passes.append(_expire_shard(context, partition))
    yield passes


def may_expire(group: Group) -> bool:
    """True for all group types but share groups, which have no committed offsets here."""
    return group.TYPE is not GroupType.SHARE


def _expire_shard(context: Context, partition: int) -> Workflow[None]:
    shard = yield Turn(partition, no_result)
    retention_ms = context.image.broker_config["offsets.retention.minutes"] * MINUTE_MS
    records: list[CoordinatorRecord] = []
    ended: list[str] = []
    for group in filter(may_expire, shard.groups.values()):
        expired, anything_left = _expired(shard, group, retention_ms, context.day_ms)
        records += expired
        if not anything_left and not group.refuse_delete():
            records += group.tombstones()
            ended.append(group.group_id)
    if not (yield Append(records)):
        context.trace_all(GroupDeleted(group_id) for group_id in ended)


def _expired(shard: GroupShard, group: Group, retention_ms: int, now_ms: int) -> tuple[list[CoordinatorRecord], bool]:
    """The tombstones of expired offsets; True if any offset is left. Subscribed and pending offsets do not expire."""
    offsets, group_id = shard.own(Offsets), group.group_id
    records: list[CoordinatorRecord] = []
    kept = any(offsets.pending_keys(group_id))
    for topic, stored in offsets.topics(group_id):
        subscribed = group.subscribes(topic)
        for index, (commit, _) in stored.items():
            key = OffsetKey(group_id, topic, index)
            if subscribed or offsets.is_pending(key) or not _is_over(group, commit, retention_ms, now_ms):
                kept = True
            else:
                records.append(tombstone(key))
    return records, kept


def _is_over(group: Group, commit: OffsetCommit, retention_ms: int, now_ms: int) -> bool:
    """True if the retention of the offset has passed. An expiry time set by an old client replaces the retention."""
    base_ms = group.expiry_base_ms(commit.commit_timestamp)
    if base_ms is None:
        return False
    if commit.expire_timestamp != NO_EXPIRY:
        return now_ms >= commit.expire_timestamp
    return now_ms - base_ms >= retention_ms
