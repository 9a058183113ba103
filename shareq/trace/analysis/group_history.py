"""A share group at any moment of a journal: its members, its share-partitions, and the brokers of its cluster.

A moment is a number of entries of the journal: with `until`, the entries whose order is below it are applied. All
pictures of one group read the same history, so that they show the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from shareq.model.events import DurableStateRead, SharePartitionLoaded, SharePartitionsInitialized
from shareq.model.ids import Place
from shareq.trace.analysis.accepted import AcceptedRecords
from shareq.trace.analysis.durable_state import DurableState, DurableTimeline
from shareq.trace.analysis.groups import OF_CLUSTER, OF_GROUP, ClusterFold, GroupFold
from shareq.trace.analysis.latest import Latest
from shareq.trace.analysis.liveness import OF_LIVENESS, Liveness
from shareq.trace.analysis.locks import LockFold, LockHistory
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.record_history import RecordHistory
from shareq.trace.analysis.record_moves import RecordMoves
from shareq.trace.analysis.replay import Replay
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.shared import shared
from shareq.trace.journal import Entry, Journal, journal_of

T = TypeVar("T")

RECORDS_KEPT = 8
"""The number of records whose histories are kept, the latest ones asked for."""

_OF_SHARE_PARTITION = (SharePartitionsInitialized, SharePartitionLoaded, DurableStateRead)
"""The first event of a share-partition, also of one of which no initialization is recorded."""


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
        self._records: Latest[RecordHistory] = Latest(RECORDS_KEPT)
        self._liveness = Replay(Liveness(), lambda state, _, entry: state.apply(entry))
        self._first: dict[Place, int] = {}
        self._kept: dict[Hashable, Any] = {}
        self._seen = 0

    def refresh(self) -> None:
        """Read the journal to its end."""
        journal, group, first, end = self.journal, self.group_id, self._seen, self.journal.total
        if end == first:
            return
        self._cluster.entries += journal.between(first, end, OF_CLUSTER)
        self._group.entries += [e for e in journal.between(first, end, OF_GROUP) if _concerns(e.event, group)]
        alive = journal.between(first, end, OF_LIVENESS)
        self._liveness.entries += [e for e in alive if _concerns_liveness(e.event, group)]
        for entry in journal.between(first, end, _OF_SHARE_PARTITION):
            self._add_share_partitions(entry.order, entry.event)
        self._seen = end

    def _add_share_partitions(self, order: int, event: Any) -> None:
        """Add the share-partitions that the event is the first one of."""
        if event.group_id == self.group_id:
            several = isinstance(event, SharePartitionsInitialized)
            for partition in event.partitions if several else (event.partition,):
                self._first.setdefault((event.topic, partition), order)

    @property
    def total(self) -> int:
        """The number of entries read so far: the newest moment."""
        return self._seen

    # ---- states ------------------------------------------------------------------------------------------------------

    def group(self, until: int) -> GroupFold:
        """The members, epochs and assignments of the group."""
        return self._group.state(self._group.count(until))

    def liveness(self, until: int) -> Liveness:
        """The heartbeats of the members, and the members that have gone."""
        return self._liveness.state(self._liveness.count(until))

    def cluster(self, until: int) -> ClusterFold:
        """The brokers, the topics, their leaders and the ends of their logs."""
        return self._cluster.state(self._cluster.count(until))

    def cluster_entries(self, since: int, until: int) -> list[Entry]:
        """The entries about brokers, topics, leaders and logs, whose order is in [since, until)."""
        return self._cluster.entries[self._cluster.count(since) : self._cluster.count(until)]

    def share_partitions(self, until: int) -> list[Place]:
        """The share-partitions that are initialized or loaded so far, sorted."""
        return sorted(found for found, order in self._first.items() if order < until)

    @property
    def has_several_share_partitions(self) -> bool:
        """True if the group has more than one share-partition, up to the end of the journal."""
        return len(self._first) > 1

    def share_partition(self, topic: str, partition: int, until: int) -> SharePartitionState:
        """The records, the window and the writes of one share-partition."""
        timeline = self.timeline(topic, partition)
        return timeline.state(timeline.count(until))

    def locks(self, topic: str, partition: int, until: int, since_ms: int) -> LockFold:
        """The acquisition locks of one share-partition, and the latest that ended at or after `since_ms`, with the
        times of their acquisition and renewals."""
        timeline = self.timeline(topic, partition)
        return self.kept((LockHistory, topic, partition), lambda: LockHistory(timeline)).at(until, since_ms)

    def record(self, topic: str, partition: int, offset: int) -> RecordHistory:
        """The changes of one record, up to the end of the journal. The first call reads the whole timeline."""
        timeline = self.timeline(topic, partition)
        found = self._records.of((topic, partition, offset), lambda: RecordHistory(timeline, offset))
        found.refresh()
        return found

    def durable(self, topic: str, partition: int, until: int) -> DurableState:
        """What the state topic has of one share-partition."""
        timeline = self.durable_timeline(topic, partition)
        return timeline.state(timeline.count(until))

    def durable_timeline(self, topic: str, partition: int) -> DurableTimeline:
        """The records of one share-partition in the state topic, up to the end of the journal."""
        found = self.kept(
            (DurableTimeline, topic, partition),
            lambda: DurableTimeline(self.journal, self.group_id, topic, partition),
        )
        found.refresh()
        return found

    def accepted(self, topic: str, partition: int) -> AcceptedRecords:
        """The acceptances of one share-partition, up to the end of the journal."""
        timeline = self.timeline(topic, partition)
        return self.kept((AcceptedRecords, topic, partition), lambda: AcceptedRecords(timeline))

    def moves(self, topic: str, partition: int) -> RecordMoves:
        """The transitions of the records of one share-partition, up to the end of the journal."""
        timeline = self.timeline(topic, partition)
        return self.kept((RecordMoves, topic, partition), lambda: RecordMoves(timeline))

    def timeline(self, topic: str, partition: int) -> PartitionTimeline:
        """The entries of one share-partition, up to the end of the journal."""
        found = self.kept(
            (PartitionTimeline, topic, partition),
            lambda: PartitionTimeline(self.journal, self.group_id, topic, partition),
        )
        found.refresh()
        return found

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object that `make` made at the first call with this key: a fold that only some pictures need."""
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found


def history_of(journal: Journal, group: str) -> GroupHistory:
    """The history that all views of a journal and group share."""
    return shared(journal, (GroupHistory, group), lambda: GroupHistory(journal, group))


def _concerns_liveness(event: Any, group: str) -> bool:
    """True for an event of this group, of group coordinators, or about the brokers' configuration."""
    if hasattr(event, "resource"):
        return bool(event.resource == "broker")
    return not hasattr(event, "group_id") or bool(event.group_id == group)


def _concerns(event: Any, group: str) -> bool:
    """True for an event of this group; a configuration names its group in its resource."""
    if hasattr(event, "resource"):
        return bool(event.resource == f"group:{group}")
    return bool(event.group_id == group)
