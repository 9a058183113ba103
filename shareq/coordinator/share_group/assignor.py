"""Assignors: pure functions from subscriptions and the previous assignment to the assignment of share-partitions.

`group.share.assignors` selects one. "simple" is Kafka's SimpleAssignor (4.2 and later). "all_to_all" is that of the
KIP: every member gets every partition of the topics it subscribes to. A group with the experiment `shareq.assignor` may
have another one: `experiments/`. Source: KIP-932, "Share group assignment".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from shareq.coordinator.group.assignment import Assignment
from shareq.model.ids import TopicId, TopicIdPartition

Weights = Mapping[TopicIdPartition, int]
"""The work that waits in a partition, at least 1; a partition that is absent weighs 1."""

NO_WEIGHTS: Weights = MappingProxyType({})


class AssignableTopic(NamedTuple):
    """A subscribed topic that exists; only the initialized partitions (ascending) may be assigned."""

    topic_id: TopicId
    partitions: tuple[int, ...]


class AssignorInput(NamedTuple):
    """`members`: subscribed topic names by member; `targets`: the previous assignment by member, absent for members
    without one; `topics`: by name."""

    members: Mapping[str, frozenset[str]]
    targets: Mapping[str, Assignment]
    topics: Mapping[str, AssignableTopic]
    weights: Weights = NO_WEIGHTS


Assignor = Callable[[AssignorInput], dict[str, Assignment]]
"""The new target of every member. Must not change its input."""


def assign_all(given: AssignorInput) -> dict[str, Assignment]:
    """Every member gets every partition of its topics (the first SimpleAssignor of KIP-932)."""
    by_subscription: dict[frozenset[str], Assignment] = {}
    for names in given.members.values():
        if names not in by_subscription:
            known = [given.topics[name] for name in sorted(names) if name in given.topics]
            by_subscription[names] = {topic.topic_id: topic.partitions for topic in known if topic.partitions}
    return {member: by_subscription[names] for member, names in given.members.items()}
