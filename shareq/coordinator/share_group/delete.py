"""Deleting a group's offsets of some topics in two phases: recorded as deleting, deleted at the persister, then
recorded as deleted. A topic that fails stays deleting, and the next request retries it. The deletion of a group
is similar. Source: KIP-932, "Deleting share groups"; Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shareq.coordinator.group.context import Context
from shareq.coordinator.runtime.turn import Append
from shareq.coordinator.share_group.partitions import PartitionSets, union
from shareq.coordinator.share_group.records import encode
from shareq.coordinator.share_group.state import ShareGroup
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.share_group import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse
from shareq.model.messages.share_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from shareq.model.workflow import Reply, SendToPersister, Workflow

OffsetsResponse = DeleteShareGroupOffsetsResponse
Verdicts = Mapping[TopicId, tuple[Errors, str | None]]
"""The persister's result for each topic: its first error, or none."""


def delete_request(group_id: str, partitions: PartitionSets) -> DeleteShareGroupStateRequest:
    """The request to the persister."""
    request = DeleteShareGroupStateRequest
    return request(
        group_id=group_id,
        topics=tuple(
            request.Topic(
                topic_id=topic_id, partitions=tuple(request.Partition(partition=index) for index in sorted(indexes))
            )
            for topic_id, indexes in partitions.items()
        ),
    )


def verdicts_of(response: DeleteShareGroupStateResponse) -> Verdicts:
    verdicts: dict[TopicId, tuple[Errors, str | None]] = {}
    for topic in response.results:
        failed = ((p.error_code, p.error_message) for p in topic.partitions if p.error_code)
        verdicts[topic.topic_id] = next(failed, (Errors.NONE, None))
    return verdicts


def all_partitions(topics: Iterable[TopicId], image: ClusterImage) -> PartitionSets:
    """All partitions of those topics that exist: deleting topics are recorded without their partitions."""
    known = ((topic, image.topics_by_id.get(topic)) for topic in sorted(topics))
    return {topic: frozenset(range(len(there.partitions))) for topic, there in known if there}


# ---- offsets of some topics ------------------------------------------------------------------------------------------


def delete_offsets(context: Context, request: DeleteShareGroupOffsetsRequest) -> Workflow[OffsetsResponse]:
    """An error at the top level replaces all results of topics. As in Kafka, a record is written even if there is
    nothing to delete."""
    image, group_id = context.image, request.group_id
    error = _refuse_request(context, group_id)
    if error:
        return _offsets_failure(error)
    shard = yield context.turn(group_id, _offsets_failure)
    group = shard.find(ShareGroup, group_id)
    if group is None:
        return _offsets_failure(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if group.members:
        return _offsets_failure(Errors.NON_EMPTY_GROUP)
    known = group.share_partitions
    if known is None:
        return OffsetsResponse()
    requested = {
        image.topics[topic.topic_name].topic_id for topic in request.topics if topic.topic_name in image.topics
    }
    initialized = {topic: parts for topic, parts in known.initialized.items() if topic in requested}
    going = union(all_partitions(requested & known.deleting, image), initialized)
    error = yield Append([encode(group_id, known.begin_delete(initialized).to_value(image))])
    if error:
        return _offsets_failure(error)
    if not going:
        return _offsets_response(request, image, {})
    reply = yield SendToPersister(delete_request(group_id, going))
    if not isinstance(reply.response, DeleteShareGroupStateResponse):
        return _offsets_failure(reply.error)
    verdicts = verdicts_of(reply.response)
    gone = frozenset(topic for topic, (error, _) in verdicts.items() if not error)
    error = yield from _record_deleted(context, group_id, gone)
    return _offsets_failure(error) if error else _offsets_response(request, image, verdicts)


def _refuse_request(context: Context, group_id: str) -> Errors:
    if context.image.share_version == 0:
        return Errors.UNSUPPORTED_VERSION
    return Errors.INVALID_GROUP_ID if context.partition_count() and not group_id else Errors.NONE


def _record_deleted(context: Context, group_id: str, gone: frozenset[TopicId]) -> Workflow[Errors]:
    """Record that the persister has deleted these topics."""
    shard = yield context.turn(group_id, _offsets_failure)
    group = shard.find(ShareGroup, group_id)
    known = group.share_partitions if group else None
    if known is None or not gone & known.deleting:
        return Errors.NONE
    error: Errors = yield Append([encode(group_id, known.finish_delete(gone).to_value(context.image))])
    return error


def _offsets_failure(error: Errors, message: str | None = None) -> OffsetsResponse:
    return OffsetsResponse(error_code=error, error_message=message)


def _offsets_response(
    request: DeleteShareGroupOffsetsRequest, image: ClusterImage, verdicts: Verdicts
) -> OffsetsResponse:
    results = []
    for topic in request.topics:
        known = image.topics.get(topic.topic_name)
        topic_id = known.topic_id if known else ZERO_TOPIC_ID
        error, message = verdicts.get(topic_id, (Errors.UNKNOWN_TOPIC_OR_PARTITION, None))
        results.append(
            OffsetsResponse.Topic(
                topic_name=topic.topic_name, topic_id=topic_id, error_code=error, error_message=message
            )
        )
    return OffsetsResponse(responses=tuple(results))


# ---- a whole group ---------------------------------------------------------------------------------------------------


def delete_share_partitions(context: Context, group: ShareGroup) -> Workflow[Errors]:
    """Before a group is deleted: delete its share-partitions at the persister."""
    known, image, group_id = group.share_partitions, context.image, group.group_id
    if known is None:
        return Errors.NONE
    going = union(all_partitions(known.deleting, image), known.known())
    left = known.delete_all(image)
    failed: Errors = yield Append([encode(group_id, left.to_value(image))])
    if failed:
        return failed
    deleted = {topic: parts for topic, parts in going.items() if topic in left.deleting}
    return _deletion_error((yield SendToPersister(delete_request(group_id, deleted)))) if deleted else Errors.NONE


def _deletion_error(reply: Reply) -> Errors:
    """The first error, of the whole response or of a topic."""
    if not isinstance(reply.response, DeleteShareGroupStateResponse):
        return reply.error or Errors.UNKNOWN_SERVER_ERROR
    failed = (error for error, _ in verdicts_of(reply.response).values() if error)
    return next(failed, Errors.NONE)
