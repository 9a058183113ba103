"""Offsets of share groups: describe with lag, alter, delete; and DeleteGroups."""

from collections.abc import Mapping

import pytest

from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID
from shareq.model.messages.cluster import DeleteGroupsRequest, DeleteGroupsResponse
from shareq.model.messages.data import ListOffsetsRequest
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from shareq.model.messages.share_state import DeleteShareGroupStateRequest
from tests.coordinator.share_group.stage import GROUP, Stage
from tests.coordinator.share_group.test_initialize import settled

Offsets = Mapping[str, Mapping[int, int]]


def empty_group(**topics: int) -> Stage:
    """A group without members whose share-partitions are initialized, at epoch 4."""
    stage = settled(**topics)
    stage.heartbeat("A", -1)
    stage.written()
    stage.persisted.clear()
    return stage


def short(response: DescribeShareGroupOffsetsResponse) -> list[str]:
    """The response as lines: `t1:0 start/epoch/lag`, with the name of an error."""
    lines = []
    for group in response.groups:
        if group.error_code:
            lines.append(group.error_code.name)
        for topic in group.topics:
            for p in topic.partitions:
                text = f"{topic.topic_name}:{p.partition_index} {p.start_offset}/{p.leader_epoch}/{p.lag}"
                lines.append(f"{text} {p.error_code.name}" if p.error_code else text)
    return lines


def describe(stage: Stage, topics: Mapping[str, tuple[int, ...]] | None = None, group: str = GROUP) -> list[str]:
    build = DescribeShareGroupOffsetsRequest
    listed = None
    if topics is not None:
        listed = tuple(build.Topic(topic_name=name, partitions=indexes) for name, indexes in topics.items())
    request = build(groups=(build.Group(group_id=group, topics=listed),))
    return short(stage.ask(request, DescribeShareGroupOffsetsResponse))


def alter(stage: Stage, offsets: Offsets, group: str = GROUP) -> int:
    build = AlterShareGroupOffsetsRequest
    return stage.send(
        build(
            group_id=group,
            topics=tuple(
                build.Topic(
                    topic_name=name,
                    partitions=tuple(build.Partition(partition_index=i, start_offset=o) for i, o in starts.items()),
                )
                for name, starts in offsets.items()
            ),
        )
    )


def altered(stage: Stage, request_id: int) -> str:
    """The response as `t1:0 NONE, t1:1 ...`, or the error at the top level."""
    response = stage.answer(request_id, AlterShareGroupOffsetsResponse)
    if response.error_code:
        assert response.responses == ()
        return response.error_code.name
    return ", ".join(
        f"{t.topic_name}:{p.partition_index} {p.error_code.name}" for t in response.responses for p in t.partitions
    )


def delete(stage: Stage, *topics: str, group: str = GROUP) -> str:
    build = DeleteShareGroupOffsetsRequest
    request = build(group_id=group, topics=tuple(build.Topic(topic_name=name) for name in topics))
    response = stage.ask(request, DeleteShareGroupOffsetsResponse)
    if response.error_code:
        assert response.responses == ()
        return response.error_code.name
    return ", ".join(f"{topic.topic_name} {topic.error_code.name}" for topic in response.responses)


def delete_groups(stage: Stage, *groups: str) -> list[str]:
    response = stage.ask(DeleteGroupsRequest(groups_names=groups), DeleteGroupsResponse)
    assert tuple(result.group_id for result in response.results) == groups
    return [result.error_code.name for result in response.results]


def deleted_at_persister(stage: Stage) -> list[str]:
    """The Delete requests since the last call: `t1:0 t1:1`."""
    sent = [request for request in stage.persisted if isinstance(request, DeleteShareGroupStateRequest)]
    stage.persisted.clear()
    return [" ".join(f"{stage.name(t.topic_id)}:{p.partition}" for t in r.topics for p in t.partitions) for r in sent]


# ---- describe --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("summary", "end", "expected"),
    [
        pytest.param((10, 3), 100, "t1:0 10/7/87", id="lag = end - start - count"),
        pytest.param((10, 0), 10, "t1:0 10/7/0", id="no lag"),
        pytest.param((100, 0), 10, "t1:0 100/7/-90", id="altered beyond the end: negative"),
        pytest.param((10, -1), 100, "t1:0 10/7/-1", id="unknown count"),
        pytest.param((-1, 0), 100, "t1:0 -1/7/-1", id="unknown start offset"),
        pytest.param((10, 3), None, "t1:0 0/0/-1 NOT_LEADER_OR_FOLLOWER", id="unknown end offset"),
    ],
)
def test_lag(summary: tuple[int, int], end: int | None, expected: str) -> None:
    """BEHAVIOUR.md 50."""
    stage = settled(t1=1)
    stage.summaries["t1", 0] = summary
    if end is not None:
        stage.ends["t1", 0] = end
    assert describe(stage) == [expected]


