"""The starts and ends of logs, once for all groups: ends in every poll, starts when `refresh` is set."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from shareq.admin.core import Ask, Operation
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

    def read(self, reading: Reading, stable_topics: Collection[str]) -> Operation[bool]:
        """Read the offsets of all partitions with a leader, after the durable states, so that no SPSO is above an end.
        False if an answer shows that the metadata is old."""
        led = _by_leader(list(reading.leaders), reading.leaders)
        rounds = [_Round(led, LATEST_TIMESTAMP, IsolationLevel.READ_UNCOMMITTED, reading.ends)]
        if self.refresh:
            self._starts = {}
        new = [at for at in reading.leaders if at not in self._starts]
        if new:
            led_new = _by_leader(new, reading.leaders)
            rounds.append(_Round(led_new, EARLIEST_TIMESTAMP, IsolationLevel.READ_UNCOMMITTED, self._starts))
        stable = _by_leader([at for at in reading.leaders if at[0] in stable_topics], reading.leaders)
        if stable:
            rounds.append(_Round(stable, LATEST_TIMESTAMP, IsolationLevel.READ_COMMITTED, reading.stable_ends))
        current = True
        for each in rounds:
            current &= yield from _list(each, reading)
        self.refresh = not current
        reading.log_starts = {at: self._starts[at] for at in reading.leaders if at in self._starts}
        return current


def _list(each: _Round, reading: Reading) -> Operation[bool]:
    asked = [
        Ask(node, _with_isolation(list_offsets_request(topics.items(), each.timestamp), each.isolation_level))
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
