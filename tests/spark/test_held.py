"""Ranges that a member holds, without others: compared with sets of offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.spark.held import Held, without
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