def test_describe_a_partition_without_a_leader() -> None:
    """BEHAVIOUR.md 51."""
    stage = settled()
    stage.create_topic("t1", 1, leader=-1)
    stage.summaries["t1", 0] = (0, 0)
    assert describe(stage, {"t1": (0,)}) == ["t1:0 0/0/-1 LEADER_NOT_AVAILABLE"]


def test_describe_shows_no_error_for_a_persister_error_of_one_partition() -> None:
    """BEHAVIOUR.md 51."""
    stage = settled(t1=2)
    stage.summaries.update({("t1", 0): (5, 0), ("t1", 1): (5, 0)})
    stage.ends.update({("t1", 0): 6, ("t1", 1): 6})
    stage.persister = lambda _, index: Errors.INVALID_REQUEST if index else Errors.NONE
    assert describe(stage) == ["t1:0 5/7/1", "t1:1 -1/0/-1"]
    (call,) = stage.calls
    assert isinstance(call.request, ListOffsetsRequest)
    assert [partition.partition_index for partition in call.request.topics[0].partitions] == [0]


def test_describe_shows_a_failed_call_of_the_persister_as_the_groups_error() -> None:
    """BEHAVIOUR.md 51."""
    stage = settled(t1=1)
    stage.persister_error = Errors.COORDINATOR_NOT_AVAILABLE
    assert describe(stage) == ["COORDINATOR_NOT_AVAILABLE"]


def test_describe_sends_one_request_to_each_leader() -> None:
    """BEHAVIOUR.md 50."""
    stage = settled()
    stage.create_topic("t1", 2, leader=1)
    stage.create_topic("t2", 1, leader=2)
    for at in (("t1", 0), ("t1", 1), ("t2", 0)):
        stage.summaries[at], stage.ends[at] = (0, 0), 9
    assert describe(stage, {"t1": (0, 1), "t2": (0,)}) == ["t1:0 0/7/9", "t1:1 0/7/9", "t2:0 0/7/9"]
    assert [call.node for call in stage.calls] == [1, 2]


@pytest.mark.parametrize(
    ("topics", "group", "expected"),
    [
        pytest.param(None, "unknown", [], id="an unknown group, all topics: nothing, and no error"),
        pytest.param({}, "g", [], id="no topics"),
        pytest.param({"t1": (0,)}, "unknown", ["t1:0 -1/7/-1"], id="given topics are requested from the persister"),
        pytest.param({"nope": (0, 1)}, "g", ["nope:0 -1/0/-1", "nope:1 -1/0/-1"], id="an unknown topic is no error"),
        pytest.param(None, "g", ["t1:0 -1/7/-1", "t1:1 -1/7/-1"], id="all initialized partitions"),
    ],
)
def test_describe_unknown_groups_and_topics_without_an_error(
    topics: Mapping[str, tuple[int, ...]] | None, group: str, expected: list[str]
) -> None:
    """BEHAVIOUR.md 49, 51."""
    assert describe(settled(t1=2), topics, group) == expected


def test_describe_all_topics_needs_the_coordinator_explicit_topics_any_broker() -> None:
    """BEHAVIOUR.md 49."""
    stage = settled(t1=1)
    stage.resign()
    assert describe(stage) == ["NOT_COORDINATOR"]
    assert describe(stage, {"t1": (0,)}) == ["t1:0 -1/7/-1"]


def test_unknown_topic_is_described_with_the_zero_id() -> None:
    """BEHAVIOUR.md 51."""
    build = DescribeShareGroupOffsetsRequest
    topics = (build.Topic(topic_name="nope", partitions=(0,)),)
    request = build(groups=(build.Group(group_id=GROUP, topics=topics),))
    response = settled().ask(request, DescribeShareGroupOffsetsResponse)
    assert response.groups[0].topics[0].topic_id == ZERO_TOPIC_ID


# ---- alter -----------------------------------------------------------------------------------------------------------


