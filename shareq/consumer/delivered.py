"""What the application holds: records that polls returned and that nobody has acknowledged and taken yet.

Only the application's own calls touch this, hence `acknowledge` needs neither the actor nor its lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from shareq.client.message import Message
from shareq.consumer.acks import Run, runs_of
from shareq.model.ids import TopicIdPartition
from shareq.model.states import AcknowledgeType

Range = tuple[int, int]
"""Offsets [first, end)."""


class PartitionInHand:
    """One partition's delivered records as ranges, gaps beside them, and the verdicts so far by offset."""

    __slots__ = (
        "_again",
        "_ends",
        "_firsts",
        "_gaps",
        "_messages",
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
        self.renewed: dict[int, Message] = {}
        """Records whose lock was renewed: they may be acknowledged at once, and the next poll hands them out again."""
        self._again: dict[int, Message] = {}
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._gaps: list[Run] = []
        self._messages: list[Sequence[Message]] = []

    @property
    def unacknowledged(self) -> int:
        return self.record_count - len(self.verdicts)

    @property
    def empty(self) -> bool:
        """Whether nothing of the partition is in hand, nor will be handed out again."""
        return not (self.record_count or self._gaps or self.renewed)

    def add(self, ranges: Iterable[Range], gaps: Iterable[Range], messages: Sequence[Message]) -> None:
        """Take in what a poll returned: the records of `ranges`; the client itself answers for the gaps."""
        for first, end in ranges:
            at = bisect_right(self._firsts, first)
            if at and self._ends[at - 1] == first:
                self._ends[at - 1] = end
            else:
                self._firsts.insert(at, first)
                self._ends.insert(at, end)
            self.record_count += end - first
        self._gaps += [Run(first, end, AcknowledgeType.GAP) for first, end in gaps]
        if messages:
            self._messages.append(messages)

    def holds(self, offset: int) -> bool:
        at = bisect_right(self._firsts, offset)
        return at > 0 and offset < self._ends[at - 1]

    def acknowledge(self, offset: int, verdict: int) -> bool:
        """Note a verdict, over an earlier one if there is; False where the record is not in hand."""
        if not self.holds(offset):
            renewed = self.renewed.pop(offset, None)
            if renewed is None:
                return False
            self.add([(offset, offset + 1)], (), (renewed,))
        self.verdicts[offset] = verdict
        return True

    def take_renewed(self) -> list[Message]:
        """Renewed records that were not acknowledged since, in hand again."""
        self._again, self.renewed = self.renewed, {}
        for offset, message in self._again.items():
            self.add([(offset, offset + 1)], (), (message,))
        return list(self._again.values())

    def put_back(self) -> None:
        """Undo `add` and `take_renewed` of a poll that has not returned; a poll begins with nothing in hand."""
        self._firsts, self._ends, self._gaps, self._messages = [], [], [], []
        self.record_count = 0
        self.verdicts = {}
        self.renewed = self._again | self.renewed
        self._again = {}

    def take(self, default: int | None) -> tuple[list[Run], dict[int, Message]]:
        """Take out what has a verdict, and the gaps; with a default verdict everything. Runs ascend.

        Also the messages of the records to renew, which come back when the renewal has succeeded.
        """
        runs = runs_of(self.verdicts)
        renewing = self._to_renew()
        rest = self._without(runs)
        if default is not None:
            runs += [Run(first, end, default) for first, end in rest]
            rest = []
        if self._gaps or default is not None:
            runs = sorted(runs + self._gaps)
            self._gaps = []
        self._firsts = [first for first, _ in rest]
        self._ends = [end for _, end in rest]
        self.record_count = sum(end - first for first, end in rest)
        self.verdicts = {}
        if not rest:
            self._messages = []
        return runs, renewing

    def _without(self, runs: list[Run]) -> list[Range]:
        """The ranges less the runs; both ascend, and each run lies within one range or touches several."""
        if not runs:
            return list(zip(self._firsts, self._ends, strict=True))
        if len(self.verdicts) == self.record_count:
            return []
        rest: list[Range] = []
        at = 0
        for first, end in zip(self._firsts, self._ends, strict=True):
            cursor = first
            while at < len(runs) and runs[at].first < end:
                if runs[at].first > cursor:
                    rest.append((cursor, runs[at].first))
                cursor = min(max(cursor, runs[at].end), end)
                if runs[at].end > end:  # the run goes on in the next range
                    break
                at += 1
            if cursor < end:
                rest.append((cursor, end))
        return rest

    def _to_renew(self) -> dict[int, Message]:
        offsets = {offset for offset, verdict in self.verdicts.items() if verdict == AcknowledgeType.RENEW}
        if not offsets:
            return {}
        found = {message.offset(): message for messages in self._messages for message in messages}
        return {offset: found[offset] for offset in sorted(offsets)}


class InHand:
    """Delivered records by topic name and partition index. Partitions of which nothing is in hand are not kept: what a
    poll costs follows what was delivered, not how many partitions there are.
    """

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], PartitionInHand] = {}

    def __iter__(self) -> Iterator[PartitionInHand]:
        return iter(self._partitions.values())

    def take(self, default: int | None) -> Iterator[tuple[PartitionInHand, list[Run], dict[int, Message]]]:
        """Each partition with what `PartitionInHand.take` took out of it."""
        for at, entry in list(self._partitions.items()):
            yield entry, *entry.take(default)
            if entry.empty:
                del self._partitions[at]

    @property
    def unacknowledged(self) -> int:
        return sum(partition.unacknowledged for partition in self._partitions.values())

    def partition(self, key: TopicIdPartition, topic: str, node: int) -> PartitionInHand:
        """The partition's entry, made where there is none; records of a topic's earlier incarnation are dropped."""
        entry = self._partitions.get((topic, key.partition))
        if entry is None or entry.key != key:
            entry = self._partitions[topic, key.partition] = PartitionInHand(key, topic, node)
        entry.node = node
        return entry

    def find(self, topic: str | None, partition: int | None) -> PartitionInHand | None:
        return self._partitions.get((topic, partition))  # type: ignore[arg-type]    # a place that is none is not found
