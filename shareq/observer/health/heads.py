"""The timestamps of the records at the SPSOs: the age of the oldest unfinished record.

They are read by Fetch, and only for SPSOs that have moved since. A poll reads at most HEADS_PER_POLL of them, in
responses of limited size; the others follow in the next polls, those that have waited longest first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shareq.admin.core import Operation, Send
from shareq.log.batches import CorruptBatch
from shareq.log.records import stream
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.records import RecordBatch
from shareq.observer.health.partition_judge import OFFSET_RESET
from shareq.observer.health.reading import Durable, GroupReading, Head, Reading
from shareq.observer.poll_result import PartitionId

HEADS_PER_POLL = 64
RESPONSE_BYTES, PARTITION_BYTES = 1 << 20, 64 << 10
"""Limits of a response. A batch above the second one is sent when its partition is the first of a request."""

_LOG_APPEND_TIME = 0x08


class _Wanted(NamedTuple):
    at: PartitionId
    offset: int


class Heads:
    """Keeps the last head of each share-partition, by (topic, partition) and offset."""

    def __init__(self) -> None:
        self._known: dict[_Wanted, int] = {}
        self._waiting: dict[_Wanted, None] = {}
        """Those to be read, the oldest first."""
        self._denied: set[PartitionId] = set()

    def forget_denied(self) -> None:
        """Ask again for the logs that must not be read: permissions may have changed."""
        self._denied.clear()

    def read(self, reading: Reading, ids: Mapping[str, TopicId]) -> Operation[None]:
        """Read heads that are not known yet, and set those of all groups of the reading."""
        wanted = {
            (name, at): _Wanted(at, int(start))
            for name, group in reading.groups.items()
            for at, durable in group.durable.items()
            if (start := _start(group, durable, reading.log_starts.get(at, 0))) < reading.ends.get(at, -1)
        }
        current = dict.fromkeys(wanted.values())
        self._known = {each: ms for each, ms in self._known.items() if each in current}
        readable = {each: None for each in current if each not in self._known and each.at not in self._denied}
        self._waiting = {each: None for each in (*self._waiting, *readable) if each in readable}
        yield from self._fetch(self._choose(reading), reading, ids)
        for (name, at), each in wanted.items():
            if each in self._known:
                reading.groups[name].heads[at] = Head(each.offset, self._known[each])

    def _choose(self, reading: Reading) -> list[_Wanted]:
        """The next ones, each partition once: a Fetch has one offset for a partition."""
        chosen: dict[PartitionId, _Wanted] = {}
        for each in self._waiting:
            if len(chosen) == HEADS_PER_POLL:
                break
            if reading.leaders.get(each.at, -1) >= 0:
                chosen.setdefault(each.at, each)
        return list(chosen.values())

    def _fetch(self, chosen: list[_Wanted], reading: Reading, ids: Mapping[str, TopicId]) -> Operation[None]:
        by_leader: dict[int, list[_Wanted]] = {}
        for each in chosen:
            by_leader.setdefault(reading.leaders[each.at], []).append(each)
        replies = yield [Send(node, _request(those, ids)) for node, those in by_leader.items()]
        names = {topic_id: name for name, topic_id in ids.items()}
        asked = {each.at: each for each in chosen}
        for reply in replies:
            if reply.response is None:
                reading.fail("the timestamps of records", reply)
                continue
            for topic in reply.response.responses:
                for partition in topic.partitions:
                    self._take(asked[names[topic.topic_id], partition.partition_index], partition)

    def _take(self, each: _Wanted, response: FetchResponse.Partition) -> None:
        if response.error_code is Errors.TOPIC_AUTHORIZATION_FAILED:
            self._denied.add(each.at)
            return
        if not response.error_code and not response.records:
            return  # other batches have filled the response: this one comes first in a later one
        self._waiting.pop(each, None)
        timestamp_ms = None if response.error_code else _timestamp_at(response.records, each.offset)
        if timestamp_ms is None:
            self._waiting[each] = None
        else:
            self._known[each] = timestamp_ms


def _start(group: GroupReading, durable: Durable | None, log_start: int) -> float:
    """The offset of the oldest unfinished record, infinite if it is not known."""
    if durable is not None and durable.start_offset >= 0:
        return max(durable.start_offset, log_start)
    return log_start if group.configs.get(OFFSET_RESET) == "earliest" else math.inf


def _request(those: Iterable[_Wanted], ids: Mapping[str, TopicId]) -> FetchRequest:
    by_topic: dict[str, list[FetchRequest.Partition]] = {}
    for (topic, index), offset in those:
        asked = FetchRequest.Partition(partition=index, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES)
        by_topic.setdefault(topic, []).append(asked)
    topics = tuple(FetchRequest.Topic(topic_id=ids[name], partitions=tuple(asked)) for name, asked in by_topic.items())
    return FetchRequest(max_wait_ms=0, max_bytes=RESPONSE_BYTES, topics=topics)


def _timestamp_at(batches: Iterable[RecordBatch], offset: int) -> int | None:
    """The timestamp of the first record at or above the offset, None if it cannot be read."""
    batch = next((b for b in batches if b.last_offset >= offset), None)
    if batch is None:
        return None
    if batch.attributes & _LOG_APPEND_TIME:
        return batch.max_timestamp
    if batch.base_offset >= offset or batch.is_control:
        return batch.base_timestamp
    try:
        return next((record.timestamp for record in stream(batch) if record.offset >= offset), batch.max_timestamp)
    except CorruptBatch:
        return None
