"""TxnShareAcknowledge and the requests that it causes, as messages: checks, and what answers mean."""

from __future__ import annotations

from shareq.leader.led_partitions import client_error
from shareq.leader.share_requests import MAX_MEMBER_ID_LENGTH
from shareq.model.actor import Answer
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey, TopicId, partition_for
from shareq.model.image import ClusterImage
from shareq.model.messages.share_group import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from shareq.model.messages.share_transactions import TxnShareAcknowledgeRequest, TxnShareAcknowledgeResponse
from shareq.model.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign, design_of

Refusal = tuple[Errors, str | None]
"""An error with its reason; NONE: there is none."""

GRANTED: Refusal = (Errors.NONE, None)

_UNREACHED = {
    Errors.NETWORK_EXCEPTION: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
}
"""The error for the client if a coordinator does not answer."""

_OF_TRANSACTIONS = frozenset({Errors.INVALID_PRODUCER_EPOCH, Errors.INVALID_TXN_STATE, Errors.UNSUPPORTED_VERSION})
"""Errors of a staged write that the client gets as they are."""

_REASONS = {
    Errors.INVALID_RECORD_STATE: "the records are not acquired by this member, or staged already",
    Errors.INVALID_REQUEST: "the acknowledgement contains other types than ACCEPT and REJECT, or invalid offsets",
    Errors.UNKNOWN_TOPIC_OR_PARTITION: "this broker does not have the share-partition in memory",
    Errors.NOT_LEADER_OR_FOLLOWER: "this broker is no longer the leader of the share-partition",
    Errors.COORDINATOR_NOT_AVAILABLE: "a coordinator of the group, the transaction or the state is not available",
    Errors.CONCURRENT_TRANSACTIONS: "the former transaction of the producer is being completed",
    Errors.INVALID_PRODUCER_EPOCH: "the transaction has ended, or there is a later producer of the transactional id",
    Errors.PRODUCER_FENCED: "there is a later producer of the transactional id",
    Errors.INVALID_TXN_STATE: "the transaction has ended",
}


class StagingResults:
    """What a request acknowledges in each share-partition, and the results so far."""

    def __init__(self, request: TxnShareAcknowledgeRequest) -> None:
        self.request = request
        self.wanted = {
            SharePartitionKey(request.group_id, topic.topic_id, part.partition_index): part.acknowledgement_batches
            for topic in request.topics
            for part in topic.partitions
        }
        self._errors: dict[SharePartitionKey, Errors] = {}

    def put(self, key: SharePartitionKey, error: Errors) -> bool:
        """Add the result of one share-partition; True if it is the last one."""
        self._errors[key] = error
        return len(self._errors) == len(self.wanted)

    def response(self) -> TxnShareAcknowledgeResponse:
        return TxnShareAcknowledgeResponse(
            responses=tuple(
                TxnShareAcknowledgeResponse.Topic(
                    topic_id=topic.topic_id,
                    partitions=tuple(self._result(topic.topic_id, part.partition_index) for part in topic.partitions),
                )
                for topic in self.request.topics
            )
        )

    def _result(self, topic_id: TopicId, partition: int) -> TxnShareAcknowledgeResponse.Partition:
        error = self._errors[SharePartitionKey(self.request.group_id, topic_id, partition)]
        return TxnShareAcknowledgeResponse.Partition(
            partition_index=partition, error_code=error, error_message=_REASONS.get(error)
        )


def refusal_of(request: TxnShareAcknowledgeRequest, image: ClusterImage) -> Refusal:
    """The refusal of a request as a whole."""
    if image.share_version < 1:
        return Errors.UNSUPPORTED_VERSION, "share groups are switched off"
    design = design_of(image.broker_config[PERSISTER_CLASS])
    if design is not StateDesign.STATE_TOPIC:
        why = f"transactional acknowledgements need the persister {StateDesign.STATE_TOPIC}, and this is {design}"
        return Errors.UNSUPPORTED_VERSION, why
    if not request.transactional_id or request.producer_id < 0 or request.producer_epoch < 0:
        return Errors.INVALID_REQUEST, "the request has no transactional id, producer id or epoch"
    if not request.group_id or not 0 < len(request.member_id) <= MAX_MEMBER_ID_LENGTH:
        return Errors.INVALID_REQUEST, "the request has no group, or no valid member id"
    named = [(topic.topic_id, part.partition_index) for topic in request.topics for part in topic.partitions]
    if not named or len(set(named)) < len(named):
        return Errors.INVALID_REQUEST, "the request names no partition, or one of them twice"
    return GRANTED


def describe_request(group_id: str) -> ShareGroupDescribeRequest:
    """The request to the group coordinator for the members of the group."""
    return ShareGroupDescribeRequest(group_ids=(group_id,))


def error_of_member(answer: Answer, member_id: str, member_epoch: int) -> Refusal:
    """The refusal of a member by the description of its group."""
    response = answer.response
    if not isinstance(response, ShareGroupDescribeResponse):
        return _UNREACHED.get(answer.error, answer.error), "the group coordinator does not answer"
    (group,) = response.groups
    if group.error_code:
        return group.error_code, group.error_message
    known = next((member.member_epoch for member in group.members if member.member_id == member_id), None)
    if known is None:
        return Errors.UNKNOWN_MEMBER_ID, f"member {member_id} is not in the group"
    if member_epoch == known:
        return GRANTED
    error = Errors.STALE_MEMBER_EPOCH if member_epoch < known else Errors.FENCED_MEMBER_EPOCH
    return error, f"member {member_id} is at epoch {known}, not {member_epoch}"


def state_partition(key: SharePartitionKey, image: ClusterImage) -> int | None:
    """The partition of the state topic that has the key; None without the topic."""
    topic = image.topics.get(SHARE_STATE_TOPIC)
    return None if topic is None else partition_for(str(key), len(topic.partitions))


def join_request(
    request: TxnShareAcknowledgeRequest, key: SharePartitionKey, image: ClusterImage
) -> AddPartitionsToTxnRequest | None:
    """The request to the transaction coordinator for the key's partition of the state topic; None without the topic."""
    index = state_partition(key, image)
    if index is None:
        return None
    return AddPartitionsToTxnRequest.of_leader(
        request.transactional_id, request.producer_id, request.producer_epoch, SHARE_STATE_TOPIC, index
    )


def error_of_addition(answer: Answer) -> Errors:
    """The transaction coordinator's result for the one partition."""
    response = answer.response
    if not isinstance(response, AddPartitionsToTxnResponse):
        return _UNREACHED.get(answer.error, answer.error)
    return response.error_of_leader


def write_error(error: Errors) -> Errors:
    """The error for the client after `error` of the persister."""
    return error if error in _OF_TRANSACTIONS else client_error(error)
