"""How a member goes: it says so, or it is not heard of in time. Nobody is assigned anew before the next heartbeat."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import Due, What
from shareq.coordinator.group.records import Metadata, RecordType, TargetAssignmentMetadata, encode, tombstone
from shareq.coordinator.group.refusal import refuse_member
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group.state import LEAVE_EPOCH, NO_TOPICS, Member, ShareGroup
from shareq.coordinator.shard import Outcome, R
from shareq.model.actor import Effect
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped, MemberLeft
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def leave(
    context: Context, shard: GroupShard, request: ShareGroupHeartbeatRequest
) -> Outcome[ShareGroupHeartbeatResponse]:
    """A heartbeat with epoch -1."""
    refusal = refuse_member(shard, request, context.image)
    if refusal:
        return Outcome(refusal.heartbeat())
    group = shard.find(ShareGroup, request.group_id)
    assert group is not None, "who is no member was refused"
    response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVE_EPOCH)
    return _remove(context, group, group.members[request.member_id], "left", response)


def expire(context: Context, due: Due, now_ms: int) -> list[Effect]:
    """Remove a member whose time is up."""

    def compute(shard: GroupShard, now_ms: int) -> Outcome[Errors]:
        del now_ms
        group = shard.find(ShareGroup, due.group_id)
        member = group.members.get(due.member_id) if group else None
        if group is None or member is None:
            return Outcome(Errors.NONE)
        return _remove(context, group, member, "session expired", Errors.NONE)

    return context.when_due(due, compute, now_ms)


def _remove(context: Context, group: ShareGroup, member: Member, reason: str, response: R) -> Outcome[R]:
    """The member's records go, and the group epoch is raised. The last one takes the assignment's time with it."""
    group_id, member_id, epoch = group.group_id, member.member_id, group.group_epoch + 1
    names = group.subscribed_after(member.subscribed_topic_names, NO_TOPICS)
    records = [
        tombstone(RecordType.CURRENT_MEMBER_ASSIGNMENT, group_id, member_id),
        tombstone(RecordType.TARGET_ASSIGNMENT_MEMBER, group_id, member_id),
        tombstone(RecordType.MEMBER_METADATA, group_id, member_id),
        encode(group_id, Metadata(epoch, context.metadata_hash.of(names, context.image))),
    ]
    if len(group.members) == 1:
        records.append(encode(group_id, TargetAssignmentMetadata(epoch)))

    def after(now_ms: int) -> Iterable[Effect]:
        del now_ms
        context.deadlines.forget(Due(What.SHARE_SESSION, group_id, member_id))
        left = MemberLeft(group_id, member_id, reason)
        return context.trace((left, GroupEpochBumped(group_id, epoch, f"member {reason}")))

    return Outcome(response, records, after)
