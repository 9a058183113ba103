"""DescribeShareGroupOffsets: where a group stands in each partition, and how much is left (its lag).

The persister knows the start offset and how many records after it are done with, the partition's leader knows the end.
Lag = high watermark - start offset - delivery complete count (KIP-1226), not clamped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.gather import Task, gather
from shareq.coordinator.group.partitions import SharePartitions
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group.state import ShareGroup
from shareq.coordinator.shard import Outcome
from shareq.model.actor import Answer, Effect
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId, TopicIdPartition
from shareq.model.image import NO_LEADER, ClusterImage
from shareq.model.messages.data import LATEST_TIMESTAMP, ListOffsetsRequest, ListOffsetsResponse
from shareq.model.messages.share_group import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from shareq.model.messages.share_state import ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse

Group = DescribeShareGroupOffsetsResponse.Group
Partition = DescribeShareGroupOffsetsResponse.Partition
Summary = ReadShareGroupStateSummaryResponse.Partition

UNKNOWN = -1
"""A start offset or count that is not known, and the lag that follows from it."""


class EndOffset(NamedTuple):
    error: Errors
    offset: int = UNKNOWN


class AskedTopic(NamedTuple):
    """`topic_id` is the zero id where the name is unknown."""

    name: str
    topic_id: TopicId
    partitions: tuple[int, ...]


Asked = tuple[AskedTopic, ...]
Ends = dict[TopicIdPartition, EndOffset]


def describe_offsets(
    context: Context,
    request: DescribeShareGroupOffsetsRequest,
    then: Then[DescribeShareGroupOffsetsResponse],
    now_ms: int,
) -> list[Effect]:
    """Each group for itself, an error included."""

    def respond(groups: list[Group], now_ms: int) -> Iterable[Effect]:
        return then(DescribeShareGroupOffsetsResponse(groups=tuple(groups)), now_ms)

    return gather([_describe(context, group) for group in request.groups], respond, now_ms)


def _describe(context: Context, group: DescribeShareGroupOffsetsRequest.Group) -> Task[Group]:
    def task(then: Then[Group], now_ms: int) -> Iterable[Effect]:
        return _Description(context, group, then).begin(now_ms)

    return task


class _Description:
    """One group on its way: what is asked for, what the persister knows, where the partitions end."""

    def __init__(self, context: Context, group: DescribeShareGroupOffsetsRequest.Group, then: Then[Group]) -> None:
        self.context, self.group, self.then = context, group, then
        self.asked: Asked = ()
        self.summaries: dict[TopicIdPartition, Summary] = {}

    def begin(self, now_ms: int) -> Iterable[Effect]:
        """All topics of the group, which its coordinator knows, or the given ones, which any broker can describe."""
        if self.context.image.share_version == 0:
            return self._fail(Errors.UNSUPPORTED_VERSION, now_ms)
        if not self.group.group_id:
            return self._fail(Errors.INVALID_GROUP_ID, now_ms)
        if self.group.topics is None:
            return self.context.schedule(self.group.group_id, self._all_topics, _itself, self._summarize, now_ms)
        return self._summarize(tuple(_asked(topic, self.context.image) for topic in self.group.topics), now_ms)

    def _fail(self, error: Errors, now_ms: int) -> Iterable[Effect]:
        return self.then(Group(group_id=self.group.group_id, error_code=error), now_ms)

    def _all_topics(self, shard: GroupShard, now_ms: int) -> Outcome[Asked | Errors]:
        """The initialized partitions of topics that exist; an unknown group has none, and that is no error."""
        del now_ms
        group = shard.find(ShareGroup, self.group.group_id)
        known = (group.share_partitions if group else None) or SharePartitions()
        topics = self.context.image.topics_by_id
        return Outcome(
            tuple(
                AskedTopic(topics[topic_id].name, topic_id, tuple(sorted(partitions)))
                for topic_id, partitions in known.initialized.items()
                if topic_id in topics
            )
        )

    def _summarize(self, asked: Asked | Errors, now_ms: int) -> Iterable[Effect]:
        """Ask the persister about the partitions that exist."""
        if isinstance(asked, Errors):
            return self._fail(asked, now_ms)
        self.asked = asked
        request, exists = ReadShareGroupStateSummaryRequest, self.context.image.partition
        known = [(t.topic_id, [index for index in t.partitions if exists(t.topic_id, index)]) for t in asked]
        topics = tuple(
            request.Topic(topic_id=topic_id, partitions=tuple(request.Partition(partition=i) for i in indexes))
            for topic_id, indexes in known
            if indexes
        )
        if not topics:
            return self._find_ends(now_ms)
        return [self.context.persist(request(group_id=self.group.group_id, topics=topics), self._summarized)]

    def _summarized(self, answer: Answer, now_ms: int) -> Iterable[Effect]:
        if not isinstance(answer.response, ReadShareGroupStateSummaryResponse):
            return self._fail(answer.error, now_ms)
        self.summaries = {
            TopicIdPartition(topic.topic_id, partition.partition): partition
            for topic in answer.response.results
            for partition in topic.partitions
        }
        return self._find_ends(now_ms)

    def _find_ends(self, now_ms: int) -> Iterable[Effect]:
        """Ask each leader once for the ends of the partitions whose lag can be known."""
        by_leader: dict[int, list[TopicIdPartition]] = {}
        for key, summary in self.summaries.items():
            if _countable(summary):
                partition = self.context.image.partition(*key)
                by_leader.setdefault(partition.leader if partition else NO_LEADER, []).append(key)
        homeless = by_leader.pop(NO_LEADER, [])

        def respond(found: list[Ends], now_ms: int) -> Iterable[Effect]:
            ends: Ends = dict.fromkeys(homeless, EndOffset(Errors.LEADER_NOT_AVAILABLE))
            for some in found:
                ends.update(some)
            topics = tuple(_topic(topic, self.summaries, ends) for topic in self.asked)
            return self.then(Group(group_id=self.group.group_id, topics=topics), now_ms)

        return gather([_list_ends(self.context, leader, keys) for leader, keys in by_leader.items()], respond, now_ms)


def _itself(error: Errors) -> Asked | Errors:
    return error


def _asked(topic: DescribeShareGroupOffsetsRequest.Topic, image: ClusterImage) -> AskedTopic:
    known = image.topics.get(topic.topic_name)
    return AskedTopic(topic.topic_name, known.topic_id if known else ZERO_TOPIC_ID, topic.partitions)


def _list_ends(context: Context, leader: int, keys: list[TopicIdPartition]) -> Task[Ends]:
    """High watermarks, whatever the group's isolation level."""
    topic_ids: dict[str, TopicId] = {}
    ask = ListOffsetsRequest
    wanted: dict[str, list[ListOffsetsRequest.Partition]] = {}
    for topic_id, index in keys:
        name = context.image.topics_by_id[topic_id].name
        topic_ids[name] = topic_id
        wanted.setdefault(name, []).append(ask.Partition(partition_index=index, timestamp=LATEST_TIMESTAMP))
    request = ask(topics=tuple(ask.Topic(name=name, partitions=tuple(parts)) for name, parts in wanted.items()))

    def task(then: Then[Ends], now_ms: int) -> Iterable[Effect]:
        del now_ms

        def go_on(answer: Answer, now_ms: int) -> Iterable[Effect]:
            ends = dict.fromkeys(keys, EndOffset(answer.error or Errors.UNKNOWN_SERVER_ERROR))
            if isinstance(answer.response, ListOffsetsResponse):
                for topic in answer.response.topics:
                    for p in topic.partitions:
                        key = TopicIdPartition(topic_ids[topic.name], p.partition_index)
                        ends[key] = EndOffset(p.error_code, p.offset)
            return then(ends, now_ms)

        return [context.call(leader, request, go_on)]

    return task


def _countable(summary: Summary) -> bool:
    """Whether a lag can be computed from what the persister knows."""
    return not summary.error_code and UNKNOWN not in (summary.start_offset, summary.delivery_complete_count)


def _topic(
    asked: AskedTopic, summaries: dict[TopicIdPartition, Summary], ends: Ends
) -> DescribeShareGroupOffsetsResponse.Topic:
    keys = [TopicIdPartition(asked.topic_id, index) for index in asked.partitions]
    return DescribeShareGroupOffsetsResponse.Topic(
        topic_name=asked.name,
        topic_id=asked.topic_id,
        partitions=tuple(_partition(key.partition, summaries.get(key), ends.get(key)) for key in keys),
    )


def _partition(index: int, summary: Summary | None, end: EndOffset | None) -> Partition:
    """An unknown topic and an error of the persister look like an offset that is not known, as in Kafka."""
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
