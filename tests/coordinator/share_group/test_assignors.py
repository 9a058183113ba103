"""The assignors: Kafka's examples, the iteration order of Java's hash tables, and properties of any result."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.group.assignment import Assignment
from shareq.coordinator.group.hash_order import hash_order, topic_hash
from shareq.coordinator.share_group.assignor import AssignableTopic, AssignorInput, assign_all
from shareq.coordinator.share_group.simple_assignor import assign_simple
from shareq.model.ids import TopicId, java_hash, topic_id_from_bytes

Parts = Mapping[str, tuple[int, ...]]
"""A target by topic name."""


def uuid(lsb: int, msb: int = 0) -> TopicId:
    return topic_id_from_bytes(msb.to_bytes(8, "big") + lsb.to_bytes(8, "big"))


T1, T2, T66, T72 = uuid(64), uuid(68), uuid(66), uuid(72)
IDS = {"t1": T1, "t2": T2, "t66": T66, "t72": T72}
NAMES = {topic_id: name for name, topic_id in IDS.items()}


class Group:
    """A group that is assigned step by step; by default its members subscribe to all of its topics."""

    def __init__(self, **topics: int) -> None:
        self.topics = {name: tuple(range(count)) for name, count in topics.items()}
        self.members: dict[str, frozenset[str]] = {}
        self.targets: dict[str, Assignment] = {}

    def join(self, members: str, *topics: str) -> "Group":
        for member in members:
            self.members[member] = frozenset(topics or self.topics)
        return self

    def leave(self, member: str) -> "Group":
        del self.members[member], self.targets[member]
        return self

    def hold(self, **targets: Parts) -> "Group":
        self.targets = {
            member: {IDS[name]: parts for name, parts in target.items()} for member, target in targets.items()
        }
        return self

    def initialized(self, **topics: tuple[int, ...]) -> "Group":
        self.topics.update(topics)
        return self

    def assign(self) -> dict[str, dict[str, tuple[int, ...]]]:
        topics = {name: AssignableTopic(IDS[name], parts) for name, parts in self.topics.items()}
        self.targets = assign_simple(AssignorInput(self.members, self.targets, topics))
        return {
            member: {NAMES[topic]: parts for topic, parts in target.items()} for member, target in self.targets.items()
        }


def t1(**holders: tuple[int, ...]) -> dict[str, dict[str, tuple[int, ...]]]:
    return {member: {"t1": parts} for member, parts in holders.items()}


def test_two_new_members_then_a_third_then_the_first_leaves() -> None:
    """BEHAVIOUR.md example 3."""
    group = Group(t1=3).join("AB")
    assert group.assign() == t1(A=(0, 2), B=(1,))
    assert group.join("C").assign() == t1(A=(2,), B=(1,), C=(0,))
    assert group.leave("A").assign() == t1(B=(1, 2), C=(0,))


def test_more_members_than_partitions_join_one_by_one_and_leave() -> None:
    """BEHAVIOUR.md example 4."""
    group = Group(t1=2)
    steps = [
        ("A", t1(A=(0, 1))),
        ("B", t1(A=(1,), B=(0,))),
        ("C", t1(A=(0, 1), B=(0,), C=(1,))),
        ("D", t1(A=(1,), B=(0,), C=(1,), D=(0,))),
        ("E", t1(A=(0, 1), B=(0,), C=(1,), D=(0,), E=(1,))),
    ]
    for member, expected in steps:
        assert group.join(member).assign() == expected
    assert group.leave("B").assign() == t1(A=(0,), C=(1,), D=(0,), E=(1,))
    assert group.leave("C").assign() == t1(A=(0, 1), D=(0,), E=(1,))


def test_added_partitions_are_assigned() -> None:
    """BEHAVIOUR.md example 5."""
    group = Group(t1=4).join("AB").hold(A={"t1": (0,)}, B={"t1": (1,)})
    assert group.assign() == t1(A=(0, 2), B=(1, 3))


def test_one_partition_is_initialized_before_the_others() -> None:
    """BEHAVIOUR.md example 6."""
    group = Group(t1=1).join("AB")
    assert group.assign() == t1(A=(0,), B=(0,))
    assert group.initialized(t1=(0, 1, 2)).assign() == t1(A=(1, 2), B=(0,))


def test_two_topics_are_assigned_together() -> None:
    """BEHAVIOUR.md example 7."""
    expected = {"A": {"t1": (0,), "t2": (1,)}, "B": {"t1": (1,)}, "C": {"t2": (0,)}}
    assert Group(t1=2, t2=2).join("ABC").assign() == expected


def test_partitions_are_assigned_in_the_order_of_the_hash_table() -> None:
    """BEHAVIOUR.md 31, example 8."""
    assert Group(t66=3).join("AB").assign() == {"A": {"t66": (1, 2)}, "B": {"t66": (0,)}}


def test_different_subscriptions_are_assigned_topic_by_topic() -> None:
    """BEHAVIOUR.md 30, example 9."""
    group = Group(t1=3, t2=2).join("A", "t1").join("B", "t1", "t2").join("C", "t2")
    assert group.assign() == {"A": {"t1": (0, 2)}, "B": {"t1": (1,), "t2": (0,)}, "C": {"t2": (1,)}}
    group.join("C", "t1")
    assert group.assign() == {
        "A": {"t1": (2,)},
        "B": {"t1": (1,), "t2": (0, 1)},
        "C": {"t1": (0,), "t2": ()},
    }


def test_partition_may_have_fewer_members_than_its_share() -> None:
    """BEHAVIOUR.md 29 (e), example 10."""
    group = Group(t1=2).join("ABCDE").hold(**{member: {"t1": (0,)} for member in "ABCDE"})
    assert group.assign() == t1(A=(1,), B=(1,), C=(0,), D=(0,), E=(0,))


def test_assignment_stops_after_a_round_of_members_without_progress() -> None:
    """BEHAVIOUR.md 29 (e). The desired counts are 2, 1, 2, 1. A gets 0 and is full; 1 needs another member, but C, the
    last one of the round, has it."""
    group = Group(t1=3).join("ABCD").hold(A={"t1": (2,)}, B={"t1": (2,)}, C={"t1": (1,)}, D={"t1": (0,)})
    assert group.assign() == t1(A=(0, 2), B=(2,), C=(1,), D=(0,))


def test_newest_partition_of_a_bucket_is_assigned_first() -> None:
    """BEHAVIOUR.md 31. 31 h + 0 of both topics is a multiple of 8, the table size; t1 comes before t72 in the
    subscription."""
    assert Group(t1=1, t72=1).join("AB").assign() == {"A": {"t72": (0,)}, "B": {"t1": (0,)}}


def test_hash_table_of_holders_does_not_shrink() -> None:
    """BEHAVIOUR.md 31. With 20 members of partition 0 its table has 32 buckets, also after only the last ten are
    left."""
    group = Group(t1=10).join("ABCDEFGHIJKLMNOPQRST")
    group.hold(**{m: {"t1": (0, 1) if m < "K" else (0,)} for m in group.members})
    result = group.assign()
    assert [member for member, parts in sorted(result.items()) if parts["t1"] == (0,)] == ["S", "T"]
    assert [member for member, parts in sorted(result.items()) if parts["t1"] == (1,)] == ["I", "J"]


@pytest.mark.parametrize(
    ("before", "topics", "expected"),
    [
        pytest.param({}, {}, {"A": {}}, id="no topic exists"),
        pytest.param({"t1": (0,)}, {}, {"A": {}}, id="its topic was deleted"),
        pytest.param(
            {"t1": (0, 1)}, {"t1": ()}, {"A": {"t1": ()}}, id="a topic without partitions stays in the target"
        ),
        pytest.param({"t2": (0,)}, {"t1": (0,)}, {"A": {"t1": (0,)}}, id="an unsubscribed topic is dropped"),
        pytest.param(
            {"t1": (0, 3)}, {"t1": (3, 4)}, {"A": {"t1": (0, 3)}}, id="partitions that are not initialized stay"
        ),
    ],
)
def test_assignment_of_one_member(before: Parts, topics: dict[str, tuple[int, ...]], expected: object) -> None:
    """BEHAVIOUR.md 29."""
    group = Group().join("A", "t1").hold(A=before).initialized(**topics)
    assert group.assign() == expected


def test_members_without_any_subscription_get_nothing() -> None:
    given = AssignorInput({"A": frozenset(), "B": frozenset()}, {"A": {T1: (0,)}}, {})
    assert assign_simple(given) == {"A": {}, "B": {}}


def test_topic_without_subscribers_stays_in_the_target_of_a_mixed_group() -> None:
    """BEHAVIOUR.md 30."""
    members = {"A": frozenset({"t1"}), "B": frozenset({"t2"})}
    targets: dict[str, Assignment] = {"A": {T66: (0,)}}
    topics = {"t1": AssignableTopic(T1, (0,)), "t2": AssignableTopic(T2, (0,))}
    assert assign_simple(AssignorInput(members, targets, topics)) == {"A": {T66: (0,), T1: (0,)}, "B": {T2: (0,)}}


@pytest.mark.parametrize(
    ("items", "options", "expected"),
    [
        pytest.param([17, 1, 16, 0], {}, [16, 0, 17, 1], id="same bucket: earliest first"),
        pytest.param([17, 1, 16, 0], {"newest_first": True}, [0, 16, 1, 17], id="same bucket: newest first"),
        pytest.param([17, 1, 16, 0], {"buckets": 32}, [0, 1, 16, 17], id="a larger table"),
        pytest.param([17, 1], {"count": 12}, [17, 1], id="12 items: 16 buckets"),
        pytest.param([17, 1], {"count": 13}, [1, 17], id="13 items: 32 buckets"),
        pytest.param([1 << 16, 1], {}, [1 << 16, 1], id="the high 16 bits are folded in"),
        pytest.param([-1, 3], {}, [-1, 3], id="a negative hash is unsigned"),
    ],
)
def test_iteration_order_of_a_java_hash_table(items: list[int], options: dict[str, Any], expected: list[int]) -> None:
    """BEHAVIOUR.md 31."""
    assert hash_order(items, lambda x: x, **options) == expected


def test_topic_hash_folds_the_id() -> None:
    assert topic_hash(uuid(0x0000000500000003, 0x0000000100000001)) == 5 ^ 1 ^ 3 ^ 1
    assert java_hash("A") == 65


def test_all_to_all_assigns_all_its_topics_to_every_member() -> None:
    """BEHAVIOUR.md 32."""
    members = {"A": frozenset({"t1"}), "B": frozenset({"t1", "t2", "unknown"}), "C": frozenset[str]()}
    topics = {"t1": AssignableTopic(T1, (0, 1)), "t2": AssignableTopic(T2, (0,))}
    assert assign_all(AssignorInput(members, {}, topics)) == {"A": {T1: (0, 1)}, "B": {T1: (0, 1), T2: (0,)}, "C": {}}


# ---- properties ------------------------------------------------------------------------------------------------------

names = st.sampled_from(["t1", "t2", "t66"])
member_ids = st.text("ABCxyz09", min_size=1, max_size=3)
counts = st.dictionaries(names, st.integers(0, 6), max_size=3)


def topics_of(counts: dict[str, int]) -> dict[str, AssignableTopic]:
    return {name: AssignableTopic(IDS[name], tuple(range(count))) for name, count in counts.items()}


def grow(known: dict[str, int], step: dict[str, int]) -> dict[str, AssignableTopic]:
    """The topics of this step. Topics are added and removed, but initialized partitions stay initialized."""
    for name, count in step.items():
        known[name] = max(count, known.get(name, 0))
    return topics_of({name: known[name] for name in step})


def sizes(assignment: Assignment) -> int:
    return sum(len(parts) for parts in assignment.values())


def holders(result: Mapping[str, Assignment]) -> Counter[tuple[TopicId, int]]:
    return Counter((topic, part) for target in result.values() for topic, parts in target.items() for part in parts)


def check_shares(result: Mapping[str, Assignment], targets: set[tuple[TopicId, int]]) -> None:
    sharing = math.ceil(len(result) / len(targets)) if targets else 0
    held = holders(result)
    assert set(held) == targets
    assert all(1 <= count <= sharing for count in held.values())
    lengths = [sizes(target) for target in result.values()]
    assert max(lengths) - min(lengths) <= 1


@given(st.lists(st.tuples(st.sets(member_ids, min_size=1, max_size=9), counts), min_size=1, max_size=5))
def test_equal_subscriptions_are_balanced_after_any_history(
    steps: list[tuple[set[str], dict[str, int]]],
) -> None:
    targets: dict[str, Assignment] = {}
    known: dict[str, int] = {}
    for members, step in steps:
        topics = grow(known, step)
        old = {member: target for member, target in targets.items() if member in members}
        targets = assign_simple(AssignorInput(dict.fromkeys(members, frozenset(("t1", "t2", "t66"))), old, topics))
        assert set(targets) == members
        check_shares(targets, {(topic.topic_id, part) for topic in topics.values() for part in topic.partitions})


@given(st.lists(st.tuples(st.dictionaries(member_ids, st.sets(names), max_size=8), counts), min_size=1, max_size=5))
def test_mixed_subscriptions_are_balanced_by_topic(
    steps: list[tuple[dict[str, set[str]], dict[str, int]]],
) -> None:
    targets: dict[str, Assignment] = {}
    known: dict[str, int] = {}
    for subscriptions, step in steps:
        topics = grow(known, step)
        members = {member: frozenset(topics) for member, topics in subscriptions.items()}
        old = {member: target for member, target in targets.items() if member in members}
        targets = assign_simple(AssignorInput(members, old, topics))
        assert set(targets) == set(members)
        if len(set(members.values())) < 2:
            continue
        for name, topic in topics.items():
            subscribers = [member for member in members if name in members[member]]
            share = {member: {topic.topic_id: targets[member].get(topic.topic_id, ())} for member in subscribers}
            if share:
                check_shares(share, {(topic.topic_id, part) for part in topic.partitions})
            others = set(members) - set(subscribers) if subscribers else set()
            assert all(not targets[member].get(topic.topic_id) for member in others)


@given(st.sets(member_ids, min_size=1, max_size=9), counts)
def test_assignment_without_change_is_kept(members: set[str], step: dict[str, int]) -> None:
    first = AssignorInput(dict.fromkeys(members, frozenset(step)), {}, topics_of(step))
    settled = assign_simple(first)
    assert assign_simple(first._replace(targets=settled)) == settled


@given(st.sets(member_ids, min_size=2, max_size=9), st.integers(1, 12))
def test_leaving_member_moves_at_most_one_partition_of_each_other_member(members: set[str], count: int) -> None:
    """A remaining member keeps its partitions unless it has more than its new share; by rounding that is at most 1
    here."""
    subscription = frozenset({"t1"})
    topics = topics_of({"t1": count})
    before = assign_simple(AssignorInput(dict.fromkeys(members, subscription), {}, topics))
    staying = members - {min(members)}
    old = {member: before[member] for member in staying}
    after = assign_simple(AssignorInput(dict.fromkeys(staying, subscription), old, topics))
    sharing = math.ceil(len(staying) / count)
    if sharing == math.ceil(len(members) / count):
        for member in staying:
            assert len(set(before[member].get(T1, ())) - set(after[member].get(T1, ()))) <= 1
