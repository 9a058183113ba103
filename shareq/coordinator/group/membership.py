"""The members of share groups: their heartbeats, and what happens to them when the world around them changes."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.deadlines import Due, What
from shareq.coordinator.group.heartbeat import heartbeat
from shareq.coordinator.group.heartbeats import tell_heartbeat
from shareq.coordinator.group.kind import Kind, TopicsChanged
from shareq.coordinator.group.leave import leave
from shareq.coordinator.group.refusal import Refusal, refuse_request
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group.state import LEAVE_EPOCH, ShareGroup
from shareq.coordinator.shard import Operation, Outcome
from shareq.model.actor import ClientContext, Effect
from shareq.model.errors import Errors
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

Response = ShareGroupHeartbeatResponse


def share_heartbeat(
    context: Context, request: ShareGroupHeartbeatRequest, client: ClientContext, then: Then[Response], now_ms: int
) -> list[Effect]:
    """ShareGroupHeartbeat: join, stay, or leave."""
    traced = tell_heartbeat(context, request, then)
    refusal = refuse_request(request, context.image)
    if refusal:
        return list(traced(refusal.heartbeat(), now_ms))

    def compute(shard: GroupShard, now_ms: int) -> Outcome[Response]:
        if request.member_epoch == LEAVE_EPOCH:
            return leave(context, shard, request)
        return heartbeat(context, shard, request, client, now_ms)

    return context.schedule(request.group_id, compute, _failure, traced, now_ms)


def _failure(error: Errors) -> Response:
    return Refusal(error).heartbeat()


def _loaded(context: Context, group: ShareGroup, now_ms: int) -> Iterable[Operation[GroupShard, Errors]]:
    """Every member gets a full new session."""
    deadline_ms = now_ms + context.image.group_config(group.group_id).session_timeout_ms
    for member_id in group.members:
        context.deadlines.restart(Due(What.SHARE_SESSION, group.group_id, member_id), deadline_ms)
    return ()


def _topics_changed(context: Context, group: ShareGroup, change: TopicsChanged, now_ms: int) -> list[Effect]:
    """Groups whose topics changed look again at their next heartbeat."""
    del context, now_ms
    if change.everybody or not change.names.isdisjoint(group.subscriptions):
        group.look_again()
    return []


SHARE = Kind(loaded=_loaded, topics_changed=_topics_changed)
