"""The windows of share-partitions after each of their moves, and the lag in each time bin."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final, NamedTuple

from shareq.spark.pipeline.figures import BINS
from shareq.spark.pipeline.one_pass.events import Event, Events, is_a
from shareq.spark.pipeline.one_pass.leaderships import Key, Leadership, Leaderships
from shareq.spark.pipeline.tables import RECORD_LOCKS

_DONE: Final = (2, 4)
"""The codes of terminal states."""


class Window(NamedTuple):
    """A row of the table `windows`."""

    group_id: str
    topic: str
    partition: int
    load: int
    order: int
    time_ms: int
    until_ms: int | None
    leader: int
    spso: int
    window_end: int
    in_flight: int
    record_locks: int | None
    complete: int
    log_end: int
    lag: int


class Windows:
    """The windows of a journal, and what their lag follows from."""

    def __init__(self, events: Events, leaderships: Leaderships, appended: dict[tuple[str, int], list[Event]]) -> None:
        self._events = events
        self._appended = appended
        self._finished: dict[Key, list[Event]] = defaultdict(list)
        """The changes of records to a terminal state."""
        self.rows = [
            window
            for steps in self._steps(events, leaderships).values()
            for window in steps.windows(self._appended[steps.leadership.key[1:]])
        ]

    def _steps(self, events: Events, leaderships: Leaderships) -> dict[Leadership, _Steps]:
        """What happened to the windows of leaderships."""
        found: dict[Leadership, _Steps] = {}
        for event in events.of("SharePartitionLoaded", "WindowMoved"):
            if leadership := leaderships.of(event):
                found.setdefault(leadership, _Steps(leadership)).move(event)
        for event in events.of("RecordsChanged"):
            if event.state in ("acknowledged", "archived") and (leadership := leaderships.of(event)):
                self._finished[leadership.key].append(event)
                if leadership in found:
                    found[leadership].done.append((event.order, event.first, event.end))
        for event in events.of("ConfigChanged"):
            if event.key == "share.partition.max.record.locks" and event.resource.startswith("group:"):
                for leadership in leaderships.of_group(event.resource.removeprefix("group:")):
                    if leadership.load < event.order < leadership.until and leadership in found:
                        found[leadership].limits.append((event.order, _whole(event.value)))
        return found

    def lag(self) -> Iterator[tuple[Any, ...]]:
        """The rows of the table `lag`."""
        by_key: dict[Key, list[Window]] = defaultdict(list)
        for row in self.rows:
            by_key[row[:3]].append(row)
        for key, rows in by_key.items():
            yield from ((*key, *figures) for figures in self._lag(key, rows))

    def _lag(self, key: Key, rows: list[Window]) -> Iterator[tuple[int, int, int, int, int]]:
        """(bin, log_end, done, lag, max_lag) of a share-partition."""
        bins: dict[int, tuple[int, int, int]] = {}
        for time_ms, log_end, done in self._moments(key, rows):
            place = self._events.bin(time_ms, BINS)
            most = bins[place][2] if place in bins else log_end - done
            bins[place] = log_end, done, max(most, log_end - done)
        log_end = done = before = 0
        for place in range(min(bins), BINS):
            most = before
            if place in bins:
                log_end, done, most = bins[place]
            lag = max(log_end - done, 0)
            yield place, log_end, done, lag, max(most, before, 0)
            before = lag

    def _moments(self, key: Key, rows: list[Window]) -> Iterator[tuple[int, int, int]]:
        """(time_ms, log_end, done) after the last change of each millisecond, since the SPSO is known."""
        steps: list[tuple[int, int, int | None, int | None, int]] = [
            (row.order, row.time_ms, row.log_end, row.spso + row.complete, 0) for row in rows
        ]
        steps += [(event.order, event.time_ms, None, None, event.end - event.first) for event in self._finished[key]]
        steps += [(event.order, event.time_ms, event.end, None, 0) for event in self._appended[key[1:]]]
        steps.sort(key=lambda step: step[0])
        moments: dict[int, tuple[int, int]] = {}
        log_end = done = None
        for _, time_ms, end, spot, records in steps:
            log_end = log_end if end is None else end
            done = spot if spot is not None else done if done is None else done + records
            if done is not None and log_end is not None:
                moments[time_ms] = log_end, done
        return ((time_ms, *at) for time_ms, at in sorted(moments.items()))


class _Steps:
    """What happened to the window of one leadership."""

    def __init__(self, leadership: Leadership) -> None:
        self.leadership = leadership
        self.moves: list[Event] = []
        self.limits: list[tuple[int, int]] = []
        """The limit of record locks, from an order on."""
        self.done: list[tuple[int, int, int]] = []
        """(order, first, end) of durably finished records, each once."""

    def move(self, event: Event) -> None:
        """The next move, in order."""
        self.moves.append(event)
        if is_a(event, "SharePartitionLoaded"):
            self.limits.append((event.order, event.max_record_locks))
            self.done += [(event.order, run[0], run[1]) for run in event.runs if run[2] in _DONE]

    def windows(self, appended: list[Event]) -> Iterator[Window]:
        """The window after each move. `appended`: to the partition, in order."""
        self.done.sort()
        below = _Below(sorted(self.done, key=lambda run: run[1]))
        orders, totals = [run[0] for run in self.done], list(accumulate(end - first for _, first, end in self.done))
        self.limits.sort()
        ends = [event.time_ms for event in self.moves[1:]] + [self.leadership.until_ms]
        for event, until_ms in zip(self.moves, ends, strict=True):
            so_far = bisect_right(orders, event.order)
            complete = (totals[so_far - 1] if so_far else 0) - below.records(event.spso)
            limit = bisect_right(self.limits, (event.order, 2**63)) - 1
            log_end = max(event.window_end, self._log_end(appended, event.order))
            yield Window(
                *self.leadership.key, self.leadership.load, event.order, event.time_ms, until_ms, event.broker,
                event.spso, event.window_end, event.window_end - event.spso,
                self.limits[limit][1] if limit >= 0 else None,
                complete, log_end, log_end - event.spso - complete,
            )  # fmt: skip

    def _log_end(self, appended: list[Event], order: int) -> int:
        """The end of the last append before an order; -1 if there is none to this topic."""
        place = bisect_left(appended, order, key=lambda event: event.order) - 1
        return appended[place].end if place >= 0 and appended[place].order > self.leadership.since_topic else -1


class _Below:
    """Counts the offsets below one, in disjoint runs (order, first, end) by first offset."""

    def __init__(self, runs: list[tuple[int, int, int]]) -> None:
        self._runs = runs
        self._firsts = [first for _, first, _ in runs]
        self._totals = list(accumulate((end - first for _, first, end in runs), initial=0))

    def records(self, offset: int) -> int:
        place = bisect_right(self._firsts, offset)
        return self._totals[place] - (max(self._runs[place - 1][2] - offset, 0) if place else 0)


def _whole(value: str | None) -> int:
    try:
        return RECORD_LOCKS if value is None else int(value)
    except ValueError:
        return RECORD_LOCKS
