"""A share group at any moment of a journal: its members, its share-partitions, and the brokers of its cluster.

A moment is a number of entries of the journal: with `until`, the entries whose order is below it are applied. All
pictures of one group read the same history, so that they show the same moment.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from shareq.model.events import DurableStateRead, SharePartitionLoaded, SharePartitionsInitialized
from shareq.trace.analysis.groups import OF_CLUSTER, OF_GROUP, ClusterFold, GroupFold
from shareq.trace.analysis.locks import LockFold, LockHistory
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.record_history import RecordHistory
from shareq.trace.analysis.replay import Replay
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal import Entry, Journal, journal_of

TopicPartition = tuple[str, int]

RECORDS_KEPT = 8
"""The number of records whose histories are kept, the latest ones asked for."""

_OF_SHARE_PARTITION = (SharePartitionLoaded, DurableStateRead)
"""The first event of a share-partition of which no initialization is recorded."""


class GroupHistory:
    """The states of one group over a journal that may still grow. Not thread-safe.

    `journal`: the journal of the source. Every state is changed by the next call for the same object: read it at once,
    or copy it.
    """

    def __init__(self, source: Any, group: str) -> None:
        self.journal: Journal = journal_of(source)
        self.group_id = group
        self._group = Replay(GroupFold(group), lambda state, _, entry: state.apply(entry))
        self._cluster = Replay(ClusterFold(), lambda state, _, entry: state.apply(entry))
        self._timelines: dict[TopicPartition, PartitionTimeline] = {}
        self._locks: dict[TopicPartition, LockHistory] = {}
        self._records: dict[tuple[str, int, int], RecordHistory] = {}
        self._first: dict[TopicPartition, int] = {}
        self._seen = 0

    def refresh(self) -> list[Entry]:
        """Read the journal to its end, and return the new entries of all subjects, in order."""
        new = self.journal.since(self._seen)
        for entry in new:
            event = entry.event
            if isinstance(event, OF_CLUSTER):
                self._cluster.entries.append(entry)
            elif isinstance(event, OF_GROUP):
                if _concerns(event, self.group_id):
                    self._group.entries.append(entry)
            elif isinstance(event, _OF_SHARE_PARTITION) and event.group_id == self.group_id:
                self._first.setdefault((event.topic, event.partition), entry.order)
            if isinstance(event, SharePartitionsInitialized) and event.group_id == self.group_id:
                for partition in event.partitions:
                    self._first.setdefault((event.topic, partition), entry.order)
        if new:
            self._seen = new[-1].order + 1
        return new

    @property
    def total(self) -> int:
        """The number of entries read so far: the newest moment."""
        return self._seen

    def until_at(self, time_ms: int) -> int:
        """The moment after the last entry at or before `time_ms` (since the epoch)."""
        entries = self.journal.entries()
        place = bisect_right(entries, time_ms, hi=len(entries), key=lambda entry: entry.time_ms)
        return entries[place - 1].order + 1 if place else 0

    # ---- states ------------------------------------------------------------------------------------------------------

    def group(self, until: int) -> GroupFold:
        """The members, epochs and assignments of the group."""
        return self._group.state(self._group.count(until))

    def cluster(self, until: int) -> ClusterFold:
        """The brokers, the topics, their leaders and the ends of their logs."""
        return self._cluster.state(self._cluster.count(until))

    def share_partitions(self, until: int) -> list[TopicPartition]:
        """The share-partitions that are initialized or loaded so far, sorted."""
        return sorted(found for found, order in self._first.items() if order < until)

    def share_partition(self, topic: str, partition: int, until: int) -> SharePartitionState:
        """The records, the window and the writes of one share-partition."""
        timeline = self.timeline(topic, partition)
        return timeline.state(timeline.count(until))

    def locks(self, topic: str, partition: int, until: int, since_ms: int) -> LockFold:
        """The acquisition locks of one share-partition, and the latest that ended at or after `since_ms`, with the
        times of their acquisition and renewals."""
        timeline, key = self.timeline(topic, partition), (topic, partition)
        if key not in self._locks:
            self._locks[key] = LockHistory(timeline)
        return self._locks[key].at(until, since_ms)

    def record(self, topic: str, partition: int, offset: int) -> RecordHistory:
        """The changes of one record, up to the end of the journal. The first call reads the whole timeline."""
        timeline, key = self.timeline(topic, partition), (topic, partition, offset)
        found = self._records.pop(key, None) or RecordHistory(timeline, offset)
        self._records[key] = found
        if len(self._records) > RECORDS_KEPT:
            del self._records[next(iter(self._records))]
        found.refresh()
        return found

    def timeline(self, topic: str, partition: int) -> PartitionTimeline:
        """The entries of one share-partition, up to the end of the journal."""
        key = topic, partition
        if key not in self._timelines:
            self._timelines[key] = PartitionTimeline(self.journal, self.group_id, topic, partition)
        self._timelines[key].refresh()
        return self._timelines[key]


def _concerns(event: Any, group: str) -> bool:
    """True for an event of this group; a configuration names its group in its resource."""
    if hasattr(event, "resource"):
        return bool(event.resource == f"group:{group}")
    return bool(event.group_id == group)
