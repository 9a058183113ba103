"""Reading the state topic to its end, by Fetch: only the partitions that can hold the group's keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shareq.admin.core import Ask, Operation
from shareq.coordinator.shard import UnreadableRecordError
from shareq.log.batches import CorruptBatch
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.cluster import MetadataResponse
from shareq.model.messages.data import EARLIEST_TIMESTAMP, ListOffsetsRequest
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.observer.state_log import StateLog

if TYPE_CHECKING:
    from shareq.observer.looking import Look

MAX_FETCHES = 64
"""How often a look asks for more before it shows what it has: a busy log has no end."""


def read_state(log: StateLog, look: Look, topic: MetadataResponse.Topic, wanted: Iterable[int]) -> Operation[None]:
    """Read on in the wanted partitions until their ends, each from its leader."""
    leaders = {p.partition_index: p.leader_id for p in topic.partitions}
    for partition in sorted(p for p in wanted if leaders.get(p, -1) < 0):
        look.trouble = look.trouble or f"{SHARE_STATE_TOPIC}-{partition} has no leader"
    more = {p for p in wanted if leaders.get(p, -1) >= 0}
    yield from _find_beginnings(log, look, leaders, {p for p in more if p not in log.positions})
    more &= log.positions.keys()
    for _ in range(MAX_FETCHES):
        if not more:
            return
        nodes = _by_leader(leaders, more)
        replies = yield [Ask(node, _fetch(log, partitions)) for node, partitions in nodes.items()]
        more = set()
        for reply in replies:
            if reply.response is None or reply.response.error_code:
                error = reply.response.error_code if reply.response is not None else Errors.NONE
                look.fail(f"reading {SHARE_STATE_TOPIC}", reply, error)
                continue
            partitions = [p for answer in reply.response.responses for p in answer.partitions]
            more |= {p.partition_index for p in partitions if _take_in(log, look, p)}


def _by_leader(leaders: dict[int, int], partitions: Iterable[int]) -> dict[int, list[int]]:
    led: dict[int, list[int]] = {}
    for partition in sorted(partitions):
        led.setdefault(leaders[partition], []).append(partition)
    return led


def _find_beginnings(log: StateLog, look: Look, leaders: dict[int, int], new: set[int]) -> Operation[None]:
    """Where partitions start that have not been read yet: what lies before has been pruned, as redundant."""
    nodes = _by_leader(leaders, new)
    replies = yield [
        Ask(node, list_offsets([(SHARE_STATE_TOPIC, partitions)], EARLIEST_TIMESTAMP))
        for node, partitions in nodes.items()
    ]
    for reply in replies:
        found = [p for topic in reply.response.topics for p in topic.partitions] if reply.response is not None else []
        for partition in found:
            if partition.error_code:
                look.fail(f"reading {SHARE_STATE_TOPIC}", reply, partition.error_code)
            else:
                log.positions[partition.partition_index] = max(partition.offset, 0)
        if reply.response is None:
            look.fail(f"reading {SHARE_STATE_TOPIC}", reply)


def _fetch(log: StateLog, partitions: Iterable[int]) -> FetchRequest:
    asked = tuple(FetchRequest.Partition(partition=p, fetch_offset=log.positions[p]) for p in partitions)
    return FetchRequest(max_wait_ms=0, topics=(FetchRequest.Topic(topic_id=log.topic_id, partitions=asked),))


def _take_in(log: StateLog, look: Look, answer: FetchResponse.Partition) -> bool:
    """Take in what one partition answered; whether it has more."""
    index, error = answer.partition_index, answer.error_code
    if error:
        if error is Errors.OFFSET_OUT_OF_RANGE:  # pruned beyond us, or cut off: begin anew
            log.forget(index)
        look.trouble = look.trouble or f"reading {SHARE_STATE_TOPIC}-{index}: {error.name}"
        return False
    try:
        look.records += log.take_in(index, answer.records, answer.high_watermark)
    except (UnreadableRecordError, CorruptBatch) as failure:
        look.trouble = look.trouble or f"reading {SHARE_STATE_TOPIC}-{index}: {failure}"
        return False
    return bool(answer.records) and log.positions[index] < answer.high_watermark


def list_offsets(topics: Iterable[tuple[str, Iterable[int]]], timestamp: int) -> ListOffsetsRequest:
    """Ask for the offset of one timestamp in several partitions."""
    return ListOffsetsRequest(
        topics=tuple(
            ListOffsetsRequest.Topic(
                name=name,
                partitions=tuple(
                    ListOffsetsRequest.Partition(partition_index=index, timestamp=timestamp) for index in indexes
                ),
            )
            for name, indexes in topics
        )
    )
