"""SyncGroup and Heartbeat: what members do between two rebalances."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.classic.draft import Draft, sync_response
from shareq.coordinator.group.classic.state import ClassicGroup, ClassicGroupState
from shareq.coordinator.group.context import Context, Then, when_there
from shareq.coordinator.group.deadlines import Due, What
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.shard import Outcome
from shareq.model.actor import ClientContext, Effect
from shareq.model.errors import Errors
from shareq.model.events import HeartbeatReceived
from shareq.model.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

MANDATORY_PROTOCOL_VERSION = 5


def _refuse(group: ClassicGroup | None, request: HeartbeatRequest | SyncGroupRequest) -> Errors:
    """What a member has to be before anything else counts."""
    if group is None:
        return Errors.UNKNOWN_MEMBER_ID
    error = group.refuse_member(request.member_id, request.group_instance_id)
    if not error and request.generation_id != group.generation_id:
        return Errors.ILLEGAL_GENERATION
    return error


# ---- Heartbeat -------------------------------------------------------------------------------------------------------


def heartbeat(
    context: Context, request: HeartbeatRequest, client: ClientContext, then: Then[HeartbeatResponse], now_ms: int
) -> list[Effect]:
    """Heartbeat: the member is there; it learns whether it has to join anew."""
    del client

    def answer(response: HeartbeatResponse, now_ms: int) -> Iterable[Effect]:
        event = HeartbeatReceived(request.group_id, request.member_id, request.generation_id, response.error_code)
        return (*context.trace((event,)), *then(response, now_ms))

    if context.partition_count() and not request.group_id:
        return list(answer(HeartbeatResponse(error_code=Errors.INVALID_GROUP_ID), now_ms))

    def compute(shard: GroupShard, now_ms: int) -> Outcome[HeartbeatResponse]:
        del now_ms
        group = shard.find(ClassicGroup, request.group_id)
        error = _refuse(group, request)
        if error or group is None:
            return Outcome(HeartbeatResponse(error_code=error))
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            error = Errors.REBALANCE_IN_PROGRESS
        session_timeout_ms = group.members[request.member_id].session_timeout_ms

        def after(now_ms: int) -> Iterable[Effect]:
            due = Due(What.CLASSIC_SESSION, request.group_id, request.member_id)
            context.deadlines.restart(due, now_ms + session_timeout_ms)
            return ()

        return Outcome(HeartbeatResponse(error_code=error), after=after)

    return context.schedule(request.group_id, compute, _unheard, answer, now_ms)


def _unheard(error: Errors) -> HeartbeatResponse:
    """While the group is being loaded nobody can know better, so all is well, as in Kafka."""
    return HeartbeatResponse(error_code=Errors.NONE if error is Errors.COORDINATOR_LOAD_IN_PROGRESS else error)


# ---- SyncGroup -------------------------------------------------------------------------------------------------------


def sync_group(
    context: Context, request: SyncGroupRequest, client: ClientContext, then: Then[SyncGroupResponse], now_ms: int
) -> list[Effect]:
    """SyncGroup: the leader brings the assignment of everybody, the others wait for theirs."""
    error = _refuse_request(context, request, client)
    if error:
        return list(then(_failure(error), now_ms))

    def compute(shard: GroupShard, now_ms: int) -> Outcome[SyncGroupResponse | None]:
        group = shard.find(ClassicGroup, request.group_id)
        error = _refuse(group, request) or _refuse_sync(group, request)
        if error or group is None:
            return Outcome(_failure(error))
        draft = Draft(context, shard, group, now_ms)
        draft.synced(request.member_id)
        member = group.members[request.member_id]
        if group.state is ClassicGroupState.STABLE:
            return draft.outcome(sync_response(group, member))
        draft.update(member._replace(awaiting_sync=then))
        if group.leader_id == request.member_id:
            draft.assign({given.member_id: given.assignment for given in request.assignments})
        return draft.outcome(None)

    return context.schedule(request.group_id, compute, _failure, when_there(then), now_ms)


def _failure(error: Errors) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)


def _refuse_request(context: Context, request: SyncGroupRequest, client: ClientContext) -> Errors:
    if context.partition_count() and not request.group_id:
        return Errors.INVALID_GROUP_ID
    names = request.protocol_type, request.protocol_name
    if client.api_version >= MANDATORY_PROTOCOL_VERSION and None in names:
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    return Errors.NONE


def _refuse_sync(group: ClassicGroup | None, request: SyncGroupRequest) -> Errors:
    """The protocol, where it is named, must be the one of this generation."""
    assert group is not None, "an absent group has no members"
    if request.protocol_type not in (None, group.protocol_type):
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    if group.protocol_name is not None and request.protocol_name not in (None, group.protocol_name):
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    preparing = group.state is ClassicGroupState.PREPARING_REBALANCE
    return Errors.REBALANCE_IN_PROGRESS if preparing else Errors.NONE
