"""OffsetDelete, and the tombstones of all offsets of a deleted group.

Source: Kafka's OffsetMetadataManager, and KafkaApis for the topics that do not exist.
"""

from __future__ import annotations

from shareq.coordinator.group.context import Context
from shareq.coordinator.offsets.records import OffsetKey, tombstone
from shareq.coordinator.offsets.state import Offsets
from shareq.coordinator.runtime.turn import Append
from shareq.model.errors import Errors
from shareq.model.messages.offsets import OffsetDeleteRequest, OffsetDeleteResponse
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Workflow


def delete_committed_offsets(context: Context, request: OffsetDeleteRequest) -> Workflow[OffsetDeleteResponse]:
    """OffsetDelete: deletes offsets of topics that no member subscribes to."""
    if context.partition_count() and not request.group_id:
        return _failure(Errors.INVALID_GROUP_ID)
    shard = yield context.turn(request.group_id, _failure)
    group = shard.groups.get(request.group_id)
    error = group.refuse_offset_delete() if group else Errors.GROUP_ID_NOT_FOUND
    if error or group is None:
        return _failure(error)
    read = {topic.name for topic in request.topics if group.subscribes(topic.name)}
    results = [_deleted(context, topic, topic.name in read) for topic in request.topics]
    keys = [
        OffsetKey(request.group_id, topic.name, partition.partition_index)
        for topic, result in zip(request.topics, results, strict=True)
        for partition, verdict in zip(topic.partitions, result.partitions, strict=True)
        if not verdict.error_code
    ]
    error = yield Append([tombstone(key) for key in dict.fromkeys(keys) if _is_there(shard.own(Offsets), key)])
    return _failure(error) if error else OffsetDeleteResponse(topics=tuple(results))


def _failure(error: Errors) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)


def _deleted(context: Context, topic: OffsetDeleteRequest.Topic, subscribed: bool) -> OffsetDeleteResponse.Topic:
    known = context.image.topics.get(topic.name)
    count = len(known.partitions) if known else 0

    def verdict(index: int) -> Errors:
        if not 0 <= index < count:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        return Errors.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else Errors.NONE

    partitions = tuple(
        OffsetDeleteResponse.Partition(partition_index=p.partition_index, error_code=verdict(p.partition_index))
        for p in topic.partitions
    )
    return OffsetDeleteResponse.Topic(name=topic.name, partitions=partitions)


def _is_there(offsets: Offsets, key: OffsetKey) -> bool:
    return offsets.get(key) is not None or offsets.is_pending(key)


# ---- deletion of a group ---------------------------------------------------------------------------------------------


def all_offset_tombstones(offsets: Offsets, group_id: str) -> list[CoordinatorRecord]:
    """The tombstones of all offsets of a group, including pending ones of open transactions."""
    keys = [OffsetKey(group_id, topic, index) for topic, stored in offsets.topics(group_id) for index in stored]
    return [tombstone(key) for key in dict.fromkeys((*keys, *offsets.pending_keys(group_id)))]
