"""Writes the journal of an observer: the differences between polls, and the events of clients in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from shareq.coordinator.share_state.rules import events_of
from shareq.coordinator.share_state.state import KeyState
from shareq.model.events import (
    AcknowledgementsSent,
    ConfigChanged,
    DurableStateRead,
    Event,
    GroupDeleted,
    GroupEpochBumped,
    HeartbeatReceived,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    MembersBypass,
    ObservationDisturbed,
    RecordsDelivered,
    RecordsHeld,
    Run,
)
from shareq.model.messages.share_group import ShareGroupDescribeResponse
from shareq.model.messages.share_state import StateBatch
from shareq.observer.log_writer import LogWriter
from shareq.observer.poll_result import PartitionId, PollResult
from shareq.observer.timed_journal import TimedJournal

MEMBER_TIMEOUT_MS = 60_000
"""Maximum time that a client's event waits until the group's coordinator describes its member."""

Member = ShareGroupDescribeResponse.Member
Assignment = tuple[tuple[str, tuple[int, ...]], ...]
_NOT_RECONCILED: tuple[int, Assignment] = (-1, ())


class JournalWriter:
    """Writes one group's journal. The observer's thread writes polls, any thread writes clients' events.

    The fields hold the values that were written last; only a value that differs from them is an event.
    """

    def __init__(self, timed: TimedJournal, logs: LogWriter, group: str) -> None:
        self._timed, self._logs, self._group = timed, logs, group
        self._write = timed.write
        self.trouble = self._written_trouble = ""
        """The reason why the last poll was incomplete, and the reason that was written last."""
        self._epoch = -1
        self._members: dict[str, tuple[int, Assignment]] = {}
        """Epoch and assignment of each member, as written last."""
        self._seen_ms: dict[str, int] = {}
        """The time of the last heartbeat that was seen of a member, which a poll that began earlier does not change."""
        self._seen: set[str] = set()
        self._bypassing: tuple[str, ...] | None = None
        self._configs: dict[str, str] = {}
        self._states: dict[PartitionId, tuple[str | None, DurableStateRead]] = {}
        """The last read state, with the id of its topic."""
        self._waiting: deque[tuple[int, RecordsDelivered | AcknowledgementsSent]] = deque(maxlen=10_000)

    def write_poll(self, poll: PollResult, now_ms: int, begun_ms: int = 0) -> None:
        """Write what has changed since the last poll: leaders and members before the states of records.

        `begun_ms`: the begin of the poll.
        """
        with self._timed.lock:
            self._timed.advance_to(now_ms)
            self._write_trouble(poll.trouble, at_once=poll.unreachable)
            for name, topic in poll.topics.items():
                self._logs.write_topic(name, topic)
            self._write_configs(poll.configs)
            if poll.group_described:
                self._write_group(poll.group, begun_ms)
            for event in events_of(poll.records):
                self._write(event)
            for at, state in poll.states.items():
                self._write_state(at, state, poll.passed.get(at, ()))
            for at, offset in poll.log_starts.items():
                self._logs.write_log_start(at, offset)
            for at, end in poll.log_ends.items():
                self._logs.write_log_end(at, end, begun_ms)
            self._write_waiting(now_ms)

    def write_failure(self, reason: str, now_ms: int) -> None:
        """Write the failure of a whole poll."""
        with self._timed.lock:
            self._timed.advance_to(now_ms)
            self._write_trouble(reason, at_once=True)

    def write_client_event(self, now_ms: int, event: Event) -> None:
        """Write the event of a client in this process, once the group's coordinator has described its member: only then
        the client is known to be of this cluster, and not of another one with a group of the same name.
        """
        if isinstance(event, (RecordsDelivered, AcknowledgementsSent)) and event.group_id == self._group:
            with self._timed.lock:
                self._timed.advance_to(now_ms)
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

    # ---- the group ---------------------------------------------------------------------------------------------------

    def _write_configs(self, configs: dict[str, str]) -> None:
        for key, value in configs.items():
            if self._configs.get(key) != value:
                self._configs[key] = value
                self._write(ConfigChanged(f"group:{self._group}", key, value))

    def _write_group(self, group: ShareGroupDescribeResponse.DescribedGroup | None, begun_ms: int) -> None:
        members = {member.member_id: member for member in group.members} if group else {}
        self._seen_ms = {member_id: ms for member_id, ms in self._seen_ms.items() if ms >= begun_ms}
        for member_id in sorted(self._members.keys() - members.keys() - self._seen_ms.keys()):
            self._write_left(member_id, "not described any more")
        if group is None:
            if self._epoch >= 0:
                self._epoch = -1
                self._write(GroupDeleted(self._group))
            return
        if group.group_epoch != self._epoch:
            self._epoch = group.group_epoch
            self._write(GroupEpochBumped(self._group, group.group_epoch, "as its coordinator describes it"))
        for member_id, member in members.items():
            if member_id not in self._seen_ms:
                self._write_member(member)

    def _write_member(self, member: Member) -> None:
        if member.member_id not in self._members:
            names = member.subscribed_topic_names
            self._write_joined(MemberJoined(self._group, member.member_id, member.client_id, names))
        held = tuple((topic.topic_name, topic.partitions) for topic in member.assignment.topic_partitions)
        self._write_reconciled(MemberReconciled(self._group, member.member_id, member.member_epoch, held))

    def _write_joined(self, event: MemberJoined) -> None:
        self._members[event.member_id] = _NOT_RECONCILED
        self._write(event)

    def _write_reconciled(self, event: MemberReconciled) -> None:
        now = (event.member_epoch, event.assignment)
        if self._members[event.member_id] != now:
            self._members[event.member_id] = now
            self._write(event)

    def _write_left(self, member_id: str, reason: str) -> None:
        if self._members.pop(member_id, None) is not None:
            self._write(MemberLeft(self._group, member_id, reason))

    # ---- members that are connected through a proxy ------------------------------------------------------------------

    def write_seen(self, event: Event, now_ms: int) -> None:
        """Write an event that was read from the requests and responses of a member. To be called with the lock of the
        journal, at its time.
        """
        if isinstance(event, HeartbeatReceived):
            self.note_beating((event.member_id,), now_ms)
            self._write(event)
        elif isinstance(event, MemberJoined):
            if event.member_id not in self._members:
                self._write_joined(event)
        elif isinstance(event, MemberReconciled):
            if event.member_id in self._members:
                self._write_reconciled(event)
        elif isinstance(event, MemberLeft):
            self._write_left(event.member_id, event.reason)
        else:
            self._write(event)

    def note_beating(self, member_ids: Iterable[str], now_ms: int) -> None:
        """These members have sent heartbeats through the proxy. A poll that began before does not change them, and
        neither does one that may have read the group before or after such a heartbeat: its response names the change.
        """
        for member_id in member_ids:
            self._seen_ms[member_id] = now_ms
            self._seen.add(member_id)

    def write_bypassing(self) -> None:
        """Write the members whose heartbeats were not seen, if they are others than before. Without a description of
        the group they are not known."""
        self._seen &= self._members.keys() | self._seen_ms.keys()
        bypassing = tuple(sorted(self._members.keys() - self._seen))
        if bypassing != self._bypassing:
            self._bypassing = bypassing
            self._write(MembersBypass(self._group, bypassing))

    # ---- records -----------------------------------------------------------------------------------------------------

    def _write_state(self, at: PartitionId, state: KeyState | None, passed: Iterable[StateBatch]) -> None:
        read = _durable_state(self._group, at, state)
        now = (self._logs.topic_id(at[0]), read)
        if self._states.get(at) != now:
            self._states[at] = now
            self._write(read._replace(passed=_runs(passed)))

    def _write_waiting(self, now_ms: int) -> None:
        """Write events of clients whose member is described now; discard those that have waited too long."""
        waiting, self._waiting = self._waiting, deque(maxlen=self._waiting.maxlen)
        for event_ms, event in waiting:
            if event.member_id in self._members:
                self._write_of_member(event)
            elif now_ms - event_ms < MEMBER_TIMEOUT_MS:
                self._waiting.append((event_ms, event))

    def _write_of_member(self, event: RecordsDelivered | AcknowledgementsSent) -> None:
        if self._logs.topic_id(event.topic) is None:
            return
        self._write(event)
        if isinstance(event, RecordsDelivered) and event.delivery_count > 0:
            at = (event.group_id, event.topic, event.partition)
            self._write(RecordsHeld(*at, event.member_id, event.first, event.end, event.delivery_count))


def _durable_state(group: str, at: PartitionId, state: KeyState | None) -> DurableStateRead:
    if state is None:
        return DurableStateRead(group, *at, -1, (), -1, -1, -1, -1)
    epochs = state.snapshot_epoch, state.state_epoch, state.leader_epoch
    return DurableStateRead(
        group, *at, state.start_offset, _runs(state.state_batches), state.delivery_complete_count, *epochs
    )


def _runs(batches: Iterable[StateBatch]) -> tuple[Run, ...]:
    return tuple(Run(b.first_offset, b.last_offset + 1, *b[2:]) for b in batches)
