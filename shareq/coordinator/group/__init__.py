"""The group coordinator: members, epochs and assignments of share groups, and the offsets they start from."""

from shareq.coordinator.group.coordinator import GroupCoordinator

__all__ = ["GroupCoordinator"]
