"""AddPartitionsToTxn: from clients for one transaction (versions 0 to 3), from partition leaders for many (since 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from shareq.coordinator.shard import Outcome
from shareq.coordinator.transaction.adding import Addition, add_partitions, verify_partitions
from shareq.coordinator.transaction.records import by_topic
from shareq.coordinator.transaction.state import TransactionShard
from shareq.model.actor import Effect, Incoming, Respond
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

R = TypeVar("R")
Results = dict[TopicPartition, Errors]
"""What became of each partition."""

BROKERS_CLIENT_VERSION = 2
"""Partitions that a leader adds belong to a client that does not add them itself (transaction.version 2)."""


class Schedule(Protocol):
    """Run an operation on the shard of a transactional id."""

    def __call__(
        self,
        transactional_id: str,
        compute: Callable[[TransactionShard, int], Outcome[R]],
        failure: Callable[[Errors], R],
        then: Callable[[R, int], Iterable[Effect]],
        now_ms: int,
    ) -> list[Effect]: ...


def from_client(
    message: Incoming,
    request: AddPartitionsToTxnRequest,
    image: ClusterImage,
    schedule: Schedule,
    now_ms: int,
    *,
    fencing: Callable[[Errors], Errors],
) -> list[Effect]:
    """All partitions are added, or none. `fencing` words an error for the client's version."""
    partitions = _partitions(request.v3_and_below_topics)
    transactional_id = request.v3_and_below_transactional_id

    def then(results: Results, now_ms: int) -> Iterable[Effect]:
        del now_ms
        worded = {at: fencing(error) for at, error in results.items()}
        return (Respond(message.id, AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topics(worded))),)

    if not transactional_id:
        return list(then(dict.fromkeys(partitions, Errors.INVALID_REQUEST), now_ms))
    unknown = {at for at in partitions if not _exists(at, image)}
    if unknown:
        known = dict.fromkeys(partitions, Errors.OPERATION_NOT_ATTEMPTED)
        return list(then({**known, **dict.fromkeys(unknown, Errors.UNKNOWN_TOPIC_OR_PARTITION)}, now_ms))
    addition = Addition(
        transactional_id, request.v3_and_below_producer_id, request.v3_and_below_producer_epoch, partitions
    )
    failure = _everywhere(partitions)
    return schedule(transactional_id, partial(_add, addition), failure, then, now_ms)


def from_leader(message: Incoming, request: AddPartitionsToTxnRequest, schedule: Schedule, now_ms: int) -> list[Effect]:
    """Each transaction is done for itself; the answer waits for all of them."""
    results: list[AddPartitionsToTxnResponse.Transaction] = []

    def then(transactional_id: str, result: Results, now_ms: int) -> Iterable[Effect]:
        del now_ms
        results.append(
            AddPartitionsToTxnResponse.Transaction(transactional_id=transactional_id, topic_results=_topics(result))
        )
        if len(results) < len(request.transactions):
            return ()
        return (Respond(message.id, AddPartitionsToTxnResponse(results_by_transaction=tuple(results))),)

    effects: list[Effect] = []
    for asked in request.transactions:
        partitions = _partitions(asked.topics)
        addition = Addition(
            asked.transactional_id, asked.producer_id, asked.producer_epoch, partitions, BROKERS_CLIENT_VERSION
        )
        compute = partial(verify_partitions if asked.verify_only else _add, addition)
        failure = _everywhere(partitions)
        answer = partial(then, asked.transactional_id)
        effects += schedule(asked.transactional_id, compute, failure, answer, now_ms)
    return effects


def _everywhere(partitions: frozenset[TopicPartition]) -> Callable[[Errors], Results]:
    """One error for all partitions."""
    return lambda error: dict.fromkeys(partitions, error)


def _add(addition: Addition, shard: TransactionShard, now_ms: int) -> Outcome[Results]:
    outcome = add_partitions(addition, shard, now_ms)
    return Outcome(dict.fromkeys(addition.partitions, outcome.response), outcome.records)


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
