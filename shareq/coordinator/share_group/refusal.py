"""The checks of a heartbeat, in Kafka's order; the first failed check is the error. There is no authorization."""

from __future__ import annotations

from shareq.coordinator.group.group import GroupType
from shareq.coordinator.group.refusal import Refusal
from shareq.coordinator.group.reserved import reserved_for_others
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.share_group.state import LEAVE_EPOCH, ShareGroup, ShareGroupMember
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

MAX_MEMBER_ID_LENGTH = 36


def refused(refusal: Refusal) -> ShareGroupHeartbeatResponse:
    """The response to a heartbeat: an error has a code and a message only."""
    return ShareGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)


def refuse_request(request: ShareGroupHeartbeatRequest, image: ClusterImage) -> Refusal | None:
    """The checks that need no group (BEHAVIOUR.md 1-4)."""
    if image.share_version == 0:
        return Refusal(Errors.UNSUPPORTED_VERSION)
    problem = _problem(request)
    return Refusal(Errors.INVALID_REQUEST, problem) if problem else None


def _problem(request: ShareGroupHeartbeatRequest) -> str | None:
    if not request.member_id or len(request.member_id) > MAX_MEMBER_ID_LENGTH:
        return f"MemberId must have 1 to {MAX_MEMBER_ID_LENGTH} characters."
    for name, value in (("MemberId", request.member_id), ("GroupId", request.group_id), ("RackId", request.rack_id)):
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        return "SubscribedTopicNames must be set in first request."
    return "MemberEpoch is invalid." if request.member_epoch < LEAVE_EPOCH else None


def refuse_member(shard: GroupShard, request: ShareGroupHeartbeatRequest, image: ClusterImage) -> Refusal | None:
    """The checks against the group (BEHAVIOUR.md 7-10)."""
    group_id, member_id, epoch = request.group_id, request.member_id, request.member_epoch
    group = shard.find(ShareGroup, group_id)
    if group is None:
        if epoch == LEAVE_EPOCH or group_id in shard.groups:
            return group_not_found(shard, group_id)
        if reserved_for_others(group_id, GroupType.SHARE, image):
            return Refusal(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is reserved for consumer groups.")
    members = group.members if group else {}
    member = members.get(member_id)
    if member is None:
        return _refuse_stranger(request, len(members), image)
    if epoch in (LEAVE_EPOCH, 0, member.member_epoch, member.previous_member_epoch):
        return None
    return _fenced(epoch, member)


def _refuse_stranger(request: ShareGroupHeartbeatRequest, size: int, image: ClusterImage) -> Refusal | None:
    most = image.broker_config["group.share.max.size"]
    if size >= most and request.member_epoch != LEAVE_EPOCH:
        message = f"The share group has reached its maximum capacity of {most} members."
        return Refusal(Errors.GROUP_MAX_SIZE_REACHED, message)
    if request.member_epoch != 0:
        message = f"Member {request.member_id} is not a member of group {request.group_id}."
        return Refusal(Errors.UNKNOWN_MEMBER_ID, message)
    return None


def _fenced(epoch: int, member: ShareGroupMember) -> Refusal:
    relation = "greater" if epoch > member.member_epoch else "smaller"
    return Refusal(
        Errors.FENCED_MEMBER_EPOCH,
        f"The share group member has a {relation} member epoch ({epoch}) from the one known by the group coordinator "
        f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def group_not_found(shard: GroupShard, group_id: str) -> Refusal:
    """The error for an absent group, or for a group of another type."""
    why = "is not a share group" if group_id in shard.groups else "not found"
    return Refusal(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} {why}.")
