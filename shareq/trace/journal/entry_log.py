"""Append-only list of entries, optionally bounded.

One thread appends, any thread may read: entries are immutable, the list only grows, and a bounded log replaces its list
by a shorter one instead of deleting from it. An append costs one tuple and one list append.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, Self, overload

from shareq.model.errors import ConfigException
from shareq.model.events import Event
from shareq.model.numbers import plain


class Entry(NamedTuple):
    """One recorded event. `order` counts from 0 without gaps; `time_ms` since the epoch; `broker_id` -1: an event of a
    client or of the cluster as a whole.
    """

    order: int
    time_ms: int
    broker_id: int
    event: Event


_order_of: Callable[[Entry], int] = itemgetter(0)
_new = tuple.__new__  # a NamedTuple's constructor calls this, at twice the cost


class EntryLog:
    """A sequence of `Entry`, oldest first.

    `origin_ms`: the time that views show as t 00:00. `capacity`: number of newest entries to keep (None: all).
    `enabled=False`: record nothing; actors with this flag create no events.
    """

    def __init__(self, origin_ms: int = 0, *, capacity: int | None = None, enabled: bool = True) -> None:
        capacity = plain(capacity)
        if capacity is not None and capacity < 1:
            raise ConfigException(f"capacity={capacity!r}: must be >= 1, or None for no limit")
        self.origin_ms = origin_ms
        self.capacity = capacity
        self.enabled = enabled
        self._entries: list[Entry] = []
        self._next = 0
        self._trim_at = None if capacity is None else 2 * capacity

    @classmethod
    def of(cls, entries: list[Entry], origin_ms: int) -> Self:
        """A log of existing entries; their orders must count up by one."""
        log = cls(origin_ms)
        log._entries = entries
        log._next = entries[-1].order + 1 if entries else 0
        return log

    def record(self, time_ms: int, broker_id: int, event: Event) -> None:
        """Append one event."""
        if not self.enabled:
            return
        order = self._next
        self._next = order + 1
        entries = self._entries
        entries.append(_new(Entry, (order, time_ms, broker_id, event)))
        if self._trim_at is not None and len(entries) >= self._trim_at:
            self._entries = entries[-self._trim_at // 2 :]

    def skip_to(self, order: int) -> None:
        """Give the first entry this order: those before it are missing. To be called before the first entry."""
        assert not self._entries
        self._next = order

    def entries(self) -> list[Entry]:
        """The kept entries, oldest first. Without a capacity this is the live list: do not change it."""
        entries = self._entries
        return entries if self.capacity is None else entries[-self.capacity :]

    @property
    def total(self) -> int:
        """Number of recorded events, including dropped ones."""
        entries = self._entries
        return entries[-1].order + 1 if entries else 0

    @property
    def dropped(self) -> int:
        """Number of oldest entries that were dropped because of the capacity."""
        entries = self._entries
        return entries[-min(len(entries), self.capacity or len(entries))].order if entries else 0

    def __len__(self) -> int:
        return len(self._entries) if self.capacity is None else min(len(self._entries), self.capacity)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    @overload
    def __getitem__(self, key: int) -> Entry: ...
    @overload
    def __getitem__(self, key: slice) -> list[Entry]: ...
    def __getitem__(self, key: int | slice) -> Entry | list[Entry]:
        return self.entries()[key]

    def until(self, time_ms: int) -> int:
        """The order after the last kept entry at or before `time_ms`: the entries up to it are those below it."""
        entries = self.entries()
        place = bisect_right(entries, time_ms, key=lambda entry: entry.time_ms)
        return entries[place - 1].order + 1 if place else 0

    def since(self, order: int) -> list[Entry]:
        """The kept entries from `order` on."""
        entries = self.entries()
        return entries[max(order - entries[0].order, 0) :] if entries else []

    def at(self, orders: Sequence[int]) -> list[Entry]:
        """The entries with these orders, which ascend; without those that are dropped."""
        entries = self._entries
        count = len(entries)  # another thread may append meanwhile
        if not count or not orders:
            return []
        first = entries[0].order
        if orders[0] < first:
            orders = orders[bisect_left(orders, first) :]
        if entries[count - 1].order - first == count - 1:
            return [entries[order - first] for order in orders] if first else list(map(entries.__getitem__, orders))
        return [entries[bisect_left(entries, order, key=_order_of)] for order in orders]  # lines of a file are missing

    def page(self, order: int, most: int) -> list[Entry]:
        """The kept entries from `order` on, at most so many; the cost follows their number."""
        entries = self._entries
        kept = min(len(entries), self.capacity or len(entries))
        if not kept:
            return []
        place = max(order - entries[0].order, len(entries) - kept)
        return entries[place : place + most]