def test_alter_raises_the_group_epoch_and_uses_it_as_state_epoch() -> None:
    """BEHAVIOUR.md 53. Kafka raises it only after 4.4; without that a late initialization could undo an alteration."""
    stage = empty_group(t1=2)
    stage.persisting = False
    request_id = alter(stage, {"t1": {0: 42}})
    assert stage.written() == ["R11(5)", "R15(initializing {t1:0}, initialized {t1:0,1})"]
    stage.release()
    assert altered(stage, request_id) == "t1:0 NONE"
    assert stage.initialized() == ["t1:0@42 epoch 5"]
    assert stage.written() == ["R15(initialized {t1:0,1})"]
    assert stage.describe().group_epoch == 5
    alter(stage, {"t1": {0: 42}})
    assert stage.initialized() == ["t1:0@42 epoch 6"], "a second alteration initializes again"


@pytest.mark.parametrize("offset", [-5, 0, 10**12])
def test_alter_accepts_any_offset(offset: int) -> None:
    """BEHAVIOUR.md 53."""
    stage = empty_group(t1=1)
    assert altered(stage, alter(stage, {"t1": {0: offset}})) == "t1:0 NONE"
    assert stage.initialized() == [f"t1:0@{offset} epoch 5"]


def test_alter_creates_a_group_with_share_partitions_only() -> None:
    """BEHAVIOUR.md hard case 29."""
    stage = Stage(t1=3)
    assert altered(stage, alter(stage, {"t1": {0: 7}})) == "t1:0 NONE"
    assert stage.written() == ["R11(2)", "R15(initializing {t1:0})", "R15(initialized {t1:0})"]
    described = stage.describe()
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Empty", 2, 1)
    stage.initialized()
    stage.heartbeat("A", 0, ["t1"])
    assert stage.initialized() == ["t1:1@0 t1:2@0 epoch 3"]


def test_lag_after_alter_counts_from_the_new_start() -> None:
    """BEHAVIOUR.md hard case 28."""
    stage = empty_group(t1=1)
    assert altered(stage, alter(stage, {"t1": {0: 40}})) == "t1:0 NONE"
    stage.summaries["t1", 0], stage.ends["t1", 0] = (40, 0), 100
    assert describe(stage) == ["t1:0 40/7/60"]


@pytest.mark.parametrize(
    ("offsets", "expected", "records"),
    [
        pytest.param({"nope": {0: 1}}, "nope:0 UNKNOWN_TOPIC_OR_PARTITION", 0, id="all topics unknown"),
        pytest.param({"t1": {9: 1}}, "t1:9 UNKNOWN_TOPIC_OR_PARTITION", 0, id="no such partition"),
        pytest.param({"t1": {-1: 1}}, "t1:-1 UNKNOWN_TOPIC_OR_PARTITION", 0, id="a negative partition"),
        pytest.param(
            {"nope": {0: 1}, "t1": {2: 1, 0: 1}},
            "nope:0 UNKNOWN_TOPIC_OR_PARTITION, t1:2 UNKNOWN_TOPIC_OR_PARTITION, t1:0 NONE",
            3,
            id="some are unknown",
        ),
    ],
)
def test_alter_unknown_topics_and_partitions(offsets: Offsets, expected: str, records: int) -> None:
    """BEHAVIOUR.md 52."""
    stage = Stage(t1=2)
    assert altered(stage, alter(stage, offsets)) == expected
    assert len(stage.written()) == records
    assert stage.describe().error_code is (Errors.NONE if records else Errors.GROUP_ID_NOT_FOUND)


def test_alter_is_refused() -> None:
    """BEHAVIOUR.md 52."""
    stage = settled(t1=1)
    assert altered(stage, alter(stage, {"t1": {0: 1}, "nope": {0: 1}})) == "NON_EMPTY_GROUP"
    assert altered(stage, alter(stage, {"t1": {0: 1}}, group="")) == "INVALID_GROUP_ID"
    stage.resign()
    assert altered(stage, alter(stage, {"t1": {0: 1}})) == "NOT_COORDINATOR"
    stage.delete_topic("__consumer_offsets")
    assert altered(stage, alter(stage, {"t1": {0: 1}}, group="")) == "COORDINATOR_NOT_AVAILABLE"
    stage.change_image(share_version=0)
    assert altered(stage, alter(stage, {"t1": {0: 1}})) == "UNSUPPORTED_VERSION"


