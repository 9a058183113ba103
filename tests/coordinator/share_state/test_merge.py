"""Combining state batches (BEHAVIOUR.md 25)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.model.messages.share_state import StateBatch
from shareq.model.state_batches import combine
from tests.budgets import cases
from tests.coordinator.share_state.stage import batches


@pytest.mark.parametrize(
    ("current", "update", "start_offset", "expected"),
    [
        pytest.param("100-110/0/1", "111-115/0/1", -1, "100-115/0/1", id="example 1"),
        pytest.param("100-110/0/1", "111-115/0/2", -1, "100-110/0/1 111-115/0/2", id="example 2"),
        pytest.param("100-110/0/3", "105-115/2/1", -1, "100-110/0/3 111-115/2/1", id="example 3"),
        pytest.param("100-110/0/1", "103-105/2/1", -1, "100-102/0/1 103-105/2/1 106-110/0/1", id="example 4"),
        pytest.param("100-110/4/1", "103-105/2/1", -1, "100-110/4/1", id="example 5"),
        pytest.param("100-110/2/1", "103-105/0/2", -1, "100-102/2/1 103-105/0/2 106-110/2/1", id="example 6"),
        pytest.param("0-9/0/2", "0-9/0/1", -1, "0-9/0/2", id="example 7"),
        pytest.param("0-9/3/5", "0-9/4/5", -1, "0-9/4/5", id="example 8"),
        pytest.param("0-9/0/1", "20-29/0/1", -1, "0-9/0/1 20-29/0/1", id="example 9"),
        pytest.param(
            "100-110/0/1 121-130/0/1", "111-119/2/2 116-123/2/2", 120, "120-123/2/2 124-130/0/1", id="example 10"
        ),
        pytest.param("0-5/2/1", "6-9/0/1", 10, "", id="example 11"),
        pytest.param("12-13/0/3", "8-11/0/3 8-13/4/1", -1, "8-13/0/3", id="example 12"),
        pytest.param("0-9/0/1 0-9/2/1 5-14/0/1", "20-20/3/2", 3, "3-9/2/1 10-14/0/1 20-20/3/2", id="example 13"),
        pytest.param("", "", -1, "", id="empty"),
        pytest.param("", "5-4/0/1", -1, "5-4/0/1", id="one batch is returned unchanged"),
        pytest.param("0-9/0/1", "", 5, "5-9/0/1", id="one batch is cut"),
        pytest.param("0-9/0/1", "", 9, "9-9/0/1", id="cut to the last offset"),
        pytest.param("0-9/0/1", "", 0, "0-9/0/1", id="nothing to cut at 0"),
        pytest.param("0-9/0/1", "20-29/0/1", -5, "0-9/0/1 20-29/0/1", id="another negative start cuts nothing"),
        pytest.param("5-9/0/1", "0-4/0/1", -1, "0-9/0/1", id="the update is below the stored batch"),
        pytest.param("0-9/0/1", "3-2/0/9 20-21/0/1", -1, "0-9/0/1 20-21/0/1", id="an empty batch covers nothing"),
    ],
)
def test_examples_of_combining(current: str, update: str, start_offset: int, expected: str) -> None:
    assert combine(batches(current), batches(update), start_offset) == batches(expected)


def oracle(given_batches: list[StateBatch], start_offset: int) -> list[StateBatch]:
    """Combine by offset: the highest (count, state) wins; equal neighbours form a run."""
    best: dict[int, tuple[int, int]] = {}
    for first, last, state, count in given_batches:
        for offset in range(max(first, start_offset), last + 1):
            best[offset] = max(best.get(offset, (-1, -1)), (count, state))
    runs: list[StateBatch] = []
    for offset, (count, state) in sorted(best.items()):
        if runs and runs[-1].last_offset == offset - 1 and runs[-1][2:] == (state, count):
            runs[-1] = runs[-1]._replace(last_offset=offset)
        else:
            runs.append(StateBatch(offset, offset, state, count))
    return runs


BATCH = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length, state, count),
    st.integers(0, 40),
    st.integers(0, 15),
    st.sampled_from([0, 2, 3, 4]),
    st.integers(1, 3),
)
BATCHES = st.lists(BATCH, max_size=8)

CASES = cases(2_000, 10_000)


@given(BATCHES, BATCHES, st.integers(-1, 45))
def test_combine_equals_an_oracle_by_offset(
    current: list[StateBatch], update: list[StateBatch], start_offset: int
) -> None:
    combined = combine(current, update, start_offset)
    assert list(combined) == oracle([*current, *update], start_offset)


def test_combine_equals_an_oracle_in_many_random_cases(seed: int) -> None:
    """Without Hypothesis, which takes 90 s for 50,000 cases; this takes 5 s."""
    rng = random.Random(seed)

    def some() -> list[StateBatch]:
        return [
            StateBatch(first, first + rng.randrange(12), rng.choice((0, 2, 3, 4)), rng.randint(1, 3))
            for first in (rng.randrange(40) for _ in range(rng.randrange(6)))
        ]

    for _ in range(CASES):
        current, update, start_offset = some(), some(), rng.randint(-1, 45)
        combined = combine(current, update, start_offset)
        assert list(combined) == oracle([*current, *update], start_offset), (current, update, start_offset)


@given(BATCHES, BATCHES, BATCHES)
def test_combine_is_commutative_and_associative(
    one: list[StateBatch], two: list[StateBatch], three: list[StateBatch]
) -> None:
    """So the stored state does not depend on the order in which writes arrive."""
    together = combine(one, [*two, *three], -1)
    assert combine(three, combine(two, one, -1), -1) == together
    assert combine(together, two, -1) == together


def test_start_offset_minus_1_cuts_nothing() -> None:
    negative = [StateBatch(-7, -3, 0, 1), StateBatch(4, 9, 0, 1)]
    assert combine(negative, (), -1) == tuple(negative)
    assert combine(negative, (), 0) == (StateBatch(4, 9, 0, 1),)


def test_cost_does_not_depend_on_the_length_of_runs() -> None:
    """Runs of a billion offsets each."""
    size = 10**9
    current = [StateBatch(i * size, (i + 1) * size - 1, 2 * (i % 2), 1) for i in range(1000)]
    combined = combine(current, [StateBatch(size // 2, 999 * size, 2, 1)], 10)
    assert combined[0] == StateBatch(10, size // 2 - 1, 0, 1)
    assert combined[1] == StateBatch(size // 2, 1000 * size - 1, 2, 1)
