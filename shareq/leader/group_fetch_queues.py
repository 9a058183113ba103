"""Fetches that need more than one byte try one at a time in their group: two that each hold a part of the
share-partitions would both find too little and let go, again and again."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shareq.leader.share_fetch import ShareFetch


class GroupFetchQueues:
    """One queue per group; its first fetch may try. `advanced_groups`: groups whose queue has a new first fetch."""

    __slots__ = ("_queues", "advanced_groups")

    def __init__(self) -> None:
        self._queues: dict[str, dict[ShareFetch, None]] = {}
        self.advanced_groups: deque[str] = deque()

    def first(self, group_id: str) -> ShareFetch | None:
        """The fetch that may try."""
        return next(iter(self._queues.get(group_id, ())), None)

    def enter(self, fetch: ShareFetch) -> bool:
        """Put a fetch in its line, if it is not there. True if it stands first."""
        self._queues.setdefault(fetch.group_id, {}).setdefault(fetch)
        return self.first(fetch.group_id) is fetch

    def leave(self, fetch: ShareFetch) -> None:
        """The fetch has tried, or has ended; harmless if it is in no line."""
        line = self._queues.get(fetch.group_id)
        if line is None or fetch not in line:
            return
        if self.first(fetch.group_id) is fetch:
            self.advanced_groups.append(fetch.group_id)
        del line[fetch]
        if not line:
            del self._queues[fetch.group_id]