def test_alter_initializes_nothing_if_one_partition_fails() -> None:
    """BEHAVIOUR.md 53."""
    stage = Stage(t1=2)
    stage.persister = lambda _, index: Errors.FENCED_STATE_EPOCH if index else Errors.NONE
    assert altered(stage, alter(stage, {"t1": {0: 5, 1: 5}})) == "t1:0 NONE, t1:1 FENCED_STATE_EPOCH"
    assert stage.written() == ["R11(2)", "R15(initializing {t1:0,1})"]
    stage.persister = lambda _, index: Errors.NONE
    stage.initialized()
    stage.heartbeat("A", 0, ["t1"])
    assert stage.initialized() == []
    stage.wait(30_000)
    stage.heartbeat("A", 3)
    assert stage.initialized() == ["t1:0@0 t1:1@0 epoch 3"]


def test_alter_shows_a_failed_call_at_the_top_level() -> None:
    """BEHAVIOUR.md 53."""
    stage = Stage(t1=1)
    stage.persister_error = Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert altered(stage, alter(stage, {"t1": {0: 5}})) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert stage.written() == ["R11(2)", "R15(initializing {t1:0})"]


def test_alter_is_answered_once_if_its_commit_is_later_than_the_write_timeout() -> None:
    """BEHAVIOUR.md 12, 53."""
    stage = empty_group(t1=1)
    stage.appending = False
    request_id = alter(stage, {"t1": {0: 5}})
    stage.wait(5000)
    assert altered(stage, request_id) == "COORDINATOR_NOT_AVAILABLE"
    stage.release()
    assert altered(stage, request_id) == "COORDINATOR_NOT_AVAILABLE"
    assert stage.initialized() == ["t1:0@5 epoch 5"]


# ---- delete offsets --------------------------------------------------------------------------------------------------


def test_delete_offsets_in_two_phases() -> None:
    """BEHAVIOUR.md 54, 55."""
    stage = empty_group(t1=2, t2=1)
    assert delete(stage, "t1") == "t1 NONE"
    assert deleted_at_persister(stage) == ["t1:0 t1:1"]
    assert stage.written() == ["R15(initialized {t2:0}, deleting t1)", "R15(initialized {t2:0})"]
    stage.heartbeat("A", 0, ["t1", "t2"])
    assert stage.initialized() == ["t1:0@-1 t1:1@-1 epoch 5"]


def test_delete_offsets_repeats_a_failed_topic_with_all_its_partitions() -> None:
    """BEHAVIOUR.md 54, 55."""
    stage = empty_group(t1=2, t2=1)
    t1 = stage.image.topics["t1"].topic_id
    stage.persister = lambda topic, index: Errors.NETWORK_EXCEPTION if (topic, index) == (t1, 1) else Errors.NONE
    assert delete(stage, "t1", "t2") == "t1 NETWORK_EXCEPTION, t2 NONE"
    assert stage.written() == ["R15(deleting t1,t2)", "R15(deleting t1)"]
    deleted_at_persister(stage)
    stage.grow_topic("t1", 3)
    stage.persister = lambda topic, index: Errors.NONE
    assert delete(stage, "t1") == "t1 NONE"
    assert deleted_at_persister(stage) == ["t1:0 t1:1 t1:2"]
    assert stage.written() == ["R15(deleting t1)", "R15()"]


@pytest.mark.parametrize(
    ("topics", "expected", "records"),
    [
        pytest.param(("nope",), "nope UNKNOWN_TOPIC_OR_PARTITION", ["R15(initialized {t1:0})"], id="unknown"),
        pytest.param(("t2",), "t2 UNKNOWN_TOPIC_OR_PARTITION", ["R15(initialized {t1:0})"], id="not the group's"),
        pytest.param(
            ("t2", "t1"),
            "t2 UNKNOWN_TOPIC_OR_PARTITION, t1 NONE",
            ["R15(deleting t1)", "R15()"],
            id="one of two",
        ),
    ],
)
def test_delete_offsets_of_topics_without_share_partitions(
    topics: tuple[str, ...], expected: str, records: list[str]
) -> None:
    """BEHAVIOUR.md 54, 55."""
    stage = empty_group(t1=1)
    stage.create_topic("t2", 1)
    assert (delete(stage, *topics), stage.written()) == (expected, records)


def test_delete_offsets_of_a_topic_that_is_only_initializing() -> None:
    """BEHAVIOUR.md 54."""
    stage = Stage(t1=1)
    stage.persister_error = Errors.NETWORK_EXCEPTION
    alter(stage, {"t1": {0: 5}})
    assert delete(stage, "t1") == "t1 UNKNOWN_TOPIC_OR_PARTITION"


