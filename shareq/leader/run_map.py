"""The run-length map: the value of each offset, at a cost that follows the number of runs, not of offsets.

A map is a step function over all offsets: sorted bounds, each with the value from there to the next bound; None is a
hole. Assigning a range moves at most two bounds, and equal neighbours are merged, so a batch of a thousand records and
a single record differ only in length.

The bounds are kept in chunks. A window of a few runs is one chunk, a plain sorted array; a million runs are some
thousand chunks, and a change touches only its own. A chunk whose runs have become short keeps one value per offset
instead of bounds, like a roaring bitmap: this takes less memory than bounds, and no search.

Ranges are half-open, [first, end), and not empty. Values are immutable, compared by value, and shared freely.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import is_not
from typing import Generic, TypeVar

C = TypeVar("C")
Edit = tuple[int, int, C, C]
"""(first, end, expected value, new value)."""

FLOOR, CEILING = -(1 << 62), 1 << 62
"""Below and above every offset."""

MAX_RUNS = 512
"""A chunk with more runs is cut in two, or kept by offset."""
SHORT_RUN = 8
"""A full chunk with runs of this average length or less is kept by offset until the average is four times as long."""


class RunMap(Generic[C]):
    """A map of [first, end) -> value.

    Chunk k covers [_mins[k], _mins[k + 1]). With bounds: `_starts[k]` are the bounds and `_values[k]` the values from
    there on; by offset: `_starts[k]` is None and `_values[k]` has one value per offset. `_credits[k]` is the number
    of changes to such a chunk until its runs are counted again.
    """

    __slots__ = ("_credits", "_mins", "_starts", "_values")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all values: the map is one hole."""
        self._mins: list[int] = [FLOOR]
        self._starts: list[array[int] | None] = [array("q", (FLOOR,))]
        self._values: list[list[C | None]] = [[None]]
        self._credits: list[int] = [0]

    # ---- queries -----------------------------------------------------------------------------------------------------

    def get(self, offset: int) -> C | None:
        """The value of one offset, None in a hole."""
        k = bisect_right(self._mins, offset) - 1
        starts = self._starts[k]
        if starts is None:
            return self._values[k][offset - self._mins[k]]
        return self._values[k][bisect_right(starts, offset) - 1]

    def uniform(self, firsts: Iterable[int], ends: Iterable[int]) -> list[C | None]:
        """The value of each range if it has only one; None for a hole, and if a single lookup cannot decide."""
        mins, all_starts, all_values, found = self._mins, self._starts, self._values, []
        for first, end in zip(firsts, ends, strict=True):
            k = bisect_right(mins, first) - 1
            starts = all_starts[k]
            if starts is None:
                found.append(all_values[k][first - mins[k]] if end - first == 1 else None)
            else:
                i = bisect_right(starts, first)
                known = end <= starts[i] if i < len(starts) else k + 1 == len(mins) or end <= mins[k + 1]
                found.append(all_values[k][i - 1] if known else None)
        return found

    def overlap(self, first: int, end: int) -> list[tuple[int, int, C]]:
        """The runs in the range, clipped to it, in order, without holes."""
        k = bisect_right(self._mins, first) - 1
        starts = self._starts[k]
        if starts is None:
            if end - first == 1:
                value = self._values[k][first - self._mins[k]]
                return [] if value is None else [(first, end, value)]
        else:
            i = bisect_right(starts, first)
            if i < len(starts) and end <= starts[i]:  # the ordinary case: all within one run
                value = self._values[k][i - 1]
                return [] if value is None else [(first, end, value)]
        return list(self.runs(first, end))

    def runs(self, first: int = FLOOR, end: int = CEILING) -> Iterator[tuple[int, int, C]]:
        """Like `overlap`, one at a time; the map must not change meanwhile."""
        start, value = first, None
        for bound, following in self._steps(first):
            if bound >= end:
                break
            if following is value or following == value:
                continue
            if value is not None:
                yield start, bound, value
            start, value = max(bound, first), following
        if value is not None:
            yield start, end, value

    def _steps(self, offset: int) -> Iterator[tuple[int, C | None]]:
        """Bounds and their values, beginning with the bound at or below `offset`."""
        k = bisect_right(self._mins, offset) - 1
        starts = self._starts[k]
        i = offset - self._mins[k] if starts is None else bisect_right(starts, offset) - 1
        while True:
            values = self._values[k]
            if starts is None:
                yield from zip(range(self._mins[k] + i, self._mins[k] + len(values)), values[i:], strict=True)
            else:
                yield from zip(starts[i:], values[i:], strict=True)
            k, i = k + 1, 0
            if k == len(self._mins):
                return
            starts = self._starts[k]

    def next_run(self, offset: int = FLOOR) -> tuple[int, int, C] | None:
        """The first run that ends above `offset`, clipped to begin no lower; None if there is none."""
        if len(self._mins) == len(self._values[0]) == 1:
            return None
        return next(self.runs(offset), None)

    def before(self, offset: int) -> C | None:
        """The value of the highest offset below `offset` that has one, or None."""
        k = bisect_left(self._mins, offset) - 1
        starts = self._starts[k]
        i = offset - self._mins[k] if starts is None else bisect_left(starts, offset)
        while i > 0 or k > 0:
            if i == 0:
                k -= 1
                i = len(self._values[k])
            i -= 1
            value = self._values[k][i]
            if value is not None:
                return value
        return None

    # ---- changes -----------------------------------------------------------------------------------------------------

    def assign(self, first: int, end: int, value: C | None) -> None:
        """Set the value of [first, end); None makes a hole."""
        mins = self._mins
        k = bisect_right(mins, first) - 1
        limit = mins[k + 1] if k + 1 < len(mins) else CEILING
        starts = self._starts[k]
        if end > limit:
            self._assign_across(first, end, value)
        elif starts is None:
            base = mins[k]
            self._values[k][first - base : end - base] = [value] * (end - first)
            self._credits[k] -= 1
            if self._credits[k] < 0:
                self._recount(k)
        else:
            i = bisect_right(starts, first)
            j = bisect_left(starts, end, i)
            self._splice(k, starts, i - 1, j, first=first, end=end, value=value, limit=limit)

    def swap(self, edits: Iterable[Edit[C]]) -> list[Edit[C]]:
        """Apply the edits whose range has just the expected value, as far as a single lookup can decide.

        Returns the other edits, not applied: their range has several values, or spans several runs or chunks. This is
        the inner loop of acknowledging single records.
        """
        mins, refused = self._mins, []
        for edit in edits:
            first, end, old, new = edit
            k = bisect_right(mins, first) - 1
            starts, values = self._starts[k], self._values[k]
            if starts is None:
                i = first - mins[k]
                if end - first == 1 and values[i] is old:
                    values[i] = new
                    self._credits[k] = credit = self._credits[k] - 1
                    if credit < 0:
                        self._recount(k)
                    continue
            else:
                i = bisect_right(starts, first)
                limit = mins[k + 1] if k + 1 < len(mins) else CEILING
                if values[i - 1] is old and end <= (starts[i] if i < len(starts) else limit):
                    self._splice(k, starts, i - 1, i, first=first, end=end, value=new, limit=limit)
                    continue
            refused.append(edit)
        return refused

    def _splice(
        self, k: int, starts: array[int], i: int, j: int, *, first: int, end: int, value: C | None, limit: int
    ) -> None:
        """[first, end) begins in the run of chunk k's bound i and ends in that of j - 1; the chunk ends at `limit`."""
        values = self._values[k]
        size, rest = len(starts), values[j - 1]
        at_bound = end == (starts[j] if j < size else limit)
        if starts[i] < first:
            i += 1  # the left part of the run stays
        new_starts, new_values = [], []
        if i == 0 or values[i - 1] != value:  # a chunk keeps its first bound
            new_starts.append(first)
            new_values.append(value)
        if not at_bound:
            if rest != value:
                new_starts.append(end)
                new_values.append(rest)
        elif j < size and values[j] == value:
            j += 1  # merge with the run that follows
        if j - i == len(new_starts) == 1:
            starts[i], values[i] = new_starts[0], new_values[0]
            return
        starts[i:j] = array("q", new_starts)
        values[i:j] = new_values
        if len(starts) > MAX_RUNS:
            self._relieve(k, limit)

    def _assign_across(self, first: int, end: int, value: C | None) -> None:
        """`assign` over several chunks: split them at both ends, and replace all between by one chunk."""
        a = self._split_at(first)
        b = self._split_at(end)
        self._mins[a:b] = [first]
        self._starts[a:b] = [array("q", (first,))]
        self._values[a:b] = [[value]]
        self._credits[a:b] = [0]
        self._merge(a + 1)
        self._merge(a)

    # ---- chunks ------------------------------------------------------------------------------------------------------

    def _insert(self, k: int, minimum: int, starts: array[int] | None, values: list[C | None]) -> None:
        self._mins.insert(k, minimum)
        self._starts.insert(k, starts)
        self._values.insert(k, values)
        self._credits.insert(k, 0)

    def _split_at(self, offset: int) -> int:
        """The chunk that begins at `offset`, split off if necessary."""
        k = bisect_right(self._mins, offset) - 1
        if self._mins[k] == offset:
            return k
        starts, values = self._starts[k], self._values[k]
        if starts is None:
            i = offset - self._mins[k]
            self._insert(k + 1, offset, None, values[i:])
        else:
            i = bisect_left(starts, offset)
            within = i == len(starts) or starts[i] > offset
            self._insert(
                k + 1, offset, array("q", (offset,) * within) + starts[i:], values[i - within : i] + values[i:]
            )
            del starts[i:]
        del values[i:]
        return k + 1

    def _merge(self, k: int) -> None:
        """Join chunk k with the one before it if both are small."""
        if not 0 < k < len(self._mins):
            return
        for near in (k - 1, k):
            if self._starts[near] is None and len(self._values[near]) < MAX_RUNS // 4:
                self._keep_bounds(near)
        left, right = self._starts[k - 1], self._starts[k]
        if left is None or right is None or len(left) + len(right) > MAX_RUNS // 2:
            return
        same = self._values[k - 1][-1] == self._values[k][0]
        left.extend(right[same:])
        self._values[k - 1].extend(self._values[k][same:])
        del self._mins[k], self._starts[k], self._values[k], self._credits[k]

    def _relieve(self, k: int, limit: int) -> None:
        """Chunk k has too many bounds: keep it by offset if its runs are short, else split it first."""
        starts = self._starts[k]
        assert starts is not None
        if limit - self._mins[k] > len(starts) * SHORT_RUN:
            limit = starts[-1] if limit == CEILING else starts[len(starts) // 2]  # a window grows at its end
            self._split_at(limit)
        if limit - self._mins[k] <= len(starts) * SHORT_RUN:
            lengths = zip((*starts[1:], limit), starts, self._values[k], strict=True)
            self._values[k] = [value for end, first, value in lengths for _ in range(first, end)]
            self._starts[k] = None
            self._extend_credit(k, len(starts))

    def _recount(self, k: int) -> None:
        """Return a chunk by offset to bounds when its runs have grown long."""
        values = self._values[k]
        runs = 1 + sum(map(is_not, values, islice(values, 1, None)))
        if runs * SHORT_RUN * 4 < len(values):
            self._keep_bounds(k)
            self._merge(k)
        else:
            self._extend_credit(k, runs)

    def _extend_credit(self, k: int, runs: int) -> None:
        """A change removes at most two runs; after so many changes there may be few enough of them."""
        size = len(self._values[k])
        self._credits[k] = max((runs - size // (SHORT_RUN * 4)) // 2, size // 64)

    def _keep_bounds(self, k: int) -> None:
        values, minimum = self._values[k], self._mins[k]
        bounds = [i for i, value in enumerate(values) if i == 0 or value != values[i - 1]]
        self._starts[k] = array("q", (minimum + i for i in bounds))
        self._values[k] = [values[i] for i in bounds]
