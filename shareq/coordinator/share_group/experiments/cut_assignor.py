"""The assignor "cut": every member gets an equal piece of the work that waits.

The partitions lie on a line, each as long as its weight. The line is cut into one piece of equal length for each
member, and a member gets the partitions that its piece touches. So members share what is heavy, and a member has
several partitions of what is light. With different subscriptions each topic is a line of its own, cut for the
topic's subscribers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from typing import NamedTuple

from shareq.coordinator.group.assignment import EMPTY_ASSIGNMENT, Assignment
from shareq.coordinator.share_group.assignor import AssignableTopic, AssignorInput
from shareq.model.ids import TopicId, TopicIdPartition


class Piece(NamedTuple):
    """The places on a line of the first and the last partition that a piece touches."""

    first: int
    last: int


class Line(NamedTuple):
    """Partitions side by side, each as long as its weight, and the members that the line is cut for.

    `held`: the places of the partitions that each member has now, ascending. The members stand in the order of these
    places, and those without a partition last, so that a cut moves few partitions.
    """

    partitions: tuple[TopicIdPartition, ...]
    weights: tuple[int, ...]
    members: tuple[str, ...]
    held: tuple[list[int], ...]

    def pieces(self) -> Iterator[Piece]:
        """A piece of equal length for each member, in order. All lengths are multiplied by the number of members, so
        that they are whole numbers."""
        count, ends = len(self.members), list(accumulate(self.weights))
        place, length = 0, ends[-1]
        for end in range(length, count * length + 1, length):
            first = place
            while ends[place] * count < end:
                place += 1
            yield Piece(first, place)
            if ends[place] * count == end:
                place += 1

    def present(self) -> list[Piece] | None:
        """The pieces that the members have now, in order; None if what they have are no pieces of this line."""
        if not all(held and held == list(range(held[0], held[-1] + 1)) for held in self.held):
            return None
        pieces = [Piece(held[0], held[-1]) for held in self.held]
        covered = pieces[0].first == 0 and pieces[-1].last == len(self.partitions) - 1
        touching = all(after.first in (piece.last, piece.last + 1) for piece, after in pairwise(pieces))
        return pieces if covered and touching else None


def assign_cut(given: AssignorInput) -> dict[str, Assignment]:
    """Every member gets the partitions that its pieces touch. A line of P partitions and M members makes at most
    P + M - 1 pairs of a member and a partition."""
    result: dict[str, dict[TopicId, tuple[int, ...]]] = {member: {} for member in given.members}
    for line in _lines(given):
        for member, piece in zip(line.members, line.pieces(), strict=True):
            target = result[member]
            for topic_id, index in line.partitions[piece.first : piece.last + 1]:
                target[topic_id] = (*target.get(topic_id, ()), index)
    return dict(result)


def is_even(given: AssignorInput) -> bool:
    """True if the present targets are pieces, of which none has to weigh more than one and a half times the mean.

    Where members share a partition, each takes from it as it becomes idle: the border between two pieces is where it
    suits both.
    """
    return all(_is_even(line, line.present()) for line in _lines(given))


def _is_even(line: Line, pieces: list[Piece] | None) -> bool:
    """From the first piece to the last, each one takes as much as it may of the partition that it shares with the
    next one."""
    if pieces is None:
        return False
    scale = 2 * len(pieces)
    most = 3 * sum(line.weights)
    rest = [weight * scale for weight in line.weights]
    for piece, after in zip(pieces, [*pieces[1:], None], strict=True):
        shared = after is not None and after.first == piece.last
        alone = sum(rest[piece.first : piece.last + (not shared)])
        if alone > most:
            return False
        if shared:
            rest[piece.last] -= min(rest[piece.last], most - alone)
    return True


def _lines(given: AssignorInput) -> Iterator[Line]:
    """One line of all topics if the subscriptions are equal, else one for each topic that has subscribers."""
    topics = sorted((name, topic) for name, topic in given.topics.items() if topic.partitions)
    subscriptions = set(given.members.values())
    if len(subscriptions) == 1:
        names = next(iter(subscriptions))
        topics_of_all = [topic for name, topic in topics if name in names]
        if topics_of_all:
            yield _line(topics_of_all, list(given.members), given)
        return
    for name, topic in topics:
        subscribers = [member for member, names in given.members.items() if name in names]
        if subscribers:
            yield _line([topic], subscribers, given)


def _line(topics: list[AssignableTopic], members: list[str], given: AssignorInput) -> Line:
    partitions = tuple(TopicIdPartition(topic.topic_id, index) for topic in topics for index in topic.partitions)
    weights = tuple(given.weights.get(partition, 1) for partition in partitions)
    places = {partition: place for place, partition in enumerate(partitions)}
    held = {member: _held(places, given.targets.get(member, EMPTY_ASSIGNMENT)) for member in members}

    def order(member: str) -> tuple[int, int, str]:
        return (held[member][0], held[member][-1], member) if held[member] else (len(partitions), 0, member)

    in_order = tuple(sorted(members, key=order))
    return Line(partitions, weights, in_order, tuple(held[member] for member in in_order))


def _held(places: Mapping[TopicIdPartition, int], target: Assignment) -> list[int]:
    keys = (TopicIdPartition(topic_id, index) for topic_id, indexes in target.items() for index in indexes)
    return sorted(places[key] for key in keys if key in places)
