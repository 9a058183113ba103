"""Deleted topics: the shards remove the offsets committed for them, and their share-partitions.

One workflow for each shard searches the committed state for such topics. It runs after all workflows that used the
earlier metadata, so it also finds what they wrote. Source: Kafka's OffsetMetadataManager
(onPartitionsDeleted) and GroupMetadataManager (maybeCleanupShareGroupState).
"""

from __future__ import annotations

from shareq.coordinator.groups.context import Context
from shareq.coordinator.groups.shard import GroupShard
from shareq.coordinator.other.offsets.records import OffsetCommit, OffsetKey
from shareq.coordinator.other.offsets.records import tombstone as offset_tombstone
from shareq.coordinator.other.offsets.state import Offsets
from shareq.coordinator.share_group.records import encode
from shareq.coordinator.share_group.state import ShareGroup
from shareq.coordinator.turn import Append, BackgroundTurn, Retry
from shareq.model.ids import ZERO_TOPIC_ID
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Workflow


def remove_deleted_topics(context: Context, partition: int) -> Workflow[None]:
    """Clean up one shard; waits for open transactions where necessary."""
    shard = yield BackgroundTurn(partition)
    while True:
        records, contested = deleted_topic_records(shard, context.image)
        error = yield Append(records)
        if not (error or contested):
            return
        shard = yield Retry()


def deleted_topic_records(shard: GroupShard, image: ClusterImage) -> tuple[list[CoordinatorRecord], bool]:
    """The tombstones and records that remove such topics. True: an offset can only be removed after a transaction
    ends."""
    gone, contested = _offsets_to_delete(shard.offsets, image)
    return [*map(offset_tombstone, gone), *_share_partitions(shard, image)], contested


def _offsets_to_delete(offsets: Offsets, image: ClusterImage) -> tuple[list[OffsetKey], bool]:
    """The keys of offsets whose topic was deleted, also if another topic now has its name.

    A tombstone removes every committed and pending offset of its key, so a key with an offset of the new topic is
    skipped: a committed offset of the new topic has replaced the old ones. True: such an offset is still pending, and
    the caller must wait for the end of its transaction.
    """
    gone: dict[OffsetKey, None] = {}
    superseded: set[OffsetKey] = set()
    undecided: set[OffsetKey] = set()
    for key, commit, pending in offsets.commits():
        if not _belongs(key, commit, image):
            gone[key] = None
        elif pending:
            undecided.add(key)
        else:
            superseded.add(key)
    left = [key for key in gone if key not in superseded]
    return [key for key in left if key not in undecided], not undecided.isdisjoint(left)


def _belongs(key: OffsetKey, commit: OffsetCommit, image: ClusterImage) -> bool:
    """True if the offset belongs to the topic that has the name now. Records of old Kafka versions have no topic id."""
    topic = image.topics.get(key.topic)
    return topic is not None and commit.topic_id in (ZERO_TOPIC_ID, topic.topic_id)


def _share_partitions(shard: GroupShard, image: ClusterImage) -> list[CoordinatorRecord]:
    """The share-partition records of share groups without these topics. Share coordinators clean up their own state."""
    records = []
    for group in shard.groups.values():
        known = group.share_partitions if isinstance(group, ShareGroup) else None
        if known is not None and (left := known.only_existing(image)) is not known:
            records.append(encode(group.group_id, left.to_value(image)))
    return records
