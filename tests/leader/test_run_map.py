"""The run-length map against a plain dict, and its chunks against their invariants."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shareq.leader import run_map
from shareq.leader.run_map import CEILING, FLOOR, RunMap

A, B, C = ("a", 1), ("b", 2), ("c", 3)
Cells = tuple[str, int]


def filled(*runs: tuple[int, int, Cells]) -> RunMap[Cells]:
    result: RunMap[Cells] = RunMap()
    for first, end, cell in runs:
        result.assign(first, end, cell)
    return result


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of four runs, so that a few runs make many chunks."""
    monkeypatch.setattr(run_map, "MAX_RUNS", 4)
    monkeypatch.setattr(run_map, "SHORT_RUN", 2)


@pytest.mark.parametrize(
    ("first", "end", "cell", "runs"),
    [
        pytest.param(0, 5, B, [(0, 5, B), (10, 20, A)], id="before, apart"),
        pytest.param(0, 10, B, [(0, 10, B), (10, 20, A)], id="before, touching"),
        pytest.param(0, 10, A, [(0, 20, A)], id="before, merging"),
        pytest.param(0, 15, B, [(0, 15, B), (15, 20, A)], id="over the beginning"),
        pytest.param(10, 15, B, [(10, 15, B), (15, 20, A)], id="the beginning"),
        pytest.param(12, 15, B, [(10, 12, A), (12, 15, B), (15, 20, A)], id="the middle"),
        pytest.param(12, 15, A, [(10, 20, A)], id="the middle, no change"),
        pytest.param(15, 20, B, [(10, 15, A), (15, 20, B)], id="the end"),
        pytest.param(15, 25, B, [(10, 15, A), (15, 25, B)], id="over the end"),
        pytest.param(20, 25, A, [(10, 25, A)], id="after, merging"),
        pytest.param(20, 25, B, [(10, 20, A), (20, 25, B)], id="after, touching"),
        pytest.param(10, 20, B, [(10, 20, B)], id="the whole run"),
        pytest.param(0, 30, B, [(0, 30, B)], id="more than the run"),
        pytest.param(12, 15, None, [(10, 12, A), (15, 20, A)], id="a hole in the middle"),
        pytest.param(10, 20, None, [], id="a hole instead of the run"),
        pytest.param(FLOOR, 15, None, [(15, 20, A)], id="a hole from the floor"),
        pytest.param(15, CEILING, None, [(10, 15, A)], id="a hole to the ceiling"),
    ],
)
def test_assign_splits_and_merges_runs(
    first: int, end: int, cell: Cells | None, runs: list[tuple[int, int, Cells]]
) -> None:
    subject = filled((10, 20, A))
    subject.assign(first, end, cell)
    assert list(subject.runs()) == runs


def test_a_run_between_two_equal_runs_merges_with_both() -> None:
    subject = filled((0, 5, A), (5, 10, B), (10, 15, A))
    subject.assign(5, 10, A)
    assert list(subject.runs()) == [(0, 15, A)]


def test_lookups_of_runs() -> None:
    subject = filled((0, 5, A), (5, 10, B), (20, 25, C))
    assert [subject.get(offset) for offset in (-1, 0, 4, 5, 9, 10, 19, 20, 24, 25)] == [
        None,
        A,
        A,
        B,
        B,
        None,
        None,
        C,
        C,
        None,
    ]
    assert subject.overlap(3, 22) == [(3, 5, A), (5, 10, B), (20, 22, C)]
    assert subject.overlap(10, 20) == []
    assert subject.next_run(7) == (7, 10, B)
    assert subject.next_run(10) == (20, 25, C)
    assert subject.next_run(25) is None
    assert [subject.before(offset) for offset in (0, 1, 5, 6, 20, 21, 99)] == [None, A, A, B, B, C, C]
    assert subject.uniform([0, 3, 5, 9, 12], [5, 7, 6, 10, 13]) == [A, None, B, B, None]
    subject.clear()
    assert (list(subject.runs()), subject.next_run()) == ([], None)


def test_swap_returns_the_runs_that_it_did_not_change() -> None:
    other = ("a", int("1"))  # equal to A, but another object
    subject = filled((0, 5, A), (5, 10, B))
    edits = [(0, 1, A, C), (2, 3, other, C), (3, 7, A, C), (6, 8, B, C), (20, 21, A, C)]
    assert subject.swap(edits) == [edits[1], edits[2], edits[4]]
    assert list(subject.runs()) == [(0, 1, C), (1, 5, A), (5, 6, B), (6, 8, C), (8, 10, B)]


