"""The records held by the application: returned by a poll, without a sent acknowledgement.

There is one entry per offset. A broker may acquire a record for this consumer again while the application holds it: its
lock has expired while a fetch waited. Then the new acquisition replaces the old one:

| The record is                                   | The new acquisition                                                |
|-------------------------------------------------|--------------------------------------------------------------------|
| returned by a poll, acknowledged or not         | leaves the buffer; the acknowledgement applies to the new lock     |
| renewed, and not returned by a poll since       | is returned by the next poll, in place of the renewed copy         |
| acknowledged, and the request waits to be sent  | is not buffered; the acknowledgement applies to its lock           |
| to be renewed, and the request waits to be sent | is returned as any record; the renewal returns no second copy      |
| buffered, or renewed, of a former leader        | is the only one: the old locks ended with the old leader           |
| in a request in progress                        | is later: a broker answers the requests of a session one by one    |

This module handles the first two cases, in calls of the application; `buffer_filler` the others, when a response
arrives. Only calls of the application use this module, so `acknowledge` needs neither the actor nor its lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from shareq.client.message import Message
from shareq.consumer.acknowledgements import AcknowledgeRun, OffsetRange, runs_of, subtract_ranges, with_delays
from shareq.model.ids import TopicIdPartition
from shareq.model.states import AcknowledgeType

V = TypeVar("V")


class UnacknowledgedPartition:
    """The delivered records of one partition as ranges, the gaps, and the acknowledge types so far by offset."""

    __slots__ = (
        "_ends",
        "_firsts",
        "_gaps",
        "_handed_out_again",
        "_messages",
        "delays",
        "key",
        "node",
        "record_count",
        "renewed",
        "topic",
        "verdicts",
    )

    def __init__(self, key: TopicIdPartition, topic: str, node: int) -> None:
        self.key = key
        self.topic = topic
        self.node = node
        self.record_count = 0
        self.verdicts: dict[int, int] = {}
        self.delays: dict[int, int] = {}
        """The rests (ms) that the application has requested for released records."""
        self.renewed: dict[int, Message] = {}
        """Records with a renewed lock: they may be acknowledged at once, and the next poll returns them again."""
        self._handed_out_again: dict[int, Message] = {}
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._gaps: list[AcknowledgeRun] = []
        self._messages: list[Sequence[Message]] = []

    @property
    def unacknowledged(self) -> int:
        return self.record_count - len(self.verdicts)

    @property
    def empty(self) -> bool:
        """True if no record is held, no gap is left and no renewed record is to be returned again."""
        return not (self.record_count or self._gaps or self.renewed)

    @property
    def ranges(self) -> list[OffsetRange]:
        """The held offsets, ascending."""
        return list(zip(self._firsts, self._ends, strict=True))

    def add(self, ranges: Iterable[OffsetRange], gaps: Iterable[OffsetRange], messages: Sequence[Message]) -> None:
        """Add the records in `ranges` that a poll returned, and the gaps, which the client itself acknowledges.

        A record that is already held or renewed is replaced; the acknowledge type of the older copy is dropped.
        """
        for first, end in ranges:
            at = bisect_right(self._firsts, first)
            if self.renewed:
                drop_within(self.renewed, first, end)
            if (at and self._ends[at - 1] > first) or (at < len(self._firsts) and self._firsts[at] < end):
                drop_within(self.verdicts, first, end)
                drop_within(self.delays, first, end)
                self._hold(subtract_ranges(self.ranges, [(first, end)]))
                at = bisect_right(self._firsts, first)
            if at and self._ends[at - 1] == first:
                self._ends[at - 1] = end
            else:
                self._firsts.insert(at, first)
                self._ends.insert(at, end)
            self.record_count += end - first
        for first, end in gaps:
            drop_within(self.renewed, first, end)
            self._gaps.append(AcknowledgeRun(first, end, AcknowledgeType.GAP))
        if messages:
            self._messages.append(messages)

    def replace(self, messages: Sequence[Message]) -> None:
        """Held records were acquired again: keep their acknowledge types; a renewal returns the newer copies."""
        self._messages.append(messages)

    def hand_out_renewed(self) -> list[Message]:
        """The renewed records. They are held again."""
        self._handed_out_again, self.renewed = self.renewed, {}
        for offset, message in self._handed_out_again.items():
            self.add([(offset, offset + 1)], (), (message,))
        return list(self._handed_out_again.values())

    def holds(self, offset: int) -> bool:
        at = bisect_right(self._firsts, offset)
        return at > 0 and offset < self._ends[at - 1]

    def acknowledge(self, offset: int, verdict: int) -> bool:
        """Set an acknowledge type, possibly again; False if the record is not held."""
        if not self.holds(offset):
            renewed = self.renewed.pop(offset, None)
            if renewed is None:
                return False
            self.add([(offset, offset + 1)], (), (renewed,))
        self.verdicts[offset] = verdict
        return True

    def hand_over(self, offsets: Collection[int]) -> None:
        """Drop held or renewed records: a producer acknowledges them."""
        for offset in offsets:
            self.verdicts.pop(offset, None)
            self.delays.pop(offset, None)
            self.renewed.pop(offset, None)
        self._hold(subtract_ranges(self.ranges, [(offset, offset + 1) for offset in sorted(offsets)]))
        if not self.record_count:
            self._messages = []

    def put_back(self) -> None:
        """Undo `add` and `hand_out_renewed` of an interrupted poll. No record was held when it began."""
        self._firsts, self._ends, self._gaps, self._messages = [], [], [], []
        self.record_count = 0
        self.verdicts = {}
        self.delays = {}
        self.renewed = self._handed_out_again | self.renewed
        self._handed_out_again = {}

    def take(self, default: int | None) -> tuple[list[AcknowledgeRun], dict[int, Message]]:
        """Remove and return the runs with an acknowledge type and the gaps, ascending; with a default type, all
        records.

        Also returns the messages to renew, which are held again when the renewal has succeeded.
        """
        runs = runs_of(self.verdicts)
        if self.delays:
            runs, self.delays = with_delays(runs, self.delays), {}
        renewing = self._to_renew()
        rest = [] if len(self.verdicts) == self.record_count else subtract_ranges(self.ranges, runs)
        if default is not None:
            runs += [AcknowledgeRun(first, end, default) for first, end in rest]
            rest = []
        if self._gaps or default is not None:
            runs = sorted(runs + self._gaps)
            self._gaps = []
        self._hold(rest)
        self.verdicts = {}
        if not rest:
            self._messages = []
        return runs, renewing

    def _hold(self, ranges: list[OffsetRange]) -> None:
        self._firsts = [first for first, _ in ranges]
        self._ends = [end for _, end in ranges]
        self.record_count = sum(end - first for first, end in ranges)

    def _to_renew(self) -> dict[int, Message]:
        offsets = {offset for offset, verdict in self.verdicts.items() if verdict == AcknowledgeType.RENEW}
        if not offsets:
            return {}
        found = {message.offset(): message for messages in self._messages for message in messages}
        return {offset: found[offset] for offset in sorted(offsets)}


def drop_within(by_offset: dict[int, V], first: int, end: int) -> None:
    """Remove the keys in [first, end). The cost follows the smaller of the two."""
    offsets = range(first, end)
    for offset in offsets if len(offsets) < len(by_offset) else [offset for offset in by_offset if offset in offsets]:
        by_offset.pop(offset, None)


class UnacknowledgedRecords:
    """Delivered records by topic name and partition index. Partitions without held records are removed: the cost of a
    poll follows the delivered records, not the number of partitions."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], UnacknowledgedPartition] = {}

    def __bool__(self) -> bool:
        return bool(self._partitions)

    def __iter__(self) -> Iterator[UnacknowledgedPartition]:
        return iter(self._partitions.values())

    def take(
        self, default: int | None
    ) -> Iterator[tuple[UnacknowledgedPartition, list[AcknowledgeRun], dict[int, Message]]]:
        """Each partition with the result of `UnacknowledgedPartition.take`."""
        for at, entry in list(self._partitions.items()):
            yield entry, *entry.take(default)
            if entry.empty:
                del self._partitions[at]

    def hand_over(self, topic: str, partition: int, offsets: Collection[int]) -> None:
        """Drop records of a partition, all of which are held or renewed."""
        entry = self._partitions[topic, partition]
        entry.hand_over(offsets)
        if entry.empty:
            del self._partitions[topic, partition]

    @property
    def unacknowledged(self) -> int:
        return sum(partition.unacknowledged for partition in self._partitions.values())

    def partition(self, key: TopicIdPartition, topic: str, node: int) -> UnacknowledgedPartition:
        """The entry of the partition, created if missing. Records of a former leader, or of a deleted topic with this
        name, are dropped: their locks are void, and acknowledging them would fail the acknowledgements of others."""
        entry = self._partitions.get((topic, key.partition))
        if entry is None or entry.key != key or entry.node != node:
            entry = self._partitions[topic, key.partition] = UnacknowledgedPartition(key, topic, node)
        return entry

    def renew(self, key: TopicIdPartition, topic: str, node: int, messages: dict[int, Message]) -> None:
        """Keep renewed records until they are acknowledged or returned again. A newer copy that is held is not
        replaced."""
        entry = self._partitions.get((topic, key.partition))
        if entry is None or (entry.key, entry.node) == (key, node):
            entry = self.partition(key, topic, node)
            entry.renewed |= {offset: message for offset, message in messages.items() if not entry.holds(offset)}

    def find(self, topic: str | None, partition: int | None) -> UnacknowledgedPartition | None:
        return self._partitions.get((topic, partition))  # type: ignore[arg-type]    # a position without a partition is not found