def test_delete_offsets_of_a_group_without_share_partitions() -> None:
    """BEHAVIOUR.md 54."""
    stage = Stage()
    stage.heartbeat("A", 0, ["later"])
    stage.heartbeat("A", -1)
    assert delete(stage, "later") == ""


def test_delete_offsets_is_refused() -> None:
    """BEHAVIOUR.md 54."""
    stage = settled(t1=1)
    assert delete(stage, "t1") == "NON_EMPTY_GROUP"
    assert delete(stage, "t1", group="other") == "GROUP_ID_NOT_FOUND"
    assert delete(stage, "t1", group="") == "INVALID_GROUP_ID"
    stage.resign()
    assert delete(stage, "t1") == "NOT_COORDINATOR"
    stage.change_image(share_version=0)
    assert delete(stage, "t1") == "UNSUPPORTED_VERSION"


def test_delete_offsets_shows_a_failed_call_at_the_top_level() -> None:
    """BEHAVIOUR.md 55."""
    stage = empty_group(t1=1)
    stage.persister_error = Errors.COORDINATOR_NOT_AVAILABLE
    assert delete(stage, "t1") == "COORDINATOR_NOT_AVAILABLE"
    assert stage.written() == ["R15(deleting t1)"]


# ---- delete groups ---------------------------------------------------------------------------------------------------


def test_delete_a_group() -> None:
    """BEHAVIOUR.md 56."""
    stage = empty_group(t1=2)
    assert delete_groups(stage, GROUP) == ["NONE"]
    assert deleted_at_persister(stage) == ["t1:0 t1:1"]
    assert stage.written() == ["R15(deleting t1)", "R12T", "R15T", "R11T"]
    assert delete_groups(stage, GROUP) == ["GROUP_ID_NOT_FOUND"]
    stage.fail_over()
    assert stage.describe().error_code is Errors.GROUP_ID_NOT_FOUND
    assert stage.heartbeat("A", 0, ["t1"]) == "2 {}"


def test_delete_a_group_with_all_share_partitions_of_its_three_lists() -> None:
    """BEHAVIOUR.md 56."""
    stage = empty_group(t1=1, t2=2, t3=1)
    stage.persister_error = Errors.NETWORK_EXCEPTION
    alter(stage, {"t1": {0: 5}})
    delete(stage, "t2")
    deleted_at_persister(stage)
    assert delete_groups(stage, GROUP) == ["NETWORK_EXCEPTION"]
    stage.persister_error = Errors.NONE
    assert delete_groups(stage, GROUP) == ["NONE"]
    assert deleted_at_persister(stage) == ["t2:0 t2:1 t1:0 t3:0", "t1:0 t2:0 t2:1 t3:0"]


def test_group_whose_deletion_failed_stays_and_can_be_deleted_again() -> None:
    """BEHAVIOUR.md 56."""
    stage = empty_group(t1=1)
    stage.persister = lambda topic, index: Errors.NETWORK_EXCEPTION
    assert delete_groups(stage, GROUP) == ["NETWORK_EXCEPTION"]
    assert stage.written() == ["R15(deleting t1)"]
    stage.persister = lambda topic, index: Errors.NONE
    assert delete_groups(stage, GROUP) == ["NONE"]
    assert deleted_at_persister(stage) == ["t1:0", "t1:0"]


def test_member_that_joins_during_a_deletion_keeps_the_group() -> None:
    """BEHAVIOUR.md 56."""
    stage = empty_group(t1=1)
    stage.persisting = False
    request_id = stage.send(DeleteGroupsRequest(groups_names=(GROUP,)))
    stage.heartbeat("A", 0, ["t1"])
    stage.release()
    result = stage.answer(request_id, DeleteGroupsResponse).results[0]
    assert result.error_code is Errors.NON_EMPTY_GROUP
    assert stage.beat("A", 5) == "6 {t1:0}"


def test_each_group_of_a_deletion_has_its_own_result() -> None:
    """BEHAVIOUR.md 56."""
    stage = settled(t1=1)
    stage.heartbeat("A", 0, ["later"], group="g2")
    stage.heartbeat("A", -1, group="g2")
    stage.written()
    assert delete_groups(stage, "g2", GROUP, "nope", "g2") == [
        "NONE",
        "NON_EMPTY_GROUP",
        "GROUP_ID_NOT_FOUND",
        "GROUP_ID_NOT_FOUND",
    ]
    assert stage.written() == ["R12T", "R15T", "R11T"]


def test_delete_groups_without_groups_has_no_results() -> None:
    assert delete_groups(Stage()) == []
