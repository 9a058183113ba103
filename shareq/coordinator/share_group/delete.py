"""Deleting a group's offsets of some topics, or the whole group, in two phases: recorded as deleting, deleted at the
persister, then recorded as gone. What fails stays deleting, and asking again repeats it.
Source: KIP-932, "Deleting share groups"; Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shareq.coordinator.groups.context import Context
from shareq.coordinator.groups.group import Group
from shareq.coordinator.other.offsets.delete import all_offset_tombstones
from shareq.coordinator.share_group.partitions import PartitionSets, union
from shareq.coordinator.share_group.records import encode
from shareq.coordinator.share_group.state import ShareGroup
from shareq.coordinator.turn import Append, itself
from shareq.model.errors import Errors
from shareq.model.events import GroupDeleted
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.cluster import DeleteGroupsRequest, DeleteGroupsResponse
from shareq.model.messages.share_group import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse
from shareq.model.messages.share_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from shareq.model.workflow import AskPersister, Reply, Workflow

OffsetsResponse = DeleteShareGroupOffsetsResponse
Verdicts = Mapping[TopicId, tuple[Errors, str | None]]
"""The persister's result for each topic: its first error, or none."""


def delete_request(group_id: str, partitions: PartitionSets) -> DeleteShareGroupStateRequest:
    """What the persister is asked for."""
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


def _verdicts(response: DeleteShareGroupStateResponse) -> Verdicts:
    verdicts: dict[TopicId, tuple[Errors, str | None]] = {}
    for topic in response.results:
        failed = ((p.error_code, p.error_message) for p in topic.partitions if p.error_code)
        verdicts[topic.topic_id] = next(failed, (Errors.NONE, None))
    return verdicts


def _all_partitions(topics: Iterable[TopicId], image: ClusterImage) -> PartitionSets:
    """All partitions of topics, as far as these exist: deleting topics are recorded without their partitions."""
    known = ((topic, image.topics_by_id.get(topic)) for topic in sorted(topics))
    return {topic: frozenset(range(len(there.partitions))) for topic, there in known if there}


# ---- offsets of some topics ------------------------------------------------------------------------------------------


def delete_offsets(context: Context, request: DeleteShareGroupOffsetsRequest) -> Workflow[OffsetsResponse]:
    """An error at the top level replaces all results of topics. Kafka records even that nothing is to be deleted."""
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
    asked = {image.topics[topic.topic_name].topic_id for topic in request.topics if topic.topic_name in image.topics}
    initialized = {topic: parts for topic, parts in known.initialized.items() if topic in asked}
    going = union(_all_partitions(asked & known.deleting, image), initialized)
    error = yield Append([encode(group_id, known.begin_delete(initialized).to_value(image))])
    if error:
        return _offsets_failure(error)
    if not going:
        return _offsets_response(request, image, {})
    reply = yield AskPersister(delete_request(group_id, going))
    if not isinstance(reply.response, DeleteShareGroupStateResponse):
        return _offsets_failure(reply.error)
    verdicts = _verdicts(reply.response)
    gone = frozenset(topic for topic, (error, _) in verdicts.items() if not error)
    error = yield from _record_deleted(context, group_id, gone)
    return _offsets_failure(error) if error else _offsets_response(request, image, verdicts)


def _refuse_request(context: Context, group_id: str) -> Errors:
    if context.image.share_version == 0:
        return Errors.UNSUPPORTED_VERSION
    return Errors.INVALID_GROUP_ID if context.partition_count() and not group_id else Errors.NONE


def _record_deleted(context: Context, group_id: str, gone: frozenset[TopicId]) -> Workflow[Errors]:
    """The persister has deleted these topics."""
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


# ---- whole groups ----------------------------------------------------------------------------------------------------


def delete_groups(context: Context, request: DeleteGroupsRequest) -> Workflow[DeleteGroupsResponse]:
    """Each group for itself; a member that joins in the middle keeps its group alive."""
    errors = yield [_delete_group(context, group_id) for group_id in request.groups_names]
    result = DeleteGroupsResponse.Result
    named = zip(request.groups_names, errors, strict=True)
    return DeleteGroupsResponse(results=tuple(result(group_id=group_id, error_code=error) for group_id, error in named))


def _delete_group(context: Context, group_id: str) -> Workflow[Errors]:
    """Delete its share-partitions at the persister, then its records, unless a member has joined in between."""
    shard = yield context.turn(group_id, itself)
    group = shard.groups.get(group_id)
    error = _refuse_delete(group)
    if error:
        return error
    if isinstance(group, ShareGroup) and group.share_partitions is not None:
        known, image = group.share_partitions, context.image
        going = union(_all_partitions(known.deleting, image), known.known())
        left = known.delete_all(image)
        failed: Errors = yield Append([encode(group_id, left.to_value(image))])
        if failed:
            return failed
        asked = {topic: parts for topic, parts in going.items() if topic in left.deleting}
        if asked:
            error = _deletion_error((yield AskPersister(delete_request(group_id, asked))))
            if error:
                return error
    shard = yield context.turn(group_id, itself)
    group = shard.groups.get(group_id)
    error = _refuse_delete(group)
    if error or group is None:
        return error
    failed = yield Append([*all_offset_tombstones(shard.offsets, group_id), *group.tombstones()])
    if not failed:
        context.trace(GroupDeleted(group_id))
    return failed


def _refuse_delete(group: Group | None) -> Errors:
    return Errors.GROUP_ID_NOT_FOUND if group is None else group.refuse_delete()


def _deletion_error(reply: Reply) -> Errors:
    """The first error, of the whole call or of a topic."""
    if not isinstance(reply.response, DeleteShareGroupStateResponse):
        return reply.error or Errors.UNKNOWN_SERVER_ERROR
    failed = (error for error, _ in _verdicts(reply.response).values() if error)
    return next(failed, Errors.NONE)
