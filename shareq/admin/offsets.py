"""Operations on the offsets of share groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from shareq.admin.broker_routing import BrokerRouting, PartitionKey, failure
from shareq.admin.core import Operation
from shareq.admin.results import AlteredOffset, Done, Lag, Results, ShareGroupOffset
from shareq.admin.topics import list_offsets
from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import Errors, KafkaError
from shareq.model.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from shareq.model.numbers import plain

OffsetSpec = int | str | datetime
"""An offset, "earliest", "latest", or a datetime: the first record with that timestamp or a later one."""

_NAMED = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}


def timestamp_of(spec: OffsetSpec) -> int | None:
    """The timestamp for ListOffsets; None for a plain offset. ValueError or TypeError for anything else."""
    spec = plain(spec)
    if isinstance(spec, bool):
        raise TypeError(f"an offset must be an int, not bool ({spec!r})")
    if isinstance(spec, int):
        return None
    if isinstance(spec, datetime):
        if spec.tzinfo is None:
            raise ValueError(f"{spec!r} has no time zone: use datetime(..., tzinfo=timezone.utc)")
        timestamp = int(spec.timestamp() * 1000)
        if timestamp < 0:
            raise ValueError(f"{spec!r}: must not be before 1970")
        return timestamp
    if isinstance(spec, str) and spec in _NAMED:
        return _NAMED[spec]
    raise ValueError(f"{spec!r} is not an offset: give a number, 'earliest', 'latest' or a datetime")


def list_share_group_offsets(
    routing: BrokerRouting, group_id: str, places: Mapping[str, Sequence[int]] | None
) -> Operation[Lag]:
    """Start offsets and lags; with `places` None, of all partitions of the group."""
    topics = None
    if places is not None:
        topics = tuple(
            DescribeShareGroupOffsetsRequest.Topic(topic_name=topic, partitions=tuple(indexes))
            for topic, indexes in places.items()
        )
    request = DescribeShareGroupOffsetsRequest(
        groups=(DescribeShareGroupOffsetsRequest.Group(group_id=group_id, topics=topics),)
    )

    def result_of(
        response: DescribeShareGroupOffsetsResponse,
    ) -> tuple[Errors, str | None, DescribeShareGroupOffsetsResponse.Group]:
        group = response.groups[0]
        return group.error_code, group.error_message, group

    group = yield from routing.coordinator(group_id, request, result_of)
    return Lag(
        {
            TopicPartition(topic.topic_name, partition.partition_index): _offset(topic.topic_name, partition)
            for topic in group.topics
            for partition in topic.partitions
        }
    )


def _offset(topic: str, found: DescribeShareGroupOffsetsResponse.Partition) -> ShareGroupOffset:
    """The offset with its lag; None for a negative lag, which Java reports as absent, too."""
    started = found.start_offset >= 0
    return ShareGroupOffset(
        topic=topic,
        partition=found.partition_index,
        start_offset=found.start_offset if started else None,
        leader_epoch=found.leader_epoch if started else None,
        lag=found.lag if started and found.lag >= 0 else None,
        error=failure(found.error_code, found.error_message),
    )


def alter_share_group_offsets(
    routing: BrokerRouting, group_id: str, specs: Mapping[tuple[str, int | None], OffsetSpec]
) -> Operation[Results[TopicPartition, AlteredOffset]]:
    """Move start offsets; partition None means the whole topic. A partition without an offset is not moved."""
    wanted = yield from _all_partitions(routing, specs)
    rows, offsets = yield from _resolve(routing, wanted)
    if offsets:
        rows |= yield from _alter(routing, group_id, offsets)
    return Results({TopicPartition(*place): rows[place] for place in sorted(rows)})


def _all_partitions(
    routing: BrokerRouting, specs: Mapping[tuple[str, int | None], OffsetSpec]
) -> Operation[dict[PartitionKey, OffsetSpec]]:
    """Replace whole topics by their partitions; an unknown topic by partition -1, for which an error follows."""
    whole = [topic for topic, index in specs if index is None]
    counts: dict[str, int] = {}
    if whole:
        response = yield from routing.metadata(whole)
        counts = {topic.name: len(topic.partitions) for topic in response.topics if topic.name and not topic.error_code}
    wanted: dict[PartitionKey, OffsetSpec] = {}
    for (topic, index), spec in specs.items():
        indexes: Iterable[int] = (range(counts[topic]) if topic in counts else (-1,)) if index is None else (index,)
        for at in indexes:
            wanted[topic, at] = spec
    return wanted


def _resolve(
    routing: BrokerRouting, wanted: Mapping[PartitionKey, OffsetSpec]
) -> Operation[tuple[dict[PartitionKey, AlteredOffset], dict[PartitionKey, int]]]:
    """Resolve names and times to offsets: (rows of partitions with an error, offset by partition)."""
    timestamps = {place: at for place, spec in wanted.items() if (at := timestamp_of(spec)) is not None}
    offsets = {place: spec for place, spec in wanted.items() if isinstance(spec, int)}
    rows: dict[PartitionKey, AlteredOffset] = {}
    unknown = [place for place in offsets if place[1] < 0]
    for topic, index in unknown:
        del offsets[topic, index]
        error = KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} is unknown")
        rows[topic, index] = AlteredOffset(topic=topic, partition=index, start_offset=None, error=error)
    if not timestamps:
        return rows, offsets
    latest = dict.fromkeys(timestamps, LATEST_TIMESTAMP)
    found = yield from list_offsets(routing, timestamps, 0)
    ends = yield from list_offsets(routing, latest, 0)
    for (topic, index), row in ((place, found[TopicPartition(*place)]) for place in timestamps):
        if row.error is not None:
            rows[topic, index] = AlteredOffset(topic=topic, partition=index, start_offset=None, error=row.error)
        else:  # no record is so recent: the log end, as in Kafka's tool
            end = ends[TopicPartition(topic, index)].offset
            offsets[topic, index] = row.offset if row.offset is not None else end or 0
    return rows, offsets


def _alter(
    routing: BrokerRouting, group_id: str, offsets: Mapping[PartitionKey, int]
) -> Operation[dict[PartitionKey, AlteredOffset]]:
    topics: dict[str, list[AlterShareGroupOffsetsRequest.Partition]] = {}
    for (topic, index), offset in sorted(offsets.items()):
        partition = AlterShareGroupOffsetsRequest.Partition(partition_index=index, start_offset=offset)
        topics.setdefault(topic, []).append(partition)
    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=tuple(
            AlterShareGroupOffsetsRequest.Topic(topic_name=topic, partitions=tuple(partitions))
            for topic, partitions in topics.items()
        ),
    )

    def result_of(
        response: AlterShareGroupOffsetsResponse,
    ) -> tuple[Errors, str | None, AlterShareGroupOffsetsResponse]:
        return response.error_code, response.error_message, response

    response = yield from routing.coordinator(group_id, request, result_of)
    return {
        (topic.topic_name, partition.partition_index): AlteredOffset(
            topic=topic.topic_name,
            partition=partition.partition_index,
            start_offset=None if partition.error_code else offsets[topic.topic_name, partition.partition_index],
            error=failure(partition.error_code, partition.error_message),
        )
        for topic in response.responses
        for partition in topic.partitions
    }


def delete_share_group_offsets(
    routing: BrokerRouting, group_id: str, topics: Sequence[str]
) -> Operation[Results[str, Done]]:
    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id, topics=tuple(DeleteShareGroupOffsetsRequest.Topic(topic_name=topic) for topic in topics)
    )
    response = yield from routing.coordinator(
        group_id, request, lambda answer: (answer.error_code, answer.error_message, answer)
    )
    return Results(
        {
            topic.topic_name: Done(name=topic.topic_name, error=failure(topic.error_code, topic.error_message))
            for topic in response.responses
        }
    )
