"""Combines stored and new state batches into one list of disjoint runs.

Source: Kafka's PersisterStateBatchCombiner; the result is the same, the algorithm is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from shareq.model.messages.share_state import StateBatch


def combine(current: Iterable[StateBatch], update: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """The batches of both sides from `start_offset` on (-1: all), as ascending maximal runs.

    Where batches overlap, the higher delivery count wins, and of equal counts the higher state. Neither side has
    precedence, so a stored higher count wins over a late acknowledgement with a lower one. Offsets without batch stay
    gaps. The cost depends on the number of batches, not on their length.
    """
    batches = sorted([*current, *update])
    if start_offset != -1 and batches and batches[0].first_offset < start_offset:
        batches = list(_above(batches, start_offset))
    if len(batches) <= 1:
        return tuple(batches)
    return tuple(_joined(_disjoint(batches)))


def _above(batches: Iterable[StateBatch], start_offset: int) -> Iterator[StateBatch]:
    for batch in batches:
        if batch.first_offset >= start_offset:
            yield batch
        elif batch.last_offset >= start_offset:
            yield batch._replace(first_offset=start_offset)


def _disjoint(batches: list[StateBatch]) -> list[StateBatch]:
    """Sorted batches as disjoint runs: batches without overlap stay unchanged, overlapping ones are swept."""
    runs: list[StateBatch] = []
    index = 0
    while index < len(batches):
        batch = batches[index]
        first, end = index, batch.last_offset + 1
        index += 1
        while index < len(batches) and batches[index].first_offset < end:
            end = max(end, batches[index].last_offset + 1)
            index += 1
        if index - first > 1:
            runs.extend(_sweep(batches[first:index]))
        elif batch.first_offset < end:
            runs.append(batch)
    return runs


def _sweep(batches: list[StateBatch]) -> Iterator[StateBatch]:
    """Disjoint runs of overlapping batches: at each position the open batch of the highest rank wins.

    A heap holds the open batches, the highest first. A batch that has ended is removed when it gets to the top.
    """
    heap: list[tuple[int, int, int]] = []
    following, position = 0, batches[0].first_offset
    while heap or following < len(batches):
        if not heap:
            position = batches[following].first_offset
        while following < len(batches) and batches[following].first_offset <= position:
            _, last, state, count = batches[following]
            heappush(heap, (-count, -state, last))
            following += 1
        count, state, last = heap[0]
        if last < position:
            heappop(heap)
            continue
        if following < len(batches):
            last = min(last, batches[following].first_offset - 1)
        yield StateBatch(position, last, -state, -count)
        position = last + 1


def _joined(runs: list[StateBatch]) -> list[StateBatch]:
    """Merge adjacent runs of the same state and count."""
    joined: list[StateBatch] = []
    last_offset = last_state = last_count = -2
    for run in runs:
        first, end, state, count = run
        if state == last_state and count == last_count and first == last_offset + 1:
            joined[-1] = StateBatch(joined[-1].first_offset, end, state, count)
        else:
            joined.append(run)
        last_offset, last_state, last_count = end, state, count
    return joined
