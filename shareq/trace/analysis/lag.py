"""Lag of a group over time; delivery counts of its records, and latency from acquisition to acceptance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shareq.extras import require
from shareq.model.events import HoldEnded, RecordsChanged, RecordsHeld
from shareq.model.states import RecordState
from shareq.trace.analysis.fold import apply_entry
from shareq.trace.analysis.ledger import TopicLedger, partition_ledgers, partitions_of
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.tally import is_acceptance, is_delivery
from shareq.trace.journal import journal_of


def lag_over_time(source: Any, group: str, topic: str, partition: int = 0) -> list[tuple[int, int]]:
    """(time_ms, lag) at each change of the lag; of several changes at one time_ms only the last one.

    Lag as Kafka defines it (KIP-1226): records above the SPSO whose delivery is not complete.
    """
    timeline = PartitionTimeline(journal_of(source), group, topic, partition)
    entries = timeline.refresh()
    state = SharePartitionState(group, topic, partition)
    if timeline.journal.dropped:
        state.miss_entries()
    series: list[tuple[int, int]] = []
    for entry in entries:
        apply_entry(state, entry)
        if state.lag is None:
            continue
        if series and series[-1][0] == entry.time_ms:
            series[-1] = (entry.time_ms, state.lag)
        elif not series or series[-1][1] != state.lag:
            series.append((entry.time_ms, state.lag))
    return series


@dataclass(frozen=True, slots=True)
class Attempts:
    """`deliveries`: delivery count -> number of records. `latency_ms`: percentile (50, 95, 99, 100) -> ms from the last
    acquisition of a record to its durable acceptance; empty if no record was accepted. A renewal is part of the same
    delivery: the latency includes the time before it.
    """

    deliveries: dict[int, int]
    latency_ms: dict[int, float]


def attempts(source: Any, group: str, topic: str) -> Attempts:
    """Deliveries and latencies of a topic's records in a group. Needs numpy and the whole journal, as `ledger` does."""
    require("lab", "numpy")
    import numpy as np

    journal = journal_of(source)
    account = TopicLedger(group, topic, partition_ledgers(journal, group, topic))
    waits = [
        _waits_ms(
            PartitionTimeline(journal, group, topic, partition), account[partition].base, account[partition].records
        )
        for partition in partitions_of(journal, topic)
    ]
    all_ms = np.concatenate([wait for parts in waits for wait in parts] or [np.zeros(0)])
    percentiles = (50, 95, 99, 100)
    latency_ms = (
        dict(zip(percentiles, map(float, np.percentile(all_ms, percentiles)), strict=True)) if len(all_ms) else {}
    )
    return Attempts(account.attempts, latency_ms)


def _waits_ms(timeline: PartitionTimeline, base: int, records: int) -> list[Any]:
    """For each acceptance, the ms since the last acquisition of each of its records."""
    import numpy as np

    acquired_ms, counts = np.zeros(records, np.int64), np.zeros(records, np.int16)
    waits = []
    for entry in timeline.refresh():
        event = entry.event
        if isinstance(event, RecordsChanged):
            first, end = event.first - base, event.end - base
            if is_delivery(event):
                acquired_ms[first:end] = entry.time_ms
            elif is_acceptance(event):
                waits.append(entry.time_ms - acquired_ms[first:end])
        elif isinstance(event, RecordsHeld):
            first, end = event.first - base, event.end - base
            acquired_ms[first:end][counts[first:end] != event.delivery_count] = entry.time_ms
            counts[first:end] = event.delivery_count
        elif isinstance(event, HoldEnded) and event.state == RecordState.ACKNOWLEDGED:
            waits.append(entry.time_ms - acquired_ms[event.first - base : event.end - base])
    return waits
