"""The records of a share-partition that members accepted, over time: their throughput."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from typing import NamedTuple

from shareq.model.events import (
    AcknowledgementsSent,
    RecordsChanged,
    RecordsDelivered,
    SharePartitionLoaded,
    StateWriteSettled,
)
from shareq.model.states import PREPARED, AcknowledgeType, RecordEvent
from shareq.trace.journal import Entry, Journal, Subject


class Acceptance(NamedTuple):
    """Records accepted by one member at one time."""

    order: int
    time_ms: int
    member_id: str
    records: int


class AcceptedRecords:
    """The acceptances of one share-partition, up to the end of the journal. Not thread-safe.

    An acceptance counts when its state write is durable; the member is that of the acknowledgement. An observer has no
    events of the leader: it has those acknowledgements without an error that members of its own process report.
    """

    def __init__(self, journal: Journal, group: str, topic: str, partition: int) -> None:
        self._journal = journal
        self._subject = Subject(group, topic, partition)
        self._next = 0
        self._loaded_by: int | None = None
        self._prepared: dict[int, list[tuple[str, int]]] = {}
        self._durable: list[Acceptance] = []
        self._reported: list[Acceptance] = []
        self._reporting: dict[str, int] = {}

    def refresh(self) -> None:
        """Read the journal to its end."""
        entries = self._journal.about(self._subject)
        for entry in entries[bisect_left(entries, self._next, key=_order) :]:
            self._next = entry.order + 1
            self._add(entry)

    def by_member(self, since_ms: int, until: int, *, observed: bool = False) -> Counter[str]:
        """The number of accepted records by member: of entries later than `since_ms` and with an order below `until`.

        `observed`: the source is an observer's journal.
        """
        accepted = self._reported if observed else self._durable
        first = bisect_right(accepted, since_ms, key=_time)
        counts: Counter[str] = Counter()
        for one in accepted[first : bisect_left(accepted, until, key=_order)]:
            counts[one.member_id] += one.records
        return counts

    def reporting(self, until: int) -> set[str]:
        """The members that have reported a delivery or an acknowledgement in entries with an order below `until`."""
        return {member_id for member_id, order in self._reporting.items() if order < until}

    def _add(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, SharePartitionLoaded):
            self._loaded_by, self._prepared = entry.broker_id, {}
        elif isinstance(event, (RecordsDelivered, AcknowledgementsSent)):
            self._add_report(entry, event)
        elif self._loaded_by in (None, entry.broker_id):  # None: the journal has dropped the load
            self._add_of_leader(entry)

    def _add_report(self, entry: Entry, event: RecordsDelivered | AcknowledgementsSent) -> None:
        self._reporting.setdefault(event.member_id, entry.order)
        if isinstance(event, AcknowledgementsSent) and not event.error:
            count = event.counts[AcknowledgeType.ACCEPT]
            self._reported.append(Acceptance(entry.order, entry.time_ms, event.member_id, count))

    def _add_of_leader(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, RecordsChanged):
            accepts = event.cause == PREPARED and event.why == RecordEvent.ACCEPT
            if accepts and event.write_id is not None and event.member_id is not None:
                self._prepared.setdefault(event.write_id, []).append((event.member_id, event.end - event.first))
        elif isinstance(event, StateWriteSettled):
            for member_id, count in self._prepared.pop(event.write_id, ()):
                if not event.error:
                    self._durable.append(Acceptance(entry.order, entry.time_ms, member_id, count))


def _order(entry: Entry | Acceptance) -> int:
    return entry.order


def _time(entry: Acceptance) -> int:
    return entry.time_ms
