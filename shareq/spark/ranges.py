"""Spark's offsets: the ranges of a batch by topic and partition, and their division among tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple


class Range(NamedTuple):
    """Offsets [first, end) of one partition; all delivered for the `delivery_count`-th time."""

    topic: str
    topic_id: str
    partition: int
    first: int
    end: int
    delivery_count: int


class Batch(NamedTuple):
    """A batch with its number, which makes offsets of equal ranges differ: Spark compares them as JSON.

    `unreadable`: the number of deliveries of broken record batches that were left out since the query began.
    """

    number: int
    ranges: tuple[Range, ...] = ()
    unreadable: int = 0


NO_BATCH = Batch(0)
"""What comes before the first."""


def to_json(batch: Batch) -> dict[str, Any]:
    """`{"batch": n, "topics": {name: {"id": id, "partitions": {index: [[first, end, delivery_count], ...]}}}}`

    and `"unreadable": n` where something was; a query's progress shows it with the offset.
    """
    topics: dict[str, Any] = {}
    for at in batch.ranges:
        topic = topics.setdefault(at.topic, {"id": at.topic_id, "partitions": {}})
        topic["partitions"].setdefault(str(at.partition), []).append([at.first, at.end, at.delivery_count])
    told = {"unreadable": batch.unreadable} if batch.unreadable else {}
    return {"batch": batch.number, "topics": topics, **told}


def from_json(offset: Mapping[str, Any]) -> Batch:
    """The batch that an offset describes. ValueError for what `to_json` did not write."""
    try:
        ranges = tuple(
            Range(name, topic["id"], int(partition), first, end, count)
            for name, topic in offset["topics"].items()
            for partition, rows in topic["partitions"].items()
            for first, end, count in rows
        )
        return Batch(int(offset["batch"]), ranges, int(offset.get("unreadable", 0)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{offset!r} is no offset of a share group's source") from error


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Sorted, neighbours joined where they agree."""
    result: list[Range] = []
    for at in sorted(ranges):
        last = result[-1] if result else None
        if last is not None and last.end == at.first and last[:3] == at[:3] and last[5] == at[5]:
            result[-1] = last._replace(end=at.end)
        else:
            result.append(at)
    return tuple(result)


def split(ranges: Sequence[Range], tasks: int, at_least: int = 1) -> Iterator[tuple[Range, ...]]:
    """Cut ranges into at most `tasks` shares of about one size, of `at_least` so many offsets where there are."""
    total = sum(at.end - at.first for at in ranges)
    size = max(ceil(total / max(tasks, 1)), at_least)
    share: list[Range] = []
    room = size
    for at in ranges:
        first = at.first
        while first < at.end:
            end = min(at.end, first + room)
            share.append(at._replace(first=first, end=end))
            room -= end - first
            first = end
            if not room:
                yield tuple(share)
                share, room = [], size
    if share:
        yield tuple(share)


def cut(first: int, end: int, verdicts: Mapping[int, int], otherwise: int) -> list[tuple[int, int, int]]:
    """Runs (first, end, verdict) that cover [first, end): `verdicts` by offset, the rest `otherwise`."""
    runs: list[tuple[int, int, int]] = []
    cursor = first
    for offset in sorted(offset for offset in verdicts if first <= offset < end):
        if cursor < offset:
            runs.append((cursor, offset, otherwise))
        runs.append((offset, offset + 1, verdicts[offset]))
        cursor = offset + 1
    if cursor < end:
        runs.append((cursor, end, otherwise))
    return runs
