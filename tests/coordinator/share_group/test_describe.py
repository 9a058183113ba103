"""ShareGroupDescribe and ListGroups."""

import pytest

from shareq.coordinator.group.describe import ALL_GROUP_OPERATIONS
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.cluster import ListGroupsRequest, ListGroupsResponse
from shareq.model.messages.share_group import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from tests.coordinator.share_group.stage import Stage


def two_groups() -> Stage:
    """A stable group "g" with member A subscribed to t1 and t2, and an empty group "g2"."""
    stage = Stage(t1=2, t2=1)
    stage.heartbeat("A", 0, ["t2", "t1"], rack="r1", client=ClientContext("app", "/10.0.0.1"))
    stage.wait(1000)
    stage.heartbeat("A", 2, client=ClientContext("app", "/10.0.0.1"))
    stage.heartbeat("B", 0, ["t1"], group="g2")
    stage.heartbeat("B", -1, group="g2")
    return stage


def listed(stage: Stage, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    response = stage.ask(ListGroupsRequest(states_filter=states, types_filter=types), ListGroupsResponse)
    assert response.error_code is Errors.NONE
    return sorted((g.group_id, g.protocol_type, g.group_type, g.group_state) for g in response.groups)


def test_describe_a_group() -> None:
    """BEHAVIOUR.md 47."""
    group = two_groups().describe()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    assert (group.assignor_name, group.authorized_operations) == ("simple", -(1 << 31))
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.member_epoch) == ("A", "r1", 3)
    assert (member.client_id, member.client_host) == ("app", "/10.0.0.1")
    assert member.subscribed_topic_names == ("t1", "t2")
    assert sorted((t.topic_name, t.partitions) for t in member.assignment.topic_partitions) == [
        ("t1", (0, 1)),
        ("t2", (0,)),
    ]


def test_describe_an_empty_group() -> None:
    """BEHAVIOUR.md 46, 47."""
    group = two_groups().describe("g2")
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.members) == ("Empty", 3, 3, ())


def test_deleted_topic_is_not_described() -> None:
    """BEHAVIOUR.md 47."""
    stage = two_groups()
    stage.delete_topic("t1")
    (member,) = stage.describe().members
    assert [topic.topic_name for topic in member.assignment.topic_partitions] == ["t2"]


def test_each_group_is_described_or_refused_alone() -> None:
    """BEHAVIOUR.md 47."""
    stage = two_groups()
    request = ShareGroupDescribeRequest(group_ids=("g", "", "nope", "g"), include_authorized_operations=True)
    response = stage.ask(request, ShareGroupDescribeResponse)
    errors = [group.error_code for group in response.groups]
    assert errors == [Errors.NONE, Errors.INVALID_GROUP_ID, Errors.GROUP_ID_NOT_FOUND, Errors.NONE]
    assert response.groups[0].authorized_operations == ALL_GROUP_OPERATIONS
    assert response.groups[2].error_message == "Group nope not found."


def test_describe_at_another_broker_or_with_share_version_0() -> None:
    """BEHAVIOUR.md 47."""
    stage = two_groups()
    stage.resign()
    assert stage.describe().error_code is Errors.NOT_COORDINATOR
    stage.change_image(share_version=0)
    assert stage.describe().error_code is Errors.UNSUPPORTED_VERSION


def test_only_committed_state_is_described() -> None:
    """BEHAVIOUR.md 47."""
    stage = two_groups()
    stage.appending = False
    request_id = stage.send(ShareGroupDescribeRequest(group_ids=("g",)))
    assert stage.answer(request_id, ShareGroupDescribeResponse).groups[0].group_epoch == 3


G, G2 = ("g", "share", "share", "Stable"), ("g2", "share", "share", "Empty")


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        pytest.param((), (), [G, G2], id="no filter: all"),
        pytest.param(("stable",), (), [G], id="states ignore case"),
        pytest.param((" Empty ",), (), [G2], id="states are trimmed"),
        pytest.param(("Empty", "STABLE"), (), [G, G2], id="either state"),
        pytest.param(("Dead",), (), [], id="no group is Dead"),
        pytest.param(("nonsense",), (), [], id="an unknown state matches nothing"),
        pytest.param((), ("Share",), [G, G2], id="types ignore case"),
        pytest.param((), ("consumer",), [], id="another type"),
        pytest.param(("Stable",), ("consumer", "share"), [G], id="both filters"),
    ],
)
def test_list_groups_filters_by_state_and_type(
    states: tuple[str, ...], types: tuple[str, ...], expected: list[tuple[str, ...]]
) -> None:
    """BEHAVIOUR.md 46, 48."""
    assert listed(two_groups(), states, types) == expected


def test_list_groups_lists_the_groups_of_this_broker() -> None:
    """BEHAVIOUR.md 48."""
    stage = two_groups()
    stage.resign()
    assert listed(stage) == []
