"""The journal: everything that happened, in order, append-only. Whoever wants to know a state folds it.

One thread appends, any thread may read: entries are immutable and the list only grows (a bounded journal forgets its
oldest half a capacity at a time). Reading by share-partition is indexed, and the index is built by whoever reads, so
that appending costs one tuple and one list append.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from shareq.model.errors import ConfigException
from shareq.model.events import Event


class Entry(NamedTuple):
    """`order` counts from 0 without gaps; `time_ms` since the epoch; `broker_id` -1: a client, or the cluster as a
    whole.
    """

    order: int
    time_ms: int
    broker_id: int
    event: Event


class Journal:
    """Append-only record of typed events.

    `origin_ms`: the time that is shown as t 00:00. `capacity`: keep at least so many of the newest entries (None: all).
    `enabled=False`: keep nothing; actors that are told so make no events at all.
    """

    def __init__(self, origin_ms: int = 0, *, capacity: int | None = None, enabled: bool = True) -> None:
        if capacity is not None and capacity < 1:
            raise ConfigException(f"capacity={capacity!r}: must be >= 1, or None to keep everything")
        self.origin_ms = origin_ms
        self.capacity = capacity
        self.enabled = enabled
        self.dropped = 0
        """How many of the oldest entries are gone."""
        self._entries: list[Entry] = []

    def record(self, time_ms: int, broker_id: int, event: Event) -> None:
        """Append one event."""
        if not self.enabled:
            return
        entries = self._entries
        entries.append(Entry(self.dropped + len(entries), time_ms, broker_id, event))
        if self.capacity is not None and len(entries) > 2 * self.capacity:
            self._entries = entries[-self.capacity :]
            self.dropped += len(entries) - self.capacity

    @property
    def total(self) -> int:
        """How many events were recorded, the dropped ones included."""
        return self.dropped + len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __getitem__(self, key: Any) -> Any:
        return self._entries[key]

    def since(self, order: int) -> list[Entry]:
        """The entries from `order` on that are still kept."""
        return self._entries[max(order - self.dropped, 0) :]
