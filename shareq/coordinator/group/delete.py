"""Deleting a group's offsets of some topics, or the whole group, in two phases: recorded as deleting, deleted at the
persister, then recorded as gone. What fails stays deleting, and asking again repeats it.
Source: KIP-932, "Deleting share groups"; Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.gather import Task, gather
from shareq.coordinator.group.group import Group
from shareq.coordinator.group.offsets.delete import all_offset_tombstones
from shareq.coordinator.group.partitions import PartitionSets, union
from shareq.coordinator.group.records import encode
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group.state import ShareGroup
from shareq.coordinator.shard import Outcome, itself
from shareq.model.actor import Answer, Effect
from shareq.model.errors import Errors
from shareq.model.events import GroupDeleted
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.cluster import DeleteGroupsRequest, DeleteGroupsResponse
from shareq.model.messages.share_group import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse
from shareq.model.messages.share_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse

OffsetsResponse = DeleteShareGroupOffsetsResponse
Verdicts = Mapping[TopicId, tuple[Errors, str | None]]
"""What the persister said of each topic: its first error, or none."""


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


def delete_offsets(
    context: Context, request: DeleteShareGroupOffsetsRequest, then: Then[OffsetsResponse], now_ms: int
) -> list[Effect]:
    """An error at the top level replaces all results of topics."""
    if context.image.share_version == 0:
        return list(then(_offsets_failure(Errors.UNSUPPORTED_VERSION), now_ms))
    if context.partition_count() and not request.group_id:
        return list(then(_offsets_failure(Errors.INVALID_GROUP_ID), now_ms))
    deletion = _OffsetsDeletion(context, request, then)

    def answer(response: OffsetsResponse | None, now_ms: int) -> Iterable[Effect]:
        return () if response is None else then(response, now_ms)  # None: it follows when the persister has answered

    return context.schedule(request.group_id, deletion.begin, _offsets_failure, answer, now_ms)


def _offsets_failure(error: Errors, message: str | None = None) -> OffsetsResponse:
    return OffsetsResponse(error_code=error, error_message=message)


class _OffsetsDeletion:
    """One request on its way."""

    def __init__(self, context: Context, request: DeleteShareGroupOffsetsRequest, then: Then[OffsetsResponse]) -> None:
        self.context, self.request, self.then = context, request, then
        self.image = context.image

    def begin(self, shard: GroupShard, now_ms: int) -> Outcome[OffsetsResponse | None]:
        """Record the topics as deleting, then ask the persister. Kafka records even that nothing is to be deleted."""
        del now_ms
        group = shard.find(ShareGroup, self.request.group_id)
        if group is None:
            return Outcome(_offsets_failure(Errors.GROUP_ID_NOT_FOUND, f"Group {self.request.group_id} not found."))
        if group.members:
            return Outcome(_offsets_failure(Errors.NON_EMPTY_GROUP))
        known = group.share_partitions
        if known is None:
            return Outcome(OffsetsResponse())
        asked = {
            self.image.topics[t.topic_name].topic_id for t in self.request.topics if t.topic_name in self.image.topics
        }
        initialized = {topic: parts for topic, parts in known.initialized.items() if topic in asked}
        going = union(_all_partitions(asked & known.deleting, self.image), initialized)
        records = [encode(group.group_id, known.begin_delete(initialized).to_value(self.image))]
        if not going:
            return Outcome(self._response({}), records)

        def after(now_ms: int) -> Iterable[Effect]:
            del now_ms
            return [self.context.persist(delete_request(group.group_id, going), self.settle)]

        return Outcome(None, records, after)

    def settle(self, answer: Answer, now_ms: int) -> Iterable[Effect]:
        """Record what is gone, then answer."""
        if not isinstance(answer.response, DeleteShareGroupStateResponse):
            return self.then(_offsets_failure(answer.error), now_ms)
        verdicts = _verdicts(answer.response)
        gone = frozenset(topic for topic, (error, _) in verdicts.items() if not error)

        def compute(shard: GroupShard, now_ms: int) -> Outcome[OffsetsResponse]:
            del now_ms
            group = shard.find(ShareGroup, self.request.group_id)
            known = group.share_partitions if group else None
            if known is None or not gone & known.deleting:
                return Outcome(self._response(verdicts))
            left = known.finish_delete(gone).to_value(self.context.image)
            return Outcome(self._response(verdicts), [encode(self.request.group_id, left)])

        return self.context.schedule(self.request.group_id, compute, _offsets_failure, self.then, now_ms)

    def _response(self, verdicts: Verdicts) -> OffsetsResponse:
        results = []
        for topic in self.request.topics:
            known = self.image.topics.get(topic.topic_name)
            topic_id = known.topic_id if known else ZERO_TOPIC_ID
            error, message = verdicts.get(topic_id, (Errors.UNKNOWN_TOPIC_OR_PARTITION, None))
            results.append(
                OffsetsResponse.Topic(
                    topic_name=topic.topic_name, topic_id=topic_id, error_code=error, error_message=message
                )
            )
        return OffsetsResponse(responses=tuple(results))


# ---- whole groups ----------------------------------------------------------------------------------------------------


def delete_groups(
    context: Context, request: DeleteGroupsRequest, then: Then[DeleteGroupsResponse], now_ms: int
) -> list[Effect]:
    """Each group for itself; a member that joins in the middle keeps its group alive."""

    def respond(errors: list[Errors], now_ms: int) -> Iterable[Effect]:
        result = DeleteGroupsResponse.Result
        named = zip(request.groups_names, errors, strict=True)
        results = tuple(result(group_id=group_id, error_code=error) for group_id, error in named)
        return then(DeleteGroupsResponse(results=results), now_ms)

    return gather([_delete_group(context, group_id) for group_id in request.groups_names], respond, now_ms)


def _refuse_delete(group: Group | None) -> Errors:
    return Errors.GROUP_ID_NOT_FOUND if group is None else group.refuse_delete()


def _delete_group(context: Context, group_id: str) -> Task[Errors]:
    def task(then: Then[Errors], now_ms: int) -> Iterable[Effect]:
        def begin(shard: GroupShard, now_ms: int) -> Outcome[Errors | None]:
            del now_ms
            group = shard.groups.get(group_id)
            error = _refuse_delete(group)
            if error or not isinstance(group, ShareGroup) or group.share_partitions is None:
                return Outcome(error)
            known = group.share_partitions
            going = union(_all_partitions(known.deleting, context.image), known.known())
            left = known.delete_all(context.image)
            records = [encode(group_id, left.to_value(context.image))]
            ask = delete_request(group_id, {topic: parts for topic, parts in going.items() if topic in left.deleting})
            if not ask.topics:
                return Outcome(Errors.NONE, records)

            def after(now_ms: int) -> Iterable[Effect]:
                del now_ms
                return [context.persist(ask, settle)]

            return Outcome(None, records, after)

        def settle(answer: Answer, now_ms: int) -> Iterable[Effect]:
            return begun(_deletion_error(answer), now_ms)

        def begun(error: Errors | None, now_ms: int) -> Iterable[Effect]:
            if error is None:  # the persister was asked, `settle` goes on
                return ()
            return then(error, now_ms) if error else _bury(context, group_id, then, now_ms)

        return context.schedule(group_id, begin, _itself, begun, now_ms)

    return task


def _itself(error: Errors) -> Errors | None:
    return error


def _deletion_error(answer: Answer) -> Errors:
    """The first error, of the whole call or of a topic."""
    if not isinstance(answer.response, DeleteShareGroupStateResponse):
        return answer.error or Errors.UNKNOWN_SERVER_ERROR
    failed = (error for error, _ in _verdicts(answer.response).values() if error)
    return next(failed, Errors.NONE)


def _bury(context: Context, group_id: str, then: Then[Errors], now_ms: int) -> list[Effect]:
    """Nothing of the group is left at the persister: take its records away, unless somebody has joined."""

    def compute(shard: GroupShard, now_ms: int) -> Outcome[Errors]:
        del now_ms
        group = shard.groups.get(group_id)
        error = _refuse_delete(group)
        if error or group is None:
            return Outcome(error)

        def after(now_ms: int) -> Iterable[Effect]:
            del now_ms
            return context.trace((GroupDeleted(group_id),))

        return Outcome(Errors.NONE, [*all_offset_tombstones(shard.offsets, group_id), *group.tombstones()], after)

    return context.schedule(group_id, compute, itself, then, now_ms)