def check(subject: RunMap[Cells], expected: dict[int, Cells]) -> None:
    """The map equals the dict, its runs are maximal, and its chunks keep their invariants."""
    runs = list(subject.runs())
    assert {offset: cell for first, end, cell in runs for offset in range(first, end)} == expected
    assert all(e < f or (e == f and a != b) for (_, e, a), (f, _, b) in pairwise(runs))
    mins = [*subject._mins, CEILING]
    assert mins[0] == FLOOR
    for k, (starts, cells) in enumerate(zip(subject._starts, subject._values, strict=True)):
        if starts is None:
            assert len(cells) == mins[k + 1] - mins[k]
        else:
            assert starts[0] == mins[k]
            assert starts[-1] < mins[k + 1]
            assert all(x < y for x, y in pairwise(starts))
            assert all(x != y for x, y in pairwise(cells))
            assert len(starts) == len(cells) <= run_map.MAX_RUNS + 1


@pytest.mark.parametrize("span", [20, 200, 2000])
@pytest.mark.usefixtures("small_chunks")
def test_random_changes_in_small_chunks_agree_with_a_dict(seed: int, span: int) -> None:
    rng = Random(seed + span)
    subject: RunMap[Cells] = RunMap()
    expected: dict[int, Cells] = {}
    for step in range(3000):
        first = rng.randrange(span)
        end = first + rng.choice((1, 1, 2, 5, span // 3))
        cell = rng.choice((None, A, B, C))
        if rng.random() < 0.3:
            held = sorted(rng.sample(sorted(expected), min(10, len(expected))))
            edits = [(offset, offset + 1, expected[offset], cell or A) for offset in held]
            refused = subject.swap(edits)
            expected |= {edit[0]: edit[3] for edit in edits if edit not in refused}
        else:
            subject.assign(first, end, cell)
            for offset in range(first, end):
                expected.pop(offset, None)
                if cell is not None:
                    expected[offset] = cell
        if step % 20 == 0:
            check(subject, expected)


def test_merged_single_runs_release_their_memory() -> None:
    subject = filled((0, 20_000, A))
    offsets = list(range(20_000))
    Random(5).shuffle(offsets)
    for offset in offsets[:10_000]:
        subject.assign(offset, offset + 1, B)
    check(subject, dict.fromkeys(offsets[10000:], A) | dict.fromkeys(offsets[:10000], B))
    for offset in offsets[10_000:]:
        subject.assign(offset, offset + 1, B)
    assert list(subject.runs()) == [(0, 20_000, B)]
    assert sum(len(cells) for cells in subject._values) < 2_000


class RunMapMachine(RuleBasedStateMachine):
    """A map and a dict with the same changes."""

    @initialize()
    def begin(self) -> None:
        self.subject: RunMap[Cells] = RunMap()
        self.expected: dict[int, Cells] = {}

    @rule(first=st.integers(-5, 120), length=st.integers(1, 40), cell=st.sampled_from((None, A, B, C)))
    def assign(self, first: int, length: int, cell: Cells | None) -> None:
        self.subject.assign(first, first + length, cell)
        for offset in range(first, first + length):
            self.expected.pop(offset, None)
            if cell is not None:
                self.expected[offset] = cell

    @rule(
        first=st.integers(-5, 160), length=st.integers(1, 5), old=st.sampled_from((A, B)), new=st.sampled_from((B, C))
    )
    def swap(self, first: int, length: int, old: Cells, new: Cells) -> None:
        offsets = range(first, first + length)
        if not self.subject.swap([(first, first + length, old, new)]):
            assert all(self.expected.get(offset) == old for offset in offsets)
            self.expected |= dict.fromkeys(offsets, new)

    @rule(first=st.integers(-5, 160), length=st.integers(1, 60))
    def overlap(self, first: int, length: int) -> None:
        end = first + length
        found = {o: c for f, e, c in self.subject.overlap(first, end) for o in range(f, e)}
        assert found == {o: c for o, c in self.expected.items() if first <= o < end}
        assert self.subject.get(first) == self.expected.get(first)
        following = min((o for o in self.expected if o >= first), default=None)
        run = self.subject.next_run(first)
        assert (None if run is None else run[0]) == following
        below = [o for o in self.expected if o < first]
        assert self.subject.before(first) == (self.expected[max(below)] if below else None)
        (cell,) = self.subject.uniform([first], [end])
        assert cell is None or all(self.expected.get(o) == cell for o in range(first, end))

    @rule(offset=st.integers(-5, 160))
    def forget_below(self, offset: int) -> None:
        self.subject.assign(FLOOR, offset, None)
        self.expected = {o: c for o, c in self.expected.items() if o >= offset}

    @invariant()
    def compare(self) -> None:
        if hasattr(self, "subject"):
            check(self.subject, self.expected)


@pytest.mark.usefixtures("small_chunks")
class TestRunMap(RunMapMachine.TestCase):  # type: ignore[misc,valid-type]
    """At least 50,000 steps in CI: four times the profile's."""

    settings = settings(stateful_step_count=settings().stateful_step_count * 4)
