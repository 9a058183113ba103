"""The server-side assignors of consumer groups, `uniform` and `range`. Each partition gets one member at most.

Both return the result of Kafka's assignors of the same name, except where that depends on the insertion order of
colliding keys in a Java hash table.
Source: KIP-848, "Server-side assignor"; Kafka's UniformAssignor and RangeAssignor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from shareq.coordinator.group.assignment import EMPTY_ASSIGNMENT, Assignment
from shareq.coordinator.group.hash_order import hash_order, topic_hash
from shareq.model.ids import TopicId, java_hash, topic_id_to_bytes

MAX_ROUNDS = 16
"""The limit of balancing rounds over all topics: with overlapping subscriptions balancing need not terminate."""


class Subscriber(NamedTuple):
    """The input of an assignor for one member: `topic_ids` of existing subscribed topics, `target`: its present
    target."""

    instance_id: str | None
    topic_ids: frozenset[TopicId]
    target: Assignment = EMPTY_ASSIGNMENT


class AssignorInput(NamedTuple):
    """The input of an assignor. `partition_counts`: of all topics that at least one member subscribes to."""

    members: Mapping[str, Subscriber]
    partition_counts: Mapping[TopicId, int]


Assignor = Callable[[AssignorInput], dict[str, Assignment]]
"""Returns the new target of each member by member id: partitions ascending, no empty topics. Must not change its
input."""


# ---- range -----------------------------------------------------------------------------------------------------------


def assign_range(given: AssignorInput) -> dict[str, Assignment]:
    """Cut each topic into one range per subscriber; the first ranges are longer by one partition if it does not divide
    evenly.

    Static members come first, in the order of instance ids, so that a static member that rejoins gets the same range.
    Topics with the same subscribers and partition count get the same ranges (co-partitioning).
    """
    members = sorted(given.members, key=lambda member_id: _static_first(member_id, given.members[member_id]))
    subscribers: dict[TopicId, list[str]] = {}
    for member_id in members:
        for topic_id in given.members[member_id].topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    result: dict[str, dict[TopicId, tuple[int, ...]]] = {member_id: {} for member_id in members}
    for topic_id, sharing in subscribers.items():
        quota, extra = divmod(given.partition_counts[topic_id], len(sharing))
        first = 0
        for index, member_id in enumerate(sharing):
            end = first + quota + (index < extra)
            if first < end:
                result[member_id][topic_id] = tuple(range(first, end))
            first = end
    return dict(result)


def _static_first(member_id: str, member: Subscriber) -> tuple[bool, str]:
    return (True, member_id) if member.instance_id is None else (False, member.instance_id)


# ---- uniform ---------------------------------------------------------------------------------------------------------


def assign_uniform(given: AssignorInput) -> dict[str, Assignment]:
    """Balance the number of partitions per member as far as subscriptions allow, moving few partitions."""
    members = hash_order(sorted(given.members), java_hash)
    if len({member.topic_ids for member in given.members.values()}) > 1:
        return _Uniform(members, given).result()
    return _assign_homogeneous(members, given)


def _old(given: AssignorInput, member_id: str) -> Iterator[tuple[TopicId, int]]:
    """The partitions of the member's present target in topics that it still subscribes to."""
    member = given.members[member_id]
    for topic_id in hash_order(list(member.target), topic_hash):
        if topic_id in member.topic_ids:
            for partition in member.target[topic_id]:
                yield topic_id, partition


def _assign_homogeneous(members: list[str], given: AssignorInput) -> dict[str, Assignment]:
    """All members subscribe to the same topics: each keeps its partitions up to its quota; the rest fills up the
    others."""
    topic_ids = hash_order(list(given.partition_counts), topic_hash)
    everything = [(topic_id, index) for topic_id in topic_ids for index in range(given.partition_counts[topic_id])]
    taken = {partition for member_id in members for partition in _old(given, member_id)}
    free = [partition for partition in everything if partition not in taken]
    quota, extras = divmod(len(everything), len(members)) if members else (0, 0)
    held: list[list[tuple[TopicId, int]]] = []
    room: list[int] = []
    for index, member_id in enumerate(members):
        extra = extras > 0
        old = list(_old(given, member_id))
        kept, surplus = old[: quota + extra], old[quota + extra :]
        free += surplus
        # A member that does not fill its extra partition leaves it to a later one, if enough members follow.
        if len(kept) <= quota and extra and len(members) - index > extras:
            extra = False
        extras -= extra
        held.append(kept)
        room.append(quota + extra - len(kept))
    rest = iter(free)
    for kept, count in zip(held, room, strict=True):
        kept += islice(rest, count)
    return {member_id: _by_topic(kept) for member_id, kept in zip(members, held, strict=True)}


