"""The assignor "cut": worked examples, and properties of any result. Rules: coordinator/share_group/experiments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.group.assignment import Assignment
from shareq.coordinator.share_group.assignor import AssignableTopic, AssignorInput
from shareq.coordinator.share_group.experiments.assignors import ASSIGNORS
from shareq.coordinator.share_group.experiments.cut_assignor import assign_cut, is_even
from shareq.coordinator.share_group.simple_assignor import assign_simple
from shareq.model.experiments import ASSIGNOR, EXPERIMENT_CONFIGS
from shareq.model.ids import TopicId, TopicIdPartition

T1, T2 = TopicId("A" * 22), TopicId("B" * 21 + "A")
IDS = {"t1": T1, "t2": T2}
BOTH = frozenset(IDS)


@dataclass
class Group:
    """A group that is assigned step by step."""

    weights: Mapping[str, list[int]]
    members: dict[str, frozenset[str]]
    targets: Mapping[str, Assignment] = field(default_factory=dict)

    @property
    def input(self) -> AssignorInput:
        topics = {name: AssignableTopic(IDS[name], tuple(range(len(found)))) for name, found in self.weights.items()}
        weights = {
            TopicIdPartition(IDS[name], index): weight
            for name, found in self.weights.items()
            for index, weight in enumerate(found)
        }
        return AssignorInput(self.members, self.targets, topics, weights)

    def assign(self) -> Mapping[str, Assignment]:
        self.targets = assign_cut(self.input)
        return self.targets


def group(weights: list[int], members: str) -> Group:
    """One topic, and members that subscribe to it."""
    return Group({"t1": weights}, dict.fromkeys(members, frozenset({"t1"})))


def shown(targets: Mapping[str, Assignment]) -> str:
    """The partitions of t1, of each member in order of its id: {0}{0}{0,1}."""
    return "".join("{" + ",".join(map(str, targets[member].get(T1, ()))) + "}" for member in sorted(targets))


def test_the_configuration_offers_every_assignor() -> None:
    assert EXPERIMENT_CONFIGS[ASSIGNOR].choices == ("", *ASSIGNORS)


# ---- the worked examples ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "members", "result"),
    [
        pytest.param([3, 1], "ABCD", "{0}{0}{0}{1}", id="1.2 more members than partitions"),
        pytest.param([3, 1], "ABC", "{0}{0}{0,1}", id="1.2 a border within a partition"),
        pytest.param([1, 1, 1, 1], "AB", "{0,1}{2,3}", id="1.2 equal loads"),
        pytest.param([1, 1, 1], "AB", "{0,1}{1,2}", id="1.2 the middle partition is shared"),
        pytest.param([85, 5, 5, 5], "ABCDEFGH", "{0}{0}{0}{0}{0}{0}{0,1}{1,2,3}", id="1.2 one partition is hot"),
        pytest.param([5, 1], "A", "{0,1}", id="1.2 one member"),
    ],
)
def test_the_line_is_cut_into_equal_pieces(weights: list[int], members: str, result: str) -> None:
    assert shown(group(weights, members).assign()) == result


def test_topics_of_equal_subscriptions_are_one_line() -> None:
    """1.3. The topics stand in the order of their names."""
    mixed = Group({"t2": [2], "t1": [1, 1]}, dict.fromkeys("AB", BOTH))
    assert mixed.assign() == {"A": {T1: (0, 1)}, "B": {T2: (0,)}}


def test_with_different_subscriptions_each_topic_is_a_line() -> None:
    """1.3."""
    mixed = Group({"t1": [1, 1, 1], "t2": [1, 1]}, {"A": frozenset({"t1"}), "B": BOTH, "C": frozenset({"t2"})})
    assert mixed.assign() == {"A": {T1: (0, 1)}, "B": {T1: (1, 2), T2: (0,)}, "C": {T2: (1,)}}


def test_a_member_keeps_its_end_of_the_line() -> None:
    """1.4. B left of A: a new member is added at the end, whatever its id."""
    two = group([1, 1, 1, 1], "AB")
    two.targets = {"A": {T1: (2, 3)}, "B": {T1: (0, 1)}}
    assert shown(two.assign()) == "{2,3}{0,1}"
    two.members["0"] = frozenset({"t1"})
    assert shown(two.assign()) == "{2,3}{1,2}{0,1}"


def test_members_without_a_topic_and_topics_without_partitions() -> None:
    empty = group([], "AB")
    assert empty.assign() == {"A": {}, "B": {}}
    assert is_even(empty.input)
    assert assign_cut(AssignorInput({"A": frozenset({"none"})}, {}, {})) == {"A": {}}


# ---- when the present pieces may stay --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "members", "after", "even"),
    [
        pytest.param([1, 1], "AB", [3, 1], True, id="1.6 exactly one and a half means"),
        pytest.param([1, 1], "AB", [31, 10], False, id="1.6 more"),
        pytest.param([1, 1, 1], "AB", [1, 5, 1], True, id="1.6 the border moves within the shared partition"),
        pytest.param([1, 1, 1], "AB", [9, 1, 1], False, id="1.6 the border has no room"),
        pytest.param([3, 1], "ABC", [1, 3], False, id="1.6 three of one, and one for the rest"),
        pytest.param([1], "ABCD", [1000], True, id="1.6 one partition"),
        pytest.param([1, 1, 1, 1], "AB", [100, 100, 100, 100], True, id="1.6 all grow alike"),
    ],
)
def test_targets_stay_until_a_piece_weighs_one_and_a_half_means(
    before: list[int], members: str, after: list[int], even: bool
) -> None:
    changed = group(before, members)
    changed.assign()
    changed.weights = {"t1": after}
    assert is_even(changed.input) is even


@pytest.mark.parametrize(
    "targets",
    [
        pytest.param({"A": (0, 2), "B": (1, 3)}, id="scattered"),
        pytest.param({"A": (0, 1), "B": ()}, id="uncovered, and a member has nothing"),
        pytest.param({"A": (0, 1), "B": (3,)}, id="a gap"),
        pytest.param({"A": (0, 1, 2), "B": (1, 2, 3)}, id="two shared partitions"),
    ],
)
def test_targets_of_another_assignor_are_not_even(targets: dict[str, tuple[int, ...]]) -> None:
    """1.6."""
    other = group([1, 1, 1, 1], "AB")
    other.targets = {member: {T1: parts} for member, parts in targets.items()}
    assert not is_even(other.input)


# ---- properties ------------------------------------------------------------------------------------------------------

lags = st.lists(st.integers(1, 1000), min_size=1, max_size=12)
names = st.integers(1, 12).map(lambda count: "ABCDEFGHIJKL"[:count])


@given(lags, lags, names, names)
def test_all_is_covered_by_few_pairs(before: list[int], after: list[int], old: str, new: str) -> None:
    """Invariants A1 and A2, from any earlier cut; a second assignment changes nothing (A3)."""
    made = group(before, old)
    made.assign()
    made.weights, made.members = {"t1": after}, dict.fromkeys(new, frozenset({"t1"}))
    targets = made.assign()
    pairs = [index for target in targets.values() for index in target.get(T1, ())]
    assert set(pairs) == set(range(len(after)))
    assert len(pairs) <= len(after) + len(new) - 1
    assert all(target[T1] for target in targets.values())
    assert is_even(made.input)
    assert made.assign() == targets


@given(lags, names)
def test_every_member_touches_its_share(weights: list[int], members: str) -> None:
    """A naive cut: piece i is from i/M to (i + 1)/M of the line."""
    found = group(weights, members).assign()
    share = Fraction(sum(weights), len(members))
    for place, member in enumerate(sorted(members)):
        first, end = place * share, (place + 1) * share
        touched = [i for i in range(len(weights)) if sum(weights[: i + 1]) > first and sum(weights[:i]) < end]
        assert found[member][T1] == tuple(touched)


@given(lags, lags, names)
def test_uneven_pieces_are_those_that_no_border_mends(before: list[int], after: list[int], members: str) -> None:
    """A naive measure: the work that only some neighbours can do, by their number, is at most 3/2 of the mean."""
    after = (after * 12)[: len(before)]
    made = group(before, members)
    targets = made.assign()
    made.weights = {"t1": after}
    held = [set(targets[member][T1]) for member in sorted(members)]
    mean = Fraction(sum(after), len(members))
    heaviest = Fraction(0)
    for first in range(len(held)):
        for end in range(first + 1, len(held) + 1):
            others = set().union(*held[:first], *held[end:])
            alone = set().union(*held[first:end]) - others
            heaviest = max(heaviest, Fraction(sum(after[i] for i in alone), end - first))
    assert is_even(made.input) == (heaviest <= Fraction(3, 2) * mean)


@given(lags, names)
def test_equal_loads_are_as_balanced_as_those_of_simple(weights: list[int], members: str) -> None:
    made = group([7] * len(weights), members)
    sizes = sorted(len(target[T1]) for target in assign_simple(made.input).values())
    cut = sorted(len(target[T1]) for target in made.assign().values())
    if len(weights) % len(members) == 0:
        assert cut == sizes
