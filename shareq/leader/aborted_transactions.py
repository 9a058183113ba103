"""Finds the fetched records of aborted transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from shareq.model.records import NO_PRODUCER_ID, AbortedTransaction, RecordBatch

V = TypeVar("V")


def aborted_ranges(batches: Sequence[RecordBatch], aborted: Sequence[AbortedTransaction]) -> list[tuple[int, int]]:
    """The ranges [first, end) of the batches of aborted transactions, in order.

    A transaction extends from its first offset to its producer's next marker. Markers themselves are delivered, as in
    Kafka: clients acknowledge them as gaps.
    """
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    open_producers: set[int] = set()
    ranges = []
    for batch in batches:
        if batch.producer_id == NO_PRODUCER_ID:
            continue
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            open_producers.add(waiting.pop().producer_id)
        if batch.is_control:
            open_producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in open_producers:
            ranges.append((batch.base_offset, batch.last_offset + 1))
    return ranges


def outside(runs: Sequence[tuple[int, int, V]], ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int, V]]:
    """The runs [first, end) with a value, cut where they overlap one of the ranges, which ascend."""
    kept = []
    for first, end, value in runs:
        for f, e in ranges:
            if f < end and first < e:
                if first < f:
                    kept.append((first, f, value))
                first = max(first, e)
        if first < end:
            kept.append((first, end, value))
    return kept
