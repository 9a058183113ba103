"""In-flight records as ordered runs [first, end) -> RecordStatus; offsets without a run are gaps.

Three parallel lists with bisect: a window has at most a few thousand runs, for which moving list items is cheaper than
a tree, and copying three lists keeps checkpoints cheap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from shareq.model.states import TERMINAL, RecordState


class RecordStatus(NamedTuple):
    """Status of the records of a run. `write_id`, `to_state` and `why` are set only during a state write, and while an
    acknowledgement is staged: then `to_state` is ACQUIRED.

    `known` is False for observed records that are AVAILABLE, or held by a member that reports no deliveries.
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
        """The name in views: the state, or "returned" or "unknown" if a member may hold the record."""
        if self.known:
            return self.state.name.lower()
        return "returned" if self.delivery_count else "unknown"

    @property
    def rests(self) -> bool:
        """True for a released record that may not be acquired before its deadline (an experiment)."""
        return self.state is RecordState.AVAILABLE and self.deadline_ms is not None

    @property
    def staged(self) -> bool:
        """True if the acknowledgement `why` of the record waits for the end of a transaction (an experiment)."""
        return self.write_id is not None and self.state is self.to_state is RecordState.ACQUIRED

    @property
    def complete(self) -> bool:
        """True if the state is terminal, or will be when the write succeeds (KIP-1226: "delivery complete")."""
        return (self.state if self.to_state is None else self.to_state) in TERMINAL


STATE_OF_CODE = {int(state): state for state in RecordState}
"""State by the code in events: a lookup is cheaper than the enumeration's constructor."""

StatusRun = tuple[int, int, RecordStatus]
"""(first, end, status), half-open."""


class Runs:
    """Ordered runs. `complete` counts the offsets whose status is complete."""

    __slots__ = ("_ends", "_firsts", "_statuses", "complete")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._statuses: list[RecordStatus] = []
        self.complete = 0

    def __iter__(self) -> Iterator[StatusRun]:
        return zip(self._firsts, self._ends, self._statuses, strict=True)

    def __len__(self) -> int:
        return len(self._firsts)

    @property
    def end(self) -> int:
        """The first offset above all runs; 0 if there are none."""
        return self._ends[-1] if self._ends else 0

    def copy(self) -> Runs:
        other = Runs()
        other._firsts, other._ends, other._statuses = self._firsts[:], self._ends[:], self._statuses[:]
        other.complete = self.complete
        return other

    def overlap(self, first: int, end: int) -> list[StatusRun]:
        """The runs within [first, end), cut at its edges."""
        left, right = bisect_right(self._ends, first), bisect_left(self._firsts, end)
        if right - left == 1 and self._firsts[left] <= first and end <= self._ends[left]:
            return [(first, end, self._statuses[left])]
        found = zip(self._firsts[left:right], self._ends[left:right], self._statuses[left:right], strict=True)
        return [(max(f, first), min(e, end), status) for f, e, status in found]

    def assign(self, first: int, end: int, status: RecordStatus) -> None:
        """Set [first, end) to `status`, replacing earlier runs; adjacent equal runs are joined."""
        firsts, ends, statuses = self._firsts, self._ends, self._statuses
        left = bisect_right(ends, first)
        if left == len(ends):
            self.append(first, end, status)
            return
        if firsts[left] == first and ends[left] == end:  # the same records as before: the most frequent case
            right = left + 1
        else:
            left, right = self._cut(first, end)
        self.complete += (end - first) * status.complete - self._complete(left, right)
        if left > 0 and ends[left - 1] == first and statuses[left - 1] == status:
            left -= 1
            first = firsts[left]
        if right < len(firsts) and firsts[right] == end and statuses[right] == status:
            end = ends[right]
            right += 1
        if right - left == 1:
            firsts[left], ends[left], statuses[left] = first, end, status
        else:
            firsts[left:right], ends[left:right], statuses[left:right] = [first], [end], [status]

    def append(self, first: int, end: int, status: RecordStatus) -> None:
        """`assign` for a range above all runs, at the cost of a list's append."""
        self.complete += (end - first) * status.complete
        if self._ends and self._ends[-1] == first and self._statuses[-1] == status:
            self._ends[-1] = end
            return
        self._firsts.append(first)
        self._ends.append(end)
        self._statuses.append(status)

    def drop_below(self, offset: int) -> list[StatusRun]:
        """Remove and return the runs below `offset`."""
        if not self._firsts or self._firsts[0] >= offset:
            return []
        _, right = self._cut(self._firsts[0], offset)
        self.complete -= self._complete(0, right)
        gone = list(zip(self._firsts[:right], self._ends[:right], self._statuses[:right], strict=True))
        del self._firsts[:right], self._ends[:right], self._statuses[:right]
        return gone

    def _complete(self, left: int, right: int) -> int:
        count = 0
        for i in range(left, right):
            if self._statuses[i].complete:
                count += self._ends[i] - self._firsts[i]
        return count

    def _cut(self, first: int, end: int) -> tuple[int, int]:
        """Split runs at both edges; return the slice of runs inside [first, end)."""
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
        self._statuses.insert(index, self._statuses[index])
