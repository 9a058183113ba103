"""Rules of the requests about topics. A topic that may not be described looks like one that does not exist.

Source: Kafka's KafkaApis.handleTopicMetadataRequest, DescribeTopicPartitionsRequestHandler, ControllerApis.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from shareq.broker.authorization.logs import named
from shareq.broker.authorization.rulings import Filtered, Ruling, without
from shareq.broker.metadata import BY_ID
from shareq.model.acls import AclOperation, ResourceType
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.describe import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
from shareq.model.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from shareq.model.rights import Rights

_DENIED = Errors.TOPIC_AUTHORIZATION_FAILED


# ---- descriptions ----------------------------------------------------------------------------------------------------


def metadata(request: MetadataRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each topic; of all topics those that may be described. To create a missing topic: CREATE on it, or on
    the cluster."""
    refused: list[MetadataResponse.Topic] = []
    left = request
    if request.topics is not None and not _is_invalid(request, rights):
        left, refused = _metadata_by_topic(request, request.topics, rights)

    def complete(response: MetadataResponse) -> MetadataResponse:
        topics = response.topics
        if request.topics is None:
            topics = tuple(topic for topic in topics if topic.name is not None and rights.sees_topic(topic.name))
        if request.include_topic_authorized_operations:
            topics = tuple(_with_operations(topic, rights) for topic in topics)
        operations = response.cluster_authorized_operations
        if request.include_cluster_authorized_operations:
            operations = rights.cluster_operations()
        return replace(response, topics=(*topics, *refused), cluster_authorized_operations=operations)

    return Filtered(left, complete)


def _is_invalid(request: MetadataRequest, rights: Rights) -> bool:
    """True for a request by id in a version without ids, which is refused with any rights."""
    return rights.api_version < BY_ID and any(
        topic.name is None or topic.topic_id != ZERO_TOPIC_ID for topic in request.topics or ()
    )


def _metadata_by_topic(
    request: MetadataRequest, topics: tuple[MetadataRequest.Topic, ...], rights: Rights
) -> tuple[MetadataRequest, list[MetadataResponse.Topic]]:
    """The request for the topics that may be described, and, if they are to be created, created."""
    image = rights.image
    by_id = any(topic.topic_id != ZERO_TOPIC_ID for topic in topics)
    if by_id:
        topics = tuple(topic for topic in topics if topic.topic_id != ZERO_TOPIC_ID)
    allowed, denied = rights.split(AclOperation.DESCRIBE, ResourceType.TOPIC, topics, lambda topic: named(topic, image))
    refused = [
        # Ids are no secret, names are.
        MetadataResponse.Topic(name=None if by_id else topic.name, topic_id=topic.topic_id, error_code=_DENIED)
        for topic in dict.fromkeys(denied)
    ]
    creates = request.allow_auto_topic_creation and image.broker_config["auto.create.topics.enable"]
    if creates and not by_id:
        missing = tuple(topic for topic in allowed if (topic.name or "") not in image.topics)
        if missing and not rights.on_cluster(AclOperation.CREATE, quiet=True):
            _, denied = rights.split(AclOperation.CREATE, ResourceType.TOPIC, missing, lambda topic: topic.name)
            refused[:0] = [
                MetadataResponse.Topic(name=topic.name, topic_id=ZERO_TOPIC_ID, error_code=_DENIED)
                for topic in dict.fromkeys(denied)
            ]
            allowed = tuple(topic for topic in allowed if topic not in denied)
    return replace(request, topics=allowed), refused


def _with_operations(topic: MetadataResponse.Topic, rights: Rights) -> MetadataResponse.Topic:
    if topic.name is None:
        return topic
    return replace(topic, topic_authorized_operations=rights.operations(ResourceType.TOPIC, topic.name))


