"""ConsumerGroupHeartbeat, and the hooks of consumer groups."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.consumer_group.heartbeat import heartbeat
from shareq.coordinator.consumer_group.leave import leave, restart_deadlines
from shareq.coordinator.consumer_group.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from shareq.coordinator.consumer_group.refreshing import topics_changed
from shareq.coordinator.consumer_group.refusal import refuse_group, refuse_leave, refuse_request
from shareq.coordinator.consumer_group.state import ConsumerGroup
from shareq.coordinator.group.context import Context, GroupHooks
from shareq.coordinator.group.refusal import Refusal
from shareq.coordinator.runtime.turn import Append
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from shareq.model.workflow import Workflow

Response = ConsumerGroupHeartbeatResponse


def consumer_heartbeat(
    context: Context, request: ConsumerGroupHeartbeatRequest, client: ClientContext
) -> Workflow[Response]:
    """ConsumerGroupHeartbeat: join, stay, or leave."""
    refusal = refuse_request(request, client.api_version)
    if refusal:
        return _refused(refusal)
    shard = yield context.turn(request.group_id, _failure)
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        group = shard.find(ConsumerGroup, request.group_id)
        if group is None:
            refusal = refuse_group(shard, request.group_id, joining=False)
            assert refusal is not None, "only a consumer group is not refused"
        else:
            refusal = refuse_leave(group, request)
        return _refused(refusal) if refusal else (yield from leave(context, group, request))
    beat = heartbeat(context, shard, request, client)
    if isinstance(beat, Refusal):
        return _refused(beat)
    error = yield Append(beat.records)
    if error:
        return _failure(error)
    beat.committed()
    return beat.response


def _refused(refusal: Refusal) -> Response:
    """The response of a refusal: error code and message only."""
    return Response(error_code=refusal.error, error_message=refusal.message)


def _failure(error: Errors) -> Response:
    return Response(error_code=error)


def _loaded(context: Context, group: ConsumerGroup) -> Iterable[Workflow[object]]:
    """Start a full session for each member, and the full rebalance timeout if it has partitions to revoke."""
    for member in group.members.values():
        restart_deadlines(context, group.group_id, None, member)
    return ()


CONSUMER = GroupHooks(loaded=_loaded, topics_changed=topics_changed)
