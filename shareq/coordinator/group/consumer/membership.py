"""The members of consumer groups: their heartbeats, and what a group of this type is to the coordinator."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.consumer.heartbeat import heartbeat, refused
from shareq.coordinator.group.consumer.leave import leave, restart_deadlines
from shareq.coordinator.group.consumer.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from shareq.coordinator.group.consumer.refreshing import topics_changed
from shareq.coordinator.group.consumer.refusal import refuse_group, refuse_leave, refuse_request
from shareq.coordinator.group.consumer.state import ConsumerGroup
from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.heartbeats import tell_heartbeat
from shareq.coordinator.group.kind import Kind
from shareq.coordinator.group.refusal import Refusal
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.shard import Operation, Outcome
from shareq.model.actor import ClientContext, Effect
from shareq.model.errors import Errors
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

Response = ConsumerGroupHeartbeatResponse


def consumer_heartbeat(
    context: Context, request: ConsumerGroupHeartbeatRequest, client: ClientContext, then: Then[Response], now_ms: int
) -> list[Effect]:
    """ConsumerGroupHeartbeat: join, stay, or leave."""
    traced = tell_heartbeat(context, request, then)
    refusal = refuse_request(request, client.api_version)
    if refusal:
        return list(traced(refused(refusal), now_ms))

    def compute(shard: GroupShard, now_ms: int) -> Outcome[Response]:
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return _leave(context, shard, request)
        return heartbeat(context, shard, request, client, now_ms)

    return context.schedule(request.group_id, compute, _failure, traced, now_ms)


def _leave(context: Context, shard: GroupShard, request: ConsumerGroupHeartbeatRequest) -> Outcome[Response]:
    group = shard.find(ConsumerGroup, request.group_id)
    if group is None:
        refusal = refuse_group(shard, request.group_id, joining=False)
        assert refusal is not None, "only a consumer group is not refused"
        return Outcome(refused(refusal))
    refusal = refuse_leave(group, request)
    return Outcome(refused(refusal)) if refusal else leave(context, group, request)


def _failure(error: Errors) -> Response:
    return refused(Refusal(error))


def _loaded(context: Context, group: ConsumerGroup, now_ms: int) -> Iterable[Operation[GroupShard, Errors]]:
    """Every member gets a full new session, and the full time to give up what it shall not have."""
    for member in group.members.values():
        restart_deadlines(context, group.group_id, None, member, now_ms)
    return ()


CONSUMER = Kind(loaded=_loaded, topics_changed=topics_changed)
