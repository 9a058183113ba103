"""Spark's offsets: the ranges of a batch by topic and partition, and their division among tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple


class Range(NamedTuple):
    """Offsets [first, end) of one partition, all with the same delivery count."""

    topic: str
    topic_id: str
    partition: int
    first: int
    end: int
    delivery_count: int


class Batch(NamedTuple):
    """A batch and its number, by which offsets with equal ranges differ: Spark compares offsets as JSON.

    `unreadable`: the number of unreadable records, left out of batches, since the query began.
    """

    number: int
    ranges: tuple[Range, ...] = ()
    unreadable: int = 0


NO_BATCH = Batch(0)
"""The batch before the first one."""


def to_json(batch: Batch) -> dict[str, Any]:
    """`{"batch": n, "topics": {name: {"id": id, "partitions": {index: [[first, end, delivery_count], ...]}}}}`, and
    `"unreadable": n` if it is above 0. A query's progress shows it as the offset.
    """
    topics: dict[str, Any] = {}
    for at in batch.ranges:
        topic = topics.setdefault(at.topic, {"id": at.topic_id, "partitions": {}})
        topic["partitions"].setdefault(str(at.partition), []).append([at.first, at.end, at.delivery_count])
    unreadable = {"unreadable": batch.unreadable} if batch.unreadable else {}
    return {"batch": batch.number, "topics": topics, **unreadable}


def from_json(offset: Mapping[str, Any]) -> Batch:
    """The batch that an offset describes. ValueError for an offset that is not from `to_json`."""
    try:
        ranges = tuple(
            Range(name, topic["id"], int(partition), first, end, count)
            for name, topic in offset["topics"].items()
            for partition, rows in topic["partitions"].items()
            for first, end, count in rows
        )
        return Batch(int(offset["batch"]), ranges, int(offset.get("unreadable", 0)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{offset!r} is not an offset of a share group's source") from error


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The ranges sorted, adjacent equal ones joined."""
    result: list[Range] = []
    for at in sorted(ranges):
        last = result[-1] if result else None
        if last is not None and last.end == at.first and last[:3] == at[:3] and last[5] == at[5]:
            result[-1] = last._replace(end=at.end)
        else:
            result.append(at)
    return tuple(result)


def split(ranges: Sequence[Range], tasks: int, at_least: int = 1) -> Iterator[tuple[Range, ...]]:
    """Cut ranges into at most `tasks` shares of similar size, of at least `at_least` offsets, except the last one."""
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
    """Runs (first, end, verdict) that cover [first, end): `verdicts` for single offsets, `otherwise` for the rest."""
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
