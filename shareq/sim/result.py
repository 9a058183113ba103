"""The result of a run, computed from its journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from shareq.extras import require
from shareq.model.events import ExpiredRecordsSkipped, RecordsAppended, RecordsChanged, WindowMoved
from shareq.model.states import PREPARED, SETTLED, TXN_COMMIT, RecordEvent, RecordState
from shareq.sim.scenario import Scenario
from shareq.trace import Journal, ledger

NO_FIGURE = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The figures of one run. Times are virtual; a latency is from the append to the durable ACCEPT.

    `finished`: every record was finished in time. `expired`: the records of `archived` whose time to live was over.
    `duration_s`: until the last record was finished, or until the time
    was over. `throughput`: records accepted per second of the whole run;
    `throughput_loaded`: per second until the last record arrived, so without the end of a run, in which the last locks
    expire; not a number if all records arrive at the start. `occupancy`: the mean fill of the window over time, as a
    fraction of `record_locks`. `utilisation`: the fraction of time that consumers worked. `fairness`: Jain's index of
    the records that the members accepted, 1 if all accepted the same number.

    Faults show in `redeliveries` (also of records whose leader was lost), `lock_timeouts`, latencies and `duration_s`.
    An accept that a lost leader has written and not seen settled counts in `accepted`, and in no latency.
    """

    scenario: Scenario
    seed: int
    finished: bool
    accepted: int
    archived: int
    expired: int
    deliveries: int
    redeliveries: int
    lock_timeouts: int
    duration_s: float
    throughput: float
    throughput_loaded: float
    latency_mean_ms: float
    latency_p50_ms: float
    latency_p90_ms: float
    latency_p99_ms: float
    latency_max_ms: float
    occupancy: float
    utilisation: float
    fairness: float

    def row(self) -> dict[str, Any]:
        """Scenario, seed and figures in one flat dict, as in a row of a sweep."""
        values = asdict(self)
        return {**values.pop("scenario"), **values}

    def __repr__(self) -> str:
        return (
            f"<Result seed {self.seed}: {self.accepted:,} accepted, {self.archived:,} archived in "
            f"{self.duration_s:,.1f} s ({self.throughput:,.0f}/s), {self.redeliveries:,} redeliveries, "
            f"{self.lock_timeouts:,} time-outs, latency p50 {self.latency_p50_ms:,.0f} ms, p99 "
            f"{self.latency_p99_ms:,.0f} ms>"
        )


class WorkInterval(NamedTuple):
    """The time in which a consumer works on the records of one poll."""

    begin_ms: int
    end_ms: int


class FinishedRun(NamedTuple):
    """A run that has ended, at `ended_ms`: when its last record was finished, or when its time was over. `work`: the
    intervals of each worker, which may extend beyond that."""

    scenario: Scenario
    seed: int
    journal: Journal
    group: str
    topic: str
    started_ms: int
    ended_ms: int
    work: list[list[WorkInterval]]

    def changes(self, partition: int) -> Iterator[tuple[int, RecordsChanged]]:
        """(time_ms, event) of every change of records."""
        select = self.journal.select(RecordsChanged, group=self.group, topic=self.topic, partition=partition)
        return ((entry.time_ms, entry.event) for entry in select if isinstance(entry.event, RecordsChanged))

    def skipped(self, partition: int) -> Iterator[ExpiredRecordsSkipped]:
        """Every time that the window passed records that were too old."""
        select = self.journal.select(ExpiredRecordsSkipped, group=self.group, topic=self.topic, partition=partition)
        return (entry.event for entry in select if isinstance(entry.event, ExpiredRecordsSkipped))

    def windows(self, partition: int) -> Iterator[tuple[int, WindowMoved]]:
        """(time_ms, event) of every move of the window."""
        select = self.journal.select(WindowMoved, group=self.group, topic=self.topic, partition=partition)
        return ((entry.time_ms, entry.event) for entry in select if isinstance(entry.event, WindowMoved))

    def arrivals(self, partition: int) -> Iterator[tuple[int, RecordsAppended]]:
        """(time_ms, event) of every append."""
        select = self.journal.select(RecordsAppended, topic=self.topic, partition=partition)
        return ((entry.time_ms, entry.event) for entry in select if isinstance(entry.event, RecordsAppended))


