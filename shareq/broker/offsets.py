"""Responses to ListOffsets, OffsetForLeaderEpoch, DeleteRecords and DescribeProducers."""

from __future__ import annotations

from collections import Counter

from shareq.broker.data_plane import ISOLATION_LEVELS, DataPlane
from shareq.log.results import OffsetForTimestamp
from shareq.log.timestamp_lookup import EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST_TIERED, MAX_TIMESTAMP
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.messages.data import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from shareq.model.messages.describe import DescribeProducersRequest, DescribeProducersResponse
from shareq.model.messages.fetch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from shareq.model.states import IsolationLevel

SINCE_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""By special timestamp, the first version of ListOffsets that supports it."""


def list_offsets(request: ListOffsetsRequest, client: ClientContext, data: DataPlane) -> ListOffsetsResponse:
    """The offsets of timestamps; a partition that is named twice is an INVALID_REQUEST."""
    requested = Counter((topic.name, part.partition_index) for topic in request.topics for part in topic.partitions)

    def found(topic: str, part: ListOffsetsRequest.Partition) -> ListOffsetsResponse.Partition:
        if requested[topic, part.partition_index] > 1:
            result = OffsetForTimestamp(Errors.INVALID_REQUEST)
        elif client.api_version < SINCE_VERSION.get(part.timestamp, 0):
            result = OffsetForTimestamp(Errors.UNSUPPORTED_VERSION)
        else:
            result = _find(data, topic, part, request.isolation_level)
        return ListOffsetsResponse.Partition(
            partition_index=part.partition_index,
            error_code=result.error,
            timestamp=result.timestamp,
            offset=result.offset,
            leader_epoch=result.leader_epoch,
        )

    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsResponse.Topic(
                name=topic.name, partitions=tuple(found(topic.name, part) for part in topic.partitions)
            )
            for topic in request.topics
        )
    )


def _find(data: DataPlane, topic: str, part: ListOffsetsRequest.Partition, isolation_level: int) -> OffsetForTimestamp:
    if isolation_level not in ISOLATION_LEVELS:
        return OffsetForTimestamp(Errors.UNKNOWN_SERVER_ERROR)
    error, log, _ = data.led_log(topic, part.partition_index, part.current_leader_epoch)
    if error or log is None:
        return OffsetForTimestamp(error)
    return log.offset_for_timestamp(part.timestamp, IsolationLevel(isolation_level))


def offsets_for_leader_epochs(request: OffsetForLeaderEpochRequest, data: DataPlane) -> OffsetForLeaderEpochResponse:
    def found(topic: str, requested: OffsetForLeaderEpochRequest.Partition) -> OffsetForLeaderEpochResponse.Partition:
        error, log, _ = data.led_log(topic, requested.partition, requested.current_leader_epoch)
        if error or log is None:
            return OffsetForLeaderEpochResponse.Partition(partition=requested.partition, error_code=error)
        end = log.end_offset_for_epoch(requested.leader_epoch)
        return OffsetForLeaderEpochResponse.Partition(
            partition=requested.partition, leader_epoch=end.leader_epoch, end_offset=end.end_offset
        )

    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderEpochResponse.Topic(
                topic=topic.topic, partitions=tuple(found(topic.topic, requested) for requested in topic.partitions)
            )
            for topic in request.topics
        )
    )


def delete_records(request: DeleteRecordsRequest, data: DataPlane) -> DeleteRecordsResponse:
    def deleted(topic: str, requested: DeleteRecordsRequest.Partition) -> DeleteRecordsResponse.Partition:
        error, _, _ = data.led_log(topic, requested.partition_index)
        low = -1
        if not error:
            error, low = data.storage.delete_records(TopicPartition(topic, requested.partition_index), requested.offset)
        return DeleteRecordsResponse.Partition(
            partition_index=requested.partition_index, low_watermark=low, error_code=error
        )

    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsResponse.Topic(
                name=topic.name, partitions=tuple(deleted(topic.name, requested) for requested in topic.partitions)
            )
            for topic in request.topics
        )
    )


def describe_producers(request: DescribeProducersRequest, data: DataPlane) -> DescribeProducersResponse:
    """The producers of each partition, with the start offsets of their open transactions."""

    def described(topic: str, index: int) -> DescribeProducersResponse.Partition:
        error, log, _ = data.led_log(topic, index)
        if error or log is None:
            return DescribeProducersResponse.Partition(partition_index=index, error_code=error)
        producers = tuple(
            DescribeProducersResponse.Producer(
                producer_id=state.producer_id,
                producer_epoch=state.producer_epoch,
                last_sequence=state.last_sequence,
                last_timestamp=state.last_timestamp_ms,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=state.open_from,
            )
            for state in log.active_producers()
        )
        return DescribeProducersResponse.Partition(partition_index=index, active_producers=producers)

    return DescribeProducersResponse(
        topics=tuple(
            DescribeProducersResponse.Topic(
                name=topic.name, partitions=tuple(described(topic.name, index) for index in topic.partition_indexes)
            )
            for topic in request.topics
        )
    )
