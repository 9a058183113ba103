"""The group config `group.type` reserves an id for share groups or for consumer groups; existing groups keep their
type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.coordinator.groups.consumer_world import ConsumerWorld
from tests.coordinator.groups.test_consumer_offsets import commit, join_classic, listed
from tests.coordinator.share_group.test_offsets import alter, altered

MAKERS: dict[str, Callable[[ConsumerWorld], str]] = {
    "share heartbeat": lambda world: world.heartbeat("S", 0, ["t1"]),
    "share offsets": lambda world: altered(world, alter(world, {"t1": {0: 5}})),
    "consumer heartbeat": lambda world: world.join("C"),
    "classic join": lambda world: join_classic(world).error_code.name,
    "commit": lambda world: ",".join(commit(world, "", -1, 0)),
}
"""The requests that create a group; each returns its response as short text."""

INCONSISTENT, NOT_FOUND = "INCONSISTENT_GROUP_PROTOCOL", "GROUP_ID_NOT_FOUND"


ROWS = [
    pytest.param(None, "share heartbeat", "2 {}", id="not set, a share consumer"),
    pytest.param(None, "share offsets", "t1:0 NONE", id="not set, offsets of a share group"),
    pytest.param(None, "consumer heartbeat", "2 {t1:0}", id="not set, a consumer"),
    pytest.param(None, "classic join", "MEMBER_ID_REQUIRED", id="not set, a classic consumer"),
    pytest.param(None, "commit", "NONE", id="not set, offsets of a consumer group"),
    pytest.param("share", "share heartbeat", "2 {}", id="share, a share consumer"),
    pytest.param("share", "share offsets", "t1:0 NONE", id="share, offsets of a share group"),
    pytest.param("share", "consumer heartbeat", INCONSISTENT, id="share, a consumer"),
    pytest.param("share", "classic join", INCONSISTENT, id="share, a classic consumer"),
    pytest.param("share", "commit", NOT_FOUND, id="share, offsets of a consumer group"),
    pytest.param("consumer", "share heartbeat", NOT_FOUND, id="consumer, a share consumer"),
    pytest.param("consumer", "share offsets", NOT_FOUND, id="consumer, offsets of a share group"),
    pytest.param("consumer", "consumer heartbeat", "2 {t1:0}", id="consumer, a consumer"),
    pytest.param("consumer", "classic join", "MEMBER_ID_REQUIRED", id="consumer, a classic consumer"),
    pytest.param("consumer", "commit", "NONE", id="consumer, offsets of a consumer group"),
]


def world_with_type(group_type: str | None) -> ConsumerWorld:
    world = ConsumerWorld(t1=1)
    if group_type:
        world.configure_group(group_type=group_type)
    return world


@pytest.mark.parametrize(("group_type", "maker", "answer"), ROWS)
def test_group_type_allows_or_refuses_new_groups(group_type: str | None, maker: str, answer: str) -> None:
    world = world_with_type(group_type)
    assert MAKERS[maker](world) == answer
    if answer in (INCONSISTENT, NOT_FOUND):
        assert world._written == []
        assert listed(world) == []


def test_error_message_names_the_reserved_type() -> None:
    world = world_with_type("share")
    world.join("C")
    assert world.last_response.error_message == "Group g is reserved for share groups."
    world = world_with_type("consumer")
    world.heartbeat("S", 0, ["t1"])
    assert world.heartbeat_answer.error_message == "Group g is reserved for consumer groups."


def test_existing_share_group_keeps_its_type() -> None:
    world = world_with_type(None)
    world.heartbeat("S", 0, ["t1"])
    world.configure_group(group_type="consumer")
    assert world.beat("S", 2) == "3 {t1:0}"
    assert world.heartbeat("T", 0, ["t1"]) == "3 {}"
    assert world.join("C") == NOT_FOUND
    assert join_classic(world).error_code.name == INCONSISTENT


def test_existing_consumer_group_keeps_its_type() -> None:
    world = world_with_type(None)
    world.join("C")
    world.configure_group(group_type="share")
    assert world.next_heartbeat("C", 2) == "2 null"
    assert world.join("D") == "3 {}"
    assert world.heartbeat("S", 0, ["t1"]) == NOT_FOUND


def test_existing_classic_group_keeps_its_type() -> None:
    world = world_with_type(None)
    member = join_classic(world).member_id
    world.configure_group(group_type="share")
    assert join_classic(world, member).error_code.name == "NONE"
    assert world.heartbeat("S", 0, ["t1"]) == NOT_FOUND


def test_reserved_id_of_an_empty_group_is_not_converted() -> None:
    world = world_with_type(None)
    commit(world, "", -1, 0)
    world.configure_group(group_type="share")
    assert world.join("C") == INCONSISTENT
    world = world_with_type(None)
    world.join("C")
    world.next_heartbeat("C", -1)
    world.configure_group(group_type="share")
    assert join_classic(world).error_code.name == INCONSISTENT


def test_group_type_applies_after_a_failover() -> None:
    world = world_with_type("share")
    world.heartbeat("S", 0, ["t1"])
    world.fail_over()
    assert listed(world) == [("g", "Stable", "share")]
    assert world.join("C") == NOT_FOUND
