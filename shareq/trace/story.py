"""The story of one share-partition: its entries in the journal, and its state after any number of them.

Scrubbing back and forth costs the distance to the nearest checkpoint, not the length of the journal.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from shareq.model.errors import ConfigException
from shareq.model.events import (
    AcknowledgementRefused,
    BrokerStopped,
    ConfigChanged,
    DurableStateRead,
    FaultInjected,
    LeaderElected,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    ObservationDisturbed,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    SharePartitionDropped,
    SharePartitionLoaded,
    SharePartitionsInitialized,
    ShareSessionClosed,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.trace.fold import SharePartitionState
from shareq.trace.index import Subject, index_of
from shareq.trace.journal import Entry, Journal

CHECKPOINT_EVERY = 256

_LEADER = (
    SharePartitionLoaded,
    SharePartitionDropped,
    RecordsChanged,
    WindowMoved,
    StateWritePrepared,
    StateWriteSettled,
    AcknowledgementRefused,
    DurableStateRead,
    RecordsHeld,
)
_LOG = (RecordsAppended, LogStartMoved, LeaderElected)
_TOPIC = (TopicCreated, TopicDeleted)
_GROUP = (MemberJoined, MemberLeft, ShareSessionClosed, ConfigChanged)
_CLUSTER = (BrokerStopped, FaultInjected, ObservationDisturbed)


def journal_of(source: Any) -> Journal:
    """The journal of a source: it is one, or has one as `.journal` (a cluster does, also when it is served)."""
    source = getattr(source, "cluster", source)
    journal = source if isinstance(source, Journal) else getattr(source, "journal", None)
    if not isinstance(journal, Journal):
        raise ConfigException(f"source={source!r}: must be a Journal, or have one as its .journal")
    return journal


class Story:
    """What one share-partition went through. Grows with the journal when asked to `refresh`.

    What a bounded journal drops later is still known here; where it had been dropped before it could be read, the fold
    goes on as `partial`. For use by one thread.
    """

    def __init__(self, journal: Journal, group: str, topic: str, partition: int) -> None:
        self.journal = journal
        self.entries: list[Entry] = []
        self._key = (group, topic, partition)
        self._index = index_of(journal)
        self._subjects = {
            Subject(group, topic, partition): _LEADER,
            Subject(None, topic, partition): _LOG,
            Subject(None, topic): _TOPIC,
            Subject(group, topic): (SharePartitionsInitialized,),
            Subject(group): _GROUP,
            Subject(): _CLUSTER,
        }
        self._seen = 0
        self._gaps: set[int] = set()
        self._checkpoints = [SharePartitionState(group, topic, partition)]
        self._cursor = self._checkpoints[0].copy()
        self._folded = 0

    def refresh(self) -> list[Entry]:
        """Take in what the journal has got since; answers that."""
        total, dropped = self.journal.total, self.journal.dropped
        if total == self._seen:
            return []
        new: list[Entry] = []
        for subject, types in self._subjects.items():
            entries = self._index.about(subject)
            start = bisect_right(entries, self._seen - 1, key=_order)
            new += [e for e in entries[start:] if e.order < total and isinstance(e.event, types)]
        if dropped > self._seen:
            self._gaps.add(len(self.entries))
        self._seen = total
        new.sort()
        self.entries += new
        return new

    def state(self, count: int) -> SharePartitionState:
        """The state after the first `count` entries. It belongs to the story: copy it to keep it."""
        nearest = min(count // CHECKPOINT_EVERY, len(self._checkpoints) - 1)
        if not nearest * CHECKPOINT_EVERY <= self._folded <= count:
            self._cursor, self._folded = self._checkpoints[nearest].copy(), nearest * CHECKPOINT_EVERY
        for position in range(self._folded, count):
            if position in self._gaps:
                self._cursor.partial = True
            self._cursor.apply(self.entries[position])
            self._folded = position + 1
            if self._folded == CHECKPOINT_EVERY * len(self._checkpoints):
                self._checkpoints.append(self._cursor.copy())
        return self._cursor

    def at_time(self, time_ms: int) -> int:
        """How many entries there are up to and including this time."""
        return bisect_right(self.entries, time_ms, key=_time)


def _order(entry: Entry) -> int:
    return entry.order


def _time(entry: Entry) -> int:
    return entry.time_ms
