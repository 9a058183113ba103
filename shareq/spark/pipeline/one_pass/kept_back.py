"""What keeps records from being acquired: rests, acknowledgements in open transactions, and the time to live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shareq.spark.pipeline.one_pass.events import Event, Events, is_a
from shareq.spark.pipeline.one_pass.leaderships import Leaderships
from shareq.spark.pipeline.tables import KEPT_BACK_BY


class KeptBack(NamedTuple):
    """A row of the table `kept_back`."""

    group_id: str
    topic: str
    partition: int
    load: int
    order: int
    time_ms: int
    leader: int
    first: int
    end: int
    records: int
    delivery_count: int | None
    event: str
    acknowledgement: str | None
    until_ms: int | None
    state: str | None


def kept_back(events: Events, leaderships: Leaderships) -> Iterator[KeptBack]:
    """The rows of the table."""
    for e in events.of("RecordsChanged", "ExpiredRecordsSkipped"):
        if (event := _event(e)) and (leadership := leaderships.of(e)):
            place = (*leadership.key, leadership.load, e.order, e.time_ms, e.broker, e.first, e.end, e.end - e.first)
            if event == "skipped":
                yield KeptBack(*place, None, event, None, None, None)
            else:
                until_ms = e.deadline_ms if event == "rests" else None
                yield KeptBack(*place, e.delivery_count, event, e.why, until_ms, e.state)


def _event(e: Event) -> str | None:
    """The column `event`; None for an event that keeps no record back."""
    if is_a(e, "ExpiredRecordsSkipped"):
        return "skipped"
    if e.cause == "settled" and e.state == "available" and e.deadline_ms is not None:
        return "rests"
    return e.cause if e.cause in KEPT_BACK_BY else None
