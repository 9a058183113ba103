"""kafka-share-groups on a shareq cluster and on Apache Kafka: list, describe, reset, delete."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tools.side_by_side import SideBySide

Fresh = Callable[[str], str]


@pytest.fixture
def group(both: SideBySide, fresh: Fresh) -> str:
    name = fresh("payments")
    both.start_at_earliest(name)
    return name


@pytest.fixture
def topic(both: SideBySide, fresh: Fresh) -> str:
    """A topic of five records."""
    name = fresh("orders")
    both.create(name)
    both.produce(name, "a", "b", "c", "d", "e")
    return name


def test_a_group_with_a_member_is_described(both: SideBySide, group: str, topic: str) -> None:
    with both.members(group, topic):
        assert both.run("kafka-share-groups", "--list", about=group).out == (group,)
        describe = ("kafka-share-groups", "--describe", "--group", group)
        assert [group, topic, "0", "0", "0"] in both.run(*describe).rows
        assert [group, topic, "0", "0", "0", "0"] in both.run(*describe, "--verbose").rows
        [heads, member] = both.run(*describe, "--members").rows
        assert (heads[0], member[0]) == ("GROUP", group)
        assert f"{topic}:0" in member
        assert len(both.run(*describe, "--members", "--verbose").rows) == 2
        assert [group, "ADDRESS", "(0)", "Stable", "1"] in both.run(*describe, "--state").rows
        assert both.run(*describe, "--state", "--verbose").code == 0
        both.refuse("kafka-share-groups", "--delete", "--group", group, error="is not EMPTY")


def test_a_group_without_members_is_described_and_deleted(both: SideBySide, group: str, topic: str) -> None:
    with both.members(group, topic):
        pass
    describe = ("kafka-share-groups", "--describe", "--group", group)
    assert [group, topic, "0", "0", "0"] in both.run(*describe).rows
    assert both.run(*describe, "--members").errors == (f"Share group '{group}' has no active members.",)
    assert [group, "ADDRESS", "(0)", "Empty", "0"] in both.run(*describe, "--state").rows
    listed = both.run("kafka-share-groups", "--list", "--state", "Empty", about=group)
    assert listed.rows == [[group, "Empty"]]
    assert both.run("kafka-share-groups", "--list", "--state", "Stable", about=group).out == ()
    everything = both.run("kafka-share-groups", "--describe", "--all-groups", about=group)
    assert everything.rows == [[group, topic, "0", "0", "0"]]


def test_offsets_are_reset_and_deleted(both: SideBySide, group: str, topic: str) -> None:
    with both.members(group, topic):
        pass
    reset = ("kafka-share-groups", "--reset-offsets", "--group", group, "--topic", topic)
    describe = ("kafka-share-groups", "--describe", "--group", group)
    assert [group, topic, "0", "0"] in both.run(*reset, "--to-earliest", "--dry-run").rows
    assert [group, topic, "0", "0", "0"] in both.run(*describe).rows, (
        "a dry run changes no offset: all records are accepted"
    )
    assert [group, topic, "0", "0"] in both.run(*reset, "--to-earliest", "--execute").rows
    assert [group, topic, "0", "0", "5"] in both.run(*describe).rows
    assert [group, topic, "0", "5"] in both.run(*reset, "--to-latest", "--execute").rows
    assert [group, topic, "0", "0"] in both.run(*reset, "--to-datetime", "2001-01-01T00:00:00.000", "--execute").rows
    deleted = both.run("kafka-share-groups", "--delete-offsets", "--group", group, "--topic", topic)
    assert [topic, "Successful"] in deleted.rows
    assert both.run(*describe).out == (f"Share group '{group}' has no offset information.",)
    assert both.run("kafka-share-groups", "--delete", "--group", group).code == 0
    assert both.run("kafka-share-groups", "--list", about=group).out == ()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(["--describe"], "GroupIdNotFoundException", id="describe"),
        pytest.param(["--delete"], "is not a share group", id="delete"),
        pytest.param(["--delete-offsets", "--topic", "t"], "not found", id="delete offsets"),
        pytest.param(
            ["--reset-offsets", "--topic", "t", "--to-earliest", "--execute"],
            "UnknownTopicOrPartitionException",
            id="reset, with a missing topic, too",
        ),
    ],
)
def test_commands_for_a_missing_group_are_refused(
    both: SideBySide, fresh: Fresh, arguments: list[str], error: str
) -> None:
    both.refuse("kafka-share-groups", *arguments, "--group", fresh("missing"), error=error)
