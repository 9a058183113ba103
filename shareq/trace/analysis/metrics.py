"""Kafka's share-group metrics, derived from the journal: with their exact names and tags, for the whole cluster.

A meter (`...PerSec`) has the attributes Count and MeanRate, any other metric a Value; rates are means since the origin
of the journal. A metric that cannot be derived from events is left out rather than zero: `LEFT_OUT` has the reasons,
`OF_CLUSTER` those of metrics that a running cluster has.
Source: KIP-932 (`group-coordinator-metrics`), KIP-1103 (`ShareGroupMetrics`, `SharePartitionMetrics`,
`ShareSessionCache`, `DelayedShareFetchMetrics`, `share-coordinator-metrics`), KIP-1191 (the dead-letter queue),
KIP-1226, and the share consumer's own; the names are those that Apache Kafka reports by JMX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from shareq.extras import require
from shareq.model.gauges import Gauge
from shareq.trace.analysis.metric_derivations import DERIVATIONS, JournalReader, Metric
from shareq.trace.journal import journal_of

__all__ = ["LEFT_OUT", "Metric", "Metrics", "metrics"]

_NOT_REPORTED = "KIP-932 names them, but Apache Kafka does not report them"

LEFT_OUT: Final[Mapping[str, str]] = {
    "PartitionLoadTimeMs": "no event marks the start of loading",
    "partition-load-time-avg, partition-load-time-max": "no event marks the start of loading",
    "RequestTopicPartitionsFetchRatio": "fetches that found a share-partition busy leave no event",
    "TopicPartitionsAcquireTimeMs": "no event marks the start of a fetch",
    "PurgatorySize": "Kafka counts a waiting fetch once for each of its share-partitions, and ended ones until a purge",
    "InFlightBatchCount, InFlightBatchMessageCount": "the journal has runs, not cached batches",
    "FetchLockTimeMs, FetchLockRatio": "taking and releasing the fetch lock of a share-partition leaves no event",
    "thread-idle-ratio-avg, event-queue-size, event-*-time-ms, batch-*": "a coordinator is an actor without a queue",
    "fetch-latency-avg, records-per-request-avg, time-between-poll-avg, ...": "ShareConsumer.metrics() has them",
    "rebalance-count{protocol=share}, rebalance-rate{protocol=share}, num-partitions{protocol=share}": _NOT_REPORTED,
    "record-acknowledgement-count, record-acknowledgement-rate": (
        f"{_NOT_REPORTED}; RecordAcknowledgementsPerSec has the counts"
    ),
    "share-acknowledgement-count, share-acknowledgement-rate": _NOT_REPORTED,
}
"""Metrics that neither the journal nor a running cluster can give -> the reason."""

OF_CLUSTER: Final[Mapping[str, str]] = {
    "NumDelayedOperations": "no event marks that a fetch starts to wait",
    "SharePartitionsCount": "no event has the partitions of a session",
    "num-partitions{state=loading}, num-partitions{state=failed}": "no event marks the start or the failure of loading",
    "group-count{protocol=classic}, classic-group-count": "a classic group without members leaves no event",
    "group-count{protocol=consumer}, consumer-group-count": "no event marks that a consumer group is assigning",
    "offset-count": "committed offsets leave no event",
}
"""Metrics that a running cluster in this process gives as they are now, and a journal cannot -> the reason."""

ALL_LEFT_OUT: Final[Mapping[str, str]] = {**LEFT_OUT, **OF_CLUSTER}
"""Metrics that a journal cannot give -> the reason."""


class Metrics(Mapping[Metric, float]):
    """The metrics after an entry of the journal. `value("share-group-count", state="Empty")` looks one up by name."""

    def __init__(self, values: Mapping[Metric, float], left_out: Mapping[str, str] = ALL_LEFT_OUT) -> None:
        self.left_out = left_out
        self._values = dict(values)

    def __getitem__(self, metric: Metric) -> float:
        return self._values[metric]

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def value(self, name: str, *, attribute: str = "Value", **tags: object) -> float:
        """The value of the metric with exactly these tags (`client_id=` means client-id); KeyError if there is none."""
        wanted = {tag.replace("_", "-"): str(value) for tag, value in tags.items()}
        for metric, value in self._values.items():
            if metric.name == name and metric.attribute == attribute and dict(metric.tags) == wanted:
                return value
        raise KeyError(f"{name} {wanted} {attribute}")

    def __repr__(self) -> str:
        width = max((len(str(metric)) for metric in self._values), default=0)
        return "\n".join(f"{metric!s:<{width}}  {value:,.10g}" for metric, value in self._values.items())

    def to_frame(self) -> Any:
        """A pandas DataFrame: name, tags (as a mapping), attribute, value."""
        require("lab", "pandas")
        import pandas as pd

        rows = [(m.name, dict(m.tags), m.attribute, value) for m, value in self._values.items()]
        return pd.DataFrame(rows, columns=["name", "tags", "attribute", "value"])


def metrics(source: Any, until: int | None = None) -> Metrics:
    """The metrics after the journal's entries below order `until` (None: all).

    `source`: a `Journal`, or an object with one as `.journal`. Of a bounded journal only the kept entries count. A
    running cluster in this process has those of `OF_CLUSTER`, too, as they are now, unless `until` is given.
    """
    journal = journal_of(source)
    reader = JournalReader(journal, journal.total if until is None else until)
    found = dict(pair for derive in DERIVATIONS for pair in derive(reader))
    gauges = _gauges(source) if until is None else None
    if gauges is None:
        return Metrics(found)
    return Metrics(found | {Metric(*gauge): value for gauge, value in gauges().items()}, LEFT_OUT)


def _gauges(source: Any) -> Callable[[], Mapping[Gauge, int]] | None:
    """The way to what the brokers of a running cluster hold; None for any other source."""
    cluster = getattr(source, "cluster", source)
    if getattr(cluster, "closed", True):
        return None
    found: Callable[[], Mapping[Gauge, int]] | None = getattr(getattr(cluster, "front", None), "gauges", None)
    return found
