"""A member of a consumer group: its subscription, and the progress of its reconciliation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from shareq.model.ids import TopicId

LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2

Held = Mapping[TopicId, Mapping[int, int]]
"""Partitions by topic, each with the member epoch at which it was assigned. No empty topics."""

NOTHING: Held = {}


class MemberState(IntEnum):
    """The progress of a member's reconciliation; the values are those of the records.

    STABLE: the member has its target assignment. UNREVOKED_PARTITIONS: it has to revoke partitions, and keeps its epoch
    until it reports that it did. UNRELEASED_PARTITIONS: it is in the target's epoch, but other members still own some
    of its partitions.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class ConsumerGroupMember(NamedTuple):
    """One member. `previous_member_epoch` is accepted after a lost response. `revoking`: partitions that the member has
    to revoke; it owns them until it reports that it does not."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Held = NOTHING
    revoking: Held = NOTHING

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def owned(self) -> Iterator[tuple[TopicId, int]]:
        """All partitions that the member owns: assigned ones and those that it has not revoked yet."""
        for held in (self.assigned, self.revoking):
            for topic_id, partitions in held.items():
                for partition in partitions:
                    yield topic_id, partition

    def assignment_epoch(self, topic_id: TopicId, partition: int) -> int | None:
        """The member epoch at which the partition was assigned; None if the member does not own it."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if epoch is None else epoch
