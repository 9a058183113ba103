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
from tests.coordinator.groups.stage import ConsumerStage
from tests.coordinator.share_group.stage import GROUP


def commit(stage: ConsumerStage, member: str, epoch: int, *partitions: int, version: int = 10) -> set[str]:
    """Commit offset 7 of the partitions of t1; returns the errors."""
    partition = OffsetCommitRequest.Partition
    listed = tuple(partition(partition_index=index, committed_offset=7) for index in partitions)
    request = OffsetCommitRequest(
        group_id=GROUP, generation_id_or_member_epoch=epoch, member_id=member,
        topics=(OffsetCommitRequest.Topic(name="t1", partitions=listed),),
    )  # fmt: skip
    answer = stage.ask(request, OffsetCommitResponse, ClientContext(api_version=version))
    return {partition.error_code.name for topic in answer.topics for partition in topic.partitions}


def fetch(stage: ConsumerStage, member: str | None, epoch: int) -> tuple[str, list[int]]:
    topic = OffsetFetchRequest.Topic(name="t1", partition_indexes=(0, 1))
    group = OffsetFetchRequest.Group(group_id=GROUP, member_id=member, member_epoch=epoch, topics=(topic,))
    answer = stage.ask(OffsetFetchRequest(groups=(group,)), OffsetFetchResponse).groups[0]
    return answer.error_code.name, [p.committed_offset for topic in answer.topics for p in topic.partitions]


def group_after_rebalances() -> ConsumerStage:
    """A and B. A is in epoch 4, with t1:0 assigned in epoch 2 and t1:2 in epoch 4; it has revoked t1:1 for B."""
    stage = ConsumerStage(t1=2)
    stage.join("A")
    stage.join("B")
    stage.next_heartbeat("A", 2, owns="t1:0")
    stage.grow_topic("t1", 4)
    assert stage.next_heartbeat("A", 3) == "4 {t1:0,2}"
    return stage


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
    stage = ConsumerStage(t1=2)
    stage.join("A")
    stage.join("B")
    stage.next_heartbeat("A", 2)
    assert commit(stage, "A", 2, 0, 1) == {"NONE"}


def test_commit_without_member_to_an_empty_group() -> None:
    """BEHAVIOUR.md 23."""
    stage = ConsumerStage(t1=1)
    stage.join("A")
    stage.next_heartbeat("A", -1)
    assert commit(stage, "", -1, 0) == {"NONE"}


FETCHES = [
    pytest.param("A", 4, "NONE", id="the member's epoch"),
    pytest.param(None, -1, "NONE", id="no member"),
    pytest.param("A", 3, "STALE_MEMBER_EPOCH", id="an older epoch"),
    pytest.param("A", 5, "STALE_MEMBER_EPOCH", id="a newer epoch"),
    pytest.param("X", 4, "UNKNOWN_MEMBER_ID", id="an unknown member"),
]


@pytest.mark.parametrize(("member", "epoch", "error"), FETCHES)
def test_fetch_checks_member_and_epoch(member: str | None, epoch: int, error: str) -> None:
    stage = group_after_rebalances()
    commit(stage, "A", 4, 0)
    assert fetch(stage, member, epoch) == (error, [7, -1] if error == "NONE" else [])


# ---- other types under the same id -----------------------------------------------------------------------------------


def join_classic(stage: ConsumerStage, member: str = "") -> JoinGroupResponse:
    protocol = JoinGroupRequest.Protocol(name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0")
    request = JoinGroupRequest(
        group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer",
        protocols=(protocol,), member_id=member,
    )  # fmt: skip
    stage.configure(group_initial_rebalance_delay_ms=0)
    request_id = stage.send(request)
    stage.wait(0)
    return stage.answer(request_id, JoinGroupResponse)


def test_consumer_group_replaces_a_simple_group() -> None:
    """BEHAVIOUR.md 16."""
    stage = ConsumerStage(t1=2)
    assert commit(stage, "", -1, 0) == {"NONE"}
    assert stage.join("A") == "2 {t1:0,1}"
    assert fetch(stage, "A", 2) == ("NONE", [7, -1])
    stage.fail_over()
    assert fetch(stage, "A", 2) == ("NONE", [7, -1])


def test_consumer_group_replaces_an_empty_classic_group() -> None:
    """BEHAVIOUR.md 16."""
    stage = ConsumerStage(t1=2)
    member = join_classic(stage).member_id
    join_classic(stage, member)
    stage.wait(20_000)
    assert stage.join("A") == "2 {t1:0,1}"
    stage.fail_over()
    assert stage.group().TYPE is GroupType.CONSUMER


def test_consumer_group_does_not_replace_a_classic_group_with_members() -> None:
    """BEHAVIOUR.md 16."""
    stage = ConsumerStage(t1=2)
    join_classic(stage, join_classic(stage).member_id)
    assert stage.join("A") == "GROUP_ID_NOT_FOUND"


def test_classic_group_replaces_an_empty_consumer_group_only() -> None:
    """BEHAVIOUR.md 2."""
    stage = ConsumerStage(t1=2)
    stage.join("A")
    assert join_classic(stage).error_code is Errors.INCONSISTENT_GROUP_PROTOCOL
    stage.next_heartbeat("A", 2)
    stage.next_heartbeat("A", -1)
    assert join_classic(stage).error_code is Errors.MEMBER_ID_REQUIRED
    stage.fail_over()
    assert listed(stage) == [("g", "Empty", "classic")]


def listed(stage: ConsumerStage, **filters: tuple[str, ...]) -> list[tuple[str, str, str]]:
    groups = stage.ask(ListGroupsRequest(**filters), ListGroupsResponse).groups
    return [(group.group_id, str(group.group_state), group.group_type) for group in groups]


def test_list_groups_filters_by_type_and_state() -> None:
    stage = ConsumerStage(t1=2)
    stage.join("A")
    assert listed(stage) == [("g", "Stable", "consumer")]
    assert listed(stage, types_filter=("Consumer",), states_filter=("stable",)) == [("g", "Stable", "consumer")]
    assert listed(stage, types_filter=("share",)) == []
    assert listed(stage, states_filter=("Reconciling",)) == []


def delete(stage: ConsumerStage) -> Errors:
    return stage.ask(DeleteGroupsRequest(groups_names=(GROUP,)), DeleteGroupsResponse).results[0].error_code


CHECK_MS = 600_000
"""The default of offsets.retention.check.interval.ms."""


def test_empty_group_without_offsets_expires() -> None:
    """BEHAVIOUR.md 27."""
    stage = ConsumerStage(t1=1)
    stage.join("A")
    stage.next_heartbeat("A", -1)
    assert listed(stage) == [("g", "Empty", "consumer")]
    stage.written()
    stage.wait(CHECK_MS)
    assert listed(stage) == []
    assert stage.written() == ["R6T", "R4T", "R3T"]


def test_only_an_empty_group_can_be_deleted() -> None:
    stage = ConsumerStage(t1=2)
    stage.join("A", None, subscribed_topic_regex="t.*")
    assert delete(stage) is Errors.NON_EMPTY_GROUP
    stage.next_heartbeat("A", -1)
    stage.written()
    assert delete(stage) is Errors.NONE
    assert stage.written() == ["R6T", "R4T", "R3T"]
    assert delete(stage) is Errors.GROUP_ID_NOT_FOUND
    stage.fail_over()
    assert listed(stage) == []
    assert stage.join("A") == "2 {t1:0,1}"
