"""Fetch (1), and the end offset of a leader epoch: OffsetForLeaderEpoch (23)."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.base import Request, Response, message
from shareq.model.messages.share_fetch import LeaderIdAndEpoch, NodeEndpoint
from shareq.model.records import RecordBatch
from shareq.model.states import IsolationLevel

NO_SESSION = 0
"""Fetch session id of a fetch outside of any session."""

INITIAL_EPOCH = 0
"""Fetch session epoch that requests a new session; with a session id, the new session replaces that session."""

FINAL_EPOCH = -1
"""Fetch session epoch of a fetch outside of any session; with a session id, it closes that session."""

UNKNOWN_LEADER = LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)


@message
class FetchRequest(Request):
    """Topics by id, before version 13 by name. A `current_leader_epoch` of -1 is not checked; `max_wait_ms` limits the
    wait for `min_bytes`."""

    API_KEY: ClassVar[int] = 1

    @message
    class Partition:
        partition: int
        fetch_offset: int
        partition_max_bytes: int = 1048576
        current_leader_epoch: int = -1
        last_fetched_epoch: int = -1

    @message
    class Topic:
        topic_id: TopicId = ZERO_TOPIC_ID
        topic: str = ""
        partitions: tuple[FetchRequest.Partition, ...]

    @message
    class ForgottenTopic:
        topic_id: TopicId = ZERO_TOPIC_ID
        topic: str = ""
        partitions: tuple[int, ...]

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52428800
    isolation_level: int = IsolationLevel.READ_UNCOMMITTED
    session_id: int = NO_SESSION
    session_epoch: int = FINAL_EPOCH
    topics: tuple[Topic, ...] = ()
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()
    rack_id: str = ""


@message
class FetchResponse(Response):
    @message
    class AbortedTransaction:
        producer_id: int
        first_offset: int

    @message
    class Partition:
        """`aborted_transactions` is None for read_uncommitted; `records` may begin below the requested offset."""

        partition_index: int
        error_code: Errors = Errors.NONE
        high_watermark: int = -1
        last_stable_offset: int = -1
        log_start_offset: int = -1
        current_leader: LeaderIdAndEpoch = UNKNOWN_LEADER
        aborted_transactions: tuple[FetchResponse.AbortedTransaction, ...] | None = None
        records: tuple[RecordBatch, ...] = ()

    @message
    class Topic:
        topic_id: TopicId = ZERO_TOPIC_ID
        topic: str = ""
        partitions: tuple[FetchResponse.Partition, ...]

    error_code: Errors = Errors.NONE
    session_id: int = NO_SESSION
    responses: tuple[Topic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


@message
class OffsetForLeaderEpochRequest(Request):
    API_KEY: ClassVar[int] = 23

    @message
    class Partition:
        partition: int
        leader_epoch: int
        current_leader_epoch: int = -1

    @message
    class Topic:
        topic: str
        partitions: tuple[OffsetForLeaderEpochRequest.Partition, ...]

    topics: tuple[Topic, ...]


@message
class OffsetForLeaderEpochResponse(Response):
    """`end_offset` is exclusive; -1 and epoch -1 for an unknown epoch."""

    @message
    class Partition:
        partition: int
        error_code: Errors = Errors.NONE
        leader_epoch: int = -1
        end_offset: int = -1

    @message
    class Topic:
        topic: str
        partitions: tuple[OffsetForLeaderEpochResponse.Partition, ...]

    topics: tuple[Topic, ...] = ()
