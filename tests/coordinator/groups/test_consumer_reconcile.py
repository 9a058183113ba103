"""Reconciliation as a table: member states, targets and reported partitions; and its safety as a property."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.consumer_group.member import ConsumerGroupMember, MemberState
from shareq.coordinator.consumer_group.reconcile import Target, reconcile
from shareq.model.ids import TopicId, topic_id_from_bytes

T1, T2 = (topic_id_from_bytes(bytes([0] * 15 + [number])) for number in (1, 2))
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState


def held(text: str) -> dict[TopicId, dict[int, int]]:
    """Parse `0@3 1@4`: partitions of t1 with their assignment epochs; `2.0@3` is a partition of t2."""
    result: dict[TopicId, dict[int, int]] = {}
    for word in text.split():
        partition, epoch = word.split("@")
        topic, index = (T2, partition[2:]) if partition.startswith("2.") else (T1, partition)
        result.setdefault(topic, {})[int(index)] = int(epoch)
    return result


def member(
    state: MemberState, epoch: int, assigned: str = "", revoking: str = "", previous: int = 1
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        "m", member_epoch=epoch, previous_member_epoch=previous, state=state, assigned=held(assigned),
        revoking=held(revoking),
    )  # fmt: skip


def after(
    before: ConsumerGroupMember, target: str, owned: str | None, others: str, *, epoch: int, resubscribed: bool
) -> ConsumerGroupMember:
    """The member after one step. `target`, `owned` and `others` (owned by other members): partitions of t1 such as
    `0,1`; t2 is not subscribed."""
    reported = None if owned is None else {T1: [int(x) for x in owned.split(",") if x]}
    wanted = tuple(int(x) for x in target.split(",") if x)
    elsewhere = {int(x) for x in others.split(",") if x}

    def is_owned(topic_id: TopicId, partition: int) -> bool:
        return partition in elsewhere or (topic_id, partition) in set(before.owned())

    goal = Target(epoch, {T1: wanted} if wanted else {}, {T1})
    return reconcile(before, goal, reported, is_owned, resubscribed=resubscribed)


STEPS = [
    # title, before, target, owned, owned by others, after
    ("stable, at the target", member(STABLE, 3, "0@3"), "0", None, "", None),
    ("stable, only the target's epoch is new", member(STABLE, 2, "0@2"), "0", None, "",
     member(STABLE, 3, "0@2", previous=2)),
    ("stable, a partition to assign", member(STABLE, 2, "0@2"), "0,1", None, "",
     member(STABLE, 3, "0@2 1@3", previous=2)),
    ("stable, a partition to assign is owned by others", member(STABLE, 2, "0@2"), "0,1,2", None, "1",
     member(UNRELEASED, 3, "0@2 2@3", previous=2)),
    ("stable, all partitions to assign are owned by others", member(STABLE, 2), "0,1", None, "0,1",
     member(UNRELEASED, 3, previous=2)),
    ("stable, a partition to revoke, null reported", member(STABLE, 2, "0@2 1@2"), "0", None, "",
     member(UNREVOKED, 2, "0@2", "1@2", previous=2)),
    ("stable, a partition to revoke, still owned", member(STABLE, 2, "0@2 1@2"), "0", "0,1", "",
     member(UNREVOKED, 2, "0@2", "1@2", previous=2)),
    ("stable, a partition to revoke, not owned any more", member(STABLE, 2, "0@2 1@2"), "0", "0", "",
     member(STABLE, 3, "0@2", previous=2)),
    ("stable, revocation comes before assignment", member(STABLE, 2, "0@2"), "1", "0", "",
     member(UNREVOKED, 2, "", "0@2", previous=2)),
    ("stable, empty target", member(STABLE, 2, "0@2"), "", "", "", member(STABLE, 3, previous=2)),
    ("unrevoked, null reported", member(UNREVOKED, 2, "0@2", "1@2"), "0", None, "", None),
    ("unrevoked, still owned", member(UNREVOKED, 2, "0@2", "1@2"), "0", "0,1", "", None),
    ("unrevoked, part of it still owned", member(UNREVOKED, 2, "", "0@2 1@2"), "", "1", "", None),
    ("unrevoked, not owned any more", member(UNREVOKED, 2, "0@2", "1@2"), "0,2", "0", "",
     member(STABLE, 3, "0@2 2@3", previous=2)),
    ("unrevoked, not owned any more, and assigned again", member(UNREVOKED, 2, "0@2", "1@2"), "0,1", "0", "",
     member(STABLE, 3, "0@2 1@3", previous=2)),
    ("unrevoked, not owned any more, and more to revoke", member(UNREVOKED, 2, "0@2 2@2", "1@2"), "0", "0,2", "",
     member(UNREVOKED, 2, "0@2", "2@2", previous=2)),
    ("unreleased, still owned by others", member(UNRELEASED, 3, "0@2", previous=2), "0,1", None, "1",
     member(UNRELEASED, 3, "0@2", previous=3)),
    ("unreleased, free", member(UNRELEASED, 3, "0@2", previous=2), "0,1", None, "",
     member(STABLE, 3, "0@2 1@3", previous=3)),
    ("unreleased, a newer target revokes a partition", member(UNRELEASED, 2, "0@2"), "1", "0", "1",
     member(UNREVOKED, 2, "", "0@2", previous=2)),
    ("unknown, owning nothing", member(UNKNOWN, 2), "0", "", "", member(STABLE, 3, "0@3", previous=2)),
]  # fmt: skip


@pytest.mark.parametrize(("before", "target", "owned", "others", "expected"), [
    pytest.param(*row[1:], id=row[0]) for row in STEPS
])  # fmt: skip
def test_one_reconciliation_step(
    before: ConsumerGroupMember, target: str, owned: str | None, others: str, expected: ConsumerGroupMember | None
) -> None:
    """BEHAVIOUR.md 19."""
    result = after(before, target, owned, others, epoch=3, resubscribed=False)
    assert result == (before if expected is None else expected)


RESUBSCRIBED = [
    ("stable, all topics subscribed", member(STABLE, 3, "0@3"), None, None),
    ("stable, one topic unsubscribed, still owned", member(STABLE, 3, "0@3 2.0@2"), None,
     member(UNREVOKED, 3, "0@3", "2.0@2", previous=3)),
    ("stable, one topic unsubscribed, not owned any more", member(STABLE, 3, "0@3 2.0@2"), "0",
     member(STABLE, 3, "0@3", previous=3)),
    ("unrevoked, one more topic unsubscribed", member(UNREVOKED, 3, "0@3 2.0@2", "1@3"), "0,1",
     member(UNREVOKED, 3, "0@3", "1@3 2.0@2", previous=3)),
    ("unrevoked, all topics subscribed", member(UNREVOKED, 3, "0@3", "1@3"), "0,1", None),
]  # fmt: skip


@pytest.mark.parametrize(("before", "owned", "expected"), [
    pytest.param(*row[1:], id=row[0]) for row in RESUBSCRIBED
])  # fmt: skip
def test_unsubscribed_topic_is_revoked_at_once(
    before: ConsumerGroupMember, owned: str | None, expected: ConsumerGroupMember | None
) -> None:
    """BEHAVIOUR.md 20."""
    result = after(before, "0,1,2", owned, "", epoch=3, resubscribed=True)
    assert result == (before if expected is None else expected)


partitions = st.sets(st.integers(0, 4))


@given(
    state=st.sampled_from([STABLE, UNREVOKED, UNRELEASED]), epoch=st.integers(1, 3), assigned=partitions,
    revoking=partitions, wanted=partitions, owned=st.none() | partitions, elsewhere=partitions,
)  # fmt: skip
def test_no_partition_has_two_owners_or_is_dropped_before_its_revocation(
    *, state: MemberState, epoch: int, assigned: set[int], revoking: set[int], wanted: set[int],
    owned: set[int] | None, elsewhere: set[int],
) -> None:  # fmt: skip
    """BEHAVIOUR.md 19."""
    revoking = revoking - assigned if state is UNREVOKED else set()
    elsewhere = elsewhere - assigned - revoking
    before = member(state, epoch, " ".join(f"{p}@1" for p in assigned), " ".join(f"{p}@1" for p in revoking))
    reported = None if owned is None else ",".join(map(str, owned))
    text = [",".join(map(str, part)) for part in (wanted, elsewhere)]
    result = after(before, text[0], reported, text[1], epoch=3, resubscribed=False)
    now = {partition for _, partition in result.owned()}
    assert now.isdisjoint(elsewhere)
    gone = {partition for _, partition in before.owned()} - now
    assert not gone or (owned is not None and gone.isdisjoint(owned))
    assert {p for topic in result.assigned.values() for p in topic} <= wanted | assigned
    assert result.member_epoch in (epoch, 3)
    assert result.state is not STABLE or (result.member_epoch == epoch and result == before) or now == wanted
