"""OffsetFetch: committed offsets of given partitions or of all. Source: Kafka's OffsetMetadataManager."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.context import Context
from shareq.coordinator.offsets.records import OffsetCommit, OffsetKey
from shareq.coordinator.offsets.state import Offsets
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.offsets import OffsetFetchRequest, OffsetFetchResponse
from shareq.model.messages.refused_topics import refused_topics
from shareq.model.workflow import Workflow

GROUP_ERROR_VERSION = 2
"""The first version with an error of the whole group; older clients find it at the partitions."""

TOPIC_ID_VERSION = 10

Requested = OffsetFetchRequest.Group
Fetched = OffsetFetchResponse.Group
Partition = OffsetFetchResponse.Partition


def fetch_offsets(
    context: Context, request: OffsetFetchRequest, client: ClientContext
) -> Workflow[OffsetFetchResponse]:
    """OffsetFetch: each group has its own result and error."""
    by_id = client.api_version >= TOPIC_ID_VERSION
    groups = yield [_fetch(context, group, request.require_stable, by_id=by_id) for group in request.groups]
    if client.api_version < GROUP_ERROR_VERSION:
        groups = [_with_errors(*each) for each in zip(request.groups, groups, strict=True)]
    return OffsetFetchResponse(groups=tuple(groups))


def _with_errors(requested: Requested, fetched: Fetched) -> Fetched:
    """The group's error as that of each requested partition."""
    return refused_group(requested, fetched.error_code) if fetched.error_code else fetched


def refused_group(requested: Requested, error: Errors) -> Fetched:
    """The response for a group that is refused, with the error at its partitions, too."""
    topics = refused_topics(OffsetFetchResponse, requested.topics or (), error_code=error)
    return Fetched(group_id=requested.group_id, topics=topics, error_code=error)


def _fetch(context: Context, requested: Requested, require_stable: bool, *, by_id: bool) -> Workflow[Fetched]:
    def failure(error: Errors) -> Fetched:
        return Fetched(group_id=requested.group_id, error_code=error)

    shard = yield context.turn(requested.group_id, failure)
    group = shard.groups.get(requested.group_id)
    error = group.refuse_fetch(requested.member_id, requested.member_epoch) if group else Errors.GROUP_ID_NOT_FOUND
    if error and error is not Errors.GROUP_ID_NOT_FOUND:
        return failure(error)
    offsets = Offsets() if error else shard.own(Offsets)
    reader = _OffsetReader(offsets, requested.group_id, context.image, require_stable)
    if requested.topics is None:
        return Fetched(group_id=requested.group_id, topics=tuple(reader.all_topics(by_id=by_id)))
    return Fetched(group_id=requested.group_id, topics=tuple(reader.topic(topic) for topic in requested.topics))


class _OffsetReader:
    """Reads the offsets of one group. A partition without committed offset has offset -1 and no error."""

    def __init__(self, offsets: Offsets, group_id: str, image: ClusterImage, require_stable: bool) -> None:
        self.offsets, self.group_id, self.image, self.require_stable = offsets, group_id, image, require_stable

    def topic(self, requested: OffsetFetchRequest.Topic) -> OffsetFetchResponse.Topic:
        """The offsets of one requested topic. A topic given by name need not exist; an unknown topic id is an error. By
        id, an offset of a deleted topic of the same name is ignored."""
        response = OffsetFetchResponse.Topic
        name = requested.name
        if not name:
            known = self.image.topics_by_id.get(requested.topic_id)
            if known is None:
                error = Errors.UNKNOWN_TOPIC_ID
                refused: OffsetFetchResponse.Topic = refused_topics(OffsetFetchResponse, [requested], error_code=error)[
                    0
                ]
                return refused
            name = known.name
        found = tuple(self._partition(name, index, requested.topic_id) for index in requested.partition_indexes)
        return response(name=requested.name, topic_id=requested.topic_id, partitions=found)

    def all_topics(self, *, by_id: bool) -> Iterable[OffsetFetchResponse.Topic]:
        """The offsets of all topics of the group. By id, deleted topics are left out."""
        for name, stored in self.offsets.topics(self.group_id):
            known = self.image.topics.get(name)
            if by_id and known is None:
                continue
            topic_id = known.topic_id if known else ZERO_TOPIC_ID
            expected = topic_id if by_id else ZERO_TOPIC_ID
            partitions = tuple(self._partition(name, index, expected) for index in sorted(stored))
            yield OffsetFetchResponse.Topic(name=name, topic_id=topic_id, partitions=partitions)

    def _partition(self, topic: str, index: int, topic_id: TopicId) -> Partition:
        key = OffsetKey(self.group_id, topic, index)
        if self.require_stable and self.offsets.is_pending(key):
            return Partition(partition_index=index, error_code=Errors.UNSTABLE_OFFSET_COMMIT)
        commit = self.offsets.get(key)
        if commit is None or _of_another(commit, topic_id):
            return Partition(partition_index=index)
        return Partition(
            partition_index=index,
            committed_offset=commit.offset,
            committed_leader_epoch=commit.leader_epoch,
            metadata=commit.metadata,
        )


def _of_another(commit: OffsetCommit, topic_id: TopicId) -> bool:
    return ZERO_TOPIC_ID not in (commit.topic_id, topic_id) and commit.topic_id != topic_id
