"""The assignors of consumer groups: results of Apache Kafka 4.3's assignors on the same input, and properties."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.consumer_group.assignors import ASSIGNORS, AssignorInput, Subscriber, assign_uniform
from shareq.coordinator.group.assignment import Assignment
from shareq.model.ids import TopicId, topic_id_from_bytes

TOPICS = {f"t{i}": topic_id_from_bytes((60 + 4 * i).to_bytes(16, "big")) for i in range(1, 5)}
NAMES = {topic_id: name for name, topic_id in TOPICS.items()}


def parsed(counts: str, members: str) -> AssignorInput:
    """Parse partition counts such as `t1=3` and members such as `z@B[t1,t2]=t1:0|t2:1`: instance id, member id,
    subscription, present target."""
    subscribers = {}
    for word in members.split():
        found = re.fullmatch(r"(?:(\w+)@)?(\w+)\[([\w,]*)\]=?(.*)", word)
        assert found is not None
        instance_id, member_id, names, had = found.groups()
        target = (part.split(":") for part in had.split("|") if part)
        subscribers[member_id] = Subscriber(
            instance_id,
            frozenset(TOPICS[name] for name in names.split(",") if name),
            {TOPICS[name]: tuple(map(int, indexes.split(","))) for name, indexes in target},
        )
    pairs = (pair.split("=") for pair in counts.split(",") if pair)
    return AssignorInput(subscribers, {TOPICS[name]: int(count) for name, count in pairs})


def shown(result: dict[str, Assignment]) -> str:
    return " ".join(f"{member}{{{_topics(result[member])}}}" for member in sorted(result))


def _topics(assignment: Assignment) -> str:
    return " ".join(sorted(f"{NAMES[topic]}:{','.join(map(str, indexes))}" for topic, indexes in assignment.items()))


AS_KAFKA = [
    pytest.param(
        "uniform",
        "t1=7",
        "A[t1] B[t1] C[t1]",
        "A{t1:0,1} B{t1:2,3} C{t1:4,5,6}",
        id="uniform: three members",
    ),
    pytest.param(
        "uniform", "t1=2", "A[t1] B[t1] C[t1]", "A{} B{t1:0} C{t1:1}", id="uniform: fewer partitions than members"
    ),
    pytest.param(
        "uniform",
        "t1=6",
        "A[t1]=t1:0,1,2 B[t1]=t1:3,4,5 C[t1]",
        "A{t1:0,1} B{t1:3,4} C{t1:2,5}",
        id="uniform: a new member gets the surplus only",
    ),
    pytest.param(
        "uniform", "t1=6", "A[t1]=t1:0,1 B[t1]=t1:2,3", "A{t1:0,1,4} B{t1:2,3,5}", id="uniform: a member has left"
    ),
    pytest.param("uniform", "t1=5", "A[t1]=t1:0 B[t1]=t1:1", "A{t1:0,2} B{t1:1,3,4}", id="uniform: added partitions"),
    pytest.param(
        "uniform",
        "t1=2,t2=3",
        "A[t1,t2]=t1:0 B[t1,t2]=t1:1",
        "A{t1:0 t2:0} B{t1:1 t2:1,2}",
        id="uniform: an added topic",
    ),
    pytest.param(
        "uniform",
        "t2=2",
        "A[t2]=t1:0|t2:0 B[t2]=t1:1|t2:1",
        "A{t2:0} B{t2:1}",
        id="uniform: an unsubscribed topic",
    ),
    pytest.param(
        "uniform",
        "t1=4",
        "A[t1]=t1:0 B[t1]=t1:1,2 C[t1]=t1:3",
        "A{t1:0} B{t1:1,2} C{t1:3}",
        id="uniform: the extra partition stays",
    ),
    pytest.param(
        "uniform",
        "t1=5",
        "A[t1] B[t1]=t1:0,1,2,3,4 C[t1]",
        "A{t1:2} B{t1:0,1} C{t1:3,4}",
        id="uniform: one member had all partitions",
    ),
    pytest.param(
        "uniform",
        "t1=3,t2=3",
        "A[t1] B[t1,t2] C[t2]",
        "A{t1:0,2} B{t1:1 t2:2} C{t2:0,1}",
        id="uniform: subscriptions differ",
    ),
    pytest.param(
        "uniform",
        "t1=4,t2=4",
        "A[t1,t2]=t1:0,1,2,3|t2:0,1 B[t1]= C[t2]=t2:2,3",
        "A{t1:0 t2:0,1} B{t1:1,2,3} C{t2:2,3}",
        id="uniform: subscriptions differ, one member had most partitions",
    ),
    pytest.param(
        "uniform", "t1=4,t2=2", "A[t1,t2] B[t2]", "A{t1:0,1,2,3} B{t2:0,1}", id="uniform: a topic of one subscriber"
    ),
    pytest.param("uniform", "", "A[] B[]", "A{} B{}", id="uniform: no subscriptions"),
    pytest.param("uniform", "t1=2", "A[] B[t1]", "A{} B{t1:0,1}", id="uniform: a member without subscription"),
    pytest.param(
        "uniform",
        "t1=4,t2=4,t3=4",
        "A[t1,t2]=t1:0,1,2,3|t2:0,1,2,3 B[t2,t3]=t3:0,1,2,3 C[t3,t1]",
        "A{t2:0,1,2,3} B{t3:0,1,2,3} C{t1:0,1,2,3}",
        id="uniform: three topics, each pair of members shares one",
    ),
    pytest.param("range", "t1=4", "A[t1] B[t1]", "A{t1:0,1} B{t1:2,3}", id="range: even"),
    pytest.param(
        "range",
        "t1=7",
        "A[t1] B[t1] C[t1]",
        "A{t1:0,1,2} B{t1:3,4} C{t1:5,6}",
        id="range: the first members get one more",
    ),
    pytest.param(
        "range", "t1=2", "A[t1] B[t1] C[t1]", "A{t1:0} B{t1:1} C{}", id="range: fewer partitions than members"
    ),
    pytest.param(
        "range", "t1=3,t2=3", "A[t1,t2] B[t1,t2]", "A{t1:0,1 t2:0,1} B{t1:2 t2:2}", id="range: co-partitioned topics"
    ),
    pytest.param(
        "range",
        "t1=3,t2=4",
        "A[t1] B[t1,t2] C[t2]",
        "A{t1:0,1} B{t1:2 t2:0,1} C{t2:2,3}",
        id="range: subscriptions differ",
    ),
    pytest.param(
        "range",
        "t1=3",
        "A[t1] z@B[t1] y@C[t1]",
        "A{t1:2} B{t1:1} C{t1:0}",
        id="range: static members come first, by instance id",
    ),
    pytest.param(
        "range", "t1=4", "A[t1]=t1:2,3 B[t1]=t1:0,1", "A{t1:0,1} B{t1:2,3}", id="range: present targets are ignored"
    ),
]


@pytest.mark.parametrize(("assignor", "counts", "members", "result"), AS_KAFKA)
def test_same_result_as_kafka(assignor: str, counts: str, members: str, result: str) -> None:
    assert shown(ASSIGNORS[assignor](parsed(counts, members))) == result


# ---- properties ------------------------------------------------------------------------------------------------------

counts = st.dictionaries(st.sampled_from(sorted(NAMES)), st.integers(1, 9), min_size=1)


@st.composite
def inputs(draw: st.DrawFn, *, alike: bool) -> AssignorInput:
    """Any members with any targets in which no partition has two members. `alike`: they have the same subscription."""
    partition_counts = draw(counts)
    topics = st.frozensets(st.sampled_from(sorted(partition_counts)), min_size=1)
    common = draw(topics)
    owners = {
        (topic_id, index): draw(st.integers(0, 6))
        for topic_id, count in partition_counts.items()
        for index in range(draw(st.integers(0, count)))
    }
    subscribers = {}
    for number in range(draw(st.integers(1, 6))):
        held: dict[TopicId, tuple[int, ...]] = {}
        for (topic_id, index), owner in sorted(owners.items()):
            if owner == number:
                held[topic_id] = (*held.get(topic_id, ()), index)
        subscribers[f"m{number}"] = Subscriber(None, common if alike else draw(topics), held)
    used = frozenset[TopicId]().union(*(subscriber.topic_ids for subscriber in subscribers.values()))
    return AssignorInput(subscribers, {topic: count for topic, count in partition_counts.items() if topic in used})


def owned(result: dict[str, Assignment]) -> Counter[tuple[TopicId, int]]:
    return Counter(
        (topic, i) for assignment in result.values() for topic, indexes in assignment.items() for i in indexes
    )


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(given_input=st.one_of(inputs(alike=True), inputs(alike=False)))
def test_each_partition_has_one_subscribed_owner(assignor: str, given_input: AssignorInput) -> None:
    result = ASSIGNORS[assignor](given_input)
    assert result.keys() == given_input.members.keys()
    everything = {(topic, i): 1 for topic, count in given_input.partition_counts.items() for i in range(count)}
    assert owned(result) == everything
    for member_id, assignment in result.items():
        assert assignment.keys() <= given_input.members[member_id].topic_ids
        assert all(indexes and list(indexes) == sorted(indexes) for indexes in assignment.values())


@given(given_input=inputs(alike=True))
def test_uniform_is_balanced_and_sticky(given_input: AssignorInput) -> None:
    result = assign_uniform(given_input)
    sizes = {member_id: sum(map(len, assignment.values())) for member_id, assignment in result.items()}
    assert max(sizes.values()) - min(sizes.values()) <= 1
    for member_id, member in given_input.members.items():
        had = {(topic, i) for topic, indexes in member.target.items() if topic in member.topic_ids for i in indexes}
        has = {(topic, i) for topic, indexes in result[member_id].items() for i in indexes}
        assert had <= has or has <= had, "no member exchanges partitions"
        assert had <= has or len(has) >= min(sizes.values()), "no member loses more than its surplus"


@given(given_input=inputs(alike=False))
def test_no_single_move_improves_the_balance_of_uniform(given_input: AssignorInput) -> None:
    result = assign_uniform(given_input)
    sizes = {member_id: sum(map(len, assignment.values())) for member_id, assignment in result.items()}
    for member_id, assignment in result.items():
        for topic_id in assignment:
            for other, subscriber in given_input.members.items():
                if topic_id in subscriber.topic_ids:
                    assert sizes[member_id] - sizes[other] <= 1


@given(given_input=st.one_of(inputs(alike=True), inputs(alike=False)))
def test_uniform_keeps_its_own_result(given_input: AssignorInput) -> None:
    result = assign_uniform(given_input)
    again = {member_id: member._replace(target=result[member_id]) for member_id, member in given_input.members.items()}
    assert assign_uniform(AssignorInput(again, given_input.partition_counts)) == result
