"""Acknowledge types by offset become runs, and runs become acknowledgement batches, compared with naive maps."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.consumer.acknowledgements import MANY_RUNS, AcknowledgeRun, counts_of, encode, merge_runs, runs_of
from tests.consumer.fake_share_group import spread

types_by_offset = st.dictionaries(st.integers(0, 300), st.integers(0, 4), max_size=200)


@pytest.mark.parametrize(
    ("types", "runs"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({5: 1}, [(5, 6, 1)], id="one"),
        pytest.param({0: 1, 1: 1, 2: 1}, [(0, 3, 1)], id="a run"),
        pytest.param({0: 1, 2: 1}, [(0, 1, 1), (2, 3, 1)], id="a hole between"),
        pytest.param({0: 1, 1: 2}, [(0, 1, 1), (1, 2, 2)], id="two types"),
        pytest.param({2: 0, 0: 0}, [(0, 1, 0), (2, 3, 0)], id="gaps, out of order"),
    ],
)
def test_runs_of_acknowledge_types(types: dict[int, int], runs: list[tuple[int, int, int]]) -> None:
    assert [run[:3] for run in runs_of(types)] == runs


@given(types_by_offset)
def test_runs_have_the_type_of_every_offset(types: dict[int, int]) -> None:
    runs = runs_of(types)
    assert {offset: run.type for run in runs for offset in range(run.first, run.end)} == types
    assert all(a.end < b.first or a.type != b.type for a, b in pairwise(runs))


@given(types_by_offset)
def test_batches_have_the_type_of_every_offset(types: dict[int, int]) -> None:
    assert spread(encode(runs_of(types))) == types


def test_few_runs_have_a_batch_each() -> None:
    batches = encode([AcknowledgeRun(0, 1, 1), AcknowledgeRun(1, 2, 2), AcknowledgeRun(2, 5, 1)])
    assert [(b.first_offset, b.last_offset, b.acknowledge_types) for b in batches] == [
        (0, 0, (1,)),
        (1, 1, (2,)),
        (2, 4, (1,)),
    ]


def test_adjacent_runs_of_one_type_have_one_batch() -> None:
    runs = [AcknowledgeRun(0, 2500, 1), AcknowledgeRun(2500, 5000, 1), AcknowledgeRun(5000, 5001, 2)]
    batches = encode([*runs, AcknowledgeRun(5002, 6000, 2)])
    assert [(b.first_offset, b.last_offset, b.acknowledge_types) for b in batches] == [
        (0, 4999, (1,)),
        (5000, 5000, (2,)),
        (5002, 5999, (2,)),
    ]


def test_many_short_runs_share_a_batch_and_long_ones_do_not() -> None:
    short = [AcknowledgeRun(offset, offset + 1, 1 + offset % 2) for offset in range(MANY_RUNS + 1)]
    end = short[-1].end
    batches = encode([*short, AcknowledgeRun(end, end + 11, 2), AcknowledgeRun(end + 20, end + 21, 3)])
    assert [(b.first_offset, b.last_offset, len(b.acknowledge_types)) for b in batches] == [
        (0, end - 1, end),
        (end, end + 10, 1),
        (end + 20, end + 20, 1),
    ]


@pytest.mark.parametrize(
    ("several", "expected"),
    [
        pytest.param(
            [[AcknowledgeRun(0, 2, 1)], [AcknowledgeRun(2, 3, 2)]],
            [AcknowledgeRun(0, 2, 1), AcknowledgeRun(2, 3, 2)],
            id="adjacent",
        ),
        pytest.param(
            [[AcknowledgeRun(5, 6, 1)], [AcknowledgeRun(0, 1, 2)]],
            [AcknowledgeRun(0, 1, 2), AcknowledgeRun(5, 6, 1)],
            id="out of order",
        ),
        pytest.param([[AcknowledgeRun(0, 3, 1)], [AcknowledgeRun(2, 4, 2)]], None, id="overlapping"),
        pytest.param([[AcknowledgeRun(0, 1, 1)], [AcknowledgeRun(0, 1, 1)]], None, id="equal runs"),
    ],
)
def test_runs_of_several_calls_are_joined(
    several: list[list[AcknowledgeRun]], expected: list[AcknowledgeRun] | None
) -> None:
    assert merge_runs(several) == expected


def test_counts_are_by_type() -> None:
    assert counts_of(
        [
            AcknowledgeRun(0, 1, 0),
            AcknowledgeRun(1, 4, 1),
            AcknowledgeRun(4, 6, 2),
            AcknowledgeRun(6, 7, 3),
            AcknowledgeRun(7, 8, 4),
        ]
    ) == (1, 3, 2, 1, 1)
