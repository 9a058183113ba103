"""The same work done by a consumer group and by a share group, computed from their rules of assignment.

Consumer group: a partition belongs to one worker, which works on its records in their order, and fetches ahead. Share
group: a worker that is free acquires the next records of any partition; its acknowledgements and its next acquisition
take a round trip, in which it does not work. All records are there at the start.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from random import Random
from typing import Final, NamedTuple

from shareq.model.errors import ConfigException
from shareq.model.numbers import plain_fields
from shareq.sim.scenario import check_seed

BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "workers": (1, 12),
    "partitions": (1, 24),
    "records": (1, 5_000),
    "slow_share": (0, 1),
    "slow_factor": (1, 200),
    "work_ms": (1, 10_000),
    "poll_records": (1, 500),
    "round_trip_ms": (0, 10_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceSetting:
    """The work, and its workers. ConfigException names an invalid field, its value and its range.

    A record takes `work_ms`, a slow one `slow_factor` times that; `slow_share` is the probability that a record is
    slow. `poll_records`: the most records of a poll. With another `slow_share`, records that were slow at a smaller one
    are slow, too.
    """

    workers: int = 4
    partitions: int = 4
    records: int = 240
    slow_share: float = 0.05
    slow_factor: int = 20
    work_ms: int = 50
    poll_records: int = 2
    round_trip_ms: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        plain_fields(self)
        check_seed(self.seed)
        for field in fields(self):
            if field.name == "seed":
                continue
            value, (low, high) = getattr(self, field.name), BOUNDS[field.name]
            whole = field.name != "slow_share"
            kinds = (int,) if whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
                kind = "a whole number" if whole else "a number"
                raise ConfigException(f"{field.name}={value!r}: must be {kind} in {low:g}..{high:g}")

    def slow(self) -> list[bool]:
        """For each record, true if it is slow."""
        draw = Random(self.seed)
        return [draw.random() < self.slow_share for _ in range(self.records)]


class Work(NamedTuple):
    """The work of a worker on a record. Record r is in partition r modulo the number of partitions."""

    record: int
    worker: int
    begin_ms: int
    end_ms: int
    slow: bool


class Outcome(NamedTuple):
    """What one of the groups did, in order of the beginning of the work."""

    name: str
    setting: RaceSetting
    works: tuple[Work, ...]

    @property
    def finish_ms(self) -> int:
        """When the last record was finished."""
        return max(work.end_ms for work in self.works)

    @property
    def mean_wait_ms(self) -> float:
        """Mean time until the work on a record began."""
        return sum(work.begin_ms for work in self.works) / len(self.works)

    @property
    def longest_wait_ms(self) -> int:
        """Longest time until the work on a record began."""
        return max(work.begin_ms for work in self.works)

    @property
    def utilization(self) -> list[float]:
        """For each worker, the fraction of the time until the finish in which it worked."""
        worked = [0] * self.setting.workers
        for work in self.works:
            worked[work.worker] += work.end_ms - work.begin_ms
        return [ms / self.finish_ms for ms in worked]

    @property
    def overtaken(self) -> int:
        """Number of records that ended before an earlier record of their partition."""
        latest: dict[int, int] = {}
        count = 0
        for work in sorted(self.works):
            place = work.record % self.setting.partitions
            count += work.end_ms < latest.get(place, 0)
            latest[place] = max(latest.get(place, 0), work.end_ms)
        return count


class RaceResult(NamedTuple):
    """Both groups on the same records."""

    setting: RaceSetting
    consumer_group: Outcome
    share_group: Outcome


def run_race(setting: RaceSetting) -> RaceResult:
    """Let both groups do the work."""
    return RaceResult(
        setting,
        Outcome("consumer group", setting, tuple(_consumer_group(setting))),
        Outcome("share group", setting, tuple(_share_group(setting))),
    )


Take = Callable[[], list[int]]


def _take(setting: RaceSetting, partitions: range) -> Take:
    """A function that takes the next records of these partitions, in turn; none at the end."""
    left = deque(deque(range(p, setting.records, setting.partitions)) for p in partitions)

    def take() -> list[int]:
        while left and not left[0]:
            left.popleft()
        if not left:
            return []
        first = left[0]
        left.rotate(-1)
        return [first.popleft() for _ in range(min(setting.poll_records, len(first)))]

    return take


def _consumer_group(setting: RaceSetting) -> list[Work]:
    """Partition p belongs to worker p modulo the number of workers."""
    slow, works = setting.slow(), []
    for worker in range(setting.workers):
        take, now_ms = _take(setting, range(worker, setting.partitions, setting.workers)), setting.round_trip_ms
        while records := take():
            works += _do(setting, slow, worker, records, now_ms)
            now_ms = works[-1].end_ms
    return sorted(works, key=lambda work: (work.begin_ms, work.worker))


def _share_group(setting: RaceSetting) -> list[Work]:
    """The worker that is free first takes the next records."""
    slow, works = setting.slow(), []
    take, free = _take(setting, range(setting.partitions)), [(0, worker) for worker in range(setting.workers)]
    while records := take():
        now_ms, worker = free[0]
        works += _do(setting, slow, worker, records, now_ms + setting.round_trip_ms)
        heapq.heapreplace(free, (works[-1].end_ms, worker))
    return sorted(works, key=lambda work: (work.begin_ms, work.worker))


def _do(setting: RaceSetting, slow: list[bool], worker: int, records: list[int], now_ms: int) -> list[Work]:
    """One record after the other."""
    works = []
    for record in records:
        end_ms = now_ms + setting.work_ms * (setting.slow_factor if slow[record] else 1)
        works.append(Work(record, worker, now_ms, end_ms, slow[record]))
        now_ms = end_ms
    return works
