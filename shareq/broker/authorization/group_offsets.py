"""Rules of the requests about the offsets of groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shareq.broker.authorization.groups import share_groups_are_off
from shareq.broker.authorization.logs import named
from shareq.broker.authorization.rulings import Filtered, Ruling, without
from shareq.coordinator.offsets.fetch import GROUP_ERROR_VERSION, refused_group
from shareq.model.acls import AclOperation, ResourceType
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID
from shareq.model.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from shareq.model.messages.refused_topics import refused_topics
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from shareq.model.rights import Rights

_GROUP_DENIED = Errors.GROUP_AUTHORIZATION_FAILED
_TOPIC_DENIED = Errors.TOPIC_AUTHORIZATION_FAILED


def commit(request: OffsetCommitRequest, rights: Rights) -> Ruling:
    """READ on the group and on each topic."""
    if not rights.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        refused = refused_topics(OffsetCommitResponse, request.topics, error_code=_GROUP_DENIED)
        return OffsetCommitResponse(topics=refused)
    allowed, denied = rights.split(
        AclOperation.READ, ResourceType.TOPIC, request.topics, lambda topic: named(topic, rights.image)
    )
    refused = refused_topics(OffsetCommitResponse, denied, error_code=_TOPIC_DENIED)
    return without(request, refused, topics=allowed) if allowed else OffsetCommitResponse(topics=refused)


def delete(request: OffsetDeleteRequest, rights: Rights) -> Ruling:
    """DELETE on the group, READ on each topic."""
    if not rights.may(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=_GROUP_DENIED)
    allowed, denied = rights.split(AclOperation.READ, ResourceType.TOPIC, request.topics, lambda topic: topic.name)
    refused = refused_topics(OffsetDeleteResponse, denied, error_code=_TOPIC_DENIED)
    return _unless_failed(without(request, refused, topics=allowed))


def _unless_failed(ruling: Ruling) -> Ruling:
    """A response with an error of the whole request names no topics."""
    if not isinstance(ruling, Filtered):
        return ruling
    complete = ruling.complete
    return ruling._replace(complete=lambda response: response if response.error_code else complete(response))


# ---- by group --------------------------------------------------------------------------------------------------------

Split = Callable[[Any], tuple[Any, Callable[[Any], Any]]]
"""What is left of a group in a request, and the completion of its part of the response."""


def fetch(request: OffsetFetchRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each group and on each topic; of all topics of a group those that may be described."""

    def refused(group: OffsetFetchRequest.Group) -> OffsetFetchResponse.Group:
        if rights.api_version < GROUP_ERROR_VERSION:
            return refused_group(group, _GROUP_DENIED)
        return OffsetFetchResponse.Group(group_id=group.group_id, error_code=_GROUP_DENIED)

    def split(
        group: OffsetFetchRequest.Group,
    ) -> tuple[OffsetFetchRequest.Group, Callable[[OffsetFetchResponse.Group], OffsetFetchResponse.Group]]:
        if group.topics is None:
            return group, visible
        allowed, denied = rights.split(
            AclOperation.DESCRIBE, ResourceType.TOPIC, group.topics, lambda topic: named(topic, rights.image)
        )
        rows = refused_topics(OffsetFetchResponse, denied, error_code=_TOPIC_DENIED)
        return replace(group, topics=allowed), lambda found: _with_rows(found, rows)

    def visible(found: OffsetFetchResponse.Group) -> OffsetFetchResponse.Group:
        shown = tuple(topic for topic in found.topics if rights.sees_topic(named(topic, rights.image) or ""))
        return replace(found, topics=shown)

    return _by_group(request, rights, split, refused)


def describe_share_offsets(request: DescribeShareGroupOffsetsRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each group and on each topic; of all topics of a group those that may be described."""
    if share_groups_are_off(rights):
        return request

    def refused(group: DescribeShareGroupOffsetsRequest.Group) -> DescribeShareGroupOffsetsResponse.Group:
        return DescribeShareGroupOffsetsResponse.Group(group_id=group.group_id, error_code=_GROUP_DENIED)

    def split(group: DescribeShareGroupOffsetsRequest.Group) -> tuple[Any, Callable[[Any], Any]]:
        if group.topics is None:
            return group, visible
        allowed, denied = rights.split(
            AclOperation.DESCRIBE, ResourceType.TOPIC, group.topics, lambda topic: topic.topic_name
        )
        rows = refused_topics(DescribeShareGroupOffsetsResponse, denied, error_code=_TOPIC_DENIED)
        return replace(group, topics=allowed), lambda found: _with_rows(found, rows)

    def visible(found: DescribeShareGroupOffsetsResponse.Group) -> DescribeShareGroupOffsetsResponse.Group:
        return replace(found, topics=tuple(topic for topic in found.topics if rights.sees_topic(topic.topic_name)))

    return _by_group(request, rights, split, refused)


def _with_rows(found: Any, rows: tuple[Any, ...]) -> Any:
    """A group's part of a response with its refused topics, unless the whole group failed."""
    return found if found.error_code or not rows else replace(found, topics=(*found.topics, *rows))


def _by_group(request: Any, rights: Rights, split: Split, refused: Callable[[Any], Any]) -> Filtered:
    """The request for the groups that may be described; the results are in the order of the request."""
    left, completions = [], []
    rows: list[Any] = []
    for group in request.groups:
        if rights.may(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id):
            part, complete = split(group)
            left.append(part)
            completions.append(complete)
            rows.append(None)
        else:
            rows.append(refused(group))

    def completed(response: Any) -> Any:
        found = (complete(group) for complete, group in zip(completions, response.groups, strict=True))
        return replace(response, groups=tuple(next(found) if row is None else row for row in rows))

    return Filtered(replace(request, groups=tuple(left)), completed)


# ---- offsets of share groups -----------------------------------------------------------------------------------------


def alter_share_offsets(request: AlterShareGroupOffsetsRequest, rights: Rights) -> Ruling:
    """READ on the group and on each topic."""
    if share_groups_are_off(rights):
        return request
    if not rights.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return AlterShareGroupOffsetsResponse(error_code=_GROUP_DENIED)
    allowed, denied = _readable(request, rights)
    refused = refused_topics(AlterShareGroupOffsetsResponse, denied, error_code=_TOPIC_DENIED)
    return _unless_failed(without(request, refused, "responses", topics=allowed))


def delete_share_offsets(request: DeleteShareGroupOffsetsRequest, rights: Rights) -> Ruling:
    """DELETE on the group, READ on each topic."""
    if share_groups_are_off(rights):
        return request
    if not rights.may(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        return DeleteShareGroupOffsetsResponse(error_code=_GROUP_DENIED)
    allowed, denied = _readable(request, rights)
    refused = tuple(
        DeleteShareGroupOffsetsResponse.Topic(
            topic_name=topic.topic_name, topic_id=ZERO_TOPIC_ID, error_code=_TOPIC_DENIED
        )
        for topic in denied
    )
    return _unless_failed(without(request, refused, "responses", topics=allowed))


def _readable(request: Any, rights: Rights) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return rights.split(AclOperation.READ, ResourceType.TOPIC, request.topics, lambda topic: topic.topic_name)
