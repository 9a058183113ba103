"""The group coordinator: members and assignments of share groups, classic and consumer groups, and their offsets."""

from shareq.coordinator.group.coordinator import GroupCoordinator

__all__ = ["GroupCoordinator"]
