"""LeaveGroup, and what else ends a membership or a phase: time.

Source: Kafka's GroupMetadataManager, classicGroupLeaveToClassicGroup and the expirations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shareq.coordinator.group.classic.draft import Draft
from shareq.coordinator.group.classic.state import ClassicGroup, ClassicGroupState
from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.deadlines import Due
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.shard import Outcome
from shareq.model.actor import ClientContext, Effect
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import LeaveGroupRequest, LeaveGroupResponse

BATCHED_VERSION = 3

Identity = LeaveGroupRequest.MemberIdentity
Left = LeaveGroupResponse.MemberResponse

# ---- LeaveGroup ------------------------------------------------------------------------------------------------------


def leave_group(
    context: Context, request: LeaveGroupRequest, client: ClientContext, then: Then[LeaveGroupResponse], now_ms: int
) -> list[Effect]:
    """LeaveGroup: each member for itself; those who stay divide what is left among them."""
    batched = client.api_version >= BATCHED_VERSION
    leaving = request.members if batched else (Identity(member_id=request.member_id),)

    def answer(response: LeaveGroupResponse, now_ms: int) -> Iterable[Effect]:
        if not batched and response.members:
            response = LeaveGroupResponse(error_code=response.members[0].error_code)
        return then(response, now_ms)

    if context.partition_count() and not request.group_id:
        return list(answer(_failure(Errors.INVALID_GROUP_ID), now_ms))

    def compute(shard: GroupShard, now_ms: int) -> Outcome[LeaveGroupResponse]:
        group = shard.find(ClassicGroup, request.group_id)
        if group is None:
            return Outcome(LeaveGroupResponse(members=tuple(_left(i, Errors.UNKNOWN_MEMBER_ID) for i in leaving)))
        draft = Draft(context, shard, group, now_ms)
        members = tuple([_leave(draft, identity) for identity in leaving])
        if any(not member.error_code for member in members):
            draft.member_gone()
        return draft.outcome(LeaveGroupResponse(members=members))

    return context.schedule(request.group_id, compute, _failure, answer, now_ms)


def _failure(error: Errors) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)


def _left(identity: Identity, error: Errors) -> Left:
    return Left(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)


def _leave(draft: Draft, identity: Identity) -> Left:
    """An admin names a static member by its instance alone."""
    group, member_id = draft.group, identity.member_id
    if not member_id:
        member = group.static_member(identity.group_instance_id)
        error = Errors.NONE if member else Errors.UNKNOWN_MEMBER_ID
        member_id = member.member_id if member else ""
    elif member_id in group.pending:
        error = Errors.NONE
    else:
        error = group.refuse_member(member_id, identity.group_instance_id)
    if not error:
        draft.remove(member_id, "left")
    return _left(identity, error)


# ---- time ------------------------------------------------------------------------------------------------------------


def session_over(context: Context, due: Due, now_ms: int) -> list[Effect]:
    """A member was not heard of in time, or never came back with the id that it was given. Whoever has a request
    waiting here is spared: its session begins anew with the answer."""

    def change(draft: Draft) -> bool:
        group = draft.group
        member = group.members.get(due.member_id)
        waiting = member and not member.is_new and (member.awaiting_join or member.awaiting_sync)
        if waiting or not (member or due.member_id in group.pending):
            return False
        draft.remove(due.member_id, "session expired")
        if member or group.state is ClassicGroupState.PREPARING_REBALANCE:
            draft.member_gone()
        return True

    return _when_due(context, due, change, now_ms)


def join_over(context: Context, due: Due, now_ms: int) -> list[Effect]:
    """The time to join is up: the generation begins with those who are there."""

    def change(draft: Draft) -> bool:
        if draft.group.state is not ClassicGroupState.PREPARING_REBALANCE:
            return False
        draft.join_time_over()
        return True

    return _when_due(context, due, change, now_ms)


def sync_over(context: Context, due: Due, now_ms: int) -> list[Effect]:
    """Some have joined, but never asked for their assignment: they are removed, the others join anew."""

    def change(draft: Draft) -> bool:
        late = draft.group.pending_sync
        for member_id in sorted(late):
            draft.remove(member_id, "did not sync")
        if late:
            draft.member_gone()
        return bool(late)

    return _when_due(context, due, change, now_ms)


def _when_due(context: Context, due: Due, change: Callable[[Draft], bool], now_ms: int) -> list[Effect]:
    """Change the group, unless what was due is not any more by the time that it comes to it."""

    def compute(shard: GroupShard, now_ms: int) -> Outcome[Errors]:
        group = shard.find(ClassicGroup, due.group_id)
        if group is None:
            return Outcome(Errors.NONE)
        draft = Draft(context, shard, group, now_ms)
        return draft.outcome(Errors.NONE) if change(draft) else Outcome(Errors.NONE)

    return context.when_due(due, compute, now_ms)
