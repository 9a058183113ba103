"""LeaveGroup, and the timeouts that end a session, the join phase or the sync phase.

Source: Kafka's GroupMetadataManager, classicGroupLeaveToClassicGroup and the expirations.
"""

from __future__ import annotations

from collections.abc import Callable

from shareq.coordinator.classic_group.state import ClassicGroup, ClassicGroupState
from shareq.coordinator.classic_group.transition import Transition
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import DeadlineKey
from shareq.coordinator.runtime.turn import Retry
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import LeaveGroupRequest, LeaveGroupResponse
from shareq.model.workflow import Workflow

BATCHED_VERSION = 3

Identity = LeaveGroupRequest.MemberIdentity
Left = LeaveGroupResponse.MemberResponse

# ---- LeaveGroup ------------------------------------------------------------------------------------------------------


def leave_group(context: Context, request: LeaveGroupRequest, client: ClientContext) -> Workflow[LeaveGroupResponse]:
    """LeaveGroup: each member has its own result; if any left, the remaining members rebalance."""
    if context.partition_count() and not request.group_id:
        return _failure(Errors.INVALID_GROUP_ID)
    batched = client.api_version >= BATCHED_VERSION
    leaving = request.members if batched else (Identity(member_id=request.member_id),)
    shard = yield context.turn(request.group_id, _failure)
    group = shard.find(ClassicGroup, request.group_id)
    if group is None:
        members = tuple(_left(identity, Errors.UNKNOWN_MEMBER_ID) for identity in leaving)
    else:
        transition = Transition(context, shard, group)
        members = tuple([_leave(transition, identity) for identity in leaving])
        if any(not member.error_code for member in members):
            transition.rebalance_remaining()
        error = yield from transition.append()
        if error:
            return _failure(error)
    return LeaveGroupResponse(members=members) if batched else _failure(members[0].error_code)


def _failure(error: Errors) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)


def _left(identity: Identity, error: Errors) -> Left:
    return Left(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)


def _leave(transition: Transition, identity: Identity) -> Left:
    """Remove one member. Without a member id the instance id alone names a static member, as admin clients do."""
    group, member_id = transition.group, identity.member_id
    if not member_id:
        member = group.static_member(identity.group_instance_id)
        error = Errors.NONE if member else Errors.UNKNOWN_MEMBER_ID
        member_id = member.member_id if member else ""
    elif member_id in group.pending:
        error = Errors.NONE
    else:
        error = group.refuse_member(member_id, identity.group_instance_id)
    if not error:
        transition.remove(member_id, "left")
    return _left(identity, error)


# ---- time ------------------------------------------------------------------------------------------------------------


def session_timed_out(context: Context, due: DeadlineKey) -> Workflow[None]:
    """Remove a member whose session has expired, or a pending member id that was not used in time.

    A member whose JoinGroup or SyncGroup waits here stays: its session restarts with the response.
    """

    def change(transition: Transition) -> bool:
        group = transition.group
        member = group.members.get(due.member_id)
        waiting = member and not member.is_new and (member.awaiting_join or member.awaiting_sync)
        if waiting or not (member or due.member_id in group.pending):
            return False
        transition.remove(due.member_id, "session expired")
        if member or group.state is ClassicGroupState.PREPARING_REBALANCE:
            transition.rebalance_remaining()
        return True

    return _when_due(context, due, change)


def join_timed_out(context: Context, due: DeadlineKey) -> Workflow[None]:
    """The join phase has timed out: begin the generation with the members that have joined."""

    def change(transition: Transition) -> bool:
        if transition.group.state is not ClassicGroupState.PREPARING_REBALANCE:
            return False
        transition.extend_or_complete_join()
        return True

    return _when_due(context, due, change)


def sync_timed_out(context: Context, due: DeadlineKey) -> Workflow[None]:
    """The sync phase has timed out: remove the members that have not sent SyncGroup, and rebalance."""

    def change(transition: Transition) -> bool:
        late = transition.group.pending_sync
        for member_id in sorted(late):
            transition.remove(member_id, "did not sync")
        if late:
            transition.rebalance_remaining()
        return bool(late)

    return _when_due(context, due, change)


def _when_due(context: Context, due: DeadlineKey, change: Callable[[Transition], bool]) -> Workflow[None]:
    """Apply `change` to the group unless the deadline was postponed before the turn; repeat it if the append fails.

    `change` returns False if there is nothing to change.
    """
    shard = yield context.turn_when_due(due)
    while context.is_over(due):
        group = shard.find(ClassicGroup, due.group_id)
        if group is None:
            return
        transition = Transition(context, shard, group)
        if not change(transition) or not (yield from transition.append()):
            return
        shard = yield Retry()
