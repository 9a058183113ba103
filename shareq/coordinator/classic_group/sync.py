"""SyncGroup and Heartbeat of classic groups."""

from __future__ import annotations

from shareq.coordinator.classic_group.state import ClassicGroup, ClassicGroupState
from shareq.coordinator.classic_group.transition import Transition, sync_response
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from shareq.model.workflow import Promise, Workflow

MANDATORY_PROTOCOL_VERSION = 5


def _refuse(group: ClassicGroup | None, request: HeartbeatRequest | SyncGroupRequest) -> Errors:
    """The error if the sender is not a member (25), is fenced (82) or is in another generation (22)."""
    if group is None:
        return Errors.UNKNOWN_MEMBER_ID
    error = group.refuse_member(request.member_id, request.group_instance_id)
    if not error and request.generation_id != group.generation_id:
        return Errors.ILLEGAL_GENERATION
    return error


# ---- Heartbeat -------------------------------------------------------------------------------------------------------


def heartbeat(context: Context, request: HeartbeatRequest, client: ClientContext) -> Workflow[HeartbeatResponse]:
    """Heartbeat: restart the member's session. REBALANCE_IN_PROGRESS if the member has to rejoin."""
    del client
    if context.partition_count() and not request.group_id:
        return HeartbeatResponse(error_code=Errors.INVALID_GROUP_ID)
    shard = yield context.turn(request.group_id, _heartbeat_failure)
    group = shard.find(ClassicGroup, request.group_id)
    error = _refuse(group, request)
    if error or group is None:
        return HeartbeatResponse(error_code=error)
    due = DeadlineKey(DeadlineKind.CLASSIC_SESSION, request.group_id, request.member_id)
    context.deadlines.restart(due, context.now_ms + group.members[request.member_id].session_timeout_ms)
    preparing = group.state is ClassicGroupState.PREPARING_REBALANCE
    return HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS if preparing else Errors.NONE)


def _heartbeat_failure(error: Errors) -> HeartbeatResponse:
    """The response if there is no turn. While the group is loading a heartbeat succeeds, as in Kafka."""
    return HeartbeatResponse(error_code=Errors.NONE if error is Errors.COORDINATOR_LOAD_IN_PROGRESS else error)


# ---- SyncGroup -------------------------------------------------------------------------------------------------------


def sync_group(context: Context, request: SyncGroupRequest, client: ClientContext) -> Workflow[SyncGroupResponse]:
    """SyncGroup: the leader sends the assignment of all members; the other members wait for theirs."""
    error = _refuse_request(context, request, client)
    if error:
        return _failure(error)
    shard = yield context.turn(request.group_id, _failure)
    group = shard.find(ClassicGroup, request.group_id)
    error = _refuse(group, request) or _refuse_sync(group, request)
    if error or group is None:
        return _failure(error)
    transition = Transition(context, shard, group)
    transition.synced(request.member_id)
    member = group.members[request.member_id]
    response: SyncGroupResponse | None = None
    assigned: Promise[SyncGroupResponse] = Promise()
    if group.state is ClassicGroupState.STABLE:
        response = sync_response(group, member)
    else:
        transition.update(member._replace(awaiting_sync=assigned))
        if group.leader_id == request.member_id:
            transition.assign({given.member_id: given.assignment for given in request.assignments})
    error = yield from transition.append()
    if error:
        return _failure(error)
    return response or (yield assigned)


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
    """INCONSISTENT_GROUP_PROTOCOL if the request names another protocol than the generation's; REBALANCE_IN_PROGRESS
    during the join phase."""
    assert group is not None, "an absent group has no members"
    if request.protocol_type not in (None, group.protocol_type):
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    if group.protocol_name is not None and request.protocol_name not in (None, group.protocol_name):
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    preparing = group.state is ClassicGroupState.PREPARING_REBALANCE
    return Errors.REBALANCE_IN_PROGRESS if preparing else Errors.NONE
