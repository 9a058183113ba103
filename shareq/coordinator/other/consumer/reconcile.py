"""How a member comes nearer to its target, one heartbeat at a time.

Pure: the member before, the target, and what the member reports to own go in; the member after comes out. A partition
is assigned to a member only when no other member owns it, so it has one owner at any time.
Source: KIP-848, "Reconciliation"; Kafka's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from shareq.coordinator.other.consumer.member import NOTHING, Held, Member, MemberState
from shareq.coordinator.share_group.assignor import Assignment
from shareq.model.ids import TopicId

Owned = Mapping[TopicId, Collection[int]]


class Target(NamedTuple):
    """`topic_ids`: what the member subscribes to; the rest of its target is not for it (any more)."""

    epoch: int
    assignment: Assignment
    topic_ids: Collection[TopicId]

    def wanted(self, topic_id: TopicId) -> Collection[int]:
        return self.assignment.get(topic_id, ()) if topic_id in self.topic_ids else ()


IsOwned = Callable[[TopicId, int], bool]
"""True if any member, this one included, owns the partition."""


def reconcile(member: Member, target: Target, owned: Owned | None, is_owned: IsOwned, *, resubscribed: bool) -> Member:
    """The member after one step; the same object where there is none to take.

    `owned` is None where the member does not report it, which says nothing of what it has given up.
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


def _without_unsubscribed(member: Member, target: Target, owned: Owned | None) -> Member:
    """What the member does not subscribe to any more goes at once, without a new target."""
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


def _next(member: Member, target: Target, owned: Owned | None, is_owned: IsOwned) -> Member:
    """Keep what is assigned and wanted, give up the rest; once that is done, take what is wanted and free."""
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
            # What the member itself has just given up, it may have back.
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
