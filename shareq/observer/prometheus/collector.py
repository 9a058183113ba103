"""The metrics of a monitor's newest report: made at each scrape, so that what is gone has no series any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from shareq.observer.health.monitor import Monitor
from shareq.observer.health.report import GroupReport, Kind, PartitionReport, Report, Verdict

PREFIX = "shareq_share_group_"
PARTITION_LABELS, GROUP_LABELS = ("group", "topic", "partition"), ("group",)


class _OfPartition(NamedTuple):
    """A gauge of share-partitions; a figure of None has no sample."""

    name: str
    documentation: str
    figure: Callable[[PartitionReport, Report], float | None]


class _OfGroup(NamedTuple):
    name: str
    documentation: str
    figure: Callable[[GroupReport], float | None]


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _still_seconds(p: PartitionReport, report: Report) -> float | None:
    if p.verdict is Verdict.UNKNOWN:
        return None
    return 0.0 if p.since_ms is None else max(0, report.time_ms - p.since_ms) / 1000


OF_PARTITIONS = (
    _OfPartition("start_offset", "Share-partition start offset (SPSO).", lambda p, _: p.start_offset),
    _OfPartition("end_offset", "End offset of the log.", lambda p, _: p.end_offset),
    _OfPartition("lag_records", "Records below the end that are not finished.", lambda p, _: p.lag_records),
    _OfPartition(
        "in_flight_at_least_records",
        "Records that are in flight by the durable state; acquired records behind them are not known.",
        lambda p, _: p.in_flight_at_least_records,
    ),
    _OfPartition(
        "returned_records", "Records that are available again after a delivery.", lambda p, _: p.returned_records
    ),
    _OfPartition("poison_records", "Records whose next delivery is the last.", lambda p, _: p.poison_records),
    _OfPartition(
        "oldest_unfinished_age_seconds",
        "Age of the record at the SPSO, by its timestamp.",
        lambda p, _: _seconds(p.oldest_unfinished_age_ms),
    ),
    _OfPartition(
        "still_seconds",
        "Time for which records have been waiting without a move of the SPSO; 0 if none waits.",
        _still_seconds,
    ),
    _OfPartition(
        "stuck",
        "1 if the SPSO has not moved for longer than the lock duration while members are assigned and records wait.",
        lambda p, _: None if p.verdict is Verdict.UNKNOWN else float(p.verdict is Verdict.STUCK),
    ),
    _OfPartition("assigned_members", "Members that are assigned the partition.", lambda p, _: p.members),
)

OF_GROUPS = (
    _OfGroup("members", "Members of the group.", lambda g: g.members),
    _OfGroup("unassigned_members", "Members without partitions.", lambda g: g.unassigned_members),
    _OfGroup(
        "exists",
        "1 if the group exists.",
        lambda g: float(not any(d.kind is Kind.GROUP_UNKNOWN for d in g.diagnoses)),
    ),
    _OfGroup(
        "readable",
        "1 if the coordinator of the group has described it in the last poll.",
        lambda g: float(not any(d.kind is Kind.NOT_READABLE for d in g.diagnoses)),
    ),
)


class HealthCollector(Collector):
    """Collects from one monitor. While the cluster is unreachable, `shareq_observe_up` is 0 and groups have no series:
    old figures are no figures."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def collect(self) -> Iterator[Metric]:
        report = self._monitor.report
        up = bool(report.time_ms) and report.unreachable_since_ms is None
        yield from self._of_monitor(report, up)
        groups = report.groups if up else ()
        for of_group in OF_GROUPS:
            gauge = GaugeMetricFamily(PREFIX + of_group.name, of_group.documentation, labels=GROUP_LABELS)
            for group in groups:
                value = of_group.figure(group)
                if value is not None:
                    gauge.add_metric((group.group,), value)
            yield gauge
        for of_partition in OF_PARTITIONS:
            gauge = GaugeMetricFamily(PREFIX + of_partition.name, of_partition.documentation, labels=PARTITION_LABELS)
            for group in groups:
                for p in group.partitions:
                    value = of_partition.figure(p, report)
                    if value is not None:
                        gauge.add_metric((group.group, p.topic, str(p.partition)), value)
            yield gauge

    def _of_monitor(self, report: Report, up: bool) -> Iterator[Metric]:
        monitor = self._monitor
        yield GaugeMetricFamily("shareq_observe_up", "1 if the last poll has reached the cluster.", float(up))
        yield CounterMetricFamily("shareq_observe_polls_total", "Polls of the cluster.", monitor.polls)
        failed = "Polls of the cluster that have read nothing."
        yield CounterMetricFamily("shareq_observe_failed_polls_total", failed, monitor.failed_polls)
        duration = "Duration of the last poll that has read something."
        yield GaugeMetricFamily("shareq_observe_poll_duration_seconds", duration, monitor.poll_ms / 1000)
        last = "Time of the last report."
        yield GaugeMetricFamily("shareq_observe_last_report_timestamp_seconds", last, report.time_ms / 1000)
