"""Answers in which share groups of this process stand beside what the backend knows. BEHAVIOUR.md, 5.2 and 6.9."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.broker.backend.group_answers import listed_groups, listed_resources, with_backend_epochs
from shareq.broker.backend.membership import GROUP_ID as PROCESSES
from shareq.broker.backend.processes import NODES
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.cluster import ListGroupsResponse
from shareq.model.messages.describe import ListConfigResourcesRequest, ListConfigResourcesResponse
from shareq.model.messages.share_group import DescribeShareGroupOffsetsResponse
from shareq.model.messages.topics import ResourceType

ID = TopicId("A" * 22)


def groups(*found: tuple[str, str], error: Errors = Errors.NONE) -> ListGroupsResponse:
    listed = tuple(
        ListGroupsResponse.Group(group_id=group, protocol_type=kind, group_state="Stable", group_type="")
        for group, kind in found
    )
    return ListGroupsResponse(error_code=error, groups=listed)


def test_share_groups_of_the_backend_and_the_group_of_the_processes_are_not_listed() -> None:
    ours = groups(("mine", "share"))
    theirs = groups(("its", "share"), ("readers", "consumer"), (PROCESSES, "shareq"))
    assert listed_groups(ours, theirs) == groups(("readers", "consumer"), ("mine", "share"))
    assert listed_groups(ours, None) is None
    loading = groups(error=Errors.COORDINATOR_LOAD_IN_PROGRESS)
    assert listed_groups(loading, theirs) == groups(("readers", "consumer"), error=loading.error_code)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((ResourceType.GROUP,), [("mine", ResourceType.GROUP)]),
        ((ResourceType.TOPIC,), [("orders", ResourceType.TOPIC)]),
        ((ResourceType.BROKER,), [("1000000", ResourceType.BROKER)]),
    ],
)
def test_listed_groups_and_nodes_are_those_of_the_processes(kinds: tuple[int, ...], expected: Any) -> None:
    at_backend = {"its": ResourceType.GROUP, "orders": ResourceType.TOPIC, "0": ResourceType.BROKER}
    resource = ListConfigResourcesResponse.Resource
    listed = (resource(resource_name=name, resource_type=kind) for name, kind in at_backend.items() if kind in kinds)
    node = BrokerImage(broker_id=NODES, host="h", port=1)
    image = ClusterImage(brokers={NODES: node}, group_configs={"mine": {}}, topics={"other": topic(epoch=0)})
    request = ListConfigResourcesRequest(resource_types=kinds)
    found: Any = listed_resources(request, ListConfigResourcesResponse(config_resources=tuple(listed)), image)
    assert [(one.resource_name, one.resource_type) for one in found.config_resources] == expected


def topic(epoch: int) -> TopicImage:
    return TopicImage(
        name="orders", topic_id=ID, partitions=(PartitionImage(leader=0, leader_epoch=epoch, replicas=(0,), isr=(0,)),)
    )


@pytest.mark.parametrize(("stored", "shown"), [(0, 0), (3, 3), (25, 4)])
def test_leader_epochs_of_offsets_are_those_of_the_backend(stored: int, shown: int) -> None:
    image = ClusterImage(topics_by_id={ID: topic(epoch=4)})
    assert with_backend_epochs(offsets(stored), image) == offsets(shown)


def offsets(epoch: int) -> DescribeShareGroupOffsetsResponse:
    response = DescribeShareGroupOffsetsResponse
    part = response.Partition(partition_index=0, start_offset=7, leader_epoch=epoch)
    led = response.Topic(topic_name="orders", topic_id=ID, partitions=(part,))
    return response(groups=(response.Group(group_id="g", topics=(led,)),))
