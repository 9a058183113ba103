"""Replay of entries: the state after any number of them, from the nearest checkpoint."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from operator import itemgetter
from typing import Generic, Protocol, Self, TypeVar

from shareq.trace.journal import Entry

CHECKPOINT_EVERY = 256

FAR = 512
"""From more than this number of entries after the last checkpoint, a replay that can begin late does so."""

FEW = 16
"""The state after so few more entries is not looked for among the checkpoints."""


class Copyable(Protocol):
    def copy(self) -> Self:
        """An independent copy."""


S = TypeVar("S", bound=Copyable)

Advance = Callable[[S, int, list[Entry]], None]
"""(state, number of entries before, next entries): apply these entries."""

Begin = Callable[[int, int], S | None]
"""(count, after) -> the state after the first `count` entries, from entries behind the first `after` ones; None if it
depends on earlier ones."""


class Replay(Generic[S]):
    """Entries in order, and the state after the first n of them. Append to `entries`, in order; do not change them.

    `apply` applies the entry at a position; `advance` replaces it by a function that applies several. The cost of a
    state follows the distance to the nearest checkpoint before it, not the number of entries. With `begin`, the first
    state far from all checkpoints does not apply all entries before it. Not thread-safe.
    """

    def __init__(
        self,
        start: S,
        apply: Callable[[S, int, Entry], None],
        begin: Begin[S] | None = None,
        advance: Advance[S] | None = None,
    ) -> None:
        self.entries: list[Entry] = []
        self._apply = apply
        self._advance = advance or self._apply_each
        self._begin = begin
        self._blocks = [0]
        self._checkpoints = {0: start}
        self._cursor = start.copy()
        self._applied = 0

    def state(self, count: int) -> S:
        """The state after the first `count` entries. The next call changes the object: copy it to keep it."""
        if not 0 <= count - self._applied <= FEW:
            self._go_near(count)
        while self._applied < count:
            stop = min(self._applied + CHECKPOINT_EVERY - self._applied % CHECKPOINT_EVERY, count)
            try:
                self._advance(self._cursor, self._applied, self.entries[self._applied : stop])
            except BaseException:  # begin again at a checkpoint: the cursor is somewhere between
                self._cursor, self._applied = self._checkpoints[0].copy(), 0
                raise
            self._applied = stop
            if not stop % CHECKPOINT_EVERY:
                self._keep()
        return self._cursor

    def _apply_each(self, state: S, before: int, entries: list[Entry]) -> None:
        apply = self._apply
        for position, entry in enumerate(entries, before):
            apply(state, position, entry)

    def latest(self, count: int, fits: Callable[[S], bool]) -> tuple[int, S] | None:
        """The latest checkpoint that fits, among those of the first `count` entries: its number of entries, and the
        state, which must not be changed."""
        for block in reversed(self._blocks[: bisect_right(self._blocks, count // CHECKPOINT_EVERY)]):
            if fits(self._checkpoints[block]):
                return block * CHECKPOINT_EVERY, self._checkpoints[block]
        return None

    def _go_near(self, count: int) -> None:
        """Set the cursor to the nearest known state at or before `count`."""
        block = self._blocks[bisect_right(self._blocks, count // CHECKPOINT_EVERY) - 1]
        if not block * CHECKPOINT_EVERY <= self._applied <= count:
            self._cursor, self._applied = self._checkpoints[block].copy(), block * CHECKPOINT_EVERY
        if self._begin is not None and count - self._applied > FAR:
            place = count - count % CHECKPOINT_EVERY
            begun = self._begin(place, self._applied)
            if begun is not None:
                self._cursor, self._applied = begun, place
                self._keep()

    def _keep(self) -> None:
        """Keep the present state as a checkpoint."""
        block = self._applied // CHECKPOINT_EVERY
        if block not in self._checkpoints:
            self._blocks.insert(bisect_left(self._blocks, block), block)
            self._checkpoints[block] = self._cursor.copy()

    def count(self, until: int) -> int:
        """The number of entries whose order in the journal is below `until`."""
        return bisect_left(self.entries, until, key=order_of)

    def at_time(self, time_ms: int) -> int:
        """The number of entries up to and including this time."""
        return bisect_right(self.entries, time_ms, key=time_of)


order_of: Callable[[Entry], int] = itemgetter(0)
time_of: Callable[[Entry], int] = itemgetter(1)
