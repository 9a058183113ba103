"""How far a group is behind, over time; and how many deliveries its records needed, and how long they took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shareq.model.events import RecordsChanged
from shareq.model.states import RecordEvent, RecordState
from shareq.trace.changes import SETTLED
from shareq.trace.fold import SharePartitionState
from shareq.trace.ledger import ledger, partitions_of
from shareq.trace.story import Story, journal_of


def lag_over_time(source: Any, group: str, topic: str, partition: int = 0) -> list[tuple[int, int]]:
    """(time_ms, lag) whenever the lag is another one than before; at most one a moment, the last.

    Lag as Kafka tells it (KIP-1226): records above the SPSO that are not done with.
    """
    story = Story(journal_of(source), group, topic, partition)
    entries = story.refresh()
    state = SharePartitionState(group, topic, partition, partial=bool(story.journal.dropped))
    series: list[tuple[int, int]] = []
    for entry in entries:
        state.apply(entry)
        if state.lag is None:
            continue
        if series and series[-1][0] == entry.time_ms:
            series[-1] = (entry.time_ms, state.lag)
        elif not series or series[-1][1] != state.lag:
            series.append((entry.time_ms, state.lag))
    return series


@dataclass(frozen=True, slots=True)
class Attempts:
    """`deliveries`: delivery count -> records. `latency_ms`: percentile (50, 95, 99, 100) -> ms from acquiring a record
    to its acceptance being durable; empty where nothing was accepted.
    """

    deliveries: dict[int, int]
    latency_ms: dict[int, float]


def attempts(source: Any, group: str, topic: str) -> Attempts:
    """How the records of a topic fared with a group. Needs numpy and the whole journal, as `ledger` does."""
    import numpy as np

    journal = journal_of(source)
    account = ledger(journal, group, topic)
    waits = [
        _waits_ms(Story(journal, group, topic, partition), account[partition].base, account[partition].records)
        for partition in partitions_of(journal, topic)
    ]
    all_ms = np.concatenate([wait for parts in waits for wait in parts] or [np.zeros(0)])
    percentiles = (50, 95, 99, 100)
    latency_ms = (
        dict(zip(percentiles, map(float, np.percentile(all_ms, percentiles)), strict=True)) if len(all_ms) else {}
    )
    return Attempts(account.attempts, latency_ms)


def _waits_ms(story: Story, base: int, records: int) -> list[Any]:
    """For each acceptance, how long ago its records had been acquired."""
    import numpy as np

    acquired_ms = np.zeros(records, np.int64)
    waits = []
    for entry in story.refresh():
        event = entry.event
        if isinstance(event, RecordsChanged):
            first, end = event.first - base, event.end - base
            if event.cause == RecordEvent.ACQUIRE:
                acquired_ms[first:end] = entry.time_ms
            elif event.cause == SETTLED and event.state == RecordState.ACKNOWLEDGED:
                waits.append(entry.time_ms - acquired_ms[first:end])
    return waits
