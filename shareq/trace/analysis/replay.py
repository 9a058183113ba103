"""Replay of entries: the state after any number of them, from the nearest checkpoint."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

from shareq.trace.journal import Entry

CHECKPOINT_EVERY = 256


class Copyable(Protocol):
    def copy(self) -> Self:
        """An independent copy."""


S = TypeVar("S", bound=Copyable)


class Replay(Generic[S]):
    """Entries in order, and the state after the first n of them. Append to `entries`, in order; do not change them.

    `apply` applies the entry at a position. The cost of a state follows the distance to the nearest checkpoint before
    it, not the number of entries. Not thread-safe.
    """

    def __init__(self, start: S, apply: Callable[[S, int, Entry], None]) -> None:
        self.entries: list[Entry] = []
        self._apply = apply
        self._checkpoints = [start]
        self._cursor = start.copy()
        self._applied = 0

    def state(self, count: int) -> S:
        """The state after the first `count` entries. The next call changes the object: copy it to keep it."""
        nearest = min(count // CHECKPOINT_EVERY, len(self._checkpoints) - 1)
        if not nearest * CHECKPOINT_EVERY <= self._applied <= count:
            self._cursor, self._applied = self._checkpoints[nearest].copy(), nearest * CHECKPOINT_EVERY
        for position in range(self._applied, count):
            self._apply(self._cursor, position, self.entries[position])
            self._applied = position + 1
            if self._applied == CHECKPOINT_EVERY * len(self._checkpoints):
                self._checkpoints.append(self._cursor.copy())
        return self._cursor

    def count(self, until: int) -> int:
        """The number of entries whose order in the journal is below `until`."""
        return bisect_left(self.entries, until, key=order_of)

    def at_time(self, time_ms: int) -> int:
        """The number of entries up to and including this time."""
        return bisect_right(self.entries, time_ms, key=time_of)


def order_of(entry: Entry) -> int:
    return entry.order


def time_of(entry: Entry) -> int:
    return entry.time_ms