def _by_topic(partitions: list[tuple[TopicId, int]]) -> Assignment:
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, partition in partitions:
        by_topic.setdefault(topic_id, []).append(partition)
    return {topic_id: tuple(sorted(indexes)) for topic_id, indexes in by_topic.items()}


class _Uniform:
    """Assigns topics of different subscriptions. Members are numbers. `sizes`: partitions per member; `owners`: the
    member of each partition by topic, -1 for none."""

    def __init__(self, members: list[str], given: AssignorInput) -> None:
        self.members = members
        self.sizes = [0] * len(members)
        self.subscribers: dict[TopicId, list[int]] = {topic_id: [] for topic_id in given.partition_counts}
        self.owners = {topic_id: [-1] * count for topic_id, count in given.partition_counts.items()}
        for number, member_id in enumerate(members):
            for topic_id in given.members[member_id].topic_ids:
                self.subscribers[topic_id].append(number)
            for topic_id, partition in _old(given, member_id):
                self._give(topic_id, partition, number)
        self.topic_ids = sorted((t for t in self.owners if self.subscribers[t]), key=self._topic_order)

    def _topic_order(self, topic_id: TopicId) -> tuple[float, int, bytes]:
        """The sort key of topics: most partitions per subscriber first, then fewest subscribers, then by id."""
        count = len(self.subscribers[topic_id])
        return -len(self.owners[topic_id]) / count, count, _signed(topic_id)

    def _give(self, topic_id: TopicId, partition: int, number: int) -> None:
        owners = self.owners[topic_id]
        if owners[partition] >= 0:
            self.sizes[owners[partition]] -= 1
        owners[partition] = number
        self.sizes[number] += 1

    def result(self) -> dict[str, Assignment]:
        for topic_id in self.topic_ids:
            self._assign_free(topic_id)
        self._balance()
        held: list[dict[TopicId, tuple[int, ...]]] = [{} for _ in self.members]
        for topic_id, owners in self.owners.items():
            for number in sorted(set(owners) - {-1}):
                held[number][topic_id] = tuple(index for index, owner in enumerate(owners) if owner == number)
        return dict(zip(self.members, held, strict=True))

    def _by_size(self, topic_id: TopicId) -> list[int]:
        return sorted(self.subscribers[topic_id], key=lambda number: (self.sizes[number], number))

    def _assign_free(self, topic_id: TopicId) -> None:
        """Give each partition without owner to the subscriber with the fewest partitions."""
        order = self._by_size(topic_id)
        for partition, owner in enumerate(self.owners[topic_id]):
            if owner < 0:
                self._give(topic_id, partition, min(order, key=self.sizes.__getitem__))

    def _balance(self) -> None:
        """Balance topic by topic until a whole round has moved no partition, at most MAX_ROUNDS rounds."""
        shared = [topic_id for topic_id in self.topic_ids if len(self.subscribers[topic_id]) > 1]
        unmoved = 0
        for topic_id in shared * MAX_ROUNDS:
            unmoved = 0 if self._balance_topic(topic_id) else unmoved + 1
            if unmoved == len(shared):
                break

    def _balance_topic(self, topic_id: TopicId) -> bool:
        """Move partitions from the largest to the smallest subscriber while they differ by more than one. True if any
        partition was moved."""
        order = self._by_size(topic_id)
        held: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            held.setdefault(owner, []).append(partition)
        donors = [number for number in reversed(order) if number in held]
        moved = False
        while donors:
            rich = max(donors, key=self.sizes.__getitem__)
            poor = min(order, key=self.sizes.__getitem__)
            if self.sizes[rich] - self.sizes[poor] <= 1:
                break
            self._give(topic_id, held[rich].pop(), poor)
            moved = True
            if not held[rich]:
                donors.remove(rich)
        return moved


def _signed(topic_id: TopicId) -> bytes:
    """A sort key that orders ids as Java's UUIDs: by two signed 64-bit halves."""
    raw = bytearray(topic_id_to_bytes(topic_id))
    raw[0] ^= 0x80
    raw[8] ^= 0x80
    return bytes(raw)


ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
"""By name; the first one is the default."""
