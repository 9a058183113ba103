"""OffsetCommit, and the part of TxnOffsetCommit that is the same: the checks in Kafka's order, then the append.

Source: Kafka's OffsetMetadataManager, and KafkaApis for the checks that need no coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.group import Committer, Group, GroupType
from shareq.coordinator.group.reserved import reserved_for_others
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.offsets.records import NO_EXPIRY, OffsetCommit, OffsetKey, encode
from shareq.coordinator.offsets.state import Offsets
from shareq.coordinator.runtime.turn import Append
from shareq.model.actor import NEWEST_VERSION, ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.image import ClusterImage, TopicImage
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetCommitResponse
from shareq.model.workflow import Workflow

EPOCH_VERSION = 9
"""The first version of OffsetCommit whose clients know consumer groups and their member epochs."""

Verdicts = Mapping[tuple[str, int], Errors]
"""The error of each (topic, partition) that exists."""


class OffsetToCommit(NamedTuple):
    """An offset to commit for a partition that exists."""

    topic: str
    topic_id: TopicId
    partition: OffsetCommitRequest.Partition


class RequestedTopics:
    """The topics of a request, each with its image: by name; by id if the name is empty."""

    def __init__(self, requested: Sequence[OffsetCommitRequest.Topic], image: ClusterImage) -> None:
        self._found = [(topic, _named(topic, image)) for topic in requested]

    def places(self) -> list[OffsetToCommit]:
        """The offsets for those partitions that exist."""
        return [
            OffsetToCommit(topic.name, topic.topic_id, partition)
            for requested, topic in self._found
            if topic
            for partition in requested.partitions
            if 0 <= partition.partition_index < len(topic.partitions)
        ]

    def results(self, verdicts: Verdicts) -> tuple[OffsetCommitResponse.Topic, ...]:
        """Results in the order of the request; a partition without verdict does not exist."""
        return tuple(_result(requested, topic, verdicts) for requested, topic in self._found)


class Committing(NamedTuple):
    """The offsets of one request and their committer. `transaction`: producer id and epoch; (-1, -1) for none.

    `version`: of the request; `retention_ms`: how long the offsets are kept, -1: as the broker is configured.
    """

    context: Context
    group_id: str
    committer: Committer
    places: list[OffsetToCommit]
    transaction: tuple[int, int] = (-1, -1)
    version: int = NEWEST_VERSION
    retention_ms: int = -1

    def append(self, shard: GroupShard) -> Workflow[Verdicts]:
        """During a turn, check and append the offsets. An error of the group is the error of all partitions.

        A topic that was deleted while the request waited is unknown: the workflow that deletes its offsets may be over.
        """
        context, group = self.context, shard.groups.get(self.group_id)
        error = self._refuse(group)
        if error:
            return self.failure(error)
        longest = context.image.broker_config["offset.metadata.max.bytes"]
        verdicts: dict[tuple[str, int], Errors] = {}
        records = []
        expires = NO_EXPIRY if self.retention_ms < 0 else context.day_ms + self.retention_ms
        for topic, topic_id, partition in self.places:
            metadata, index = partition.committed_metadata or "", partition.partition_index
            if topic_id not in context.image.topics_by_id:
                verdicts[topic, index] = Errors.UNKNOWN_TOPIC_OR_PARTITION
                continue
            if len(metadata) > longest:
                verdicts[topic, index] = Errors.OFFSET_METADATA_TOO_LARGE
                continue
            verdicts[topic, index] = Errors.NONE
            head = partition.committed_offset, partition.committed_leader_epoch, metadata
            value = OffsetCommit(*head, context.day_ms, topic_id, expires)
            records.append(encode(OffsetKey(self.group_id, topic, index), value))
        error = yield Append(records, *self.transaction)
        if error:
            return self.failure(error)
        if records and self.committer.transactional:
            shard.own(Offsets).transactions[self.transaction[0]] = self.transaction[1]
        context.schedule_expiry()
        if group is not None and not self.committer.transactional:
            context.hooks[group.TYPE].committed(context, group, self.committer.member_id)
        return verdicts

    def failure(self, error: Errors) -> Verdicts:
        """The same error for all partitions."""
        return {(place.topic, place.partition.partition_index): error for place in self.places}

    def _refuse(self, group: Group | None) -> Errors:
        """The error of the group. An absent group is created by a commit with a negative epoch.

        Transactional commits get ILLEGAL_GENERATION instead of STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND, which
        producers do not know.
        """
        if group is None:
            reserved = reserved_for_others(self.group_id, GroupType.CLASSIC, self.context.image)
            error = Errors.GROUP_ID_NOT_FOUND if reserved or self.committer.epoch >= 0 else Errors.NONE
        else:
            error = group.refuse_commit(self.committer)
        if self.version < EPOCH_VERSION and not self.committer.transactional:
            error = self._known_before_epochs(group, error)
        if not error and group is not None:
            partitions = [(place.topic_id, place.partition.partition_index) for place in self.places]
            error = group.refuse_partitions(self.committer, partitions)
        newer = error is Errors.STALE_MEMBER_EPOCH or (group is None and error)
        return Errors.ILLEGAL_GENERATION if newer and self.committer.transactional else error

    def _known_before_epochs(self, group: Group | None, error: Errors) -> Errors:
        """The error for a client that knows generations, but no member epochs: a member of a consumer group must not
        commit so."""
        if group is None and error:
            return Errors.ILLEGAL_GENERATION
        needs_epochs = group is not None and group.needs_epochs(self.committer.member_id)
        return Errors.UNSUPPORTED_VERSION if needs_epochs else error


# ---- OffsetCommit ----------------------------------------------------------------------------------------------------


def commit_offsets(
    context: Context, request: OffsetCommitRequest, client: ClientContext
) -> Workflow[OffsetCommitResponse]:
    """OffsetCommit: topics by name; by id if the name is empty."""
    topics = RequestedTopics(request.topics, context.image)
    places = topics.places()

    def response(verdicts: Verdicts) -> OffsetCommitResponse:
        return OffsetCommitResponse(topics=topics.results(verdicts))

    if not places:
        return response({})
    epoch = request.generation_id_or_member_epoch
    committer = Committer(request.member_id, request.group_instance_id, epoch)
    committing = Committing(
        context,
        request.group_id,
        committer,
        places,
        version=client.api_version,
        retention_ms=request.retention_time_ms,
    )
    shard = yield context.turn(request.group_id, lambda error: response(committing.failure(error)))
    return response((yield from committing.append(shard)))


def _named(topic: OffsetCommitRequest.Topic, image: ClusterImage) -> TopicImage | None:
    return image.topics.get(topic.name) if topic.name else image.topics_by_id.get(topic.topic_id)


def _result(
    requested: OffsetCommitRequest.Topic, topic: TopicImage | None, verdicts: Verdicts
) -> OffsetCommitResponse.Topic:
    unknown_id = topic is None and not requested.name
    unknown = Errors.UNKNOWN_TOPIC_ID if unknown_id else Errors.UNKNOWN_TOPIC_OR_PARTITION
    name = topic.name if topic else requested.name
    results = tuple(
        OffsetCommitResponse.Partition(
            partition_index=p.partition_index, error_code=verdicts.get((name, p.partition_index), unknown)
        )
        for p in requested.partitions
    )
    return OffsetCommitResponse.Topic(name=requested.name, topic_id=requested.topic_id, partitions=results)
