"""The removal of a member: it leaves, its session expires, or it does not revoke partitions in its rebalance
timeout."""

from __future__ import annotations

from shareq.coordinator.consumer_group.member import NOTHING, STATIC_LEAVE_EPOCH, ConsumerGroupMember, MemberState
from shareq.coordinator.consumer_group.records import (
    CurrentMemberAssignment,
    Metadata,
    RecordType,
    encode,
    tombstone,
)
from shareq.coordinator.consumer_group.state import ConsumerGroup
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.runtime.turn import Append, Retry
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped, MemberLeft
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from shareq.model.workflow import Workflow

MEMBER_RECORDS = (
    RecordType.CURRENT_MEMBER_ASSIGNMENT,
    RecordType.TARGET_ASSIGNMENT_MEMBER,
    RecordType.MEMBER_METADATA,
)
"""The record types of one member, in the order of their tombstones."""

_REASONS = {
    DeadlineKind.CONSUMER_SESSION: "session expired",
    DeadlineKind.CONSUMER_REBALANCE: "rebalance timed out",
}


def leave(
    context: Context, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> Workflow[ConsumerGroupHeartbeatResponse]:
    """A heartbeat with epoch -1 removes the member. With -2 a static member keeps its place until its session
    expires."""
    member = group.members[request.member_id]
    if request.member_epoch == STATIC_LEAVE_EPOCH:
        error = yield from _leave_statically(context, group, member)
    else:
        removal = _Removal(context, group, member, "left")
        error = yield Append(removal.records)
        if not error:
            removal.committed()
    if error:
        return ConsumerGroupHeartbeatResponse(error_code=error)
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def _leave_statically(context: Context, group: ConsumerGroup, member: ConsumerGroupMember) -> Workflow[Errors]:
    """Record epoch -2. The assignment epochs become 0: a member that rejoins owns the partitions from its epoch 0
    on."""
    assigned = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()}
    gone = member._replace(member_epoch=STATIC_LEAVE_EPOCH, assigned=assigned, revoking=NOTHING)
    error: Errors = yield Append([encode(group.group_id, CurrentMemberAssignment.of(gone), member.member_id)])
    if not error:
        context.deadlines.forget(DeadlineKey(DeadlineKind.CONSUMER_REBALANCE, group.group_id, member.member_id))
    return error


def restart_deadlines(
    context: Context, group_id: str, before: ConsumerGroupMember | None, member: ConsumerGroupMember
) -> None:
    """Restart the member's session, and its rebalance timeout if it has partitions to revoke and made progress."""
    now_ms = context.now_ms
    session_ms = context.image.group_config(group_id).consumer_session_timeout_ms
    context.deadlines.restart(
        DeadlineKey(DeadlineKind.CONSUMER_SESSION, group_id, member.member_id), now_ms + session_ms
    )
    due = DeadlineKey(DeadlineKind.CONSUMER_REBALANCE, group_id, member.member_id)
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        context.deadlines.forget(due)
    elif before is None or _progress(before) != _progress(member):
        context.deadlines.restart(due, now_ms + member.rebalance_timeout_ms)


def _progress(member: ConsumerGroupMember) -> tuple[object, ...]:
    return member.member_epoch, member.state, member.assigned, member.revoking


def expire(context: Context, due: DeadlineKey) -> Workflow[None]:
    """Remove a member whose session or rebalance timeout has passed; repeat if the append fails."""
    shard = yield context.turn_when_due(due)
    while context.is_over(due):
        group = shard.find(ConsumerGroup, due.group_id)
        member = group.members.get(due.member_id) if group else None
        if group is None or member is None:
            return
        removal = _Removal(context, group, member, _REASONS[due.kind])
        if not (yield Append(removal.records)):
            removal.committed()
            return
        shard = yield Retry()


class _Removal:
    """The records that remove a member: its tombstones, that of an expression that only it subscribed to, and the
    raised group epoch."""

    __slots__ = ("context", "epoch", "group_id", "member_id", "reason", "records")

    def __init__(self, context: Context, group: ConsumerGroup, member: ConsumerGroupMember, reason: str) -> None:
        self.context, self.reason = context, reason
        self.group_id, self.member_id, self.epoch = group.group_id, member.member_id, group.group_epoch + 1
        regex = member.subscribed_topic_regex
        self.records = [tombstone(kind, self.group_id, self.member_id) for kind in MEMBER_RECORDS]
        if regex and group.regex_counts[regex] == 1:
            self.records.append(tombstone(RecordType.REGULAR_EXPRESSION, self.group_id, regex))
        metadata_hash = context.metadata_hash.of(group.subscribed_names(without=member), context.image)
        self.records.append(encode(self.group_id, Metadata(self.epoch, metadata_hash)))

    def committed(self) -> None:
        for kind in _REASONS:
            self.context.deadlines.forget(DeadlineKey(kind, self.group_id, self.member_id))
        left = MemberLeft(self.group_id, self.member_id, self.reason)
        self.context.trace(left, GroupEpochBumped(self.group_id, self.epoch, f"member {self.reason}"))
