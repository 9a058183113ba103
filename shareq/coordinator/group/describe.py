"""The part of describing that groups of all types share, and ListGroups; both read committed state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.runtime.shard import ShardState
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import DescribeGroupsRequest
from shareq.model.messages.cluster import ListGroupsRequest, ListGroupsResponse
from shareq.model.messages.consumer_group import ConsumerGroupDescribeRequest
from shareq.model.messages.share_group import AUTHORIZED_OPERATIONS_OMITTED, ShareGroupDescribeRequest
from shareq.model.workflow import Workflow

D = TypeVar("D")

ALL_GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: all of them are allowed, as there is no authorization."""


def describe_each(
    context: Context,
    group_ids: Sequence[str],
    describe: Callable[[GroupShard, str], D],
    failed: Callable[[str, Errors], D],
    *,
    nameless: bool = False,
) -> Workflow[list[D]]:
    """Describe each group separately; a group whose shard is not here gets an error. Classic groups may have an empty
    id."""

    def one(group_id: str) -> Workflow[D]:
        if not (group_id or nameless):
            return failed(group_id, Errors.INVALID_GROUP_ID)
        shard = yield context.turn(group_id, partial(failed, group_id))
        return describe(shard, group_id)

    described: list[D] = yield [one(group_id) for group_id in group_ids]
    return described


def operations_of(request: ShareGroupDescribeRequest | ConsumerGroupDescribeRequest | DescribeGroupsRequest) -> int:
    return ALL_GROUP_OPERATIONS if request.include_authorized_operations else AUTHORIZED_OPERATIONS_OMITTED


def list_groups(context: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    """ListGroups: the groups that this broker coordinates. Filters ignore case; unknown values match nothing."""
    runtime = context.runtime
    if any(runtime.state(partition) is ShardState.LOADING for partition in range(context.partition_count())):
        return ListGroupsResponse(error_code=Errors.COORDINATOR_LOAD_IN_PROGRESS)
    states = {text.strip().lower() for text in request.states_filter}
    types = {text.strip().lower() for text in request.types_filter}
    listed = [
        ListGroupsResponse.Group(
            group_id=group_id,
            protocol_type=group.protocol_type,
            group_state=str(group.state),
            group_type=str(group.TYPE),
        )
        for _, shard in runtime.active()
        for group_id, group in shard.groups.items()
        if (not states or group.state.lower() in states) and (not types or group.TYPE in types)
    ]
    return ListGroupsResponse(groups=tuple(listed))
