"""Writes the journal of an observer: the differences between polls, and the events of clients in this process."""

from __future__ import annotations

from collections import deque
from threading import Lock

from shareq.coordinator.share_state.rules import event_of
from shareq.coordinator.share_state.state import KeyState
from shareq.model.events import (
    AcknowledgementsSent,
    ConfigChanged,
    DurableStateRead,
    Event,
    GroupDeleted,
    GroupEpochBumped,
    LeaderElected,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    ObservationDisturbed,
    PartitionsAdded,
    RecordsAppended,
    RecordsDelivered,
    RecordsHeld,
    Run,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.messages.cluster import MetadataResponse
from shareq.model.messages.share_group import ShareGroupDescribeResponse
from shareq.observer.poll_result import PartitionId, PollResult
from shareq.trace import Journal

MEMBER_TIMEOUT_MS = 60_000
"""Maximum time that a client's event waits until the group's coordinator describes its member."""

Member = ShareGroupDescribeResponse.Member


class JournalWriter:
    """Writes one group's journal. The observer's thread writes polls, any thread writes clients' events.

    The fields hold the values that were written last; only a value that differs from them is an event.
    """

    def __init__(self, journal: Journal, group: str) -> None:
        self.journal = journal
        self._group = group
        self._lock = Lock()
        self._now_ms = 0
        self.trouble = self._written_trouble = ""
        """The reason why the last poll was incomplete, and the reason that was written last."""
        self._epoch = -1
        self._members: dict[str, Member] = {}
        self._configs: dict[str, str] = {}
        self._topics: dict[str, tuple[str, int]] = {}
        self._leaders: dict[PartitionId, tuple[int, int]] = {}
        self._states: dict[PartitionId, DurableStateRead] = {}
        self._starts: dict[PartitionId, int] = {}
        self._ends: dict[PartitionId, int] = {}
        self._waiting: deque[tuple[int, RecordsDelivered | AcknowledgementsSent]] = deque(maxlen=10_000)

    def _write(self, event: Event) -> None:
        self.journal.record(self._now_ms, -1, event)

    def _advance_to(self, now_ms: int) -> None:
        """Set the time of the next events. It never decreases, in whatever order threads have read the clock."""
        self._now_ms = max(self._now_ms, now_ms)

    def write_poll(self, poll: PollResult, now_ms: int) -> None:
        """Write what has changed since the last poll: leaders and members before the states of records."""
        with self._lock:
            self._advance_to(now_ms)
            self._write_trouble(poll.trouble, at_once=poll.unreachable)
            for name, topic in poll.topics.items():
                self._write_topic(name, topic)
            self._write_configs(poll.configs)
            if poll.group_described:
                self._write_group(poll.group)
            for record in poll.records:
                self._write(event_of(record))
            for at, state in poll.states.items():
                self._write_state(at, state)
            for at, offset in poll.log_starts.items():
                if offset != self._starts.get(at, 0):
                    self._starts[at] = offset
                    self._write(LogStartMoved(*at, offset))
            for at, end in poll.log_ends.items():
                self._write_log_end(at, end)
            self._write_waiting(now_ms)

    def write_failure(self, reason: str, now_ms: int) -> None:
        """Write the failure of a whole poll."""
        with self._lock:
            self._advance_to(now_ms)
            self._write_trouble(reason, at_once=True)

    def write_client_event(self, now_ms: int, event: Event) -> None:
        """Write the event of a client in this process, once the group's coordinator has described its member: only then
        the client is known to be of this cluster, and not of another one with a group of the same name.
        """
        if isinstance(event, (RecordsDelivered, AcknowledgementsSent)) and event.group_id == self._group:
            with self._lock:
                self._advance_to(now_ms)
                if event.member_id in self._members:
                    self._write_of_member(event)
                else:
                    self._waiting.append((now_ms, event))

    # ---- the cluster -------------------------------------------------------------------------------------------------

    def _write_trouble(self, trouble: str, *, at_once: bool) -> None:
        """Write a trouble of two consecutive polls: leaders and coordinators may move during one."""
        lasts = at_once or not trouble or self.trouble
        self.trouble = trouble
        if lasts and trouble != self._written_trouble:
            self._written_trouble = trouble
            self._write(ObservationDisturbed(trouble))

    def _write_topic(self, name: str, topic: MetadataResponse.Topic | None) -> None:
        written = self._topics.get(name)
        now = None if topic is None else (topic.topic_id, len(topic.partitions))
        if written is not None and (now is None or now[0] != written[0]):
            self._discard_topic(name)
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
            at, leader = (name, partition.partition_index), (partition.leader_id, partition.leader_epoch)
            if self._leaders.get(at) != leader:
                self._leaders[at] = leader
                self._write(LeaderElected(*at, *leader))

    def _discard_topic(self, name: str) -> None:
        """Discard the written values of a deleted topic."""
        del self._topics[name]
        for written in (self._leaders, self._states, self._starts, self._ends):
            for at in [at for at in written if at[0] == name]:
                del written[at]

    def _write_log_end(self, at: PartitionId, end: int) -> None:
        written = self._ends.get(at, self._starts.get(at, 0))
        self._ends[at] = end
        if end > written:
            self._write(RecordsAppended(*at, written, end))

    # ---- the group ---------------------------------------------------------------------------------------------------

    def _write_configs(self, configs: dict[str, str]) -> None:
        for key, value in configs.items():
            if self._configs.get(key) != value:
                self._configs[key] = value
                self._write(ConfigChanged(f"group:{self._group}", key, value))

    def _write_group(self, group: ShareGroupDescribeResponse.DescribedGroup | None) -> None:
        members = {member.member_id: member for member in group.members} if group else {}
        for member_id in [known for known in self._members if known not in members]:
            del self._members[member_id]
            self._write(MemberLeft(self._group, member_id, "not described any more"))
        if group is None:
            if self._epoch >= 0:
                self._epoch = -1
                self._write(GroupDeleted(self._group))
            return
        if group.group_epoch != self._epoch:
            self._epoch = group.group_epoch
            self._write(GroupEpochBumped(self._group, group.group_epoch, "as its coordinator describes it"))
        for member in members.values():
            self._write_member(member)

    def _write_member(self, member: Member) -> None:
        written = self._members.get(member.member_id)
        self._members[member.member_id] = member
        if written is None:
            names = member.subscribed_topic_names
            self._write(MemberJoined(self._group, member.member_id, member.client_id, names))
        if written is None or (written.member_epoch, written.assignment) != (member.member_epoch, member.assignment):
            held = tuple((topic.topic_name, topic.partitions) for topic in member.assignment.topic_partitions)
            self._write(MemberReconciled(self._group, member.member_id, member.member_epoch, held))

    # ---- records -----------------------------------------------------------------------------------------------------

    def _write_state(self, at: PartitionId, state: KeyState | None) -> None:
        read = _durable_state(self._group, at, state)
        if self._states.get(at) != read:
            self._states[at] = read
            self._write(read)

    def _write_waiting(self, now_ms: int) -> None:
        """Write events of clients whose member is described now; discard those that have waited too long."""
        waiting, self._waiting = self._waiting, deque(maxlen=self._waiting.maxlen)
        for event_ms, event in waiting:
            if event.member_id in self._members:
                self._write_of_member(event)
            elif now_ms - event_ms < MEMBER_TIMEOUT_MS:
                self._waiting.append((event_ms, event))

    def _write_of_member(self, event: RecordsDelivered | AcknowledgementsSent) -> None:
        if event.topic not in self._topics:
            return
        self._write(event)
        if isinstance(event, RecordsDelivered) and event.delivery_count > 0:
            at = (event.group_id, event.topic, event.partition)
            self._write(RecordsHeld(*at, event.member_id, event.first, event.end, event.delivery_count))


def _durable_state(group: str, at: PartitionId, state: KeyState | None) -> DurableStateRead:
    if state is None:
        return DurableStateRead(group, *at, -1, (), -1, -1, -1, -1)
    runs = tuple(Run(b.first_offset, b.last_offset + 1, *b[2:]) for b in state.state_batches)
    epochs = state.snapshot_epoch, state.state_epoch, state.leader_epoch
    return DurableStateRead(group, *at, state.start_offset, runs, state.delivery_complete_count, *epochs)
