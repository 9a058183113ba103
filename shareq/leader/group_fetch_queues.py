"""Fetches with a minimum above one byte try one at a time in each group: two fetches that each hold some of the
share-partitions would both find too few bytes and release them, again and again."""

from __future__ import annotations

from collections import deque

from shareq.leader.share_fetch import ShareFetch


class GroupFetchQueues:
    """One queue per group; only its first fetch is attempted. `advanced_groups`: groups with a new first fetch."""

    __slots__ = ("_queues", "advanced_groups")

    def __init__(self) -> None:
        self._queues: dict[str, dict[ShareFetch, None]] = {}
        self.advanced_groups: deque[str] = deque()

    def first(self, group_id: str) -> ShareFetch | None:
        """The fetch that may be attempted, or None."""
        return next(iter(self._queues.get(group_id, ())), None)

    def holds(self, fetch: ShareFetch) -> bool:
        """True if the fetch is queued."""
        return fetch in self._queues.get(fetch.group_id, ())

    def enter(self, fetch: ShareFetch) -> bool:
        """Queue a fetch if it is not queued yet. True if it is the first."""
        self._queues.setdefault(fetch.group_id, {}).setdefault(fetch)
        return self.first(fetch.group_id) is fetch

    def leave(self, fetch: ShareFetch) -> None:
        """Remove a fetch that has tried or ended; no effect if it is not queued."""
        line = self._queues.get(fetch.group_id)
        if line is None or fetch not in line:
            return
        if self.first(fetch.group_id) is fetch:
            self.advanced_groups.append(fetch.group_id)
        del line[fetch]
        if not line:
            del self._queues[fetch.group_id]
