"""Fetch requests to the backend, outside of fetch sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shareq.model.actor import Answer
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.messages.fetch import FetchRequest, FetchResponse


def fetch_request(
    partitions: Sequence[tuple[TopicIdPartition, int, int]], max_bytes: int, isolation_level: int, *, max_wait_ms: int
) -> FetchRequest:
    """A fetch outside of any session of (partition, offset, max bytes)."""
    topics: dict[TopicId, list[FetchRequest.Partition]] = {}
    for at, offset, limit in partitions:
        wanted = FetchRequest.Partition(partition=at.partition, fetch_offset=offset, partition_max_bytes=limit)
        topics.setdefault(at.topic_id, []).append(wanted)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=tuple(FetchRequest.Topic(topic_id=i, partitions=tuple(found)) for i, found in topics.items()),
    )


def fetched_partitions(answer: Answer) -> dict[TopicIdPartition, FetchResponse.Partition]:
    """The partitions in the answer to a fetch; empty if there is no response."""
    response = answer.response
    topics: Iterable[FetchResponse.Topic] = response.responses if isinstance(response, FetchResponse) else ()
    return {TopicIdPartition(topic.topic_id, p.partition_index): p for topic in topics for p in topic.partitions}
