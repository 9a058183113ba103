"""AlterShareGroupOffsets: an empty group gets new start offsets, by initializing its share-partitions anew.

Not a transaction: some partitions may succeed, others not. The group is created where it is absent. The group epoch is
raised, as in the version after Kafka 4.4, so that an initialization that arrives late cannot undo this one: at an equal
state epoch it is ignored. Source: KIP-932; Kafka's GroupCoordinatorService, KAFKA-20910.
"""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.group import GroupType
from shareq.coordinator.group.initialize import StartOffsets, all_initialized, finish, initialize_request
from shareq.coordinator.group.partitions import SharePartitions
from shareq.coordinator.group.records import Metadata, encode
from shareq.coordinator.group.reserved import reserved_for_others
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group.state import ShareGroup
from shareq.coordinator.shard import Outcome
from shareq.model.actor import Answer, Effect
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped
from shareq.model.ids import ZERO_TOPIC_ID, TopicId, TopicIdPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.share_group import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from shareq.model.messages.share_state import InitializeShareGroupStateResponse

Response = AlterShareGroupOffsetsResponse
PartitionErrors = dict[TopicIdPartition, tuple[Errors, str | None]]


def alter_offsets(
    context: Context, request: AlterShareGroupOffsetsRequest, then: Then[Response], now_ms: int
) -> list[Effect]:
    """An error at the top level replaces all results of topics."""
    if context.image.share_version == 0:
        return list(then(_failure(Errors.UNSUPPORTED_VERSION), now_ms))
    if context.partition_count() and not request.group_id:
        return list(then(_failure(Errors.INVALID_GROUP_ID), now_ms))
    alteration = _Alteration(context, request, then)
    if not any(topic.topic_name in context.image.topics for topic in request.topics):
        return list(then(alteration.response({}), now_ms))

    def answer(response: Response | None, now_ms: int) -> Iterable[Effect]:
        return () if response is None else then(response, now_ms)  # None: it follows when the persister has answered

    return context.schedule(request.group_id, alteration.begin, _failure, answer, now_ms)


def _failure(error: Errors) -> Response:
    return Response(error_code=error)


class _Alteration:
    """One request on its way. `starts`: the partitions that exist, with the offsets they are to start from."""

    def __init__(self, context: Context, request: AlterShareGroupOffsetsRequest, then: Then[Response]) -> None:
        self.context, self.request, self.then = context, request, then
        self.image = context.image
        self.starts = _start_offsets(request, self.image)

    def begin(self, shard: GroupShard, now_ms: int) -> Outcome[Response | None]:
        """Record the partitions as initializing; the persister is asked when that is committed."""
        del now_ms
        group_id = self.request.group_id
        group = shard.find(ShareGroup, group_id)
        if group is None and (group_id in shard.groups or reserved_for_others(group_id, GroupType.SHARE, self.image)):
            return Outcome(_failure(Errors.GROUP_ID_NOT_FOUND))
        group = group or ShareGroup(group_id)
        if group.members:
            return Outcome(_failure(Errors.NON_EMPTY_GROUP))
        if not self.starts:
            return Outcome(self.response({}))
        known = group.share_partitions or SharePartitions()
        begun = known.begin({topic: frozenset(partitions) for topic, partitions in self.starts.items()})
        epoch = group.group_epoch + 1
        ask = initialize_request(group_id, epoch, self.starts)

        def after(now_ms: int) -> Iterable[Effect]:
            del now_ms
            bumped = self.context.trace([GroupEpochBumped(group_id, epoch, "offsets altered")])
            return [*bumped, self.context.persist(ask, self.finish)]

        metadata, partitions = Metadata(epoch, group.metadata_hash), begun.to_value(self.image)
        return Outcome(None, [encode(group_id, metadata), encode(group_id, partitions)], after)

    def finish(self, answer: Answer, now_ms: int) -> Iterable[Effect]:
        """Unless all went well nothing of the request becomes initialized: a heartbeat tries again, later."""
        if not isinstance(answer.response, InitializeShareGroupStateResponse):
            return self.then(_failure(answer.error), now_ms)
        errors: PartitionErrors = {
            TopicIdPartition(topic.topic_id, p.partition): (p.error_code, p.error_message)
            for topic in answer.response.results
            for p in topic.partitions
        }
        effects = list(self.then(self.response(errors), now_ms))
        if all_initialized(answer):
            done = {topic: frozenset(partitions) for topic, partitions in self.starts.items()}
            effects += finish(self.context, self.request.group_id, done, now_ms)
        return effects

    def response(self, errors: PartitionErrors) -> Response:
        """Results in the order of the request. What is not in `errors` never got as far as the persister."""
        unknown = (Errors.UNKNOWN_TOPIC_OR_PARTITION, None)
        topics = []
        for topic in self.request.topics:
            known = self.image.topics.get(topic.topic_name)
            topic_id = known.topic_id if known else ZERO_TOPIC_ID
            results = []
            for partition in topic.partitions:
                index = partition.partition_index
                error, message = errors.get(TopicIdPartition(topic_id, index), unknown)
                results.append(Response.Partition(partition_index=index, error_code=error, error_message=message))
            topics.append(Response.Topic(topic_name=topic.topic_name, topic_id=topic_id, partitions=tuple(results)))
        return Response(responses=tuple(topics))


def _start_offsets(request: AlterShareGroupOffsetsRequest, image: ClusterImage) -> StartOffsets:
    """Any number will do for an offset, as in Kafka; the leader makes the best of it."""
    starts: dict[TopicId, dict[int, int]] = {}
    for topic in request.topics:
        known = image.topics.get(topic.topic_name)
        for partition in topic.partitions:
            if known and 0 <= partition.partition_index < len(known.partitions):
                starts.setdefault(known.topic_id, {})[partition.partition_index] = partition.start_offset
    return starts
