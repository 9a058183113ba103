"""Writes what is observed of topics and their logs: only values that differ from those that were written last."""

from __future__ import annotations

from shareq.model.events import (
    LeaderElected,
    LogStartMoved,
    PartitionsAdded,
    RecordsAppended,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.messages.cluster import MetadataResponse
from shareq.observer.poll_result import PartitionId
from shareq.observer.timed_journal import TimedJournal


class LogWriter:
    """The topics of all observed groups of a journal. To be called with the lock of the journal."""

    def __init__(self, timed: TimedJournal) -> None:
        self._write = timed.write
        self._topics: dict[str, tuple[str, int]] = {}
        self._leaders: dict[PartitionId, tuple[int, int]] = {}
        self._starts: dict[PartitionId, int] = {}
        self._ends: dict[PartitionId, int] = {}
        self._known_ms: dict[PartitionId, int] = {}
        """The time at which a response that has passed a proxy named the written end."""

    def topic_id(self, name: str) -> str | None:
        """The id of a topic that was written; None for others."""
        found = self._topics.get(name)
        return None if found is None else found[0]

    def leader(self, at: PartitionId) -> int | None:
        """The leader that was written last; None if there is none."""
        found = self._leaders.get(at)
        return None if found is None else found[0]

    def write_topic(self, name: str, topic: MetadataResponse.Topic | None) -> None:
        """Write what has changed in the metadata of a topic; None: it does not exist."""
        written = self._topics.get(name)
        now = None if topic is None else (topic.topic_id, len(topic.partitions))
        if written is not None and (now is None or now[0] != written[0]):
            self._discard(name)
            self._write(TopicDeleted(name, written[0]))
            written = None
        if topic is None or now is None:
            return
        self._topics[name] = now
        if written is None:
            self._write(TopicCreated(name, *now))
        elif now != written:
            self._write(PartitionsAdded(name, *now))
        for partition in topic.partitions:
            self.write_leader((name, partition.partition_index), partition.leader_id, partition.leader_epoch)

    def write_leader(self, at: PartitionId, leader: int, leader_epoch: int) -> bool:
        """Write a new leader; False if it is none: one with an older epoch is that of a late response."""
        written = self._leaders.get(at)
        if written == (leader, leader_epoch) or (written is not None and leader_epoch < written[1]):
            return False
        self._leaders[at] = (leader, leader_epoch)
        self._write(LeaderElected(*at, leader, leader_epoch))
        return True

    def write_log_start(self, at: PartitionId, offset: int) -> None:
        if offset != self._starts.get(at, 0):
            self._starts[at] = offset
            self._write(LogStartMoved(*at, offset))

    def write_log_end(self, at: PartitionId, end: int, begun_ms: int = 0) -> None:
        """Write the end that a poll has read, which began at this time. A lower end than the written one is that of a
        truncated log, unless the poll began before the written one was named.
        """
        written = self._ends.get(at, self._starts.get(at, 0))
        if end < written and begun_ms <= self._known_ms.get(at, -1):
            return
        self._ends[at] = end
        if end > written:
            self._write(RecordsAppended(*at, written, end))

    def write_known_end(self, at: PartitionId, end: int, now_ms: int) -> None:
        """Write that the log has the records below `end`: its leader has appended or delivered the last of them."""
        if end > self._ends.get(at, self._starts.get(at, 0)):
            self.write_log_end(at, end)
            self._known_ms[at] = now_ms

    def _discard(self, name: str) -> None:
        """Discard the written values of a deleted topic."""
        del self._topics[name]
        for written in (self._leaders, self._starts, self._ends, self._known_ms):
            for at in [at for at in written if at[0] == name]:
                del written[at]
