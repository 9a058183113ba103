"""The end of a membership: a member leaves, or its session ends. The next heartbeat of the group reassigns."""

from __future__ import annotations

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.group.refusal import Refusal
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.runtime.turn import Append, Retry
from shareq.coordinator.share_group.records import Metadata, RecordType, TargetAssignmentMetadata, encode, tombstone
from shareq.coordinator.share_group.refusal import refuse_member, refused
from shareq.coordinator.share_group.state import LEAVE_EPOCH, NO_TOPICS, ShareGroup, ShareGroupMember
from shareq.model.events import GroupEpochBumped, MemberLeft
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from shareq.model.workflow import Workflow


def leave(
    context: Context, shard: GroupShard, request: ShareGroupHeartbeatRequest
) -> Workflow[ShareGroupHeartbeatResponse]:
    """Serve a heartbeat with epoch -1."""
    refusal = refuse_member(shard, request, context.image)
    if refusal:
        return refused(refusal)
    group = shard.find(ShareGroup, request.group_id)
    assert group is not None, "a request without a member was refused"
    removal = _Removal(context, group, group.members[request.member_id], "left")
    error = yield Append(removal.records)
    if error:
        return refused(Refusal(error))
    removal.committed()
    return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVE_EPOCH)


def expire(context: Context, due: DeadlineKey) -> Workflow[None]:
    """Remove a member whose session has ended."""
    shard = yield context.turn_when_due(due)
    while context.is_over(due):
        group = shard.find(ShareGroup, due.group_id)
        member = group.members.get(due.member_id) if group else None
        if group is None or member is None:
            return
        removal = _Removal(context, group, member, "session expired")
        if not (yield Append(removal.records)):
            removal.committed()
            return
        shard = yield Retry()


class _Removal:
    """Deletes the member's records and raises the group epoch. The last member also resets the time of the
    assignment."""

    __slots__ = ("context", "epoch", "group_id", "member_id", "reason", "records")

    def __init__(self, context: Context, group: ShareGroup, member: ShareGroupMember, reason: str) -> None:
        self.context, self.reason = context, reason
        self.group_id, self.member_id, self.epoch = group.group_id, member.member_id, group.group_epoch + 1
        names = group.subscribed_after(member.subscribed_topic_names, NO_TOPICS)
        metadata = Metadata(self.epoch, context.metadata_hash.of(names, context.image))
        self.records = [
            tombstone(RecordType.CURRENT_MEMBER_ASSIGNMENT, self.group_id, self.member_id),
            tombstone(RecordType.TARGET_ASSIGNMENT_MEMBER, self.group_id, self.member_id),
            tombstone(RecordType.MEMBER_METADATA, self.group_id, self.member_id),
            encode(self.group_id, metadata),
        ]
        if len(group.members) == 1:
            self.records.append(encode(self.group_id, TargetAssignmentMetadata(self.epoch)))

    def committed(self) -> None:
        self.context.deadlines.forget(DeadlineKey(DeadlineKind.SHARE_SESSION, self.group_id, self.member_id))
        left = MemberLeft(self.group_id, self.member_id, self.reason)
        self.context.trace(left, GroupEpochBumped(self.group_id, self.epoch, f"member {self.reason}"))