class _RecordCounts:
    """The outcomes of records: latencies of the accepted ones in ms, accepted ones by member, and counts."""

    def __init__(self, outcome: FinishedRun) -> None:
        self.latencies: list[Any] = []
        self.accepted: list[tuple[int, int]] = []
        """(time_ms, number of records that were accepted then)."""
        self.last_arrival_ms = outcome.started_ms
        self.by_member: Counter[str] = Counter()
        self.deliveries = self.lock_timeouts = self.expired = 0
        for partition in range(outcome.scenario.partitions):
            self._follow(outcome, partition)

    def _follow(self, outcome: FinishedRun, partition: int) -> None:
        import numpy as np

        appended = list(outcome.arrivals(partition))
        arrived = np.zeros(max((event.end for _, event in appended), default=0), np.int64)
        for time_ms, append in appended:
            arrived[append.first : append.end] = time_ms
            self.last_arrival_ms = max(self.last_arrival_ms, time_ms)
        self.expired += sum(event.end - event.first for event in outcome.skipped(partition))
        for time_ms, event in outcome.changes(partition):
            count = event.end - event.first
            if event.cause == RecordEvent.ACQUIRE and event.state == RecordState.ACQUIRED:
                self.deliveries += count
            elif event.cause == RecordEvent.LOCK_TIMEOUT:
                self.lock_timeouts += count
            elif event.cause == RecordEvent.EXPIRED:
                self.expired += count
            elif event.cause == PREPARED and event.to_state == RecordState.ACKNOWLEDGED:
                self.by_member[event.member_id or ""] += count
            elif event.cause in (SETTLED, TXN_COMMIT) and event.state == RecordState.ACKNOWLEDGED:
                self.latencies.append(time_ms - arrived[event.first : event.end])
                self.accepted.append((time_ms, count))

    def throughput_loaded(self, started_ms: int) -> float:
        """Records accepted per second until the last arrival."""
        in_time = sum(count for time_ms, count in self.accepted if time_ms <= self.last_arrival_ms)
        return in_time * 1000 / max(self.last_arrival_ms - started_ms, 1)


def measure(outcome: FinishedRun) -> Result:
    """The figures from the journal. AssertionError if a record was accepted twice or lost."""
    require("lab", "numpy")
    import numpy as np

    scenario, seed = outcome.scenario, outcome.seed
    account = ledger(outcome.journal, outcome.group, outcome.topic)
    assert account.accepted_twice == 0, f"seed {seed}: {account.accepted_twice} records were accepted twice"
    known = account.accepted + account.archived + account.in_flight + account.never_delivered
    assert known == account.records, f"seed {seed}: {account.records - known} records are lost"
    tally = _RecordCounts(outcome)
    duration_ms = max(outcome.ended_ms - outcome.started_ms, 1)
    latencies = np.concatenate(tally.latencies) if tally.latencies else np.full(1, NO_FIGURE)
    p50, p90, p99 = np.percentile(latencies, [50, 90, 99])
    return Result(
        scenario=scenario,
        seed=seed,
        finished=account.accepted + account.archived == scenario.records,
        accepted=account.accepted,
        archived=account.archived,
        expired=tally.expired,
        deliveries=tally.deliveries,
        redeliveries=tally.deliveries - sum(account.attempts.values()),
        lock_timeouts=tally.lock_timeouts,
        duration_s=duration_ms / 1000,
        throughput=account.accepted / duration_ms * 1000,
        throughput_loaded=NO_FIGURE if scenario.arrival_rate is None else tally.throughput_loaded(outcome.started_ms),
        latency_mean_ms=float(latencies.mean()),
        latency_p50_ms=float(p50),
        latency_p90_ms=float(p90),
        latency_p99_ms=float(p99),
        latency_max_ms=float(latencies.max()),
        occupancy=_occupancy(outcome),
        utilisation=_busy_ms(outcome) / (len(outcome.work) * duration_ms),
        fairness=_jain(list(tally.by_member.values()), scenario.consumers),
    )


def _busy_ms(outcome: FinishedRun) -> int:
    """The total time that all consumers worked until the end of the run."""
    return sum(max(min(work.end_ms, outcome.ended_ms) - work.begin_ms, 0) for place in outcome.work for work in place)


def _occupancy(outcome: FinishedRun) -> float:
    """The mean over time and partitions of offsets in flight / record locks."""
    scenario, total = outcome.scenario, 0
    for partition in range(scenario.partitions):
        since_ms, width = outcome.started_ms, 0
        for time_ms, event in outcome.windows(partition):
            at_ms = max(time_ms, outcome.started_ms)
            total += width * (at_ms - since_ms)
            since_ms, width = at_ms, event.window_end - event.spso
        total += width * (outcome.ended_ms - since_ms)
    return total / (max(outcome.ended_ms - outcome.started_ms, 1) * scenario.partitions * scenario.record_locks)


def _jain(counts: list[int], consumers: int) -> float:
    """(sum x)^2 / (n sum x^2); a member that replaced a crashed one counts as a further member."""
    members = max(len(counts), consumers)
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / (members * squares) if squares else NO_FIGURE
