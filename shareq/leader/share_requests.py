"""ShareFetch and ShareAcknowledge as messages: request checks, and how responses are assembled.

This module uses neither sessions nor share-partitions. Order of checks: KIP-932, "Client protocol", as in Kafka 4.3.
Rules: BEHAVIOUR.md, "Requests and responses".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.image import NO_LEADER, ClusterImage
from shareq.model.messages.share_fetch import (
    NO_LEADER as NO_HINT,
)
from shareq.model.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.records import RecordBatch
from shareq.model.states import AcknowledgeType

ShareRequest = ShareFetchRequest | ShareAcknowledgeRequest
ShareResponse = ShareFetchResponse | ShareAcknowledgeResponse

MAX_MEMBER_ID_LENGTH = 36

_TYPES = frozenset(map(int, AcknowledgeType))
_WITHOUT_RENEWALS = _TYPES - {int(AcknowledgeType.RENEW)}
"""The acknowledge types of a request with `is_renew_ack`, and of one without."""


class AcknowledgeResult(NamedTuple):
    """The result of a partition's acknowledgements. Only errors of the leader have a message."""

    error: Errors = Errors.NONE
    message: str | None = None


class FetchedPartition(NamedTuple):
    """The result of a fetch for one partition."""

    error: Errors = Errors.NONE
    records: tuple[RecordBatch, ...] = ()
    acquired: tuple[AcquiredRecords, ...] = ()


ACKNOWLEDGED = AcknowledgeResult()
NOTHING_FETCHED = FetchedPartition()

_ACKNOWLEDGE_RESULTS = {
    error: AcknowledgeResult(error, message)
    for error, message in {
        Errors.NONE: None,
        Errors.INVALID_RECORD_STATE: "the records are not acquired by this member, or not in a state that allows it",
        Errors.INVALID_REQUEST: "the acknowledgement contains offsets that were never in flight, or an invalid type",
        Errors.UNKNOWN_TOPIC_OR_PARTITION: "this broker does not have the share-partition in memory",
        Errors.NOT_LEADER_OR_FOLLOWER: "this broker is no longer the leader of the share-partition",
        Errors.COORDINATOR_NOT_AVAILABLE: "the state could not be made durable: no share coordinator is available",
        Errors.GROUP_ID_NOT_FOUND: "the state could not be made durable: the group does not exist",
    }.items()
}
_STATE_NOT_DURABLE = AcknowledgeResult(Errors.UNKNOWN_SERVER_ERROR, "the state could not be made durable")


def acknowledge_result(error: Errors) -> AcknowledgeResult:
    """The result of an acknowledgement that reached the share-partition's leader."""
    return _ACKNOWLEDGE_RESULTS.get(error, _STATE_NOT_DURABLE)


# ---- request checks --------------------------------------------------------------------------------------------------


def request_error(request: ShareRequest, share_version: int) -> Errors:
    """The error of a request as a whole, before sessions are checked."""
    if share_version < 1:
        return Errors.UNSUPPORTED_VERSION
    if request.group_id is None or not request.member_id or len(request.member_id) > MAX_MEMBER_ID_LENGTH:
        return Errors.INVALID_REQUEST
    if isinstance(request, ShareFetchRequest) and request.is_renew_ack:
        limits = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
        return Errors.INVALID_REQUEST if any(limits) else Errors.NONE
    return Errors.NONE


def acknowledgement_error(batches: Iterable[AcknowledgementBatch], *, is_renew_ack: bool) -> Errors:
    """The error of a partition's acknowledgement batches as they are on the wire. One invalid batch rejects all of
    them.

    A batch may start at the last offset of the previous one: Kafka accepts that here, and the leader refuses it.
    """
    allowed = _TYPES if is_renew_ack else _WITHOUT_RENEWALS
    previous_last = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last or first < previous_last:
            return Errors.INVALID_REQUEST
        if len(types) == 1:
            if types[0] not in allowed:
                return Errors.INVALID_REQUEST
        elif len(types) != last - first + 1 or not allowed.issuperset(types):
            return Errors.INVALID_REQUEST
        previous_last = last
    return Errors.NONE


