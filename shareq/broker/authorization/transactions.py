"""Rules of the requests about producers and their transactions."""

from __future__ import annotations

from dataclasses import replace

from shareq.broker.authorization.groups import share_groups_are_off
from shareq.broker.authorization.logs import named
from shareq.broker.authorization.rulings import Filtered, Ruling, showing, without
from shareq.model.acls import AclOperation, ResourceType
from shareq.model.errors import Errors
from shareq.model.messages.offsets import OffsetCommitResponse
from shareq.model.messages.refused_topics import refused_topics
from shareq.model.messages.share_transactions import TxnShareAcknowledgeRequest, TxnShareAcknowledgeResponse
from shareq.model.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from shareq.model.rights import Rights

_DENIED = Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _may_write(rights: Rights, transactional_id: str) -> bool:
    return rights.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)


def init_producer_id(request: InitProducerIdRequest, rights: Rights) -> Ruling:
    """WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster, or WRITE on any topic."""
    if request.transactional_id is not None:
        return request if _may_write(rights, request.transactional_id) else InitProducerIdResponse(error_code=_DENIED)
    if rights.may_write_anywhere() or rights.on_cluster(AclOperation.IDEMPOTENT_WRITE):
        return request
    return InitProducerIdResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)


def add_partitions(request: AddPartitionsToTxnRequest, rights: Rights) -> Ruling:
    """WRITE on the transactional id and on each topic: all partitions are added, or none. Only brokers ask about many
    transactions."""
    if request.transactions:
        if rights.on_cluster(AclOperation.CLUSTER_ACTION):
            return request
        return AddPartitionsToTxnResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
    topics = request.v3_and_below_topics
    if not _may_write(rights, request.v3_and_below_transactional_id):
        return _not_added({topic.name: _DENIED for topic in topics}, request)
    allowed, denied = rights.split(AclOperation.WRITE, ResourceType.TOPIC, topics, lambda topic: topic.name)
    if not denied:
        return request
    errors = {topic.name: Errors.TOPIC_AUTHORIZATION_FAILED for topic in denied}
    for topic in allowed:
        exists = topic.name in rights.image.topics
        errors[topic.name] = Errors.OPERATION_NOT_ATTEMPTED if exists else Errors.UNKNOWN_TOPIC_OR_PARTITION
    return _not_added(errors, request)


def _not_added(errors: dict[str, Errors], request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=tuple(
            AddPartitionsToTxnResponse.Topic(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnResponse.Partition(partition_index=index, partition_error_code=errors[topic.name])
                    for index in topic.partitions
                ),
            )
            for topic in request.v3_and_below_topics
        )
    )


def add_offsets(request: AddOffsetsToTxnRequest, rights: Rights) -> Ruling:
    """WRITE on the transactional id, READ on the group."""
    if not _may_write(rights, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=_DENIED)
    if not rights.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=Errors.GROUP_AUTHORIZATION_FAILED)
    return request


def end(request: EndTxnRequest, rights: Rights) -> Ruling:
    """WRITE on the transactional id."""
    return request if _may_write(rights, request.transactional_id) else EndTxnResponse(error_code=_DENIED)


def commit_offsets(request: TxnOffsetCommitRequest, rights: Rights) -> Ruling:
    """WRITE on the transactional id, READ on the group and on each topic."""
    if not _may_write(rights, request.transactional_id):
        refused = refused_topics(OffsetCommitResponse, request.topics, error_code=_DENIED)
        return TxnOffsetCommitResponse(topics=refused)
    if not rights.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        error = Errors.GROUP_AUTHORIZATION_FAILED
        refused = refused_topics(OffsetCommitResponse, request.topics, error_code=error)
        return TxnOffsetCommitResponse(topics=refused)
    allowed, denied = rights.split(
        AclOperation.READ, ResourceType.TOPIC, request.topics, lambda topic: named(topic, rights.image)
    )
    refused = refused_topics(OffsetCommitResponse, denied, error_code=Errors.TOPIC_AUTHORIZATION_FAILED)
    return without(request, refused, topics=allowed) if allowed else TxnOffsetCommitResponse(topics=refused)


def acknowledge_share(request: TxnShareAcknowledgeRequest, rights: Rights) -> Ruling:
    """WRITE on the transactional id, READ on the group and on all topics: a part of it is of no use, as the transaction
    has to be aborted."""
    if share_groups_are_off(rights):
        return request
    if not _may_write(rights, request.transactional_id):
        return TxnShareAcknowledgeResponse(error_code=_DENIED)
    if not rights.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return TxnShareAcknowledgeResponse(error_code=Errors.GROUP_AUTHORIZATION_FAILED)
    known = [rights.image.topics_by_id.get(topic.topic_id) for topic in request.topics]
    names = [topic.name for topic in known if topic is not None]
    _, denied = rights.split(AclOperation.READ, ResourceType.TOPIC, names, lambda name: name)
    return TxnShareAcknowledgeResponse(error_code=Errors.TOPIC_AUTHORIZATION_FAILED) if denied else request


def describe(request: DescribeTransactionsRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each transactional id; of its topics those that may be described."""
    allowed, denied = rights.split(
        AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, request.transactional_ids, lambda name: name
    )
    state = DescribeTransactionsResponse.TransactionState
    refused = tuple(state(transactional_id=name, error_code=_DENIED) for name in denied)

    def shown(found: DescribeTransactionsResponse.TransactionState) -> DescribeTransactionsResponse.TransactionState:
        return replace(found, topics=tuple(topic for topic in found.topics if rights.sees_topic(topic.topic)))

    return Filtered(
        replace(request, transactional_ids=allowed),
        lambda response: replace(response, transaction_states=(*map(shown, response.transaction_states), *refused)),
    )


def list_all(request: ListTransactionsRequest, rights: Rights) -> Ruling:
    """The transactions with DESCRIBE on their transactional id."""

    restype = ResourceType.TRANSACTIONAL_ID
    return showing(request, rights, "transaction_states", restype, lambda found: found.transactional_id)
