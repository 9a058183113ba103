"""Fetches that need more than one byte try one at a time in their group: two that each hold a part of the
share-partitions would both find too little and let go, again and again."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shareq.leader.fetch import Fetch


class Lines:
    """One line for each group; the fetch that stands first tries. `moved_up`: groups whose line has a new first."""

    __slots__ = ("_lines", "moved_up")

    def __init__(self) -> None:
        self._lines: dict[str, dict[Fetch, None]] = {}
        self.moved_up: deque[str] = deque()

    def first(self, group_id: str) -> Fetch | None:
        """The fetch that may try."""
        return next(iter(self._lines.get(group_id, ())), None)

    def enter(self, fetch: Fetch) -> bool:
        """Put a fetch in its line, if it is not there. True if it stands first."""
        self._lines.setdefault(fetch.group_id, {}).setdefault(fetch)
        return self.first(fetch.group_id) is fetch

    def leave(self, fetch: Fetch) -> None:
        """The fetch has tried, or has ended; harmless if it is in no line."""
        line = self._lines.get(fetch.group_id)
        if line is None or fetch not in line:
            return
        if self.first(fetch.group_id) is fetch:
            self.moved_up.append(fetch.group_id)
        del line[fetch]
        if not line:
            del self._lines[fetch.group_id]
