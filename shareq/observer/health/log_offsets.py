"""The starts and ends of logs, once for all groups.

Ends are read in every poll. Starts are read when `refresh` is set, and in each poll where an SPSO below the end has not
moved since the last one: records that retention deletes no longer wait.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from shareq.admin.core import Operation, Send
from shareq.model.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListOffsetsRequest
from shareq.model.states import IsolationLevel
from shareq.observer.health.reading import Reading
from shareq.observer.poll_result import PartitionId
from shareq.observer.state_topic_reader import list_offsets_request


class _Round(NamedTuple):
    """One ListOffsets to each leader, and the offsets that it fills."""

    led: dict[int, dict[str, list[int]]]
    timestamp: int
    isolation_level: int
    offsets: dict[PartitionId, int]


class LogOffsets:
    def __init__(self) -> None:
        self.refresh = True
        self._starts: dict[PartitionId, int] = {}
        self._last: dict[tuple[str, PartitionId], int] = {}
        """(group, partition) -> SPSO of the last reading, where it was below the end."""

    def read(self, reading: Reading, stable_topics: Collection[str]) -> Operation[bool]:
        """Read the offsets of all partitions with a leader, after the durable states, so that no SPSO is above an end.
        False if an answer shows that the metadata is old."""
        rounds = []
        if self.refresh:
            self._starts = {}
        still = self._still(reading)
        old = [at for at in reading.leaders if at not in self._starts or at in still]
        if old:
            led_old = _by_leader(old, reading.leaders)
            rounds.append(_Round(led_old, EARLIEST_TIMESTAMP, IsolationLevel.READ_UNCOMMITTED, self._starts))
        led = _by_leader(list(reading.leaders), reading.leaders)
        rounds.append(_Round(led, LATEST_TIMESTAMP, IsolationLevel.READ_UNCOMMITTED, reading.ends))
        stable = _by_leader([at for at in reading.leaders if at[0] in stable_topics], reading.leaders)
        if stable:
            rounds.append(_Round(stable, LATEST_TIMESTAMP, IsolationLevel.READ_COMMITTED, reading.stable_ends))
        current = True
        for each in rounds:
            current &= yield from _list(each, reading)
        self.refresh = not current
        reading.log_starts = {at: self._starts[at] for at in reading.leaders if at in self._starts}
        return current

    def keep(self, reading: Reading) -> None:
        """Keep the SPSOs of a complete reading, for the next one."""
        self._last = {
            (name, at): durable.start_offset
            for name, group in reading.groups.items()
            for at, durable in group.durable.items()
            if durable is not None and max(durable.start_offset, self._starts.get(at, 0)) < reading.ends.get(at, -1)
        }

    def _still(self, reading: Reading) -> set[PartitionId]:
        """The share-partitions below the end whose SPSO has not moved, or is not known yet."""
        still = set()
        for (name, at), start in self._last.items():
            durable = reading.groups[name].durable.get(at) if name in reading.groups else None
            if durable is None or durable.start_offset == start:
                still.add(at)
        return still


def _list(each: _Round, reading: Reading) -> Operation[bool]:
    asked = [
        Send(node, _with_isolation(list_offsets_request(topics.items(), each.timestamp), each.isolation_level))
        for node, topics in each.led.items()
    ]
    replies = yield asked
    current = True
    for reply in replies:
        if reply.response is None:
            reading.fail("the offsets of the log", reply)
            current = False
            continue
        for topic in reply.response.topics:
            for p in topic.partitions:
                current &= not p.error_code
                if p.offset >= 0:
                    each.offsets[topic.name, p.partition_index] = p.offset
    return current


def _with_isolation(request: ListOffsetsRequest, level: int) -> ListOffsetsRequest:
    return ListOffsetsRequest(isolation_level=level, topics=request.topics)


def _by_leader(places: list[PartitionId], leaders: dict[PartitionId, int]) -> dict[int, dict[str, list[int]]]:
    led: dict[int, dict[str, list[int]]] = {}
    for topic, index in places:
        if leaders[topic, index] >= 0:
            led.setdefault(leaders[topic, index], {}).setdefault(topic, []).append(index)
    return led
