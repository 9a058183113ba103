"""Assignors: who is to work on which share-partitions. Pure functions of what is wished and what was before.

`group.share.assignors` names one. "simple" is what Kafka calls so (4.2 and later), "all_to_all" is what the KIP
called so: every member gets everything it subscribes to. Source: KIP-932, "Share group assignment".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from shareq.model.ids import TopicId

Assignment = Mapping[TopicId, tuple[int, ...]]
"""Partitions (ascending) by topic. A topic may stand there with (): the sticky assignor leaves emptied topics."""

EMPTY_ASSIGNMENT: Assignment = {}


class AssignableTopic(NamedTuple):
    """A subscribed topic that exists; only the initialized partitions (ascending) may be assigned."""

    topic_id: TopicId
    partitions: tuple[int, ...]


class AssignorInput(NamedTuple):
    """`members`: the topic names each subscribes to; `targets`: the assignment before, absent for who had none;
    `topics`: by name."""

    members: Mapping[str, frozenset[str]]
    targets: Mapping[str, Assignment]
    topics: Mapping[str, AssignableTopic]


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
