"""A broker with one share-partition and nothing else: a leader, its log, its clock, its journal.

The leader is a pure state machine, so a class in its place is all that a broken broker needs.
"""

from __future__ import annotations

from typing import Final

from shareq.leader.share_partition import PreparedWrite, SharePartition
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.events import Event, MemberJoined, RecordsAppended, TopicCreated
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.records import NO_PRODUCER_ID, RecordBatch
from shareq.model.states import AcknowledgeType, AcquireMode
from shareq.trace import Journal

RECORDS: Final = 40
LOCK_S: Final = 30
LIMIT: Final = 5
LOCKS: Final = 8
"""The record locks: Kafka allows no fewer than 100, and 8 are soon used up."""

CONFIG: Final = GroupConfig(
    record_lock_duration_ms=LOCK_S * 1000, delivery_count_limit=LIMIT, partition_max_record_locks=LOCKS
)


class SmallBroker:
    """One share-partition of `records` record batches of one record, all of them in the log from the start.

    `leader`: the class of its share-partition leader. Time passes only in `advance` (ms from 0), and state writes are
    durable at once. Its journal has views, such as `strip(broker, group=broker.group, topic=broker.topic)`.
    """

    group, topic = "crew", "jobs"

    def __init__(
        self, leader: type[SharePartition] = SharePartition, *, records: int = RECORDS, config: GroupConfig = CONFIG
    ) -> None:
        self.journal = Journal(0)
        self.now_ms = 0
        self.config = config
        topic_id = TopicId("B" * 22)
        self._log = [_record_batch(offset) for offset in range(records)]
        self._members: set[str] = set()
        self._record(TopicCreated(self.topic, topic_id, 1), RecordsAppended(self.topic, 0, 0, records))
        self._leader = leader(SharePartitionKey(self.group, topic_id, 0), self.topic, leader_epoch=0, traced=True)
        self._leader.load(0, 0, (), config=config)
        self._done(None)

    def fetch(self, member: str) -> tuple[int, int] | None:
        """Acquire one record for a member. Returns its offset and delivery count, None if there is none to acquire."""
        if member not in self._members:
            self._members.add(member)
            self._record(MemberJoined(self.group, member, member, (self.topic,)))
        leader = self._leader
        offset = leader.next_fetch_offset
        acquired, _ = leader.acquire(
            self._log[offset:] if leader.can_acquire(self.config.partition_max_record_locks) else (),
            offset,
            member_id=member,
            max_records=1,
            batch_size=1,
            mode=AcquireMode.RECORD_LIMIT,
            config=self.config,
            aborted=(),
            now_ms=self.now_ms,
        )
        self._done(None)
        return (acquired[0].first_offset, acquired[0].delivery_count) if acquired else None

    def acknowledge(self, member: str, offset: int, kind: AcknowledgeType) -> str:
        """Acknowledge one record. Returns "ok" or the name of the leader's error."""
        batch = AcknowledgementBatch(first_offset=offset, last_offset=offset, acknowledge_types=(int(kind),))
        result = self._leader.acknowledge(member, [batch], self.config, self.now_ms)
        if isinstance(result, Errors):
            self._done(None)
            return result.name
        self._done(result)
        return "ok"

    def close(self, member: str) -> None:
        """End the share session of a member; its next fetch opens another one."""
        self._done(self._leader.release_member(member, self.config))

    def advance(self, milliseconds: int) -> None:
        """Let time pass; locks end on the way."""
        end_ms = self.now_ms + milliseconds
        while (due_ms := self._leader.next_deadline_ms) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self._done(self._leader.expire(self.now_ms, self.config))
        self.now_ms = end_ms

    def _done(self, write: PreparedWrite | None) -> None:
        """Make a state write durable, and journal what has happened."""
        leader = self._leader
        if write is not None:
            leader.settle(write.write_id, Errors.NONE, self.config, self.now_ms)
        leader.unblock(self.config, self.now_ms)
        self._record(*leader.take_events())

    def _record(self, *events: Event) -> None:
        for event in events:
            self.journal.record(self.now_ms, 0, event)


def _record_batch(offset: int) -> RecordBatch:
    return RecordBatch(offset, offset, 0, 0, 0, NO_PRODUCER_ID, 0, -1, 1, 0, b"")
