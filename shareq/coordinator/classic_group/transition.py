"""One change of a classic group: new state, records, deadlines, responses and events, applied with the commit.

The steps are Kafka's, in its order: a rebalance is prepared, members join, the generation begins, the leader sends the
assignment. Source: Kafka's GroupMetadataManager, the methods about classic groups.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shareq.coordinator.classic_group.protocol import assigned_partitions
from shareq.coordinator.classic_group.state import (
    ClassicGroup,
    ClassicGroupEvent,
    ClassicGroupMember,
    ClassicGroupState,
    InitialDelay,
)
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.group.group import GroupType
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.runtime.turn import Append
from shareq.model.errors import Errors
from shareq.model.events import Event, GroupEpochBumped, MemberJoined, MemberLeft, MemberReconciled
from shareq.model.messages.classic_group import JoinGroupResponse, SyncGroupResponse
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Workflow

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""Session timeout of a member whose first JoinGroup is not answered yet: its client may have disconnected."""

_EMPTY, _PREPARING, _COMPLETING, _STABLE, _ = ClassicGroupState


class Transition:
    """Changes a copy of a group. Responses to waiting requests, deadlines and events are collected and take effect with
    the commit, when the copy replaces the group. If the append fails, nothing has changed."""

    def __init__(self, context: Context, shard: GroupShard, group: ClassicGroup) -> None:
        self.context, self.shard, self.day_ms = context, shard, context.day_ms
        self.group = group.copy()
        self.records: list[CoordinatorRecord] = []
        self._answers: list[Callable[[], None]] = []
        self._deadlines: dict[DeadlineKey, int | None] = {}
        self._events: list[Event] = []

    def append(self) -> Workflow[Errors]:
        """Append the records, then replace the group by the copy. Returns the error of the append."""
        error: Errors = yield Append(self.records)
        if not error:
            self._commit()
        return error

    def _commit(self) -> None:
        context = self.context
        self.shard.groups[self.group.group_id] = self.group
        context.schedule_expiry()
        for due, duration_ms in self._deadlines.items():
            if duration_ms is None:
                context.deadlines.forget(due)
            else:
                context.deadlines.restart(due, context.now_ms + duration_ms)
        context.trace(*self._events)
        for answer in self._answers:
            answer()

    # ---- deadlines ---------------------------------------------------------------------------------------------------

    def restart_session(self, member: ClassicGroupMember, duration_ms: int | None = None) -> None:
        """Restart the member's session; it expires after `duration_ms`, by default the session timeout."""
        due = DeadlineKey(DeadlineKind.CLASSIC_SESSION, self.group.group_id, member.member_id)
        self._deadlines[due] = member.session_timeout_ms if duration_ms is None else duration_ms

    def start_pending_deadline(self, member_id: str, session_timeout_ms: int) -> None:
        """Start the deadline by which a client must join with its new member id."""
        self.group.pending |= {member_id}
        self._deadlines[DeadlineKey(DeadlineKind.CLASSIC_SESSION, self.group.group_id, member_id)] = session_timeout_ms

    def _wait(self, kind: DeadlineKind, duration_ms: int | None) -> None:
        self._deadlines[DeadlineKey(kind, self.group.group_id)] = duration_ms

    # ---- members -----------------------------------------------------------------------------------------------------

    def add(self, member: ClassicGroupMember, protocol_type: str) -> None:
        """Add a new member whose JoinGroup waits. The first member becomes leader."""
        group = self.group
        group.pending -= {member.member_id}
        if not group.members:
            group.protocol_type = protocol_type
        if group.leader_id is None:
            group.leader_id = member.member_id
        if group.initial_delay:
            group.initial_delay = group.initial_delay._replace(member_added=True)
        group.members[member.member_id] = member
        self.restart_session(member, NEW_MEMBER_JOIN_TIMEOUT_MS)

    def update(self, member: ClassicGroupMember) -> None:
        """Store the changed member. Its earlier waiting request is answered with REBALANCE_IN_PROGRESS."""
        former = self.group.members[member.member_id]
        if former.awaiting_join and former.awaiting_join is not member.awaiting_join:
            self._answer_join(former, Errors.REBALANCE_IN_PROGRESS)
        if former.awaiting_sync and former.awaiting_sync is not member.awaiting_sync:
            self._answer_sync(former, Errors.REBALANCE_IN_PROGRESS)
        self.group.members[member.member_id] = member

    def replace(self, former: ClassicGroupMember, member: ClassicGroupMember) -> None:
        """Replace a static member that rejoins under a new member id; requests waiting under the old id are fenced."""
        group = self.group
        self._dismiss(former, Errors.FENCED_INSTANCE_ID)
        del group.members[former.member_id]
        group.members[member.member_id] = member
        if group.leader_id == former.member_id:
            group.leader_id = member.member_id
        self.restart_session(member)
        self._events.append(MemberLeft(group.group_id, former.member_id, "replaced"))
        self._trace_joined(member)

    def remove(self, member_id: str, reason: str) -> None:
        """Remove a member or a pending member id. If it was the leader, the next member leads."""
        group = self.group
        group.pending -= {member_id}
        self._deadlines[DeadlineKey(DeadlineKind.CLASSIC_SESSION, group.group_id, member_id)] = None
        member = group.members.pop(member_id, None)
        if member is None:
            return
        self._dismiss(member, Errors.UNKNOWN_MEMBER_ID)
        if not member.is_new:
            self._events.append(MemberLeft(group.group_id, member_id, reason))
        if group.leader_id == member_id:
            group.leader_id = next(iter(group.members), None)

    def _dismiss(self, member: ClassicGroupMember, error: Errors) -> None:
        self._answer_join(member, error)
        self._answer_sync(member, error)
        self.synced(member.member_id)

    def _answer_join(self, member: ClassicGroupMember, error: Errors) -> None:
        if member.awaiting_join:
            member_id = "" if error is Errors.UNKNOWN_MEMBER_ID else member.member_id
            response = JoinGroupResponse(error_code=error, member_id=member_id)
            self._answers.append(partial(member.awaiting_join.keep, response))

    def _answer_sync(self, member: ClassicGroupMember, error: Errors) -> None:
        if member.awaiting_sync:
            self._answers.append(partial(member.awaiting_sync.keep, SyncGroupResponse(error_code=error)))

    def synced(self, member_id: str) -> None:
        """The member's SyncGroup is not awaited any more; without such members the sync timeout ends."""
        group = self.group
        group.pending_sync -= {member_id}
        if not group.pending_sync:
            self._wait(DeadlineKind.CLASSIC_SYNC, None)

    # ---- the join phase ----------------------------------------------------------------------------------------------

    def rebalance(self) -> None:
        """Begin the join phase, or end the running one if all members have joined.

        A group that was Empty waits for the initial rebalance delay, any other group for all members.
        """
        group = self.group
        if group.state is _PREPARING:
            if group.all_joined and not group.initial_delay:
                self.complete_join()
            return
        self._wait(DeadlineKind.CLASSIC_SYNC, None)
        if group.state is _COMPLETING:
            self._cancel_sync()
        was_empty = group.state is _EMPTY
        group.step(ClassicGroupEvent.REBALANCE, self.day_ms)
        if was_empty:
            delay_ms: int = self.context.image.broker_config["group.initial.rebalance.delay.ms"]
            group.initial_delay = InitialDelay(delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
            self._wait(DeadlineKind.CLASSIC_JOIN, delay_ms)
        elif group.all_joined:
            self.complete_join()
        else:
            self._wait(DeadlineKind.CLASSIC_JOIN, group.rebalance_timeout_ms)

    def rebalance_remaining(self) -> None:
        """After `remove`: rebalance, so that the remaining members get its partitions. An Empty group has none."""
        if self.group.state is not _EMPTY:
            self.rebalance()

    def _cancel_sync(self) -> None:
        """Answer waiting SyncGroup requests with REBALANCE_IN_PROGRESS and clear the assignments."""
        for member in list(self.group.members.values()):
            self._answer_sync(member, Errors.REBALANCE_IN_PROGRESS)
            if member.awaiting_sync:
                self.restart_session(member)
            self.group.members[member.member_id] = member._replace(awaiting_sync=None, assignment=b"")

    def extend_or_complete_join(self) -> None:
        """The join phase has timed out: complete it. The initial delay is extended if a member has joined during it and
        time remains."""
        delay = self.group.initial_delay
        if delay and delay.member_added and delay.remaining_ms:
            delay_ms: int = self.context.image.broker_config["group.initial.rebalance.delay.ms"]
            following_ms = min(delay_ms, delay.remaining_ms)
            self.group.initial_delay = InitialDelay(following_ms, max(delay.remaining_ms - delay.delay_ms, 0))
            self._wait(DeadlineKind.CLASSIC_JOIN, following_ms)
        else:
            self.complete_join()

    def complete_join(self) -> None:
        """Begin the next generation with the members that have joined and all static members.

        If no member has joined, the join phase goes on until the sessions of the static members expire.
        """
        group = self.group
        group.initial_delay = None
        for member in list(group.members.values()):
            if not member.awaiting_join and member.group_instance_id is None:
                self.remove(member.member_id, "did not rejoin")
        if group.members and not self._elect():
            self._wait(DeadlineKind.CLASSIC_JOIN, group.rebalance_timeout_ms)
            return
        self._wait(DeadlineKind.CLASSIC_JOIN, None)
        group.generation_id += 1
        group.protocol_name = group.select_protocol() if group.members else None
        group.topics = group.subscribed()
        group.step(ClassicGroupEvent.JOINED if group.members else ClassicGroupEvent.EMPTIED, self.day_ms)
        reason = "members joined" if group.members else "no member is left"
        self._events.append(GroupEpochBumped(group.group_id, group.generation_id, reason))
        if not group.members:
            self.records.append(group.record())
            return
        group.pending_sync = frozenset(group.members)
        self._wait(DeadlineKind.CLASSIC_SYNC, group.rebalance_timeout_ms)
        for member in list(group.members.values()):
            self._joined(member)

    def _elect(self) -> bool:
        """Elect the leader: it stays if it has joined, else the first joined member. False if no member has joined."""
        group = self.group
        leader = group.members.get(group.leader_id or "")
        if leader is None or not leader.awaiting_join:
            leader = next((member for member in group.members.values() if member.awaiting_join), None)
        if leader is None:
            return False
        group.leader_id = leader.member_id
        return True

    def _joined(self, member: ClassicGroupMember) -> None:
        group = self.group
        if member.awaiting_join:
            self._answers.append(partial(member.awaiting_join.keep, join_response(group, member.member_id)))
        if member.is_new:
            self._trace_joined(member)
        group.members[member.member_id] = member._replace(is_new=False, awaiting_join=None)
        self.restart_session(member)

    def _trace_joined(self, member: ClassicGroupMember) -> None:
        topics = tuple(sorted(self.group.topics or ()))
        group_id, kind = self.group.group_id, GroupType.CLASSIC
        self._events.append(MemberJoined(group_id, member.member_id, member.client_id, topics, kind))

    # ---- the sync phase ----------------------------------------------------------------------------------------------

    def assign(self, assignments: dict[str, bytes]) -> None:
        """Record the leader's assignment and answer all waiting SyncGroup requests."""
        group = self.group
        for member in list(group.members.values()):
            group.members[member.member_id] = member._replace(assignment=assignments.get(member.member_id, b""))
        self.records.append(group.record())
        group.step(ClassicGroupEvent.ASSIGNED, self.day_ms)
        for member in list(group.members.values()):
            if member.awaiting_sync:
                self._answers.append(partial(member.awaiting_sync.keep, sync_response(group, member)))
                self.restart_session(member)
            assigned = assigned_partitions(member.assignment)
            self._events.append(MemberReconciled(group.group_id, member.member_id, group.generation_id, assigned))
            group.members[member.member_id] = member._replace(awaiting_sync=None)


def join_response(group: ClassicGroup, member_id: str, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """The response for one member of the generation; only the leader's lists the members."""
    members: tuple[JoinGroupResponse.Member, ...] = ()
    if member_id == group.leader_id:
        members = tuple(
            JoinGroupResponse.Member(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol_name),
            )
            for member in group.members.values()
        )
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def sync_response(group: ClassicGroup, member: ClassicGroupMember) -> SyncGroupResponse:
    """The response with the member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
