"""Consumer groups and what lies beside them: committed offsets, other types of groups under the same id, deletion."""

from __future__ import annotations

import pytest

from shareq.coordinator.groups.group import GroupType
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
from tests.coordinator.other.consumer_world import ConsumerWorld
from tests.coordinator.share_group.world import GROUP


def commit(world: ConsumerWorld, member: str, epoch: int, *partitions: int) -> set[str]:
    """Commit offset 7 of each partition of t1; the errors."""
    asked = OffsetCommitRequest.Partition
    listed = tuple(asked(partition_index=index, committed_offset=7) for index in partitions)
    request = OffsetCommitRequest(
        group_id=GROUP, generation_id_or_member_epoch=epoch, member_id=member,
        topics=(OffsetCommitRequest.Topic(name="t1", partitions=listed),),
    )  # fmt: skip
    answer = world.ask(request, OffsetCommitResponse)
    return {partition.error_code.name for topic in answer.topics for partition in topic.partitions}


def fetch(world: ConsumerWorld, member: str | None, epoch: int) -> tuple[str, list[int]]:
    topic = OffsetFetchRequest.Topic(name="t1", partition_indexes=(0, 1))
    group = OffsetFetchRequest.Group(group_id=GROUP, member_id=member, member_epoch=epoch, topics=(topic,))
    answer = world.ask(OffsetFetchRequest(groups=(group,)), OffsetFetchResponse).groups[0]
    return answer.error_code.name, [p.committed_offset for topic in answer.topics for p in topic.partitions]


def rebalanced() -> ConsumerWorld:
    """A is at 4 since it gave up t1:1 to B, and has had t1:0 since 2; t1:2 came to it at 4."""
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.join("B")
    world.stay("A", 2, owns="t1:0")
    world.grow_topic("t1", 4)
    assert world.stay("A", 3) == "4 {t1:0,2}"
    return world


COMMITS = [
    pytest.param("A", 4, (0, 2), "NONE", id="its epoch"),
    pytest.param("A", 3, (0,), "NONE", id="an older epoch, a partition that it had then"),
    pytest.param("A", 2, (0,), "NONE", id="the epoch of the assignment"),
    pytest.param("A", 1, (0,), "STALE_MEMBER_EPOCH", id="before the assignment"),
    pytest.param("A", 3, (2,), "STALE_MEMBER_EPOCH", id="an older epoch, a partition that came later"),
    pytest.param("A", 3, (0, 2), "STALE_MEMBER_EPOCH", id="one partition spoils the others"),
    pytest.param("A", 3, (1,), "STALE_MEMBER_EPOCH", id="an older epoch, a partition of another member"),
    pytest.param("A", 5, (0,), "STALE_MEMBER_EPOCH", id="a newer epoch"),
    pytest.param("X", 4, (0,), "UNKNOWN_MEMBER_ID", id="nobody's member id"),
    pytest.param("", -1, (0,), "UNKNOWN_MEMBER_ID", id="somebody from outside"),
]


@pytest.mark.parametrize(("member", "epoch", "partitions", "error"), COMMITS)
def test_who_may_commit(member: str, epoch: int, partitions: tuple[int, ...], error: str) -> None:
    assert commit(rebalanced(), member, epoch, *partitions) == {error}


def test_what_a_member_has_still_to_give_up_it_may_commit() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    world.join("B")
    world.stay("A", 2)
    assert commit(world, "A", 2, 0, 1) == {"NONE"}


def test_anybody_may_commit_to_an_empty_group() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A")
    world.stay("A", -1)
    assert commit(world, "", -1, 0) == {"NONE"}


FETCHES = [
    pytest.param("A", 4, "NONE", id="its epoch"),
    pytest.param(None, -1, "NONE", id="somebody from outside"),
    pytest.param("A", 3, "STALE_MEMBER_EPOCH", id="an older epoch"),
    pytest.param("A", 5, "STALE_MEMBER_EPOCH", id="a newer epoch"),
    pytest.param("X", 4, "UNKNOWN_MEMBER_ID", id="nobody's member id"),
]


@pytest.mark.parametrize(("member", "epoch", "error"), FETCHES)
def test_who_may_fetch(member: str | None, epoch: int, error: str) -> None:
    world = rebalanced()
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


def test_an_id_with_offsets_only_becomes_a_consumer_groups() -> None:
    world = ConsumerWorld(t1=2)
    assert commit(world, "", -1, 0) == {"NONE"}
    assert world.join("A") == "2 {t1:0,1}"
    assert fetch(world, "A", 2) == ("NONE", [7, -1])
    world.fail_over()
    assert fetch(world, "A", 2) == ("NONE", [7, -1])


def test_an_empty_classic_groups_id_becomes_a_consumer_groups() -> None:
    world = ConsumerWorld(t1=2)
    member = join_classic(world).member_id
    join_classic(world, member)
    world.wait(20_000)
    assert world.join("A") == "2 {t1:0,1}"
    world.fail_over()
    assert world.group().TYPE is GroupType.CONSUMER


def test_a_classic_group_with_members_stays_what_it_is() -> None:
    world = ConsumerWorld(t1=2)
    join_classic(world, join_classic(world).member_id)
    assert world.join("A") == "GROUP_ID_NOT_FOUND"


def test_classic_members_may_have_the_id_of_an_empty_consumer_group_and_of_no_other() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    assert join_classic(world).error_code is Errors.INCONSISTENT_GROUP_PROTOCOL
    world.stay("A", 2)
    world.stay("A", -1)
    assert join_classic(world).error_code is Errors.MEMBER_ID_REQUIRED
    world.fail_over()
    assert listed(world) == [("g", "Empty", "classic")]


def listed(world: ConsumerWorld, **filters: tuple[str, ...]) -> list[tuple[str, str, str]]:
    groups = world.ask(ListGroupsRequest(**filters), ListGroupsResponse).groups
    return [(group.group_id, str(group.group_state), group.group_type) for group in groups]


def test_groups_are_listed_with_their_type_and_state() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A")
    assert listed(world) == [("g", "Stable", "consumer")]
    assert listed(world, types_filter=("Consumer",), states_filter=("stable",)) == [("g", "Stable", "consumer")]
    assert listed(world, types_filter=("share",)) == []
    assert listed(world, states_filter=("Reconciling",)) == []


def delete(world: ConsumerWorld) -> Errors:
    return world.ask(DeleteGroupsRequest(groups_names=(GROUP,)), DeleteGroupsResponse).results[0].error_code


CHECK_MS = 600_000
"""How often groups and offsets that nobody wants are looked for."""


def test_an_empty_group_that_never_committed_anything_is_cleaned_up() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A")
    world.stay("A", -1)
    assert listed(world) == [("g", "Empty", "consumer")]
    world.written()
    world.wait(CHECK_MS)
    assert listed(world) == []
    assert world.written() == ["R6T", "R4T", "R3T"]


def test_only_an_empty_group_is_deleted_and_then_wholly() -> None:
    world = ConsumerWorld(t1=2)
    world.join("A", None, subscribed_topic_regex="t.*")
    assert delete(world) is Errors.NON_EMPTY_GROUP
    world.stay("A", -1)
    world.written()
    assert delete(world) is Errors.NONE
    assert world.written() == ["R6T", "R4T", "R3T"]
    assert delete(world) is Errors.GROUP_ID_NOT_FOUND
    world.fail_over()
    assert listed(world) == []
    assert world.join("A") == "2 {t1:0,1}"
