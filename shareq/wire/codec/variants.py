"""Messages that differ from Kafka's schema in more than a missing field, and rules that the schemas lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from shareq.model.errors import Errors
from shareq.model.messages.api_versions import ApiVersionsResponse
from shareq.model.messages.base import message
from shareq.model.messages.classic_group import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from shareq.model.messages.cluster import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    MetadataRequest,
)
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest
from shareq.model.messages.data import ListOffsetsRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetFetchRequest
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from shareq.model.messages.topics import DeleteTopicsRequest, DescribeConfigsRequest
from shareq.model.messages.transactions import AddPartitionsToTxnRequest, TxnOffsetCommitRequest
from shareq.wire.codec.early_versions import EARLY_VERSIONS, OneGroup
from shareq.wire.codec.variant import Variant
from shareq.wire.errors import UnsupportedVersion

ALIASES: Mapping[str, str] = MappingProxyType(
    {"topic_data": "topics", "partition_data": "partitions", "partition_responses": "partitions"}
)
"""Kafka's field names -> those of the message classes, where they differ."""

CONSTANTS: Mapping[str, int] = MappingProxyType({"replica_id": -1})
"""The written values of fields that the message classes lack and that have no default: no client is a replica."""


@message
class _OneKey:
    key: str
    key_type: int = CoordinatorType.GROUP


MUST_TRAVEL = frozenset(
    {
        (AddPartitionsToTxnRequest, "transactions"),
        (ConsumerGroupHeartbeatRequest, "subscribed_topic_regex"),
        (DescribeConfigsRequest, "include_documentation"),
        (DescribeGroupsRequest, "include_authorized_operations"),
        (FetchRequest.ForgottenTopic, "topic_id"),
        (FetchRequest.Topic, "topic_id"),
        (HeartbeatRequest, "group_instance_id"),
        (JoinGroupRequest, "group_instance_id"),
        (LeaveGroupRequest, "member_id"),
        (LeaveGroupRequest, "members"),
        (ListGroupsRequest, "states_filter"),
        (ListGroupsRequest, "types_filter"),
        (ListOffsetsRequest, "isolation_level"),
        (MetadataRequest, "include_cluster_authorized_operations"),
        (MetadataRequest, "include_topic_authorized_operations"),
        (OffsetCommitRequest, "group_instance_id"),
        (OffsetFetchRequest, "require_stable"),
        (OneGroup, "require_stable"),
        (ShareAcknowledgeRequest, "is_renew_ack"),
        (ShareFetchRequest, "is_renew_ack"),
        (ShareFetchRequest, "share_acquire_mode"),
        (SyncGroupRequest, "group_instance_id"),
        (TxnOffsetCommitRequest, "generation_id"),
        (TxnOffsetCommitRequest, "group_instance_id"),
        (TxnOffsetCommitRequest, "member_id"),
        (_OneKey, "key_type"),
    }
)
"""Fields that are not ignorable in Kafka: a request with a value there cannot be sent in a version without them."""


# ---- FindCoordinator before version 4: one key, one coordinator ------------------------------------------------------


@message
class _OneCoordinator:
    error_code: Errors
    error_message: str | None
    node_id: int
    host: str
    port: int


def _one_key(request: FindCoordinatorRequest) -> _OneKey:
    if len(request.coordinator_keys) != 1:
        raise UnsupportedVersion("before version 4 a request has exactly one coordinator key")
    return _OneKey(key=request.coordinator_keys[0], key_type=request.key_type)


def _any_keys(wire: _OneKey) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(coordinator_keys=(wire.key,), key_type=wire.key_type)


def _one_coordinator(response: FindCoordinatorResponse) -> _OneCoordinator:
    (found,) = response.coordinators
    return _OneCoordinator(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _any_coordinators(wire: _OneCoordinator) -> FindCoordinatorResponse:
    """The key is empty: only the sender of the request has it."""
    coordinator = FindCoordinatorResponse.Coordinator(
        key="",
        node_id=wire.node_id,
        host=wire.host,
        port=wire.port,
        error_code=wire.error_code,
        error_message=wire.error_message,
    )
    return FindCoordinatorResponse(coordinators=(coordinator,))


# ---- DeleteTopics before version 6: only names -----------------------------------------------------------------------


@message
class _TopicNames:
    topic_names: tuple[str, ...]
    timeout_ms: int


def _names(request: DeleteTopicsRequest) -> _TopicNames:
    names = tuple(topic.name for topic in request.topics if topic.name is not None)
    if len(names) != len(request.topics):
        raise UnsupportedVersion("before version 6 topics are deleted by name")
    return _TopicNames(topic_names=names, timeout_ms=request.timeout_ms)


def _topics(wire: _TopicNames) -> DeleteTopicsRequest:
    topics = tuple(DeleteTopicsRequest.Topic(name=name) for name in wire.topic_names)
    return DeleteTopicsRequest(topics=topics, timeout_ms=wire.timeout_ms)


# ---- ApiVersions 3: its clients reject a supported feature with minimum 0 (KIP-584) ----------------------------------


def _without_zero_features(response: ApiVersionsResponse) -> ApiVersionsResponse:
    shown = tuple(feature for feature in response.supported_features if feature.min_version > 0)
    return response if len(shown) == len(response.supported_features) else replace(response, supported_features=shown)


_FIND_REQUEST = Variant(_OneKey, _one_key, _any_keys)
_FIND_RESPONSE = Variant(_OneCoordinator, _one_coordinator, _any_coordinators)
_DELETE_TOPICS = Variant(_TopicNames, _names, _topics)
_API_VERSIONS = Variant(ApiVersionsResponse, _without_zero_features)

VARIANTS: Mapping[tuple[type, int], Variant] = MappingProxyType(
    {
        **{(FindCoordinatorRequest, version): _FIND_REQUEST for version in range(4)},
        **{(FindCoordinatorResponse, version): _FIND_RESPONSE for version in range(4)},
        **{(DeleteTopicsRequest, version): _DELETE_TOPICS for version in range(1, 6)},
        (ApiVersionsResponse, 3): _API_VERSIONS,
        **EARLY_VERSIONS,
    }
)
