"""The topics of groups: those that members subscribe to, and those with a durable state.

DescribeShareGroupOffsets names the latter. It is sent for groups that have changed. For groups whose durable state
cannot be read from the state topic it is sent in every poll, and its start offsets and lags count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from shareq.admin.core import Operation, Send
from shareq.model.messages.share_group import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeResponse,
)
from shareq.observer.health.reading import Durable, GroupReading, Reading
from shareq.observer.poll_result import PartitionId

OFFSETS_GROUPS = 20
"""The number of groups in one DescribeShareGroupOffsets."""

Summaries = dict[str, dict[PartitionId, tuple[int, int]]]
"""Group -> share-partition -> (start offset, lag), as its coordinator names them."""


class GroupTopics:
    def __init__(self) -> None:
        self._known: dict[str, set[str]] = {}
        self._subscribed: dict[str, set[str]] = {}
        self._epochs: dict[str, int] = {}

    def of(self, groups: Iterable[str]) -> set[str]:
        """The known topics of these groups."""
        return set().union(*(self._known.get(name, ()) for name in groups))

    def keep(self, groups: Collection[str]) -> None:
        """Forget all other groups."""
        for kept in (self._known, self._subscribed, self._epochs):
            for name in kept.keys() - set(groups):
                del kept[name]

    def forget(self, name: str) -> None:
        """Forget a group that does not exist."""
        self._known.pop(name, None)
        self._epochs.pop(name, None)

    def follow(self, found: ShareGroupDescribeResponse.DescribedGroup, *, refreshing: bool) -> bool:
        """Take a group's description; True if it may have other topics than before. Offsets of a group without members
        can be altered at any time, with no new epoch, and a new group has its epoch before its offsets."""
        name = found.group_id
        self._subscribed[name] = {topic for member in found.members for topic in member.subscribed_topic_names}
        known = self._known.setdefault(name, set())
        known |= self._subscribed[name]
        alterable = not found.members and (refreshing or not known)
        changed = alterable or self._epochs.get(name) != found.group_epoch
        self._epochs[name] = found.group_epoch
        return changed

    def prune(self, name: str, group: GroupReading) -> None:
        """Forget topics that no member subscribes to and that have no durable state: their offsets were deleted."""
        stored = {at[0] for at, durable in group.durable.items() if durable is not None}
        kept = self._subscribed.get(name, set()) | stored
        if not kept >= self._known.get(name, set()):
            self._known[name] &= kept
            group.durable = {at: durable for at, durable in group.durable.items() if at[0] in kept}

    def read(self, reading: Reading, names: Iterable[str], coordinators: Mapping[str, int]) -> Operation[Summaries]:
        """Read the topics of these groups, and the summaries of their durable states.

        A broker reads the states of all their partitions for a response, so a request is for a few groups.
        """
        by_node: dict[int, list[str]] = {}
        for name in names:
            if name in coordinators and name in reading.groups:
                by_node.setdefault(coordinators[name], []).append(name)
        summaries: Summaries = {}
        for begin in range(0, max(map(len, by_node.values()), default=0), OFFSETS_GROUPS):
            parts = {node: those[begin : begin + OFFSETS_GROUPS] for node, those in by_node.items() if those[begin:]}
            replies = yield [Send(node, _request(those)) for node, those in parts.items()]
            for node, reply in zip(parts, replies, strict=True):
                if reply.response is None:  # too slow: the other groups of this broker follow in the next poll
                    reading.unanswered = True
                    for name in by_node.pop(node)[begin:]:
                        self._lose(reading, name, reply.reason or reply.error.name)
                    continue
                for group in reply.response.groups:
                    self._take(reading, group, summaries)
        return summaries

    def _take(self, reading: Reading, group: DescribeShareGroupOffsetsResponse.Group, summaries: Summaries) -> None:
        if group.error_code:
            self._lose(reading, group.group_id, group.error_message or group.error_code.name)
            return
        self._known.setdefault(group.group_id, set()).update(topic.topic_name for topic in group.topics)
        summaries[group.group_id] = {
            (topic.topic_name, p.partition_index): (p.start_offset, p.lag)
            for topic in group.topics
            for p in topic.partitions
            if not p.error_code
        }

    def _lose(self, reading: Reading, name: str, reason: str) -> None:
        """Ask again in the next poll. Until then a group is not readable if none of its topics is known."""
        self._epochs.pop(name, None)
        if not self._known.get(name):
            reading.groups[name].trouble = f"its offsets: {reason}"


def _request(groups: Iterable[str]) -> DescribeShareGroupOffsetsRequest:
    asked = tuple(DescribeShareGroupOffsetsRequest.Group(group_id=name) for name in groups)
    return DescribeShareGroupOffsetsRequest(groups=asked)


def take_summaries(reading: Reading, summaries: Summaries) -> None:
    """Take the coordinators' figures for groups whose durable state was not read. A lag of -1 is unknown."""
    for name, offsets in summaries.items():
        group = reading.groups[name]
        if group.state_read:
            continue
        for at, (start, lag) in offsets.items():
            end = reading.ends.get(at)
            if at in group.durable and end is not None and start >= 0:
                group.durable[at] = Durable(start, max(0, end - start - lag) if lag >= 0 else 0)
