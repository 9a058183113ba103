"""TxnShareAcknowledge (30003) and EndShareTransaction (30004): acknowledgements in a producer's transaction (an
experiment)."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response, message
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest


@message
class TxnShareAcknowledgeRequest(Request):
    """From a producer to the leader of the share-partitions: stage acknowledgements of a member's records in the
    producer's transaction. The types are ACCEPT and REJECT."""

    API_KEY: ClassVar[int] = 30003

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str
    member_id: str
    member_epoch: int
    topics: tuple[ShareAcknowledgeRequest.Topic, ...] = ()


@message
class TxnShareAcknowledgeResponse(Response):
    """`error_code`: of the request as a whole; then it has no results."""

    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[TxnShareAcknowledgeResponse.Partition, ...]

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    responses: tuple[Topic, ...] = ()


@message
class EndShareTransactionRequest(Request):
    """From the share coordinator to the leader of a share-partition: a transaction with staged acknowledgements has
    ended, durably. `leader_epoch`: that of the last leader that has read the state, which may have them in memory."""

    API_KEY: ClassVar[int] = 30004

    group_id: str
    topic_id: TopicId
    partition: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    committed: bool


@message
class EndShareTransactionResponse(Response):
    """With an error the share coordinator repeats the request."""

    error_code: Errors = Errors.NONE
    error_message: str | None = None
