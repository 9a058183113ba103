"""DescribeShareGroupOffsets: the start offset and the lag of a group in each partition.

The persister has the start offset and the delivery complete count, the partition's leader has the end offset.
Lag = high watermark - start offset - delivery complete count (KIP-1226), not clamped.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.share_group.partitions import SharePartitions
from shareq.coordinator.share_group.state import ShareGroup
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId, TopicIdPartition
from shareq.model.image import NO_LEADER, ClusterImage
from shareq.model.messages.data import LATEST_TIMESTAMP, ListOffsetsRequest, ListOffsetsResponse
from shareq.model.messages.share_group import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from shareq.model.messages.share_state import ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse
from shareq.model.workflow import Send, SendToPersister, Workflow

Group = DescribeShareGroupOffsetsResponse.Group
Partition = DescribeShareGroupOffsetsResponse.Partition
Summary = ReadShareGroupStateSummaryResponse.Partition

UNKNOWN = -1
"""An unknown start offset or count, and the lag computed from it."""


class EndOffset(NamedTuple):
    error: Errors
    offset: int = UNKNOWN


class RequestedTopic(NamedTuple):
    """`topic_id` is the zero id if the name is unknown."""

    name: str
    topic_id: TopicId
    partitions: tuple[int, ...]


RequestedTopics = tuple[RequestedTopic, ...]
Summaries = dict[TopicIdPartition, Summary]
Ends = dict[TopicIdPartition, EndOffset]


def describe_offsets(
    context: Context, request: DescribeShareGroupOffsetsRequest
) -> Workflow[DescribeShareGroupOffsetsResponse]:
    """DescribeShareGroupOffsets: each group separately, with its own error."""
    groups = yield [describe_group(context, group) for group in request.groups]
    return DescribeShareGroupOffsetsResponse(groups=tuple(groups))


def describe_group(context: Context, group: DescribeShareGroupOffsetsRequest.Group) -> Workflow[Group]:
    """Describe the requested topics, which any broker can do, or all topics of the group, from its coordinator's
    state."""
    failure = partial(_failure, group.group_id)
    if context.image.share_version == 0:
        return failure(Errors.UNSUPPORTED_VERSION)
    if not group.group_id:
        return failure(Errors.INVALID_GROUP_ID)
    if group.topics is None:
        shard = yield context.turn(group.group_id, failure)
        requested = _all_topics(shard, group.group_id, context.image)
    else:
        requested = tuple(_requested(topic, context.image) for topic in group.topics)
    summaries: Summaries = {}
    request = _summary_request(group.group_id, requested, context.image)
    if request.topics:
        reply = yield SendToPersister(request)
        if not isinstance(reply.response, ReadShareGroupStateSummaryResponse):
            return failure(reply.error)
        summaries = {
            TopicIdPartition(topic.topic_id, partition.partition): partition
            for topic in reply.response.results
            for partition in topic.partitions
        }
    ends = yield from _find_ends(context, summaries)
    return Group(group_id=group.group_id, topics=tuple(_topic(topic, summaries, ends) for topic in requested))


def _failure(group_id: str, error: Errors) -> Group:
    return Group(group_id=group_id, error_code=error)


def _all_topics(shard: GroupShard, group_id: str, image: ClusterImage) -> RequestedTopics:
    """The initialized partitions of topics that exist; empty for an unknown group, without an error."""
    group = shard.find(ShareGroup, group_id)
    known = (group.share_partitions if group else None) or SharePartitions()
    topics = image.topics_by_id
    return tuple(
        RequestedTopic(topics[topic_id].name, topic_id, tuple(sorted(partitions)))
        for topic_id, partitions in known.initialized.items()
        if topic_id in topics
    )


def _requested(topic: DescribeShareGroupOffsetsRequest.Topic, image: ClusterImage) -> RequestedTopic:
    known = image.topics.get(topic.topic_name)
    return RequestedTopic(topic.topic_name, known.topic_id if known else ZERO_TOPIC_ID, topic.partitions)


def _summary_request(
    group_id: str, requested: RequestedTopics, image: ClusterImage
) -> ReadShareGroupStateSummaryRequest:
    """The request for those partitions that exist."""
    request = ReadShareGroupStateSummaryRequest
    known = [(t.topic_id, [index for index in t.partitions if image.partition(t.topic_id, index)]) for t in requested]
    topics = tuple(
        request.Topic(topic_id=topic_id, partitions=tuple(request.Partition(partition=i) for i in indexes))
        for topic_id, indexes in known
        if indexes
    )
    return request(group_id=group_id, topics=topics)


def _find_ends(context: Context, summaries: Summaries) -> Workflow[Ends]:
    """Send each leader one request for the end offsets of the partitions whose lag can be computed."""
    by_leader: dict[int, list[TopicIdPartition]] = {}
    for key, summary in summaries.items():
        if _countable(summary):
            partition = context.image.partition(*key)
            by_leader.setdefault(partition.leader if partition else NO_LEADER, []).append(key)
    ends: Ends = dict.fromkeys(by_leader.pop(NO_LEADER, ()), EndOffset(Errors.LEADER_NOT_AVAILABLE))
    for found in (yield [_list_ends(context, leader, keys) for leader, keys in by_leader.items()]):
        ends.update(found)
    return ends


def _list_ends(context: Context, leader: int, keys: list[TopicIdPartition]) -> Workflow[Ends]:
    """High watermarks, regardless of the group's isolation level."""
    topic_ids: dict[str, TopicId] = {}
    build = ListOffsetsRequest
    partitions_by_name: dict[str, list[ListOffsetsRequest.Partition]] = {}
    for topic_id, index in keys:
        name = context.image.topics_by_id[topic_id].name
        topic_ids[name] = topic_id
        partitions_by_name.setdefault(name, []).append(
            build.Partition(partition_index=index, timestamp=LATEST_TIMESTAMP)
        )
    request = build(
        topics=tuple(build.Topic(name=name, partitions=tuple(parts)) for name, parts in partitions_by_name.items())
    )
    reply = yield Send(leader, request)
    ends = dict.fromkeys(keys, EndOffset(reply.error or Errors.UNKNOWN_SERVER_ERROR))
    if isinstance(reply.response, ListOffsetsResponse):
        for topic in reply.response.topics:
            for p in topic.partitions:
                ends[TopicIdPartition(topic_ids[topic.name], p.partition_index)] = EndOffset(p.error_code, p.offset)
    return ends


