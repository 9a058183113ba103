"""Reconciliation: one step of a member towards its target assignment.

`reconcile` is a pure function of the member, the target and the partitions that the member reports to own. A partition
is assigned to a member only if no other member owns it, so it has at most one owner at any time. Source: KIP-848,
"Reconciliation"; Kafka's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from shareq.coordinator.consumer_group.member import NOTHING, ConsumerGroupMember, Held, MemberState
from shareq.coordinator.group.assignment import Assignment
from shareq.model.ids import TopicId

Owned = Mapping[TopicId, Collection[int]]
"""The partitions that a member owns, by its heartbeat."""


class Target(NamedTuple):
    """The target assignment of one member. `topic_ids`: the topics that it subscribes to; other topics of the
    assignment do not count."""

    epoch: int
    assignment: Assignment
    topic_ids: Collection[TopicId]

    def wanted(self, topic_id: TopicId) -> Collection[int]:
        return self.assignment.get(topic_id, ()) if topic_id in self.topic_ids else ()


IsOwned = Callable[[TopicId, int], bool]
"""True if any member, this one included, owns the partition."""


def reconcile(
    member: ConsumerGroupMember, target: Target, owned: Owned | None, is_owned: IsOwned, *, resubscribed: bool
) -> ConsumerGroupMember:
    """The member after one step; the same object if there is no step to take.

    `owned`: the partitions that the member reports to own. None: it does not report them, so revocation is not
    confirmed. `resubscribed`: the subscription changed with this heartbeat.
    """
    if member.state is MemberState.STABLE and member.member_epoch == target.epoch:
        return _without_unsubscribed(member, target, owned) if resubscribed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _still_owns(owned, member.revoking):
        return _without_unsubscribed(member, target, owned) if resubscribed else member
    return _next(member, target, owned, is_owned)


def _still_owns(owned: Owned | None, revoking: Held) -> bool:
    if owned is None:
        return True
    return any(not revoking.get(topic_id, {}).keys().isdisjoint(partitions) for topic_id, partitions in owned.items())


def _without_unsubscribed(member: ConsumerGroupMember, target: Target, owned: Owned | None) -> ConsumerGroupMember:
    """Revoke partitions of topics that the member no longer subscribes to, without waiting for a new target."""
    gone = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in target.topic_ids}
    if not gone:
        return member
    kept = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in gone}
    revoking = {
        topic_id: {**member.revoking.get(topic_id, {}), **gone.get(topic_id, {})}
        for topic_id in (*member.revoking, *gone)
    }
    member = member._replace(previous_member_epoch=member.member_epoch, assigned=kept)
    if not _still_owns(owned, revoking):
        return member
    return member._replace(state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)


def _next(member: ConsumerGroupMember, target: Target, owned: Owned | None, is_owned: IsOwned) -> ConsumerGroupMember:
    """Keep assigned partitions of the target and revoke the others; if none is left to revoke, move to the target's
    epoch and assign the target's free partitions."""
    kept: dict[TopicId, dict[int, int]] = {}
    surplus: dict[TopicId, dict[int, int]] = {}
    for topic_id, held in member.assigned.items():
        wanted = target.wanted(topic_id)
        _put(kept, topic_id, {partition: epoch for partition, epoch in held.items() if partition in wanted})
        _put(surplus, topic_id, {partition: epoch for partition, epoch in held.items() if partition not in wanted})
    if surplus and _still_owns(owned, surplus):
        return member._replace(
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            revoking=surplus,
        )
    unreleased = False
    for topic_id in target.assignment:
        for partition in target.wanted(topic_id):
            if partition in kept.get(topic_id, ()):
                continue
            # A partition that this member itself has just revoked is free for it.
            if is_owned(topic_id, partition) and member.assignment_epoch(topic_id, partition) is None:
                unreleased = True
            else:
                kept.setdefault(topic_id, {})[partition] = target.epoch
    return member._replace(
        state=MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE,
        member_epoch=target.epoch,
        previous_member_epoch=member.member_epoch,
        assigned={topic_id: dict(sorted(held.items())) for topic_id, held in kept.items()},
        revoking=NOTHING,
    )


def _put(held: dict[TopicId, dict[int, int]], topic_id: TopicId, partitions: dict[int, int]) -> None:
    if partitions:
        held[topic_id] = partitions
