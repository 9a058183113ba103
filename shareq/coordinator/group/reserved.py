"""Group ids that are reserved for groups of one type, by the group configuration `group.type`.

Without it, the first member determines the type, so a consumer that starts too early takes the id of a share group.
It applies when a group is created; an existing group keeps its type. Kafka has no such configuration.
"""

from __future__ import annotations

from shareq.coordinator.group.group import GroupType
from shareq.model.image import ClusterImage


def reserved_for_others(group_id: str, kind: GroupType, image: ClusterImage) -> bool:
    """True if the id is reserved for another type than `kind`. Classic groups count as consumer groups."""
    reserved = image.group_config(group_id).group_type
    mine = GroupType.SHARE if kind is GroupType.SHARE else GroupType.CONSUMER
    return reserved not in ("", mine)
