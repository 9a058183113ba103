"""The group config `group.type` reserves an id for share groups or for consumer groups; existing groups keep their
type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.coordinator.groups.stage import ConsumerStage
from tests.coordinator.groups.test_consumer_offsets import commit, join_classic, listed
from tests.coordinator.share_group.test_offsets import alter, altered

MAKERS: dict[str, Callable[[ConsumerStage], str]] = {
    "share heartbeat": lambda stage: stage.heartbeat("S", 0, ["t1"]),
    "share offsets": lambda stage: altered(stage, alter(stage, {"t1": {0: 5}})),
    "consumer heartbeat": lambda stage: stage.join("C"),
    "classic join": lambda stage: join_classic(stage).error_code.name,
    "commit": lambda stage: ",".join(commit(stage, "", -1, 0)),
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


def stage_with_type(group_type: str | None) -> ConsumerStage:
    stage = ConsumerStage(t1=1)
    if group_type:
        stage.configure_group(group_type=group_type)
    return stage


@pytest.mark.parametrize(("group_type", "maker", "answer"), ROWS)
def test_group_type_allows_or_refuses_new_groups(group_type: str | None, maker: str, answer: str) -> None:
    stage = stage_with_type(group_type)
    assert MAKERS[maker](stage) == answer
    if answer in (INCONSISTENT, NOT_FOUND):
        assert stage._written == []
        assert listed(stage) == []


def test_error_message_names_the_reserved_type() -> None:
    stage = stage_with_type("share")
    stage.join("C")
    assert stage.last_response.error_message == "Group g is reserved for share groups."
    stage = stage_with_type("consumer")
    stage.heartbeat("S", 0, ["t1"])
    assert stage.heartbeat_answer.error_message == "Group g is reserved for consumer groups."


def test_existing_share_group_keeps_its_type() -> None:
    stage = stage_with_type(None)
    stage.heartbeat("S", 0, ["t1"])
    stage.configure_group(group_type="consumer")
    assert stage.beat("S", 2) == "3 {t1:0}"
    assert stage.heartbeat("T", 0, ["t1"]) == "3 {}"
    assert stage.join("C") == NOT_FOUND
    assert join_classic(stage).error_code.name == INCONSISTENT


def test_existing_consumer_group_keeps_its_type() -> None:
    stage = stage_with_type(None)
    stage.join("C")
    stage.configure_group(group_type="share")
    assert stage.next_heartbeat("C", 2) == "2 null"
    assert stage.join("D") == "3 {}"
    assert stage.heartbeat("S", 0, ["t1"]) == NOT_FOUND


def test_existing_classic_group_keeps_its_type() -> None:
    stage = stage_with_type(None)
    member = join_classic(stage).member_id
    stage.configure_group(group_type="share")
    assert join_classic(stage, member).error_code.name == "NONE"
    assert stage.heartbeat("S", 0, ["t1"]) == NOT_FOUND


def test_reserved_id_of_an_empty_group_is_not_converted() -> None:
    stage = stage_with_type(None)
    commit(stage, "", -1, 0)
    stage.configure_group(group_type="share")
    assert stage.join("C") == INCONSISTENT
    stage = stage_with_type(None)
    stage.join("C")
    stage.next_heartbeat("C", -1)
    stage.configure_group(group_type="share")
    assert join_classic(stage).error_code.name == INCONSISTENT


def test_group_type_applies_after_a_failover() -> None:
    stage = stage_with_type("share")
    stage.heartbeat("S", 0, ["t1"])
    stage.fail_over()
    assert listed(stage) == [("g", "Stable", "share")]
    assert stage.join("C") == NOT_FOUND
