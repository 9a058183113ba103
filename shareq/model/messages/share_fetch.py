"""ShareFetch (78) and ShareAcknowledge (79): acquire records and acknowledge them."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response, message
from shareq.model.records import RecordBatch
from shareq.model.states import AcquireMode

FINAL_EPOCH = -1
"""Share session epoch that closes the session; member epoch that leaves the group."""


RULE_DELAY = -1
"""No delay is requested: the group's configuration applies."""


@message
class AcknowledgementBatch:
    """Offsets are inclusive. `acknowledge_types` holds one type for all offsets, or one type for each offset.

    `release_delay_ms`: the records that are released rest for this time, RULE_DELAY for the group's rule. A tagged
    field, which Kafka does not have: its brokers ignore it.
    """

    first_offset: int
    last_offset: int
    acknowledge_types: tuple[int, ...]
    release_delay_ms: int = RULE_DELAY


@message
class AcquiredRecords:
    """Offsets are inclusive."""

    first_offset: int
    last_offset: int
    delivery_count: int


@message
class LeaderIdAndEpoch:
    leader_id: int = 0
    leader_epoch: int = 0


NO_LEADER = LeaderIdAndEpoch()


@message
class NodeEndpoint:
    node_id: int
    host: str
    port: int
    rack: str | None = None


@message
class ShareSessionRequest(Request):
    """A request of a share session, with acknowledgements. `is_renew_ack`: some of them renew locks."""

    @message
    class Partition:
        partition_index: int
        acknowledgement_batches: tuple[AcknowledgementBatch, ...] = ()

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[ShareSessionRequest.Partition, ...]

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool = False
    topics: tuple[ShareSessionRequest.Topic, ...] = ()


@message
class ShareFetchRequest(ShareSessionRequest):
    API_KEY: ClassVar[int] = 78

    @message
    class ForgottenTopic:
        topic_id: TopicId
        partitions: tuple[int, ...]

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52428800
    max_records: int = 500
    batch_size: int = 500
    share_acquire_mode: int = AcquireMode.BATCH_OPTIMIZED
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()


@message
class ShareFetchResponse(Response):
    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        acknowledge_error_code: Errors = Errors.NONE
        acknowledge_error_message: str | None = None
        current_leader: LeaderIdAndEpoch = NO_LEADER
        records: tuple[RecordBatch, ...] = ()
        acquired_records: tuple[AcquiredRecords, ...] = ()

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[ShareFetchResponse.Partition, ...]

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: tuple[Topic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


@message
class ShareAcknowledgeRequest(ShareSessionRequest):
    API_KEY: ClassVar[int] = 79


@message
class ShareAcknowledgeResponse(Response):
    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        current_leader: LeaderIdAndEpoch = NO_LEADER

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[ShareAcknowledgeResponse.Partition, ...]

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: tuple[Topic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
