"""The journal's event of a heartbeat, for all group types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shareq.model.events import HeartbeatReceived
from shareq.model.messages.base import Request
from shareq.model.messages.classic_group import HeartbeatRequest, HeartbeatResponse
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def _of_group(
    request: ShareGroupHeartbeatRequest | ConsumerGroupHeartbeatRequest,
    response: ShareGroupHeartbeatResponse | ConsumerGroupHeartbeatResponse,
) -> HeartbeatReceived:
    """A refused member keeps its epoch."""
    epoch = request.member_epoch if response.error_code else response.member_epoch
    member_id = response.member_id or request.member_id
    return HeartbeatReceived(request.group_id, member_id, epoch, response.error_code)


def _of_classic_group(request: HeartbeatRequest, response: HeartbeatResponse) -> HeartbeatReceived:
    return HeartbeatReceived(request.group_id, request.member_id, request.generation_id, response.error_code)


HEARTBEAT_EVENTS: Mapping[type[Request], Callable[[Any, Any], HeartbeatReceived]] = {
    ShareGroupHeartbeatRequest: _of_group,
    ConsumerGroupHeartbeatRequest: _of_group,
    HeartbeatRequest: _of_classic_group,
}
"""By type of request, from (request, response)."""
