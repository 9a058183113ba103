"""Deadlines of share-partitions, waiting fetches and delayed responses, in one heap: the next one costs O(1) to read.

Each key has at most one deadline. Setting a new one leaves a stale heap entry, which is skipped; the heap is rebuilt
before stale entries outnumber the live ones.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

_SLACK = 64


class Deadlines(Generic[T]):
    """Keys by deadline (ms). Equal deadlines keep the order in which they were set."""

    __slots__ = ("_entries", "_heap", "_order")

    def __init__(self) -> None:
        self._entries: dict[T, tuple[int, int, T]] = {}
        self._heap: list[tuple[int, int, T]] = []
        self._order = count()

    def set(self, thing: T, at_ms: int) -> None:
        """Set the deadline of `thing` to `at_ms`, replacing an earlier one."""
        entry = (at_ms, next(self._order), thing)
        self._entries[thing] = entry
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            self._heap = list(self._entries.values())
            heapify(self._heap)

    def bring_forward(self, thing: T, at_ms: int) -> None:
        """Set the deadline of `thing` to `at_ms` unless it has an earlier one. Too early a deadline is harmless."""
        entry = self._entries.get(thing)
        if entry is None or at_ms < entry[0]:
            self.set(thing, at_ms)

    def cancel(self, thing: T) -> None:
        """Remove the deadline of `thing`, if it has one."""
        self._entries.pop(thing, None)

    def next_ms(self) -> int | None:
        """The earliest deadline (ms), or None."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heap[0]
            if entries.get(entry[2]) is entry:
                return entry[0]
            heappop(heap)
        return None

    def pop_due(self, now_ms: int) -> T | None:
        """Remove and return the next key whose deadline is at or before `now_ms`; None if there is none."""
        at_ms = self.next_ms()
        if at_ms is None or at_ms > now_ms:
            return None
        thing = heappop(self._heap)[2]
        del self._entries[thing]
        return thing
