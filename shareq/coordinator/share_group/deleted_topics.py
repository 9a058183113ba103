"""Share-partitions of deleted topics."""

from __future__ import annotations

from shareq.coordinator.group.deleted_topics import Removal
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.share_group.records import encode
from shareq.coordinator.share_group.state import ShareGroup
from shareq.model.image import ClusterImage


def share_partitions_of_deleted_topics(shard: GroupShard, image: ClusterImage) -> Removal:
    """The share-partition records of share groups without these topics. Share coordinators clean up their own state."""
    records = []
    for group in shard.groups.values():
        known = group.share_partitions if isinstance(group, ShareGroup) else None
        if known is not None and (left := known.only_existing(image)) is not known:
            records.append(encode(group.group_id, left.to_value(image)))
    return Removal(records)
