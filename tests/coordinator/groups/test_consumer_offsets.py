"""Committed offsets of consumer groups, other group types under the same id, list and delete."""

from __future__ import annotations

import pytest

from shareq.coordinator.group.group import GroupType
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import JoinGroupRequest, JoinGroupResponse
from shareq.model.messages.cluster import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from shareq.model.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from tests.coordinator.groups.consumer_world import ConsumerWorld
from tests.coordinator.share_group.world import GROUP


def commit(world: ConsumerWorld, member: str, epoch: int, *partitions: int, version: int = 10) -> set[str]:
    """Commit offset 7 of the partitions of t1; returns the errors."""
    partition = OffsetCommitRequest.Partition
    listed = tuple(partition(partition_index=index, committed_offset=7) for index in partitions)
    request = OffsetCommitRequest(
        group_id=GROUP, generation_id_or_member_epoch=epoch, member_id=member,
        topics=(OffsetCommitRequest.Topic(name="t1", partitions=listed),),
    )  # fmt: skip
    answer = world.ask(request, OffsetCommitResponse, ClientContext(api_version=version))
    return {partition.error_code.name for topic in answer.topics for partition in topic.partitions}


def fetch(world: ConsumerWorld, member: str | None, epoch: int) -> tuple[str, list[int]]:
    topic = OffsetFetchRequest.Topic(name="t1", partition_indexes=(0, 1))
    group = OffsetFetchRequest.Group(group_id=GROUP, member_id=member, member_epoch=epoch, topics=(topic,))
    answer = world.ask(OffsetFetchRequest(groups=(group,)), OffsetFetchResponse).groups[0]
    return answer.error_code.name, [p.committed_offset for topic in answer.topics for p in topic.partitions]


def group_after_rebalances() -> ConsumerWorld:
    """A and B. A is in epoch 4, with t1:0 assigned in epoch 2 and t1:2 in epoch 4; it has revoked t1:1 for B."""
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.join("B")
    world.next_heartbeat("A", 2, owns="t1:0")
    world.grow_topic("t1", 4)
    assert world.next_heartbeat("A", 3) == "4 {t1:0,2}"
    return world


@pytest.mark.parametrize(
    ("member", "epoch", "expected"),
    [
        pytest.param("A", 4, "UNSUPPORTED_VERSION", id="a member"),
        pytest.param("A", 9, "UNSUPPORTED_VERSION", id="a member of a later epoch"),
        pytest.param("X", 4, "UNKNOWN_MEMBER_ID", id="no member"),
    ],
)
def test_members_commit_with_version_9_and_later(member: str, epoch: int, expected: str) -> None:
    """BEHAVIOUR.md, before version 9 a commit has a generation, and no member epoch."""
    assert commit(group_after_rebalances(), member, epoch, 0, version=8) == {expected}


COMMITS = [
    pytest.param("A", 4, (0, 2), "NONE", id="the member's epoch"),
    pytest.param("A", 3, (0,), "NONE", id="an older epoch, a partition assigned before"),
    pytest.param("A", 2, (0,), "NONE", id="the epoch of the assignment"),
    pytest.param("A", 1, (0,), "STALE_MEMBER_EPOCH", id="before the assignment"),
    pytest.param("A", 3, (2,), "STALE_MEMBER_EPOCH", id="an older epoch, a partition assigned later"),
    pytest.param("A", 3, (0, 2), "STALE_MEMBER_EPOCH", id="one refused partition refuses all"),
    pytest.param("A", 3, (1,), "STALE_MEMBER_EPOCH", id="an older epoch, a partition of another member"),
    pytest.param("A", 5, (0,), "STALE_MEMBER_EPOCH", id="a newer epoch"),
    pytest.param("X", 4, (0,), "UNKNOWN_MEMBER_ID", id="an unknown member"),
    pytest.param("", -1, (0,), "UNKNOWN_MEMBER_ID", id="no member"),
]


@pytest.mark.parametrize(("member", "epoch", "partitions", "error"), COMMITS)
def test_commit_checks_member_epoch_and_partitions(
    member: str, epoch: int, partitions: tuple[int, ...], error: str
) -> None:
    """BEHAVIOUR.md 22, 23."""
    assert commit(group_after_rebalances(), member, epoch, *partitions) == {error}


def test_member_may_commit_partitions_that_it_has_not_revoked_yet() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.join("B")
    world.next_heartbeat("A", 2)
    assert commit(world, "A", 2, 0, 1) == {"NONE"}


def test_commit_without_member_to_an_empty_group() -> None:
    """BEHAVIOUR.md 23."""
    world = ConsumerWorld(t1=1)
    world.join("A")
    world.next_heartbeat("A", -1)
    assert commit(world, "", -1, 0) == {"NONE"}


