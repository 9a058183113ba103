"""AddPartitionsToTxn: from clients for one transaction (versions 0 to 3), from partition leaders for many (since 4);
and AddOffsetsToTxn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shareq.coordinator.other.transaction.adding import Addition, Results, add_partitions, verify_partitions
from shareq.coordinator.other.transaction.context import Context
from shareq.coordinator.other.transaction.records import by_topic
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, TopicPartition, partition_for
from shareq.model.image import ClusterImage
from shareq.model.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from shareq.model.workflow import Workflow

BROKERS_CLIENT_VERSION = 2
"""Partitions that a leader adds belong to a client that does not add them itself (transaction.version 2)."""


def from_client(
    context: Context, request: AddPartitionsToTxnRequest, fencing: Callable[[Errors], Errors]
) -> Workflow[AddPartitionsToTxnResponse]:
    """All partitions are added, or none. `fencing` words an error for the client's version."""
    partitions = _partitions(request.v3_and_below_topics)
    transactional_id = request.v3_and_below_transactional_id

    def response(results: Results) -> AddPartitionsToTxnResponse:
        worded = {at: fencing(error) for at, error in results.items()}
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topics(worded))

    if not transactional_id:
        return response(dict.fromkeys(partitions, Errors.INVALID_REQUEST))
    unknown = {at for at in partitions if not _exists(at, context.image)}
    if unknown:
        known = dict.fromkeys(partitions, Errors.OPERATION_NOT_ATTEMPTED)
        return response({**known, **dict.fromkeys(unknown, Errors.UNKNOWN_TOPIC_OR_PARTITION)})
    addition = Addition(
        transactional_id, request.v3_and_below_producer_id, request.v3_and_below_producer_epoch, partitions
    )
    return (yield from add_partitions(context, addition, lambda error: response(dict.fromkeys(partitions, error))))


def from_leader(context: Context, request: AddPartitionsToTxnRequest) -> Workflow[AddPartitionsToTxnResponse]:
    """Each transaction is done for itself; the answer waits for all of them."""
    results = yield [_one(context, asked) for asked in request.transactions]
    result = AddPartitionsToTxnResponse.Transaction
    return AddPartitionsToTxnResponse(
        results_by_transaction=tuple(
            result(transactional_id=asked.transactional_id, topic_results=_topics(found))
            for asked, found in zip(request.transactions, results, strict=True)
        )
    )


def _one(context: Context, asked: AddPartitionsToTxnRequest.Transaction) -> Workflow[Results]:
    partitions = _partitions(asked.topics)
    addition = Addition(
        asked.transactional_id, asked.producer_id, asked.producer_epoch, partitions, BROKERS_CLIENT_VERSION
    )
    work = verify_partitions if asked.verify_only else add_partitions
    return work(context, addition, lambda error: dict.fromkeys(partitions, error))


def add_offsets(context: Context, request: AddOffsetsToTxnRequest) -> Workflow[AddOffsetsToTxnResponse]:
    """AddOffsetsToTxn: the partition that keeps the group's offsets joins the transaction."""
    topic = context.image.topics.get(GROUP_METADATA_TOPIC)
    if not request.transactional_id:
        return _offsets_failure(Errors.INVALID_REQUEST)
    if topic is None:
        return _offsets_failure(Errors.COORDINATOR_NOT_AVAILABLE)
    at = TopicPartition(GROUP_METADATA_TOPIC, partition_for(request.group_id, len(topic.partitions)))
    addition = Addition(request.transactional_id, request.producer_id, request.producer_epoch, frozenset((at,)))
    return (yield from add_partitions(context, addition, _offsets_failure))


def _offsets_failure(error: Errors) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error)


def _partitions(topics: Sequence[AddPartitionsToTxnRequest.Topic]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)


def _exists(at: TopicPartition, image: ClusterImage) -> bool:
    topic = image.topics.get(at.topic)
    return topic is not None and 0 <= at.partition < len(topic.partitions)


def _topics(results: Results) -> tuple[AddPartitionsToTxnResponse.Topic, ...]:
    return tuple(
        AddPartitionsToTxnResponse.Topic(
            name=topic,
            results_by_partition=tuple(
                AddPartitionsToTxnResponse.Partition(
                    partition_index=index, partition_error_code=results[TopicPartition(topic, index)]
                )
                for index in indexes
            ),
        )
        for topic, indexes in by_topic(results)
    )
