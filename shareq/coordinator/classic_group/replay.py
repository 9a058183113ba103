"""Replays the records of classic groups."""

from __future__ import annotations

from shareq.coordinator.classic_group.records import decode
from shareq.coordinator.classic_group.state import ClassicGroup, restored
from shareq.coordinator.group.group import Group, claim, find


def replay(groups: dict[str, Group], key: bytes, value_bytes: bytes | None, now_ms: int) -> None:
    """Replace the group by the one in the record, or delete it if the record is a tombstone."""
    del now_ms
    group_id, value = decode(key, value_bytes)
    if find(groups, ClassicGroup, group_id):
        del groups[group_id]
    if value is not None:
        claim(groups, restored(group_id, value))
