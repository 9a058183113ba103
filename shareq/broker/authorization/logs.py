"""Rules of the requests about records: refused topics get an error for each partition, beside the answers for the
others.

The topics of Fetch and ShareFetch are those of their sessions, which only their actors know: they are checked there.
"""

from __future__ import annotations

from typing import Any

from shareq.broker.authorization.rulings import Ruling, without
from shareq.broker.produce import any_transactional
from shareq.model.acls import AclOperation, ResourceType
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID
from shareq.model.image import ClusterImage
from shareq.model.messages.data import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)
from shareq.model.messages.describe import DescribeProducersRequest, DescribeProducersResponse
from shareq.model.messages.fetch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from shareq.model.messages.refused_topics import refused_topics
from shareq.model.rights import Rights

_DENIED = Errors.TOPIC_AUTHORIZATION_FAILED


def named(topic: Any, image: ClusterImage) -> str | None:
    """The name of a topic that a request gives by name or by id; None for an unknown id, or without either."""
    if topic.topic_id == ZERO_TOPIC_ID:
        name: str | None = topic.name
        return name
    found = image.topics_by_id.get(topic.topic_id)
    return found.name if found else None


def produce(request: ProduceRequest, rights: Rights) -> Ruling:
    """WRITE on each topic, and on the transactional id if a batch is transactional."""
    if any_transactional(request) and not (
        request.transactional_id is not None
        and rights.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    ):
        error = Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return ProduceResponse(responses=refused_topics(ProduceResponse, request.topics, error_code=error))
    allowed, denied = rights.split(
        AclOperation.WRITE, ResourceType.TOPIC, request.topics, lambda topic: named(topic, rights.image)
    )
    return without(request, refused_topics(ProduceResponse, denied, error_code=_DENIED), "responses", topics=allowed)


def list_offsets(request: ListOffsetsRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each topic."""
    allowed, denied = rights.split(AclOperation.DESCRIBE, ResourceType.TOPIC, request.topics, lambda topic: topic.name)
    return without(request, refused_topics(ListOffsetsResponse, denied, error_code=_DENIED), topics=allowed)


def offsets_for_leader_epochs(request: OffsetForLeaderEpochRequest, rights: Rights) -> Ruling:
    """CLUSTER_ACTION, or DESCRIBE on each topic."""
    if rights.on_cluster(AclOperation.CLUSTER_ACTION, quiet=True):
        return request
    allowed, denied = rights.split(AclOperation.DESCRIBE, ResourceType.TOPIC, request.topics, lambda topic: topic.topic)
    return without(request, refused_topics(OffsetForLeaderEpochResponse, denied, error_code=_DENIED), topics=allowed)


def delete_records(request: DeleteRecordsRequest, rights: Rights) -> Ruling:
    """DELETE on each topic."""
    allowed, denied = rights.split(AclOperation.DELETE, ResourceType.TOPIC, request.topics, lambda topic: topic.name)
    return without(request, refused_topics(DeleteRecordsResponse, denied, error_code=_DENIED), topics=allowed)


def describe_producers(request: DescribeProducersRequest, rights: Rights) -> Ruling:
    """READ on each topic."""
    allowed, denied = rights.split(AclOperation.READ, ResourceType.TOPIC, request.topics, lambda topic: topic.name)
    return without(request, refused_topics(DescribeProducersResponse, denied, error_code=_DENIED), topics=allowed)