def acknowledgements(request: ShareRequest) -> dict[TopicIdPartition, tuple[AcknowledgementBatch, ...]]:
    """Acknowledgement batches by partition. A ShareFetch without any batch acknowledges nothing; else every partition
    that it lists gets a result, as in a ShareAcknowledge. If a partition is listed twice, the last one counts."""
    found = {
        TopicIdPartition(topic.topic_id, part.partition_index): part.acknowledgement_batches
        for topic in request.topics
        for part in topic.partitions
    }
    if isinstance(request, ShareFetchRequest) and not any(found.values()):
        return {}
    return found


# ---- responses -------------------------------------------------------------------------------------------------------


def error_response(request: ShareRequest, error: Errors) -> ShareResponse:
    """The response to a request that was refused as a whole."""
    if isinstance(request, ShareFetchRequest):
        return ShareFetchResponse(error_code=error)
    return ShareAcknowledgeResponse(error_code=error)


class LeaderHints:
    """Names the current leader to clients that used the wrong broker (KIP-951)."""

    __slots__ = ("_endpoints", "_image")

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._endpoints: dict[int, NodeEndpoint] = {}

    def of(self, at: TopicIdPartition, error: Errors) -> LeaderIdAndEpoch:
        """The leader hint for `error`; unset (0, 0) unless the error is about leadership."""
        if error not in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH):
            return NO_HINT
        partition = self._image.partition(at.topic_id, at.partition)
        if partition is None:
            return LeaderIdAndEpoch(leader_id=NO_LEADER, leader_epoch=-1)
        node = self._image.brokers.get(partition.leader)
        if node is not None and node.alive:
            self._endpoints[node.broker_id] = NodeEndpoint(
                node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack
            )
        return LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)

    @property
    def endpoints(self) -> tuple[NodeEndpoint, ...]:
        """The endpoints of the brokers in the hints, each once."""
        return tuple(self._endpoints.values())


def fetch_response(
    image: ClusterImage,
    lock_duration_ms: int,
    fetched: Mapping[TopicIdPartition, FetchedPartition],
    acks: Mapping[TopicIdPartition, AcknowledgeResult],
) -> ShareFetchResponse:
    """The response to a ShareFetch: fetched records and acknowledgement results by partition.

    As in Kafka, an acknowledgement's error carries no leader hint here.
    """
    hints = LeaderHints(image)
    topics: dict[TopicId, list[ShareFetchResponse.Partition]] = {}
    for at in dict.fromkeys([*fetched, *acks]):
        error, records, acquired = fetched.get(at, NOTHING_FETCHED)
        acknowledge_error, acknowledge_message = acks.get(at, ACKNOWLEDGED)
        part = ShareFetchResponse.Partition(
            partition_index=at.partition,
            error_code=error,
            acknowledge_error_code=acknowledge_error,
            acknowledge_error_message=acknowledge_message,
            current_leader=hints.of(at, error) if error else NO_HINT,
            records=records,
            acquired_records=acquired,
        )
        topics.setdefault(at.topic_id, []).append(part)
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=lock_duration_ms,
        responses=tuple(
            [ShareFetchResponse.Topic(topic_id=topic_id, partitions=tuple(parts)) for topic_id, parts in topics.items()]
        ),
        node_endpoints=hints.endpoints,
    )


def acknowledge_response(
    image: ClusterImage, lock_duration_ms: int, acks: Mapping[TopicIdPartition, AcknowledgeResult]
) -> ShareAcknowledgeResponse:
    """The response to a ShareAcknowledge: one result for each listed partition."""
    hints = LeaderHints(image)
    topics: dict[TopicId, list[ShareAcknowledgeResponse.Partition]] = {}
    for at, (error, message) in acks.items():
        part = ShareAcknowledgeResponse.Partition(
            partition_index=at.partition, error_code=error, error_message=message, current_leader=hints.of(at, error)
        )
        topics.setdefault(at.topic_id, []).append(part)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_duration_ms,
        responses=tuple(
            ShareAcknowledgeResponse.Topic(topic_id=topic_id, partitions=tuple(parts))
            for topic_id, parts in topics.items()
        ),
        node_endpoints=hints.endpoints,
    )
