"""The monitor's public class: the report on share groups, made anew by each poll."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shareq.client.config import connection_config
from shareq.html import Html, Table, html, strong
from shareq.model.errors import ConfigException, KafkaException
from shareq.model.time_of_day import TimeOfDay, same_time
from shareq.observer.core import PollingCore
from shareq.observer.health.fleet_poll import FleetPoll
from shareq.observer.health.judge import Judge
from shareq.observer.health.reading import Reading
from shareq.observer.health.report import ALARMS, GroupReport, PartitionReport, Report, Verdict
from shareq.observer.health.sentences import duration
from shareq.observer.poller import Poller, checked_interval
from shareq.transports import transport_for

MIN_INTERVAL_MS = 100
COLUMNS = ("group", "partition", "SPSO", "end", "lag", "in flight", "oldest unfinished", "members", "state")


class _Desk:
    """Takes the results of polls. It has no reference to the monitor, whose end is that of its last reference."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.judge = Judge(bootstrap_servers)
        self.report = Report(bootstrap_servers, 0)
        self.failure: KafkaException | None = None
        self.failed_polls = self.poll_ms = 0
        self.time_of_day: TimeOfDay = same_time
        """Reports are about times of day: they are compared with timestamps, and read by people."""

    def take(self, reading: Reading, now_ms: int, begun_ms: int) -> None:
        self.failure = None
        self.failed_polls += reading.unreachable
        self.poll_ms = now_ms - begun_ms
        self.report = self.judge.judge(reading, self.time_of_day(now_ms))

    def fail(self, failure: KafkaException, now_ms: int) -> None:
        self.failure = failure
        self.failed_polls += 1
        self.report = self.judge.fail(failure.error.str(), self.time_of_day(now_ms))


class Monitor(Poller):
    """Reports on share groups of a cluster with Kafka's protocol, and changes nothing; `monitor` creates one.

    `report` is the newest one. The cluster is polled until `close()`, the end of a `with` block, or the end of the last
    reference to the monitor.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        groups: tuple[str, ...] | None,
        *,
        interval_ms: int,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        transport = transport_for(bootstrap_servers, connection_config(bootstrap_servers, config))
        self.bootstrap_servers, self.groups, self.interval_ms = bootstrap_servers, groups, interval_ms
        self._desk = desk = _Desk(bootstrap_servers)
        core = PollingCore[Reading](
            bootstrap_servers,
            FleetPoll(groups).poll,
            desk.take,
            desk.fail,
            rng=transport.rng(),
            interval_ms=interval_ms,
        )
        connection = transport.connect(core, "monitor")
        desk.time_of_day = connection.time_of_day
        super().__init__(core, connection, connection.close)

    @property
    def report(self) -> Report:
        """The report on the last poll; without groups before the first one."""
        return self._desk.report

    @property
    def failure(self) -> KafkaException | None:
        """The error of the last poll if it failed as a whole, such as an unsupported version."""
        return self._desk.failure

    @property
    def polls(self) -> int:
        """The number of polls that have ended."""
        return self._core.polls_ended

    @property
    def failed_polls(self) -> int:
        """The number of polls that have read nothing."""
        return self._desk.failed_polls

    @property
    def poll_ms(self) -> int:
        """The duration of the last poll that has read something, in ms."""
        return self._desk.poll_ms

    def refresh(self, timeout: float = 30) -> Report:
        """Poll now, and return the report of a poll that began after this call, or the last one after `timeout` s."""
        self._poll(timeout)
        return self.report

    # ---- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.report.trouble or "watching"
        verdicts = ", ".join(f"{group.group} {group.verdict}" for group in self.report.groups)
        return f"Monitor({self.bootstrap_servers}: {state}; {verdicts or 'no groups'})"

    def tables(self) -> Iterator[Table]:
        """One row for each share-partition, and the diagnoses below."""
        report = self.report
        head = f"{strong(self.bootstrap_servers)}{' · ' if report.trouble else ''}{html(report.trouble)}"
        rows = [
            (group.group, *row)
            for group in report.groups
            for row in [cells(p, report.time_ms) for p in group.partitions] or [total_cells(group)]
        ]
        yield Table(COLUMNS, rows, caption=Html(head))
        found = [d for group in report.groups for d in group.diagnoses]
        if found:
            yield Table(("diagnosis",), [(strong(d.sentence) if d.kind in ALARMS else d.sentence,) for d in found])


def total_cells(group: GroupReport) -> tuple[object, ...]:
    """The figures of a group for a person, as COLUMNS without the first. An unknown lag is not in the sum."""
    age_ms = group.oldest_unfinished_age_ms
    age = "" if age_ms is None else duration(age_ms)
    at_least = "≥ " if group.partitions_of_unknown_lag else ""
    lag = f"{at_least}{group.lag_records:,}" if group.partitions or group.verdict is Verdict.IDLE else None
    name = f"{len(group.partitions)} partitions" if group.partitions else "no partition"
    return (name, "", "", lag, "", age, group.members, str(group.verdict))


def cells(p: PartitionReport, now_ms: int) -> tuple[object, ...]:
    """The figures of a share-partition for a person, in the order of COLUMNS without the group."""
    age_ms = p.oldest_unfinished_age_ms
    age = duration(age_ms) if age_ms is not None else "–" if p.verdict is Verdict.IDLE else None
    return (p.name, p.start_offset, p.end_offset, p.lag_records, in_flight(p), age, p.members, state(p, now_ms))


def state(p: PartitionReport, now_ms: int) -> str:
    """The verdict, with the time for which records have been waiting."""
    if p.since_ms is None or p.verdict is Verdict.MOVING:
        return str(p.verdict)
    return f"{p.verdict} {duration(now_ms - p.since_ms)}"


def in_flight(p: PartitionReport) -> object:
    """The number of records in flight: exact if its bounds are equal, else its lower bound."""
    least, most = p.in_flight_at_least_records, p.in_flight_at_most_records
    if most == 0:
        return 0
    if most is None or least is None:
        return None
    return most if least >= most else f"≥ {least:,}"


def monitor(
    bootstrap_servers: str,
    groups: str | Iterable[str] | None = None,
    *,
    interval_ms: int = 2_000,
    config: Mapping[str, Any] | None = None,
) -> Monitor:
    """Report on share groups from outside, with a poll every `interval_ms`: figures, verdicts and diagnoses.

    `groups` None: all share groups of the cluster. `config`: how to connect, as for `observe`, which makes the journal
    of one group for its views. KafkaException for an invalid address or `config`, ConfigException for other invalid
    arguments; a cluster that does not respond is the trouble of a report.
    """
    if groups is not None and not isinstance(groups, Iterable):
        raise ConfigException(f"groups={groups!r}: must be one or more non-empty names, or None for all")
    names = (groups,) if isinstance(groups, str) else None if groups is None else tuple(groups)
    if names is not None and (not names or not all(isinstance(name, str) and name for name in names)):
        raise ConfigException(f"groups={groups!r}: must be one or more non-empty names, or None for all")
    interval_ms = checked_interval(interval_ms, MIN_INTERVAL_MS)
    unique = None if names is None else tuple(dict.fromkeys(names))
    return Monitor(bootstrap_servers, unique, interval_ms=interval_ms, config=config)
