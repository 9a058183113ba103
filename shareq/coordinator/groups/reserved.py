"""Ids that are kept for groups of one type, by the group configuration `group.type`.

Without it the first to come decides, and a consumer that is started too early takes the id of a share group away.
It counts when a group is made; a group that there is stays what it is. Ours: Kafka has no such configuration.
"""

from __future__ import annotations

from shareq.coordinator.groups.group import GroupType
from shareq.model.image import ClusterImage


def reserved_for_others(group_id: str, kind: GroupType, image: ClusterImage) -> bool:
    """Whether no group of this type may be made under the id. Classic groups are consumers', too."""
    reserved = image.group_config(group_id).group_type
    mine = GroupType.SHARE if kind is GroupType.SHARE else GroupType.CONSUMER
    return reserved not in ("", mine)