def describe_topic_partitions(request: DescribeTopicPartitionsRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each topic; of all topics those that may be described."""
    first = request.cursor.topic_name if request.cursor else ""
    requested = tuple(topic for topic in request.topics if topic.name >= first)
    if not request.topics:
        visible = sorted(name for name in rights.image.topics if rights.sees_topic(name))
        requested = tuple(DescribeTopicPartitionsRequest.Topic(name=name) for name in visible)
    allowed, denied = rights.split(AclOperation.DESCRIBE, ResourceType.TOPIC, requested, lambda topic: topic.name)
    hidden = sorted({topic.name for topic in denied})
    refused = tuple(DescribeTopicPartitionsResponse.Topic(name=name, error_code=_DENIED) for name in hidden)
    if not allowed:  # an empty list of topics would mean all
        return DescribeTopicPartitionsResponse(topics=refused)

    def complete(response: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
        shown = tuple(
            replace(topic, topic_authorized_operations=rights.operations(ResourceType.TOPIC, topic.name or ""))
            for topic in response.topics
        )
        return replace(response, topics=shown + refused)

    return Filtered(replace(request, topics=allowed), complete)


# ---- changes ---------------------------------------------------------------------------------------------------------


def create_topics(request: CreateTopicsRequest, rights: Rights) -> Ruling:
    """CREATE on each topic, or on the cluster; the response has the configurations of those with DESCRIBE_CONFIGS."""
    counts = Counter(topic.name for topic in request.topics)
    may_create_all = rights.on_cluster(AclOperation.CREATE, quiet=True)
    allowed, denied = rights.split(
        AclOperation.CREATE,
        ResourceType.TOPIC,
        request.topics,
        lambda topic: None if may_create_all or counts[topic.name] > 1 else topic.name,
    )
    refused = tuple(
        CreateTopicsResponse.Topic(name=topic.name, error_code=_DENIED, error_message="Authorization failed.")
        for topic in denied
    )

    def shown(topic: CreateTopicsResponse.Topic) -> CreateTopicsResponse.Topic:
        if topic.error_code or rights.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name, quiet=True):
            return topic
        return replace(topic, num_partitions=-1, replication_factor=-1, configs=(), topic_config_error_code=_DENIED)

    return Filtered(
        replace(request, topics=allowed),
        lambda response: replace(response, topics=(*map(shown, response.topics), *refused)),
    )


def delete_topics(request: DeleteTopicsRequest, rights: Rights) -> Ruling:
    """DELETE on each topic, or on the cluster. A topic given by id shows its name to those who may describe it."""
    if rights.on_cluster(AclOperation.DELETE, quiet=True):
        return request
    counts = Counter((topic.name, topic.topic_id) for topic in request.topics)

    def name(topic: DeleteTopicsRequest.Topic) -> str | None:
        """None for what is refused with any rights: a topic named twice, or by name and by id."""
        contradicts = topic.name is not None and topic.topic_id != ZERO_TOPIC_ID
        return None if contradicts or counts[topic.name, topic.topic_id] > 1 else named(topic, rights.image)

    allowed, denied = rights.split(AclOperation.DELETE, ResourceType.TOPIC, request.topics, name)
    return without(request, tuple(_not_deleted(topic, rights) for topic in denied), "responses", topics=allowed)


def _not_deleted(topic: DeleteTopicsRequest.Topic, rights: Rights) -> DeleteTopicsResponse.Topic:
    name = named(topic, rights.image)
    shown = name if topic.name is not None or rights.sees_topic(name or "") else None
    return DeleteTopicsResponse.Topic(name=shown, topic_id=topic.topic_id, error_code=_DENIED)


def create_partitions(request: CreatePartitionsRequest, rights: Rights) -> Ruling:
    """ALTER on each topic."""
    counts = Counter(topic.name for topic in request.topics)
    allowed, denied = rights.split(
        AclOperation.ALTER,
        ResourceType.TOPIC,
        request.topics,
        lambda topic: topic.name if counts[topic.name] == 1 else None,
    )
    refused = tuple(CreatePartitionsResponse.Topic(name=topic.name, error_code=_DENIED) for topic in denied)
    return without(request, refused, "results", topics=allowed)
