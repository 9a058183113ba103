"""Reads the state topic to its end, by Fetch: only the partitions that can hold the group's keys."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.admin.core import Operation, Send
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.log.batches import CorruptBatch
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.cluster import MetadataResponse
from shareq.model.messages.data import EARLIEST_TIMESTAMP, ListOffsetsRequest
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.observer.poll_result import Incomplete
from shareq.observer.state_log import StateLog

MAX_FETCHES = 64
"""Maximum number of fetches in a poll: a log under load has no end."""


def read_state_topic(
    log: StateLog, result: Incomplete, topic: MetadataResponse.Topic, wanted: Iterable[int]
) -> Operation[set[int]]:
    """Read the wanted partitions from their positions to their ends, each from its leader.

    Returns the partitions that were read to their ends.
    """
    leaders = {p.partition_index: p.leader_id for p in topic.partitions}
    for partition in sorted(p for p in wanted if leaders.get(p, -1) < 0):
        result.trouble = result.trouble or f"{SHARE_STATE_TOPIC}-{partition} has no leader"
    more = {p for p in wanted if leaders.get(p, -1) >= 0}
    yield from _find_log_starts(log, result, leaders, {p for p in more if p not in log.positions})
    more &= log.positions.keys()
    ended: set[int] = set()
    for _ in range(MAX_FETCHES):
        if not more:
            break
        nodes = _by_leader(leaders, more)
        replies = yield [Send(node, _fetch(log, partitions)) for node, partitions in nodes.items()]
        more = set()
        for reply in replies:
            if reply.response is None or reply.response.error_code:
                error = reply.response.error_code if reply.response is not None else Errors.NONE
                result.fail(f"reading {SHARE_STATE_TOPIC}", reply, error)
                continue
            partitions = [p for topic_response in reply.response.responses for p in topic_response.partitions]
            read = {p.partition_index: _add_response(log, result, p) for p in partitions}
            more |= {index for index, at_end in read.items() if at_end is False}
            ended |= {index for index, at_end in read.items() if at_end}
    return ended


def _by_leader(leaders: dict[int, int], partitions: Iterable[int]) -> dict[int, list[int]]:
    led: dict[int, list[int]] = {}
    for partition in sorted(partitions):
        led.setdefault(leaders[partition], []).append(partition)
    return led


def _find_log_starts(log: StateLog, result: Incomplete, leaders: dict[int, int], new: set[int]) -> Operation[None]:
    """Set the positions of new partitions to their log starts: the records before are pruned as redundant."""
    nodes = _by_leader(leaders, new)
    replies = yield [
        Send(node, list_offsets_request([(SHARE_STATE_TOPIC, partitions)], EARLIEST_TIMESTAMP))
        for node, partitions in nodes.items()
    ]
    for reply in replies:
        found = [p for topic in reply.response.topics for p in topic.partitions] if reply.response is not None else []
        for partition in found:
            if partition.error_code:
                result.fail(f"reading {SHARE_STATE_TOPIC}", reply, partition.error_code)
            else:
                log.positions[partition.partition_index] = max(partition.offset, 0)
        if reply.response is None:
            result.fail(f"reading {SHARE_STATE_TOPIC}", reply)


def _fetch(log: StateLog, partitions: Iterable[int]) -> FetchRequest:
    asked = tuple(FetchRequest.Partition(partition=p, fetch_offset=log.positions[p]) for p in partitions)
    return FetchRequest(max_wait_ms=0, topics=(FetchRequest.Topic(topic_id=log.topic_id, partitions=asked),))


def _add_response(log: StateLog, result: Incomplete, response: FetchResponse.Partition) -> bool | None:
    """Add the response of one partition. True at its end, False if it has more records, None if it cannot be read."""
    index, error = response.partition_index, response.error_code
    if error:
        if error is Errors.OFFSET_OUT_OF_RANGE:  # pruned above the position, or truncated: read from the log start
            log.discard(index)
        result.unauthorized |= error is Errors.TOPIC_AUTHORIZATION_FAILED
        result.trouble = result.trouble or f"reading {SHARE_STATE_TOPIC}-{index}: {error.name}"
        return None
    try:
        result.records += log.add(index, response.records, response.high_watermark)
    except (UnreadableRecordError, CorruptBatch) as failure:
        result.trouble = result.trouble or f"reading {SHARE_STATE_TOPIC}-{index}: {failure}"
        return None
    if log.positions[index] >= response.high_watermark:
        return True
    return False if response.records else None


def list_offsets_request(topics: Iterable[tuple[str, Iterable[int]]], timestamp: int) -> ListOffsetsRequest:
    """A request for the offset of one timestamp in several partitions."""
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
