"""In-flight records as ordered runs [first, end) -> Cell; offsets without a run are gaps.

Three parallel lists with bisect: a window has a few thousand runs at most, where moving list items costs less than any
cleverness, and copying the lists is what makes checkpoints cheap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from shareq.model.states import RecordState


class Cell(NamedTuple):
    """What a run of records is in. `write_id`, `to_state` and `why` only while a write is under way.

    Not `known`: seen from outside, where the records are AVAILABLE or held by somebody who cannot be heard.
    """

    state: RecordState
    delivery_count: int
    member_id: str | None = None
    deadline_ms: int | None = None
    write_id: int | None = None
    to_state: RecordState | None = None
    why: str | None = None
    known: bool = True

    @property
    def name(self) -> str:
        """What views call it: the state; "returned" or "unknown" where it may as well be held."""
        if self.known:
            return self.state.name.lower()
        return "returned" if self.delivery_count else "unknown"

    @property
    def complete(self) -> bool:
        """Terminal, or will be when its write has come through: what KIP-1226 counts as delivery complete."""
        return (self.state if self.to_state is None else self.to_state) in _COMPLETE


_COMPLETE = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})

Run = tuple[int, int, Cell]


class Runs:
    """`complete` counts the offsets whose cell is complete."""

    __slots__ = ("_cells", "_ends", "_firsts", "complete")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._cells: list[Cell] = []
        self.complete = 0

    def __iter__(self) -> Iterator[Run]:
        return zip(self._firsts, self._ends, self._cells, strict=True)

    def __len__(self) -> int:
        return len(self._firsts)

    @property
    def end(self) -> int:
        """The first offset above all runs; 0 if there are none."""
        return self._ends[-1] if self._ends else 0

    def copy(self) -> Runs:
        other = Runs()
        other._firsts, other._ends, other._cells = self._firsts[:], self._ends[:], self._cells[:]
        other.complete = self.complete
        return other

    def overlap(self, first: int, end: int) -> list[Run]:
        """The runs within [first, end), cut at its edges."""
        left, right = bisect_right(self._ends, first), bisect_left(self._firsts, end)
        if right - left == 1 and self._firsts[left] <= first and end <= self._ends[left]:
            return [(first, end, self._cells[left])]
        found = zip(self._firsts[left:right], self._ends[left:right], self._cells[left:right], strict=True)
        return [(max(f, first), min(e, end), cell) for f, e, cell in found]

    def assign(self, first: int, end: int, cell: Cell) -> None:
        """Let [first, end) be `cell`, whatever was there; equal neighbours become one run."""
        left, right = self._cut(first, end)
        self.complete += (end - first) * cell.complete - self._complete(left, right)
        if left > 0 and self._ends[left - 1] == first and self._cells[left - 1] == cell:
            left -= 1
            first = self._firsts[left]
        if right < len(self._firsts) and self._firsts[right] == end and self._cells[right] == cell:
            end = self._ends[right]
            right += 1
        self._firsts[left:right], self._ends[left:right], self._cells[left:right] = [first], [end], [cell]

    def append(self, first: int, end: int, cell: Cell) -> None:
        """The same where [first, end) lies above all runs, at the price of a list's append."""
        self.complete += (end - first) * cell.complete
        if self._ends and self._ends[-1] == first and self._cells[-1] == cell:
            self._ends[-1] = end
            return
        self._firsts.append(first)
        self._ends.append(end)
        self._cells.append(cell)

    def drop_below(self, offset: int) -> list[Run]:
        """Take out and answer what lies below `offset`."""
        if not self._firsts or self._firsts[0] >= offset:
            return []
        _, right = self._cut(self._firsts[0], offset)
        self.complete -= self._complete(0, right)
        gone = list(zip(self._firsts[:right], self._ends[:right], self._cells[:right], strict=True))
        del self._firsts[:right], self._ends[:right], self._cells[:right]
        return gone

    def _complete(self, left: int, right: int) -> int:
        count = 0
        for i in range(left, right):
            if self._cells[i].complete:
                count += self._ends[i] - self._firsts[i]
        return count

    def _cut(self, first: int, end: int) -> tuple[int, int]:
        """Split runs at both edges; answers the slice of runs inside [first, end)."""
        left = bisect_right(self._ends, first)
        if left < len(self._firsts) and self._firsts[left] < first:
            self._split(left, first)
            left += 1
        right = bisect_left(self._firsts, end, left)
        if right > left and self._ends[right - 1] > end:
            self._split(right - 1, end)
        return left, right

    def _split(self, index: int, offset: int) -> None:
        self._firsts.insert(index + 1, offset)
        self._ends.insert(index, offset)
        self._cells.insert(index, self._cells[index])
