"""AlterShareGroupOffsets: set new start offsets of an empty group by initializing its share-partitions again.

Not a transaction: some partitions may succeed, others not. The group is created where it is absent. The group epoch is
raised, as in the version after Kafka 4.4, so that an initialization that arrives late cannot undo this one: at an equal
state epoch it is ignored. Source: KIP-932; Kafka's GroupCoordinatorService, KAFKA-20910.
"""

from __future__ import annotations

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.group import GroupType
from shareq.coordinator.group.reserved import reserved_for_others
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.runtime.turn import Append
from shareq.coordinator.share_group.attempts import InitializationAttempts
from shareq.coordinator.share_group.initialize import StartOffsets, all_initialized, finish, initialize_request
from shareq.coordinator.share_group.partitions import SharePartitions
from shareq.coordinator.share_group.records import Metadata, encode
from shareq.coordinator.share_group.state import ShareGroup
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped
from shareq.model.ids import ZERO_TOPIC_ID, TopicId, TopicIdPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.share_group import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from shareq.model.messages.share_state import InitializeShareGroupStateResponse
from shareq.model.workflow import SendToPersister, Workflow

Response = AlterShareGroupOffsetsResponse
PartitionErrors = dict[TopicIdPartition, tuple[Errors, str | None]]


def alter_offsets(context: Context, request: AlterShareGroupOffsetsRequest) -> Workflow[Response]:
    """An error at the top level replaces all results of topics. Unless the persister has initialized all partitions of
    the request, none is recorded as initialized: a heartbeat tries again, later."""
    image, group_id = context.image, request.group_id
    if image.share_version == 0:
        return _failure(Errors.UNSUPPORTED_VERSION)
    if context.partition_count() and not group_id:
        return _failure(Errors.INVALID_GROUP_ID)
    if not any(topic.topic_name in image.topics for topic in request.topics):
        return _response(request, image, {})
    starts = _start_offsets(request, image)
    shard = yield context.turn(group_id, _failure)
    group = shard.find(ShareGroup, group_id)
    error = _refuse(shard, group, group_id, image)
    if error:
        return _failure(error)
    if not starts:
        return _response(request, image, {})
    group = group or ShareGroup(group_id)
    altered = {topic: frozenset(partitions) for topic, partitions in starts.items()}
    begun = (group.share_partitions or SharePartitions()).begin(altered)
    epoch = group.group_epoch + 1
    metadata, partitions = Metadata(epoch, group.metadata_hash), begun.to_value(image)
    error = yield Append([encode(group_id, metadata), encode(group_id, partitions)])
    if error:
        return _failure(error)
    context.trace(GroupEpochBumped(group_id, epoch, "offsets altered"))
    context.own(InitializationAttempts).begin(group_id, altered, epoch)
    reply = yield SendToPersister(initialize_request(group_id, epoch, starts))
    newest = context.own(InitializationAttempts).end(group_id, altered, epoch)
    if newest and all_initialized(reply):
        context.runtime.start(finish(context, group_id, newest))
    if not isinstance(reply.response, InitializeShareGroupStateResponse):
        return _failure(reply.error)
    errors: PartitionErrors = {
        TopicIdPartition(topic.topic_id, p.partition): (p.error_code, p.error_message)
        for topic in reply.response.results
        for p in topic.partitions
    }
    return _response(request, image, errors)


def _failure(error: Errors) -> Response:
    return Response(error_code=error)


def _refuse(shard: GroupShard, group: ShareGroup | None, group_id: str, image: ClusterImage) -> Errors:
    """The error of the request, if any. The group may be absent; the id of a group of another type is refused."""
    if group is None and (group_id in shard.groups or reserved_for_others(group_id, GroupType.SHARE, image)):
        return Errors.GROUP_ID_NOT_FOUND
    return Errors.NON_EMPTY_GROUP if group and group.members else Errors.NONE


def _response(request: AlterShareGroupOffsetsRequest, image: ClusterImage, errors: PartitionErrors) -> Response:
    """Results in the order of the request. What is not in `errors` was not sent to the persister."""
    unknown = (Errors.UNKNOWN_TOPIC_OR_PARTITION, None)
    topics = []
    for topic in request.topics:
        known = image.topics.get(topic.topic_name)
        topic_id = known.topic_id if known else ZERO_TOPIC_ID
        results = []
        for partition in topic.partitions:
            index = partition.partition_index
            error, message = errors.get(TopicIdPartition(topic_id, index), unknown)
            results.append(Response.Partition(partition_index=index, error_code=error, error_message=message))
        topics.append(Response.Topic(topic_name=topic.topic_name, topic_id=topic_id, partitions=tuple(results)))
    return Response(responses=tuple(topics))


def _start_offsets(request: AlterShareGroupOffsetsRequest, image: ClusterImage) -> StartOffsets:
    """The offsets of the request. They are not checked, as in Kafka; the leader corrects an offset outside of the
    log."""
    starts: dict[TopicId, dict[int, int]] = {}
    for topic in request.topics:
        known = image.topics.get(topic.topic_name)
        for partition in topic.partitions:
            if known and 0 <= partition.partition_index < len(known.partitions):
                starts.setdefault(known.topic_id, {})[partition.partition_index] = partition.start_offset
    return starts
