"""What share groups and consumer groups have in common about heartbeats: the journal is told of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from shareq.coordinator.group.context import Context, Then
from shareq.model.actor import Effect
from shareq.model.events import HeartbeatReceived
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

R = TypeVar("R", ShareGroupHeartbeatResponse, ConsumerGroupHeartbeatResponse)


def tell_heartbeat(
    context: Context, request: ShareGroupHeartbeatRequest | ConsumerGroupHeartbeatRequest, then: Then[R]
) -> Then[R]:
    """`then`, and before it the event, where anybody wants to know. A member that was refused keeps its epoch."""
    if not context.traced:
        return then

    def told(response: R, now_ms: int) -> Iterable[Effect]:
        epoch = request.member_epoch if response.error_code else response.member_epoch
        member_id = response.member_id or request.member_id
        received = HeartbeatReceived(request.group_id, member_id, epoch, response.error_code)
        return (received, *then(response, now_ms))

    return told
