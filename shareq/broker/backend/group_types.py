"""One id, one type of group, although share groups are kept here and others at the backend. BEHAVIOUR.md, section 5.

A group is looked up on the other side when a member joins; later requests of members are not delayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
AskLeader = Callable[[str, Request, Callable[[Answer], object]], object]
JOINING = 0
"""The member epoch of a heartbeat that joins."""

_REPLACEABLE = frozenset({"", "Dead", "Empty"})
"""States of a classic group that does not reserve its id."""

_UNKNOWN = frozenset({Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS})
"""Errors of a coordinator that does not know whether there is a group. All clients repeat a request after them."""

_ASK_AGAIN = Errors.COORDINATOR_NOT_AVAILABLE
"""The error if the other side does not answer."""


def joins_share_group(request: Request) -> bool:
    return isinstance(request, ShareGroupHeartbeatRequest) and request.member_epoch == JOINING


def joins_other_group(request: Request) -> bool:
    joins = isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch == JOINING
    return joins or isinstance(request, JoinGroupRequest)


def refusal_here(request: Any, ask_backend: Ask, done: Callable[[Response | None], object]) -> None:
    """`done` gets the error if the backend has a group with the id of a share group's new member, else None."""

    def classic(answer: Answer) -> None:
        found = _Found.of(answer, DescribeGroupsResponse)
        if found.error or any(group.group_state not in _REPLACEABLE for group in found.groups):
            refuse(found.error)
        else:
            ask_backend(ConsumerGroupDescribeRequest(group_ids=(request.group_id,)), consumer)

    def consumer(answer: Answer) -> None:
        found = _Found.of(answer, ConsumerGroupDescribeResponse)
        if found.error or found.groups:
            refuse(found.error)
        else:
            done(None)

    def refuse(error: Errors) -> None:
        text = None if error else f"Group {request.group_id} is not a share group."
        done(ShareGroupHeartbeatResponse(error_code=error or Errors.GROUP_ID_NOT_FOUND, error_message=text))

    ask_backend(DescribeGroupsRequest(groups=(request.group_id,)), classic)


def refusal_at_backend(request: Any, ask_leader: AskLeader, done: Callable[[Response | None], object]) -> None:
    """`done` gets the error if a share group has the id of a new member's group of another type, else None.
    `ask_leader` asks the process that leads the shard of such a share group.
    """

    def described(answer: Answer) -> None:
        found = _Found.of(answer, ShareGroupDescribeResponse)
        if not found.error and not found.groups:
            done(None)
        elif isinstance(request, JoinGroupRequest):
            error = found.error or Errors.INCONSISTENT_GROUP_PROTOCOL
            done(JoinGroupResponse(error_code=error, protocol_name="", member_id=request.member_id))
        else:
            text = None if found.error else f"Group {request.group_id} is not a consumer group."
            error = found.error or Errors.GROUP_ID_NOT_FOUND
            done(ConsumerGroupHeartbeatResponse(error_code=error, error_message=text))

    ask_leader(request.group_id, ShareGroupDescribeRequest(group_ids=(request.group_id,)), described)


class _Found(NamedTuple):
    """The groups that a description has; or the error after which the client shall ask again, because the other side
    does not know yet whether there is such a group."""

    groups: Sequence[Any] = ()
    error: Errors = Errors.NONE

    @classmethod
    def of(cls, answer: Answer, kind: type[Any]) -> _Found:
        if isinstance(answer.response, kind):
            groups: Sequence[Any] = answer.response.groups
            unknown = next((group.error_code for group in groups if group.error_code in _UNKNOWN), Errors.NONE)
            return cls([group for group in groups if not group.error_code], unknown)
        return cls(error=Errors.NONE if answer.error is Errors.UNSUPPORTED_VERSION else _ASK_AGAIN)
