"""Topics that do not exist any more: the shards forget the offsets committed for them, and their share-partitions.

One workflow for a whole shard finds in the committed state what belongs to such topics. It runs behind everything that
was computed from the metadata of before, so it sees what that wrote, too. Source: Kafka's OffsetMetadataManager
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


def forget_vanished_topics(context: Context, partition: int) -> Workflow[None]:
    """Clean one shard up. An open transaction may have to end first."""
    shard = yield BackgroundTurn(partition)
    while True:
        records, contested = vanished_records(shard, context.image)
        error = yield Append(records)
        if not (error or contested):
            return
        shard = yield Retry()


def vanished_records(shard: GroupShard, image: ClusterImage) -> tuple[list[CoordinatorRecord], bool]:
    """The records that take such topics away. True: some offset can only be taken away once a transaction has ended."""
    gone, contested = _vanished_offsets(shard.offsets, image)
    return [*map(offset_tombstone, gone), *_share_partitions(shard, image)], contested


def _vanished_offsets(offsets: Offsets, image: ClusterImage) -> tuple[list[OffsetKey], bool]:
    """The keys of offsets whose topic is gone, also where another topic has taken its name.

    A tombstone takes everything away that is committed or pending under its key, so a key under which an offset of the
    new topic stands is left alone: a committed one has superseded the old ones for good. True: one that is pending has
    not yet, and the end of its transaction has to be waited for.
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
    """True if the offset is of the topic that has the name now. Records of an old Kafka do not tell the topic's id."""
    topic = image.topics.get(key.topic)
    return topic is not None and commit.topic_id in (ZERO_TOPIC_ID, topic.topic_id)


def _share_partitions(shard: GroupShard, image: ClusterImage) -> list[CoordinatorRecord]:
    """What share groups know without these topics. Share coordinators clean up for themselves."""
    records = []
    for group in shard.groups.values():
        known = group.share_partitions if isinstance(group, ShareGroup) else None
        if known is not None and (left := known.only_existing(image)) is not known:
            records.append(encode(group.group_id, left.to_value(image)))
    return records
