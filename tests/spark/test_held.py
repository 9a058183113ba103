"""Ranges that a member holds, without others: compared with sets of offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.spark.held import Held, Reached, append, without
from shareq.spark.ranges import Range

Place = tuple[str, int, int, int]
"""(topic id, partition, node, offset)."""


def held(topic: str, partition: int, node: int, first: int, size: int) -> Held:
    return Held(Range("t", topic, partition, first, first + size, 1), node)


ANY = st.builds(
    held, st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 1), st.integers(0, 20), st.integers(1, 9)
)


def places(several: list[Held]) -> list[Place]:
    return sorted(
        (at.topic_id, at.partition, node, offset) for at, node in several for offset in range(at.first, at.end)
    )


@pytest.mark.parametrize("same_node", [False, True])
@given(several=st.lists(ANY, max_size=5), others=st.lists(ANY, max_size=5))
def test_offsets_of_others_are_removed(same_node: bool, several: list[Held], others: list[Held]) -> None:
    holes = places(others)
    if same_node:
        expected = [place for place in places(several) if place not in holes]
    else:
        found = {(topic, partition, offset) for topic, partition, _, offset in holes}
        expected = [at for at in places(several) if (*at[:2], at[3]) not in found]
    assert places(without(several, others, same_node=same_node)) == expected


@given(several=st.lists(ANY, max_size=9))
def test_ranges_that_are_appended_keep_their_offsets(several: list[Held]) -> None:
    found: list[Held] = []
    for each in several:
        append(found, each)
    assert places(found) == places(several)


def test_only_adjacent_ranges_of_the_same_locks_become_one() -> None:
    again = Held(Range("t", "a", 0, 9, 11, 2), 0)
    apart = [held("a", 0, 1, 11, 2), held("a", 1, 1, 13, 1), held("b", 1, 1, 14, 1), held("b", 1, 1, 16, 1), again]
    found: list[Held] = []
    for each in [held("a", 0, 0, 0, 5), held("a", 0, 0, 5, 3), held("a", 0, 0, 8, 1), again, *apart]:
        append(found, each)
    assert found == [held("a", 0, 0, 0, 9), again, *apart]


def test_a_range_that_begins_where_the_last_one_ends_is_new() -> None:
    """The member compares each range with all others once one has come again, so the usual case must not count."""
    reached = Reached()
    assert not reached.again([held("a", 0, 0, 0, 5), held("a", 0, 0, 5, 5)])
    assert not reached.again([held("a", 0, 1, 10, 1), held("a", 1, 0, 0, 1), held("b", 0, 0, 0, 1)])
    assert reached.again([held("a", 0, 1, 10, 1)])


def test_a_range_within_a_longer_one_has_come_again() -> None:
    reached = Reached()
    reached.again([held("a", 0, 0, 0, 9), held("a", 0, 0, 2, 1)])
    assert reached.again([held("a", 0, 0, 8, 1)])
