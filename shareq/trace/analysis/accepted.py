"""The records of a share-partition that members accepted, over time: their throughput."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from shareq.model.events import (
    AcknowledgementsSent,
    RecordsChanged,
    RecordsDelivered,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
)
from shareq.model.states import PREPARED, AcknowledgeType, RecordEvent
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.journal import Subject


class Report(NamedTuple):
    """Records whose acceptance a member of an observer's process reported."""

    order: int
    time_ms: int
    member_id: str
    records: int


class AcceptedRecords:
    """The acceptances of one share-partition, up to the end of the journal. Not thread-safe.

    An acceptance counts when its state write is durable; the member is that of the acknowledgement. An observer has no
    events of the leader: it has those acknowledgements without an error that members of its own process report.
    """

    def __init__(self, timeline: PartitionTimeline) -> None:
        self._timeline = timeline
        self._subject = Subject(timeline.group, timeline.topic, timeline.partition)
        self._next = 0
        self._reported: list[Report] = []
        self._reporting: dict[str, int] = {}

    def by_member(self, since_ms: int, until: int, *, observed: bool = False) -> Counter[str]:
        """The number of accepted records by member: of entries later than `since_ms` and with an order below `until`.

        `observed`: the source is an observer's journal. The cost follows the entries in this time.
        """
        if observed:
            return self._reported_by_member(since_ms, until)
        timeline = self._timeline
        counts: Counter[str] = Counter()
        for members in _settled(timeline, timeline.at_time(since_ms), timeline.count(until)):
            for member_id, count in members:
                counts[member_id] += count
        return counts

    def reporting(self, until: int) -> set[str]:
        """The members that have reported a delivery or an acknowledgement in entries with an order below `until`."""
        self._read_reports()
        return {member_id for member_id, order in self._reporting.items() if order < until}

    def _reported_by_member(self, since_ms: int, until: int) -> Counter[str]:
        self._read_reports()
        first = bisect_right(self._reported, since_ms, key=_time)
        counts: Counter[str] = Counter()
        for one in self._reported[first : bisect_left(self._reported, until, key=_order)]:
            counts[one.member_id] += one.records
        return counts

    def _read_reports(self) -> None:
        """Read the journal to its end."""
        journal, total = self._timeline.journal, self._timeline.journal.total
        new = journal.about(self._next, total, {self._subject: (RecordsDelivered, AcknowledgementsSent)})
        self._next = total
        for entry in new:
            event = entry.event
            if isinstance(event, (RecordsDelivered, AcknowledgementsSent)):
                self._reporting.setdefault(event.member_id, entry.order)
            if isinstance(event, AcknowledgementsSent) and not event.error:
                count = event.counts[AcknowledgeType.ACCEPT]
                self._reported.append(Report(entry.order, entry.time_ms, event.member_id, count))


Members = list[tuple[str, int]]
"""Members, and the records that they accepted."""


def _settled(timeline: PartitionTimeline, first: int, stop: int) -> Iterator[Members]:
    """What each write has accepted that succeeded in the entries from `first` to `stop`."""
    leader, begun = _leader_before(timeline, first), None
    prepared: dict[int, Members] = {}
    for entry in timeline.entries[first:stop]:
        event: Any = entry[3]
        kind = type(event)
        if kind not in _OF_WRITES or (kind is RecordsChanged and event[3] != PREPARED):
            continue
        if kind is SharePartitionLoaded:
            leader, begun, prepared = entry.broker_id, 0, {}
        elif leader not in (None, entry[2]):
            continue
        elif kind is StateWriteSettled:
            if begun is None or event.write_id < begun:
                members = _before(timeline, first, event.write_id, leader)
            else:
                members = prepared.pop(event.write_id, [])
            if not event.error:
                yield members
        else:
            begun = event.write_id if begun is None else begun
            _add(prepared.setdefault(event.write_id or 0, []), event)


def _before(timeline: PartitionTimeline, place: int, write_id: int, leader: int | None) -> Members:
    """What a write accepts that was prepared in the first `place` entries. The ids of a leader's writes ascend."""
    members: Members = []
    for entry in islice(reversed(timeline.entries), len(timeline.entries) - place, None):
        event = entry.event
        if isinstance(event, SharePartitionLoaded):
            break
        if isinstance(event, (RecordsChanged, StateWritePrepared)) and leader in (None, entry.broker_id):
            if isinstance(event, RecordsChanged) and event.cause != PREPARED:
                continue
            if (event.write_id or 0) < write_id:
                break
            if event.write_id == write_id:
                _add(members, event)
    return members


_OF_WRITES = frozenset((SharePartitionLoaded, StateWritePrepared, StateWriteSettled, RecordsChanged))


def _add(members: Members, event: RecordsChanged | StateWritePrepared) -> None:
    """Add the records that the event prepares to accept."""
    if isinstance(event, RecordsChanged) and event.why == RecordEvent.ACCEPT and event.member_id is not None:
        members.append((event.member_id, event.end - event.first))


def _leader_before(timeline: PartitionTimeline, place: int) -> int | None:
    """The broker of the last load in the first `place` entries; None if the journal has dropped it."""
    loads = timeline.loads
    order = timeline.entries[place].order if place < len(timeline.entries) else timeline.journal.total
    count = bisect_left(loads, order, key=_order)
    return loads[count - 1].broker_id if count else None


_order, _time = attrgetter("order"), attrgetter("time_ms")
