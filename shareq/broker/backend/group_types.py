"""One id, one type of group, although share groups are kept here and others at the backend. BEHAVIOUR.md, section 5.

A group is looked up on the other side when a member joins; later requests of members are not delayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.model.actor import Answer
from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    JoinGroupRequest,
    JoinGroupResponse,
)
from shareq.model.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from shareq.model.messages.share_group import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

Ask = Callable[[Request, Callable[[Answer], object]], None]
JOINING = 0
"""The member epoch of a heartbeat that joins."""

_REPLACEABLE = frozenset({"", "Dead", "Empty"})
"""States of a classic group that does not reserve its id."""


def joins_share_group(request: Request) -> bool:
    return isinstance(request, ShareGroupHeartbeatRequest) and request.member_epoch == JOINING


def joins_other_group(request: Request) -> bool:
    joins = isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch == JOINING
    return joins or isinstance(request, JoinGroupRequest)


def refusal_here(request: Any, ask_backend: Ask, done: Callable[[Response | None], object]) -> None:
    """`done` gets the error if the backend has a group with the id of a share group's new member, else None."""

    def classic(answer: Answer) -> None:
        groups = answer.response.groups if isinstance(answer.response, DescribeGroupsResponse) else ()
        if any(not group.error_code and group.group_state not in _REPLACEABLE for group in groups):
            refuse()
        else:
            ask_backend(ConsumerGroupDescribeRequest(group_ids=(request.group_id,)), consumer)

    def consumer(answer: Answer) -> None:
        groups = answer.response.groups if isinstance(answer.response, ConsumerGroupDescribeResponse) else ()
        if any(not group.error_code for group in groups):
            refuse()
        else:
            done(None)

    def refuse() -> None:
        text = f"Group {request.group_id} is not a share group."
        done(ShareGroupHeartbeatResponse(error_code=Errors.GROUP_ID_NOT_FOUND, error_message=text))

    ask_backend(DescribeGroupsRequest(groups=(request.group_id,)), classic)


def refusal_at_backend(request: Any, ask_here: Ask, done: Callable[[Response | None], object]) -> None:
    """`done` gets the error if a share group has the id of a new member's group of another type, else None."""

    def described(answer: Answer) -> None:
        groups = answer.response.groups if isinstance(answer.response, ShareGroupDescribeResponse) else ()
        if all(group.error_code for group in groups):
            done(None)
        elif isinstance(request, JoinGroupRequest):
            error = Errors.INCONSISTENT_GROUP_PROTOCOL
            done(JoinGroupResponse(error_code=error, protocol_name="", member_id=request.member_id))
        else:
            text = f"Group {request.group_id} is not a consumer group."
            done(ConsumerGroupHeartbeatResponse(error_code=Errors.GROUP_ID_NOT_FOUND, error_message=text))

    ask_here(ShareGroupDescribeRequest(group_ids=(request.group_id,)), described)
