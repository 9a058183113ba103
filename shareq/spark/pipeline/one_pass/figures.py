"""The figures of a journal, from its attempts, windows and members. Times are weighted by records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import ceil, floor
from typing import Any, Final, NamedTuple

from shareq.spark.pipeline.figures import BINS, EXPIRED, WORST_RUNS
from shareq.spark.pipeline.one_pass.attempts import Attempt
from shareq.spark.pipeline.one_pass.events import Events
from shareq.spark.pipeline.one_pass.kept_back import KeptBack
from shareq.spark.pipeline.one_pass.windows import Window

Rows = Iterator[tuple[Any, ...]]
Topic = tuple[str, str]
"""(group_id, topic)."""

_ARCHIVED: Final = ("archiving", "archived")
_FAILURES: Final = ("lock_timeout", "release", "reject", "session_release", "txn_abort")
_PERCENTILES: Final = (0.5, 0.9, 0.95, 0.99)


def _part(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def by_topic(attempts: Iterable[Attempt]) -> dict[Topic, list[Attempt]]:
    """The attempts of each group and topic."""
    found: dict[Topic, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        found[attempt.group_id, attempt.topic].append(attempt)
    return found


def latency(topics: dict[Topic, list[Attempt]]) -> Rows:
    """Waiting times."""
    for topic, mine in topics.items():
        stages: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for a in mine:
            if a.delivery_count == 1 and a.appended_ms is not None:
                stages["delivery"][a.acquired_ms - a.appended_ms] += a.records
            if a.outcome == "accept" and a.ended_ms is not None:
                stages["processing"][a.ended_ms - a.acquired_ms] += a.records
                if a.appended_ms is not None:
                    stages["whole"][a.ended_ms - a.appended_ms] += a.records
        for stage, found in stages.items():
            total = sum(found.values())
            mean = sum(ms * records for ms, records in found.items()) / total
            yield *topic, stage, total, mean, *_percentiles(found, total), float(max(found))


def _percentiles(found: dict[int, int], total: int) -> Iterator[float]:
    """The percentiles of values by their number, interpolated."""
    ordered = sorted(found.items())
    for percentile in _PERCENTILES:
        spot = (total - 1) * percentile
        low, high = (_at(ordered, place) for place in (floor(spot), ceil(spot)))
        yield low if low == high else (ceil(spot) - spot) * low + (spot - floor(spot)) * high


def _at(ordered: list[tuple[int, int]], place: int) -> float:
    """The value at a place, from 0, if each occurs so often."""
    for value, times in ordered:
        place -= times
        if place < 0:
            return float(value)
    raise IndexError


def redeliveries(topics: dict[Topic, list[Attempt]]) -> Rows:
    """The outcomes of the nth deliveries."""
    for topic, mine in topics.items():
        found: dict[tuple[int, str], int] = defaultdict(int)
        for a in mine:
            found[a.delivery_count, a.outcome] += a.records
        yield from ((*topic, *what, records) for what, records in found.items())


def _expired(kept_back: Iterable[KeptBack]) -> Iterator[tuple[Topic, int, int]]:
    """(topic, time_ms, number) of the records that are archived for their age."""
    return (((row.group_id, row.topic), row.time_ms, row.records) for row in kept_back if row.event in EXPIRED)


def rates(topics: dict[Topic, list[Attempt]], kept_back: Iterable[KeptBack], events: Events) -> Rows:
    """The outcomes of records."""
    outcomes = ("accept", "release", "reject", "lock_timeout", "session_release", "txn_abort", "lost", "held")
    expired: dict[Topic, int] = defaultdict(int)
    for topic, _, records in _expired(kept_back):
        expired[topic] += records
    for topic, mine in topics.items():
        found: dict[str, int] = defaultdict(int)
        acquired = archived = again = 0
        for a in mine:
            acquired += a.records
            found[a.outcome] += a.records
            archived += a.records * (a.state in _ARCHIVED)
            again += a.records * (a.delivery_count > 1)
        accepted = found["accept"]
        yield (
            *topic, acquired, *(found[outcome] for outcome in outcomes), archived, again, expired[topic],
            _part(again, acquired), _part(found["lock_timeout"], acquired), _part(archived, accepted + archived),
            _part(accepted * 1000, events.until_ms - events.since_ms),
        )  # fmt: skip


def activity(topics: dict[Topic, list[Attempt]], kept_back: Iterable[KeptBack], events: Events) -> Rows:
    """Records by what happened to them, in each bin."""
    counts: dict[Topic, dict[tuple[str, int], int]] = defaultdict(lambda: defaultdict(int))
    for topic, time_ms, records in _expired(kept_back):
        counts[topic]["expired", events.bin(time_ms, BINS)] += records
    for topic, mine in topics.items():
        found = counts[topic]
        for a in mine:
            found["acquired", events.bin(a.acquired_ms, BINS)] += a.records
            if a.ended_ms is None:
                continue
            at = events.bin(a.ended_ms, BINS)
            if a.outcome == "accept":
                found["accepted", at] += a.records
            if a.state == "available":
                found["returned", at] += a.records
            elif a.state in _ARCHIVED:
                found["archived", at] += a.records
    for topic, found in counts.items():
        yield from ((*topic, *what, records) for what, records in found.items())


def occupancy(windows: Iterable[Window], events: Events) -> Rows:
    """Averages over the time of a leadership."""
    found: dict[tuple[str, str, int], list[Window]] = defaultdict(list)
    for row in windows:
        found[row.group_id, row.topic, row.partition].append(row)
    for key, mine in found.items():
        times = [(row, (events.until_ms if row.until_ms is None else row.until_ms) - row.time_ms) for row in mine]
        total = sum(ms for _, ms in times)
        limited = [(row.in_flight, row.record_locks, ms) for row, ms in times if row.record_locks is not None]
        filled = sum(in_flight / limit * ms for in_flight, limit, ms in limited)
        full = sum(ms for in_flight, limit, ms in limited if in_flight >= limit)
        yield (
            *key, total, _part(sum(row.in_flight * ms for row, ms in times), total),
            max(row.in_flight for row in mine), _part(filled, total) if limited else None, _part(full, total),
        )  # fmt: skip


def shares(attempts: Iterable[Attempt], members: Iterable[tuple[Any, ...]]) -> Rows:
    """The work of each member."""
    worked: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    clients: dict[tuple[str, str], str | None] = {}
    for group_id, member_id, _, client_id, *_ in members:
        member = group_id, member_id
        known = clients.get(member)
        clients[member] = client_id if known is None else max(known, client_id or known)
        worked[member] = [0, 0]
    for a in attempts:
        mine = worked[a.group_id, a.member_id]
        mine[0] += a.records
        mine[1] += a.records * (a.outcome == "accept")
    yield from ((*member, clients.get(member), *counts) for member, counts in worked.items())


def fairness(shares: Iterable[tuple[Any, ...]]) -> Rows:
    """The distribution of the work in each group."""
    groups: dict[str, list[int]] = defaultdict(list)
    for group_id, *_, accepted in shares:
        groups[group_id].append(accepted)
    for group_id, found in groups.items():
        total = sum(found)
        yield group_id, len(found), total, _part(total * total, len(found) * sum(each * each for each in found))


class Poison(NamedTuple):
    """A row of the table `poison`."""

    group_id: str
    topic: str
    partition: int
    first: int
    end: int
    records: int
    failures: int
    time_outs: int
    releases: int
    rejects: int
    session_releases: int
    txn_aborts: int
    archived: bool


def poison(attempts: Iterable[Attempt]) -> Iterator[Poison]:
    """Runs of records that failed twice or more, or were archived after a failure."""
    none = [0] * (len(_FAILURES) + 1)
    edges: dict[tuple[str, str, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(none.copy))
    for a in attempts:
        if a.outcome in _FAILURES:
            mine = edges[a.group_id, a.topic, a.partition]
            for offset, sign in ((a.first, 1), (a.end, -1)):
                mine[offset][_FAILURES.index(a.outcome)] += sign
                mine[offset][-1] += sign * (a.state in _ARCHIVED)
    for key, changes in edges.items():
        offsets, counts = sorted(changes), none
        for first, end in pairwise(offsets):
            counts = [count + change for count, change in zip(counts, changes[first], strict=True)]
            *failures, archived = counts
            if sum(failures) >= 2 or archived:
                yield Poison._make((*key, first, end, end - first, sum(failures), *failures, archived > 0))


def worst(rows: Iterable[Poison]) -> Iterator[dict[str, Any]]:
    """The runs with the most failures, of each group; and of how many, with how many records."""
    groups: dict[str, list[Poison]] = defaultdict(list)
    for row in rows:
        groups[row.group_id].append(row)
    for mine in groups.values():
        beside = {"runs": len(mine), "all_records": sum(row.records for row in mine)}
        mine.sort(key=lambda row: (-row.failures, -row.archived, row.topic, row.partition, row.first))
        for place, row in enumerate(mine[:WORST_RUNS], 1):
            yield row._asdict() | beside | {"place": place}
