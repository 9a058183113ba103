"""When acquisition locks run out: ranges by deadline, without a timer for any record.

The truth about a lock is the deadline in the record's cell. What is kept here only says where to look and when; it is
told of every lock that is taken and of none that is given back, and forgets in bulk.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

AcquisitionLock = tuple[int, int, int]
"""deadline_ms, and the range [first, end) in which some records may be locked until then."""

ROOM = 64


class AcquisitionLocks:
    """A heap of locks, cleaned lazily: its size stays within a constant factor of the locks that are held."""

    __slots__ = ("_heap", "_room")

    def __init__(self) -> None:
        self._heap: list[AcquisitionLock] = []
        self._room = ROOM

    def add(self, deadline_ms: int, first: int, end: int) -> None:
        """The records [first, end) have been locked until `deadline_ms`."""
        heappush(self._heap, (deadline_ms, first, end))

    def next_ms(self, floor: int) -> int | None:
        """When to look for expired locks, given that nothing below `floor` is locked any more; None if never."""
        heap = self._heap
        while heap and heap[0][2] <= floor:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now_ms: int) -> list[tuple[int, int]]:
        """The ranges in which locks may have expired, by offset and possibly overlapping; they are forgotten here."""
        heap, due = self._heap, []
        while heap and heap[0][0] <= now_ms:
            _, first, end = heappop(heap)
            due.append((first, end))
        due.sort()
        return due

    @property
    def crowded(self) -> bool:
        """Whether so much has been added since the last `rebuild` that most of it may be stale."""
        return len(self._heap) > self._room

    def rebuild(self, locks: Iterable[AcquisitionLock]) -> None:
        """Keep only these: what the records say themselves."""
        self._heap = list(locks)
        heapify(self._heap)
        self._room = 2 * len(self._heap) + ROOM
