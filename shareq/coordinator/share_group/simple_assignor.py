"""The assignor "simple": balanced and sticky, the same result as Kafka's on the same input.

Each partition is shared by S members, each member gets W partitions. Members keep their previous partitions up to these
numbers; the others are distributed in turn. Kafka's result depends on the iteration order of a hash table, so
`hash_order` reproduces that order. Source: Apache Kafka 4.2 and later, SimpleAssignor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

from shareq.coordinator.group.assignment import Assignment
from shareq.coordinator.group.hash_order import LOAD_FACTOR, hash_order, topic_hash
from shareq.coordinator.share_group.assignor import AssignorInput
from shareq.model.ids import TopicId, java_hash

P = TypeVar("P")

_member_hash = lru_cache(maxsize=1 << 14)(java_hash)


def assign_simple(given: AssignorInput) -> dict[str, Assignment]:
    """The balanced sticky assignment.

    With equal subscriptions, sizes differ by at most 1. Each partition gets 1 to S members: as in Kafka, a partition
    may be assigned twice to the last unfilled member, so that it has fewer than S.
    """
    # Kafka does not define the order within a bucket; an order by id is the same on every coordinator.
    members = hash_order(sorted(given.members), _member_hash)
    subscriptions = set(given.members.values())
    if len(subscriptions) > 1:
        return _assign_by_topic(members, given)
    names = next(iter(subscriptions), frozenset())
    return _assign_together(members, names, given)


def _assign_together(members: list[str], names: frozenset[str], given: AssignorInput) -> dict[str, Assignment]:
    """Equal subscriptions: all partitions are distributed at once."""
    topics = [given.topics[name] for name in hash_order(sorted(names), _member_hash) if name in given.topics]
    targets = [(topic.topic_id, index) for topic in topics for index in topic.partitions]
    subscribed = {topic.topic_id for topic in topics}
    old = [
        [(topic, index) for topic, indexes in _old(given, member) if topic in subscribed for index in indexes]
        for member in members
    ]
    sharing = _sharing(len(members), len(targets))
    wanted = _wanted(len(members), sharing, len(targets))
    held = _share_out(old, wanted, sharing, targets, _topic_partition_hash)
    result: dict[str, Assignment] = {}
    for member, partitions in zip(members, held, strict=True):
        by_topic: dict[TopicId, list[int]] = {topic: [] for topic, _ in _old(given, member) if topic in subscribed}
        for topic, index in partitions:
            by_topic.setdefault(topic, []).append(index)
        result[member] = {topic: tuple(sorted(indexes)) for topic, indexes in by_topic.items()}
    return result


def _assign_by_topic(members: list[str], given: AssignorInput) -> dict[str, Assignment]:
    """Different subscriptions: each topic is distributed among its subscribers.

    A topic without subscribers is skipped and stays in the targets; the coordinator does not return it to members.
    """
    result = {member: dict(_old(given, member)) for member in members}
    for name, topic in given.topics.items():
        subscribers = [i for i, member in enumerate(members) if name in given.members[member]]
        if not subscribers:
            continue
        sharing = _sharing(len(subscribers), len(topic.partitions))
        wanted = [0] * len(members)
        shares = _wanted(len(subscribers), sharing, len(topic.partitions))
        for i, share in zip(subscribers, shares, strict=True):
            wanted[i] = share
        old = [result[member].get(topic.topic_id, ()) for member in members]
        held = _share_out(old, wanted, sharing, topic.partitions, _identity)
        for member, partitions in zip(members, held, strict=True):
            if partitions or topic.topic_id in result[member]:
                result[member][topic.topic_id] = tuple(sorted(partitions))
    return dict(result)


def _old(given: AssignorInput, member: str) -> Iterable[tuple[TopicId, tuple[int, ...]]]:
    target = given.targets.get(member)
    return target.items() if target else ()


def _identity(x: int) -> int:
    return x


def _topic_partition_hash(partition: tuple[TopicId, int]) -> int:
    return 31 * topic_hash(partition[0]) + partition[1]


def _sharing(member_count: int, target_count: int) -> int:
    """The number of members that share each partition."""
    return math.ceil(member_count / target_count) if target_count else 0


def _wanted(member_count: int, sharing: int, target_count: int) -> list[int]:
    """The number of partitions of each member, `sharing` times `target_count` in all, with rounding spread evenly."""
    quota = sharing * target_count / member_count if member_count else 0.0
    edges = [math.ceil(quota * i) for i in range(member_count + 1)]
    return [after - before for before, after in pairwise(edges)]


def _share_out(
    old: Sequence[Iterable[P]], wanted: list[int], sharing: int, targets: Sequence[P], hash_of: Callable[[P], int]
) -> list[dict[P, None]]:
    """Change the members' partitions (by member index) to the wanted numbers with the fewest moves."""
    held = [dict.fromkeys(partitions) for partitions in old]
    holders: dict[P, dict[int, None]] = {}
    for member, partitions in enumerate(held):
        for partition in partitions:
            holders.setdefault(partition, {})[member] = None
    most_holders = {partition: len(members) for partition, members in holders.items()}
    unfilled = {member for member, partitions in enumerate(held) if len(partitions) < wanted[member]}

    for member, partitions in enumerate(held):
        surplus = len(partitions) - wanted[member]
        if surplus > 0:
            for partition in hash_order(partitions, hash_of)[:surplus]:
                del partitions[partition], holders[partition][member]

    for partition, members in holders.items():
        surplus = len(members) - sharing
        if surplus > 0:
            for member in hash_order(members, _identity, count=most_holders[partition])[:surplus]:
                del members[member], held[member][partition]
                unfilled.add(member)

    for partition in targets:
        holders.setdefault(partition, {})
    buckets = 1 << (int((len(targets) + 1) / LOAD_FACTOR + 1) - 1).bit_length()
    needs = [
        (partition, holders[partition], sharing - len(holders[partition]))
        for partition in hash_order(holders, hash_of, buckets=buckets, newest_first=True)
    ]
    _deal(needs, sorted(unfilled), held, wanted)
    return held


def _deal(
    needs: list[tuple[P, dict[int, None], int]], ring: list[int], held: list[dict[P, None]], wanted: list[int]
) -> None:
    """Distribute partitions (each with its holders, and the number of missing holders) in turn to unfilled members."""
    at, progress = 0, False
    for partition, before, need in needs:
        while need > 0 and ring:
            if at == len(ring):
                if not progress:
                    break
                at, progress = 0, False
            member = ring[at]
            if member in before:
                at += 1
                continue
            held[member][partition] = None
            need -= 1
            progress = True
            if len(held[member]) >= wanted[member]:
                del ring[at]
            else:
                at += 1
