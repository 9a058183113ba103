"""How a member goes: it says so, it is not heard of in time, or it does not give up in time what it shall not have."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.consumer.member import NOTHING, STATIC_LEAVE_EPOCH, Member, MemberState
from shareq.coordinator.group.consumer.records import (
    CurrentMemberAssignment,
    Metadata,
    RecordType,
    encode,
    tombstone,
)
from shareq.coordinator.group.consumer.state import ConsumerGroup
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import Due, What
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.shard import Outcome, R
from shareq.model.actor import Effect
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped, MemberLeft
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

MEMBER_RECORDS = (
    RecordType.CURRENT_MEMBER_ASSIGNMENT,
    RecordType.TARGET_ASSIGNMENT_MEMBER,
    RecordType.MEMBER_METADATA,
)
"""What is there of a member, in the order in which it goes."""

_REASONS = {
    What.CONSUMER_SESSION: "session expired",
    What.CONSUMER_REBALANCE: "rebalance timed out",
}


def leave(
    context: Context, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> Outcome[ConsumerGroupHeartbeatResponse]:
    """A heartbeat with epoch -1, or -2: a static member that will be back keeps its place until its session ends."""
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    member = group.members[request.member_id]
    if request.member_epoch != STATIC_LEAVE_EPOCH:
        return _remove(context, group, member, "left", response)
    # Whoever comes back for it has its partitions from the beginning of its new life.
    assigned = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()}
    gone = member._replace(member_epoch=STATIC_LEAVE_EPOCH, assigned=assigned, revoking=NOTHING)
    record = encode(group.group_id, CurrentMemberAssignment.of(gone), member.member_id)

    def after(now_ms: int) -> Iterable[Effect]:
        del now_ms
        context.deadlines.forget(Due(What.CONSUMER_REBALANCE, group.group_id, member.member_id))
        return ()

    return Outcome(response, [record], after)


def restart_deadlines(context: Context, group_id: str, before: Member | None, member: Member, now_ms: int) -> None:
    """The member was heard of, and is a step further: its session starts anew, and so does the time that it has to give
    up what it shall not have."""
    session_ms = context.image.group_config(group_id).consumer_session_timeout_ms
    context.deadlines.restart(Due(What.CONSUMER_SESSION, group_id, member.member_id), now_ms + session_ms)
    due = Due(What.CONSUMER_REBALANCE, group_id, member.member_id)
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        context.deadlines.forget(due)
    elif before is None or _progress(before) != _progress(member):
        context.deadlines.restart(due, now_ms + member.rebalance_timeout_ms)


def _progress(member: Member) -> tuple[object, ...]:
    return member.member_epoch, member.state, member.assigned, member.revoking


def expire(context: Context, due: Due, now_ms: int) -> list[Effect]:
    """Remove a member whose time is up."""

    def compute(shard: GroupShard, now_ms: int) -> Outcome[Errors]:
        del now_ms
        group = shard.find(ConsumerGroup, due.group_id)
        member = group.members.get(due.member_id) if group else None
        if group is None or member is None:
            return Outcome(Errors.NONE)
        return _remove(context, group, member, _REASONS[due.what], Errors.NONE)

    return context.when_due(due, compute, now_ms)


def _remove(context: Context, group: ConsumerGroup, member: Member, reason: str, response: R) -> Outcome[R]:
    """The member's records go, with an expression that was its alone, and the group epoch is raised."""
    group_id, member_id, epoch = group.group_id, member.member_id, group.group_epoch + 1
    regex = member.subscribed_topic_regex
    records = [tombstone(kind, group_id, member_id) for kind in MEMBER_RECORDS]
    if regex and group.regex_counts[regex] == 1:
        records.append(tombstone(RecordType.REGULAR_EXPRESSION, group_id, regex))
    metadata_hash = context.metadata_hash.of(group.subscribed_names(gone=member), context.image)
    records.append(encode(group_id, Metadata(epoch, metadata_hash)))

    def after(now_ms: int) -> Iterable[Effect]:
        del now_ms
        for what in _REASONS:
            context.deadlines.forget(Due(what, group_id, member_id))
        left = MemberLeft(group_id, member_id, reason)
        return context.trace((left, GroupEpochBumped(group_id, epoch, f"member {reason}")))

    return Outcome(response, records, after)
