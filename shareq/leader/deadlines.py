"""When things want to be looked at again: one heap for locks and waiting fetches, so that asking costs nothing.

Each thing has at most one alarm. Setting an alarm anew leaves the old entry in the heap; it is skipped when it comes
up, and the heap is rebuilt before such leftovers outweigh what is alive.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

_SLACK = 64


class Deadlines(Generic[T]):
    """Things by the time (ms) at which they are due; among equals, the one set first comes first."""

    __slots__ = ("_entries", "_heap", "_order")

    def __init__(self) -> None:
        self._entries: dict[T, tuple[int, int, T]] = {}
        self._heap: list[tuple[int, int, T]] = []
        self._order = count()

    def set(self, thing: T, at_ms: int) -> None:
        """Ring for `thing` at `at_ms`, and not when it was set to before."""
        entry = (at_ms, next(self._order), thing)
        self._entries[thing] = entry
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            self._heap = list(self._entries.values())
            heapify(self._heap)

    def bring_forward(self, thing: T, at_ms: int) -> None:
        """Ring for `thing` at `at_ms` at the latest: an alarm that comes earlier stays, and costs one idle look."""
        entry = self._entries.get(thing)
        if entry is None or at_ms < entry[0]:
            self.set(thing, at_ms)

    def cancel(self, thing: T) -> None:
        """Do not ring for `thing`; harmless where nothing was set."""
        self._entries.pop(thing, None)

    def next_ms(self) -> int | None:
        """When the next alarm rings; None: never."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heap[0]
            if entries.get(entry[2]) is entry:
                return entry[0]
            heappop(heap)
        return None

    def pop_due(self, now_ms: int) -> T | None:
        """The next thing whose time has come, its alarm taken off; None where there is none."""
        at_ms = self.next_ms()
        if at_ms is None or at_ms > now_ms:
            return None
        thing = heappop(self._heap)[2]
        del self._entries[thing]
        return thing
