"""Rules of the requests about groups: their members, descriptions, lists and deletion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from shareq.broker.authorization.rulings import Filtered, Rule, Ruling, showing, without
from shareq.model.acls import AclOperation, ResourceType
from shareq.model.errors import Errors
from shareq.model.messages.base import Response
from shareq.model.messages.classic_group import DescribeGroupsRequest, DescribeGroupsResponse
from shareq.model.messages.cluster import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
)
from shareq.model.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from shareq.model.messages.share_browse import BrowseShareGroupRequest, BrowseShareGroupResponse
from shareq.model.messages.share_fetch import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.messages.share_group import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from shareq.model.rights import Rights

G = TypeVar(
    "G",
    DescribeGroupsResponse.DescribedGroup,
    ConsumerGroupDescribeResponse.DescribedGroup,
    ShareGroupDescribeResponse.DescribedGroup,
)

_DENIED = Errors.GROUP_AUTHORIZATION_FAILED
_TOPIC_DENIED = Errors.TOPIC_AUTHORIZATION_FAILED
_HIDDEN_TOPICS = "the group has topics that the client is not allowed to describe"

MAX_MEMBER_ID_LENGTH = 36


def reads_group(response: Callable[..., Response]) -> Rule:
    """READ on the group of the request; else `response` with the error alone."""

    def rule(request: Any, rights: Rights) -> Ruling:
        if rights.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
            return request  # type: ignore[no-any-return]    # of any type with a group
        return response(error_code=_DENIED)

    return rule


def consumer_heartbeat(request: ConsumerGroupHeartbeatRequest, rights: Rights) -> Ruling:
    """READ on the group, DESCRIBE on all topics of the subscription."""
    if not rights.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=_DENIED)
    if not _sees_all(rights, request.subscribed_topic_names):
        return ConsumerGroupHeartbeatResponse(error_code=_TOPIC_DENIED)
    return request


def share_heartbeat(request: ShareGroupHeartbeatRequest, rights: Rights) -> Ruling:
    """READ on the group, DESCRIBE on all topics of the subscription. Kafka checks the member id between the two."""
    if share_groups_are_off(rights):
        return request
    if not rights.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ShareGroupHeartbeatResponse(error_code=_DENIED)
    if not 0 < len(request.member_id) <= MAX_MEMBER_ID_LENGTH:
        return request
    if not _sees_all(rights, request.subscribed_topic_names):
        return ShareGroupHeartbeatResponse(error_code=_TOPIC_DENIED)
    return request


def share_groups_are_off(rights: Rights) -> bool:
    """True if the answer to every request about share groups is UNSUPPORTED_VERSION, with any rights."""
    return rights.image.share_version < 1


def _sees_all(rights: Rights, names: Iterable[str] | None) -> bool:
    _, denied = rights.split(AclOperation.DESCRIBE, ResourceType.TOPIC, names or (), lambda name: name)
    return not denied


def share_request(request: ShareFetchRequest | ShareAcknowledgeRequest, rights: Rights) -> Ruling:
    """READ on the group. The topics are checked with the session."""
    if request.group_id is None or share_groups_are_off(rights):
        return request
    if rights.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return request
    if isinstance(request, ShareFetchRequest):
        return ShareFetchResponse(error_code=_DENIED)
    return ShareAcknowledgeResponse(error_code=_DENIED)


def browse_share_group(request: BrowseShareGroupRequest, rights: Rights) -> Ruling:
    """DESCRIBE on the group, and READ on the topic, whose records the response has."""
    if share_groups_are_off(rights):
        return request
    if not rights.may(AclOperation.DESCRIBE, ResourceType.GROUP, request.group_id):
        return BrowseShareGroupResponse(error_code=_DENIED)
    topic = rights.image.topics_by_id.get(request.topic_id)
    if topic is not None and not rights.may(AclOperation.READ, ResourceType.TOPIC, topic.name):
        return BrowseShareGroupResponse(error_code=_TOPIC_DENIED)
    return request


# ---- descriptions ----------------------------------------------------------------------------------------------------


def describe_groups(request: DescribeGroupsRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each group."""
    return _described(request, rights, DescribeGroupsResponse.DescribedGroup, lambda _: (), field="groups")


def describe_consumer_groups(request: ConsumerGroupDescribeRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each group, and on all topics that are assigned in it, or are to be."""
    described = ConsumerGroupDescribeResponse.DescribedGroup
    return _described(request, rights, described, lambda member: (member.assignment, member.target_assignment))


def describe_share_groups(request: ShareGroupDescribeRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each group, and on all topics that are assigned in it."""
    if share_groups_are_off(rights):
        return request
    return _described(request, rights, ShareGroupDescribeResponse.DescribedGroup, lambda member: (member.assignment,))


def _described(
    request: Any, rights: Rights, described: Any, assigned: Callable[[Any], Iterable[Any]], *, field: str = "group_ids"
) -> Filtered:
    """`assigned`: the assignments of a member."""
    allowed, denied = _describable(rights, getattr(request, field))
    refused = tuple(described(group_id=group, error_code=_DENIED) for group in denied)

    def shown(group: Any) -> Any:
        if _sees_assigned(rights, [each for member in group.members for each in assigned(member)]):
            return _with_operations(request, rights, group)
        return described(group_id=group.group_id, error_code=_TOPIC_DENIED, error_message=_HIDDEN_TOPICS)

    return Filtered(
        replace(request, **{field: allowed}),
        lambda response: replace(response, groups=refused + tuple(map(shown, response.groups))),
    )


def _describable(rights: Rights, groups: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return rights.split(AclOperation.DESCRIBE, ResourceType.GROUP, groups, lambda group: group)


def _sees_assigned(rights: Rights, assignments: Iterable[Any]) -> bool:
    return _sees_all(rights, {part.topic_name for each in assignments for part in each.topic_partitions})


def _with_operations(request: Any, rights: Rights, group: G) -> G:
    if not request.include_authorized_operations or group.error_code:
        return group
    return replace(group, authorized_operations=rights.operations(ResourceType.GROUP, group.group_id))


# ---- lists and deletion ----------------------------------------------------------------------------------------------


def list_groups(request: ListGroupsRequest, rights: Rights) -> Ruling:
    """All groups with DESCRIBE on the cluster, else those with DESCRIBE on the group."""
    if rights.on_cluster(AclOperation.DESCRIBE, quiet=True):
        return request
    return showing(request, rights, "groups", ResourceType.GROUP, lambda group: group.group_id)


def delete_groups(request: DeleteGroupsRequest, rights: Rights) -> Ruling:
    """DELETE on each group."""
    allowed, denied = rights.split(AclOperation.DELETE, ResourceType.GROUP, request.groups_names, lambda group: group)
    refused = tuple(DeleteGroupsResponse.Result(group_id=group, error_code=_DENIED) for group in denied)
    return without(request, refused, "results", groups_names=allowed)