def _countable(summary: Summary) -> bool:
    """True if start offset and delivery complete count are known, so that a lag can be computed."""
    return not summary.error_code and UNKNOWN not in (summary.start_offset, summary.delivery_complete_count)


def _topic(requested: RequestedTopic, summaries: Summaries, ends: Ends) -> DescribeShareGroupOffsetsResponse.Topic:
    keys = [TopicIdPartition(requested.topic_id, index) for index in requested.partitions]
    return DescribeShareGroupOffsetsResponse.Topic(
        topic_name=requested.name,
        topic_id=requested.topic_id,
        partitions=tuple(_partition(key.partition, summaries.get(key), ends.get(key)) for key in keys),
    )


def _partition(index: int, summary: Summary | None, end: EndOffset | None) -> Partition:
    """An unknown topic and an error of the persister are answered as an unknown offset, as in Kafka."""
    if summary is None or summary.error_code:
        return Partition(partition_index=index)
    if end is None:
        return Partition(partition_index=index, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch)
    if end.error:
        return Partition(partition_index=index, start_offset=0, error_code=end.error)
    return Partition(
        partition_index=index,
        start_offset=summary.start_offset,
        leader_epoch=summary.leader_epoch,
        lag=end.offset - summary.start_offset - summary.delivery_complete_count,
    )
