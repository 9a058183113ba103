"""Answers in which share groups of this process stand beside what the backend knows. BEHAVIOUR.md, 5.2 and 6.9."""

from __future__ import annotations

from dataclasses import replace

from shareq.broker.backend.membership import GROUP_ID as PROCESSES
from shareq.broker.describe_cluster import list_config_resources
from shareq.model.ids import TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Response
from shareq.model.messages.cluster import ListGroupsResponse
from shareq.model.messages.describe import ListConfigResourcesRequest, ListConfigResourcesResponse
from shareq.model.messages.share_group import DescribeShareGroupOffsetsResponse
from shareq.model.messages.topics import ResourceType

Partition = DescribeShareGroupOffsetsResponse.Partition

SHARE = "share"
"""The protocol type of share groups."""

_HERE = frozenset({ResourceType.GROUP, ResourceType.BROKER, ResourceType.BROKER_LOGGER})


def listed_groups(ours: Response, theirs: Response | None) -> Response | None:
    """The share groups of this process, and the backend's groups of other types: its own share groups are described
    here no more than they work here."""
    if not isinstance(theirs, ListGroupsResponse) or not isinstance(ours, ListGroupsResponse):
        return theirs
    known = {group.group_id for group in ours.groups} | {PROCESSES}
    others = tuple(one for one in theirs.groups if one.group_id not in known and one.protocol_type != SHARE)
    return replace(theirs, error_code=theirs.error_code or ours.error_code, groups=others + ours.groups)


def listed_resources(
    request: ListConfigResourcesRequest, theirs: Response | None, image: ClusterImage
) -> Response | None:
    """Groups and nodes are those of the image, all other resources the backend's."""
    if not isinstance(theirs, ListConfigResourcesResponse):
        return theirs
    found = list_config_resources(request, image).config_resources
    others = tuple(one for one in theirs.config_resources if one.resource_type not in _HERE)
    return replace(theirs, config_resources=others + tuple(one for one in found if one.resource_type in _HERE))


def with_backend_epochs(response: Response, image: ClusterImage) -> Response:
    """The leader epochs of states have the terms of fleets in them (6.7); clients know those of the backend."""
    if not isinstance(response, DescribeShareGroupOffsetsResponse):
        return response

    def partition(topic_id: TopicId, one: Partition) -> Partition:
        known = image.partition(topic_id, one.partition_index)
        return one if known is None else replace(one, leader_epoch=min(one.leader_epoch, known.leader_epoch))

    def topic(one: DescribeShareGroupOffsetsResponse.Topic) -> DescribeShareGroupOffsetsResponse.Topic:
        return replace(one, partitions=tuple(partition(one.topic_id, part) for part in one.partitions))

    groups = (replace(group, topics=tuple(map(topic, group.topics))) for group in response.groups)
    return replace(response, groups=tuple(groups))
