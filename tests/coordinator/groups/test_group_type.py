"""`group.type`: an id is kept for share groups, or for consumers; what is there already stays what it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.coordinator.other.consumer_world import ConsumerWorld
from tests.coordinator.other.test_consumer_offsets import commit, join_classic, listed
from tests.coordinator.share_group.test_offsets import alter, altered

MAKERS: dict[str, Callable[[ConsumerWorld], str]] = {
    "share heartbeat": lambda world: world.heartbeat("S", 0, ["t1"]),
    "share offsets": lambda world: altered(world, alter(world, {"t1": {0: 5}})),
    "consumer heartbeat": lambda world: world.join("C"),
    "classic join": lambda world: join_classic(world).error_code.name,
    "commit": lambda world: ",".join(commit(world, "", -1, 0)),
}
"""Who may bring up a group, and what they are answered."""

INCONSISTENT, NOT_FOUND = "INCONSISTENT_GROUP_PROTOCOL", "GROUP_ID_NOT_FOUND"


ROWS = [
    pytest.param(None, "share heartbeat", "2 {}", id="no type, a share consumer"),
    pytest.param(None, "share offsets", "t1:0 NONE", id="no type, offsets of a share group"),
    pytest.param(None, "consumer heartbeat", "2 {t1:0}", id="no type, a consumer"),
    pytest.param(None, "classic join", "MEMBER_ID_REQUIRED", id="no type, a classic consumer"),
    pytest.param(None, "commit", "NONE", id="no type, offsets of a consumer group"),
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


def kept_for(group_type: str | None) -> ConsumerWorld:
    world = ConsumerWorld(t1=1)
    if group_type:
        world.configure_group(group_type=group_type)
    return world


@pytest.mark.parametrize(("group_type", "maker", "answer"), ROWS)
def test_who_may_make_a_group(group_type: str | None, maker: str, answer: str) -> None:
    world = kept_for(group_type)
    assert MAKERS[maker](world) == answer
    if answer in (INCONSISTENT, NOT_FOUND):
        assert world._written == []
        assert listed(world) == []


def test_the_refusals_say_why() -> None:
    world = kept_for("share")
    world.join("C")
    assert world.told.error_message == "Group g is reserved for share groups."
    world = kept_for("consumer")
    world.heartbeat("S", 0, ["t1"])
    assert world.heartbeat_answer.error_message == "Group g is reserved for consumer groups."


def test_a_share_group_that_is_there_stays() -> None:
    world = kept_for(None)
    world.heartbeat("S", 0, ["t1"])
    world.configure_group(group_type="consumer")
    assert world.beat("S", 2) == "3 {t1:0}"
    assert world.heartbeat("T", 0, ["t1"]) == "3 {}"
    assert world.join("C") == NOT_FOUND
    assert join_classic(world).error_code.name == INCONSISTENT


def test_a_consumer_group_that_is_there_stays() -> None:
    world = kept_for(None)
    world.join("C")
    world.configure_group(group_type="share")
    assert world.stay("C", 2) == "2 null"
    assert world.join("D") == "3 {}"
    assert world.heartbeat("S", 0, ["t1"]) == NOT_FOUND


def test_a_classic_group_that_is_there_stays() -> None:
    world = kept_for(None)
    member = join_classic(world).member_id
    world.configure_group(group_type="share")
    assert join_classic(world, member).error_code.name == "NONE"
    assert world.heartbeat("S", 0, ["t1"]) == NOT_FOUND


def test_an_id_is_not_taken_over_from_the_empty_group_of_another_protocol() -> None:
    world = kept_for(None)
    commit(world, "", -1, 0)
    world.configure_group(group_type="share")
    assert world.join("C") == INCONSISTENT
    world = kept_for(None)
    world.join("C")
    world.stay("C", -1)
    world.configure_group(group_type="share")
    assert join_classic(world).error_code.name == INCONSISTENT


def test_the_type_outlives_the_group() -> None:
    world = kept_for("share")
    world.heartbeat("S", 0, ["t1"])
    world.fail_over()
    assert listed(world) == [("g", "Stable", "share")]
    assert world.join("C") == NOT_FOUND