FETCHES = [
    pytest.param("A", 4, "NONE", id="the member's epoch"),
    pytest.param(None, -1, "NONE", id="no member"),
    pytest.param("A", 3, "STALE_MEMBER_EPOCH", id="an older epoch"),
    pytest.param("A", 5, "STALE_MEMBER_EPOCH", id="a newer epoch"),
    pytest.param("X", 4, "UNKNOWN_MEMBER_ID", id="an unknown member"),
]


@pytest.mark.parametrize(("member", "epoch", "error"), FETCHES)
def test_fetch_checks_member_and_epoch(member: str | None, epoch: int, error: str) -> None:
    world = group_after_rebalances()
    commit(world, "A", 4, 0)
    assert fetch(world, member, epoch) == (error, [7, -1] if error == "NONE" else [])


# ---- other types under the same id -----------------------------------------------------------------------------------


def join_classic(world: ConsumerWorld, member: str = "") -> JoinGroupResponse:
    protocol = JoinGroupRequest.Protocol(name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0")
    request = JoinGroupRequest(
        group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer",
        protocols=(protocol,), member_id=member,
    )  # fmt: skip
    world.configure(group_initial_rebalance_delay_ms=0)
    request_id = world.send(request)
    world.wait(0)
    return world.answer(request_id, JoinGroupResponse)


def test_consumer_group_replaces_a_simple_group() -> None:
    """BEHAVIOUR.md 16."""
    world = ConsumerWorld(t1=2)
    assert commit(world, "", -1, 0) == {"NONE"}
    assert world.join("A") == "2 {t1:0,1}"
    assert fetch(world, "A", 2) == ("NONE", [7, -1])
    world.fail_over()
    assert fetch(world, "A", 2) == ("NONE", [7, -1])


def test_consumer_group_replaces_an_empty_classic_group() -> None:
    """BEHAVIOUR.md 16."""
    world = ConsumerWorld(t1=2)
    member = join_classic(world).member_id
    join_classic(world, member)
    world.wait(20_000)
    assert world.join("A") == "2 {t1:0,1}"
    world.fail_over()
    assert world.group().TYPE is GroupType.CONSUMER


def test_consumer_group_does_not_replace_a_classic_group_with_members() -> None:
    """BEHAVIOUR.md 16."""
    world = ConsumerWorld(t1=2)
    join_classic(world, join_classic(world).member_id)
    assert world.join("A") == "GROUP_ID_NOT_FOUND"


def test_classic_group_replaces_an_empty_consumer_group_only() -> None:
    """BEHAVIOUR.md 2."""
    world = ConsumerWorld(t1=2)
    world.join("A")
    assert join_classic(world).error_code is Errors.INCONSISTENT_GROUP_PROTOCOL
    world.next_heartbeat("A", 2)
    world.next_heartbeat("A", -1)
    assert join_classic(world).error_code is Errors.MEMBER_ID_REQUIRED
    world.fail_over()
    assert listed(world) == [("g", "Empty", "classic")]


def listed(world: ConsumerWorld, **filters: tuple[str, ...]) -> list[tuple[str, str, str]]:
    groups = world.ask(ListGroupsRequest(**filters), ListGroupsResponse).groups
    return [(group.group_id, str(group.group_state), group.group_type) for group in groups]


def test_list_groups_filters_by_type_and_state() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    assert listed(world) == [("g", "Stable", "consumer")]
    assert listed(world, types_filter=("Consumer",), states_filter=("stable",)) == [("g", "Stable", "consumer")]
    assert listed(world, types_filter=("share",)) == []
    assert listed(world, states_filter=("Reconciling",)) == []


def delete(world: ConsumerWorld) -> Errors:
    return world.ask(DeleteGroupsRequest(groups_names=(GROUP,)), DeleteGroupsResponse).results[0].error_code


CHECK_MS = 600_000
"""The default of offsets.retention.check.interval.ms."""


def test_empty_group_without_offsets_expires() -> None:
    """BEHAVIOUR.md 27."""
    world = ConsumerWorld(t1=1)
    world.join("A")
    world.next_heartbeat("A", -1)
    assert listed(world) == [("g", "Empty", "consumer")]
    world.written()
    world.wait(CHECK_MS)
    assert listed(world) == []
    assert world.written() == ["R6T", "R4T", "R3T"]


def test_only_an_empty_group_can_be_deleted() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A", None, subscribed_topic_regex="t.*")
    assert delete(world) is Errors.NON_EMPTY_GROUP
    world.next_heartbeat("A", -1)
    world.written()
    assert delete(world) is Errors.NONE
    assert world.written() == ["R6T", "R4T", "R3T"]
    assert delete(world) is Errors.GROUP_ID_NOT_FOUND
    world.fail_over()
    assert listed(world) == []
    assert world.join("A") == "2 {t1:0,1}"
