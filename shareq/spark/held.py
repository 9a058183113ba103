"""Ranges of offsets that a query's member has locked, with the broker of the locks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shareq.consumer.acknowledgements import OffsetRange, subtract_ranges
from shareq.spark.ranges import Range


class Held(NamedTuple):
    """A range that the member has locked, and the broker that granted the locks."""

    range: Range
    node: int


def divide(held: Held, at: int) -> tuple[list[Held], list[Held]]:
    """The parts below `at`, and from `at` on."""
    first, end = held.range.first, held.range.end
    middle = min(max(at, first), end)
    below = [held._replace(range=held.range._replace(end=middle))] if first < middle else []
    above = [held._replace(range=held.range._replace(first=middle))] if middle < end else []
    return below, above


def append(several: list[Held], held: Held) -> None:
    """Append a range, or extend the last one if it ends there: brokers grant one for each record batch, and the cost of
    a query's batch follows the ranges."""
    if several:
        (last, node), at = several[-1], held.range
        if at == last._replace(first=last.end, end=at.end) and node == held.node:
            several[-1] = Held(last._replace(end=at.end), node)
            return
    several.append(held)


def without(several: Sequence[Held], others: Iterable[Held], *, same_node: bool = False) -> list[Held]:
    """`several` without the offsets of `others`, of any node or only of the same one.

    The cost of a range that ends below all others of its partition, the usual case, is one comparison.
    """
    holes: dict[tuple[str, int, int], list[OffsetRange]] = {}
    for at, node in others:
        holes.setdefault((at.topic_id, at.partition, node if same_node else -1), []).append((at.first, at.end))
    for found in holes.values():
        found.sort()
    rest: list[Held] = []
    for held in several:
        at, node = held
        found = holes.get((at.topic_id, at.partition, node if same_node else -1), [])
        if not found or at.end <= found[0][0]:
            rest.append(held)
        else:
            left = subtract_ranges([(at.first, at.end)], found)
            rest += [Held(at._replace(first=first, end=end), node) for first, end in left]
    return rest


class Reached:
    """How far the ranges of a member have reached in each partition."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int], int] = {}
        """(topic id, partition) -> the highest end."""

    def again(self, found: Iterable[Held]) -> bool:
        """Add ranges. True if older ones may have some of these offsets; cheap in the usual case of none."""
        again = False
        for at, _ in found:
            place = at.topic_id, at.partition
            end = self._ends.get(place, 0)
            again = again or at.first < end
            self._ends[place] = max(end, at.end)
        return again
