"""AddPartitionsToTxn from clients (versions 0 to 3, one transaction) and from brokers (version 4 and later, several
transactions), and AddOffsetsToTxn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shareq.coordinator.transactions.adding import Addition, Results, add_partitions, verify_partitions
from shareq.coordinator.transactions.context import TransactionContext
from shareq.coordinator.transactions.records import by_topic
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
"""The client version of transactions whose partitions the brokers add (transaction.version 2)."""


def from_client(
    context: TransactionContext, request: AddPartitionsToTxnRequest, fencing: Callable[[Errors], Errors]
) -> Workflow[AddPartitionsToTxnResponse]:
    """Add all partitions or none. `fencing` translates an error for the client's version."""
    partitions = _partitions(request.v3_and_below_topics)
    transactional_id = request.v3_and_below_transactional_id

    def response(results: Results) -> AddPartitionsToTxnResponse:
        translated = {at: fencing(error) for at, error in results.items()}
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topics(translated))

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


def from_leader(
    context: TransactionContext, request: AddPartitionsToTxnRequest
) -> Workflow[AddPartitionsToTxnResponse]:
    """Add to or verify several transactions; each has its own result. The response waits for all of them."""
    results = yield [_one(context, requested) for requested in request.transactions]
    result = AddPartitionsToTxnResponse.Transaction
    return AddPartitionsToTxnResponse(
        results_by_transaction=tuple(
            result(transactional_id=requested.transactional_id, topic_results=_topics(found))
            for requested, found in zip(request.transactions, results, strict=True)
        )
    )


def _one(context: TransactionContext, requested: AddPartitionsToTxnRequest.Transaction) -> Workflow[Results]:
    partitions = _partitions(requested.topics)
    addition = Addition(
        requested.transactional_id, requested.producer_id, requested.producer_epoch, partitions, BROKERS_CLIENT_VERSION
    )
    work = verify_partitions if requested.verify_only else add_partitions
    return work(context, addition, lambda error: dict.fromkeys(partitions, error))


def add_offsets(context: TransactionContext, request: AddOffsetsToTxnRequest) -> Workflow[AddOffsetsToTxnResponse]:
    """AddOffsetsToTxn: add the partition of the group's offsets to the transaction. Its topic may not exist yet: some
    clients look the group's coordinator up only before they commit."""
    if not request.transactional_id:
        return _offsets_failure(Errors.INVALID_REQUEST)
    topic = context.image.topics.get(GROUP_METADATA_TOPIC)
    count = len(topic.partitions) if topic else context.image.broker_config["offsets.topic.num.partitions"]
    at = TopicPartition(GROUP_METADATA_TOPIC, partition_for(request.group_id, count))
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
