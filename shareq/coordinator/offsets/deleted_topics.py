"""Offsets of deleted topics."""

from __future__ import annotations

from shareq.coordinator.group.deleted_topics import Removal
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.offsets.records import OffsetCommit, OffsetKey, tombstone
from shareq.coordinator.offsets.state import Offsets
from shareq.model.ids import ZERO_TOPIC_ID
from shareq.model.image import ClusterImage


def offsets_of_deleted_topics(shard: GroupShard, image: ClusterImage) -> Removal:
    """The tombstones of such offsets, also if another topic now has the name.

    A tombstone removes every committed and pending offset of its key, so a key with an offset of the new topic is
    skipped: a committed offset of the new topic has replaced the old ones. Contested: such an offset is still pending,
    and the caller must wait for the end of its transaction.
    """
    gone: dict[OffsetKey, None] = {}
    superseded: set[OffsetKey] = set()
    undecided: set[OffsetKey] = set()
    for key, commit, pending in shard.own(Offsets).commits():
        if not _belongs(key, commit, image):
            gone[key] = None
        elif pending:
            undecided.add(key)
        else:
            superseded.add(key)
    left = [key for key in gone if key not in superseded]
    tombstones = [tombstone(key) for key in left if key not in undecided]
    return Removal(tombstones, not undecided.isdisjoint(left))


def _belongs(key: OffsetKey, commit: OffsetCommit, image: ClusterImage) -> bool:
    """True if the offset belongs to the topic that has the name now. Records of old Kafka versions have no topic id."""
    topic = image.topics.get(key.topic)
    return topic is not None and commit.topic_id in (ZERO_TOPIC_ID, topic.topic_id)
