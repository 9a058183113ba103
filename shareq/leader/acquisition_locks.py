"""Deadlines of acquisition locks as ranges in a heap, without a timer per record.

The deadline in a record's in-flight state is authoritative. This heap only locates locks that may have
expired: every lock is added, a lock that ends early is not removed, and stale entries are dropped in bulk.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

AcquisitionLock = tuple[int, int, int]
"""deadline_ms, and the range [first, end) in which some records may be locked until then."""

ROOM = 64


class AcquisitionLocks:
    """A heap of locks. Its size stays within a constant factor of the locks that are held."""

    __slots__ = ("_heap", "_room")

    def __init__(self) -> None:
        self._heap: list[AcquisitionLock] = []
        self._room = ROOM

    def add(self, deadline_ms: int, first: int, end: int) -> None:
        """Records in [first, end) are locked until `deadline_ms`."""
        heappush(self._heap, (deadline_ms, first, end))

    def next_ms(self, floor: int) -> int | None:
        """The next time (ms) to look for expired locks, or None. Nothing below `floor` is locked any more."""
        heap = self._heap
        while heap and heap[0][2] <= floor:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now_ms: int) -> list[tuple[int, int]]:
        """Remove and return the ranges that may hold expired locks, by offset; ranges may overlap."""
        heap, due = self._heap, []
        while heap and heap[0][0] <= now_ms:
            _, first, end = heappop(heap)
            due.append((first, end))
        due.sort()
        return due

    @property
    def crowded(self) -> bool:
        """True if so many locks were added since the last `rebuild` that most entries may be stale."""
        return len(self._heap) > self._room

    def rebuild(self, locks: Iterable[AcquisitionLock]) -> None:
        """Replace all entries by `locks`, which the caller takes from the in-flight states."""
        self._heap = list(locks)
        heapify(self._heap)
        self._room = 2 * len(self._heap) + ROOM
