"""Records and offsets of a log: Produce (0), ListOffsets (2), DeleteRecords (21)."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.base import Request, Response, message
from shareq.model.messages.fetch import UNKNOWN_LEADER
from shareq.model.messages.share_fetch import LeaderIdAndEpoch, NodeEndpoint
from shareq.model.states import IsolationLevel

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3


@message
class ProduceRequest(Request):
    API_KEY: ClassVar[int] = 0

    @message
    class Partition:
        """`records` is one record batch with base offset 0."""

        index: int
        records: bytes

    @message
    class Topic:
        """By id, or by name where the id is zero (before version 13)."""

        topic_id: TopicId = ZERO_TOPIC_ID
        name: str = ""
        partitions: tuple[ProduceRequest.Partition, ...]

    transactional_id: str | None = None
    acks: int = -1
    timeout_ms: int = 30000
    topics: tuple[Topic, ...]


@message
class ProduceResponse(Response):
    @message
    class RecordError:
        """`batch_index` is the index of the record in its batch."""

        batch_index: int
        batch_index_error_message: str | None = None

    @message
    class Partition:
        index: int
        error_code: Errors = Errors.NONE
        base_offset: int = -1
        log_append_time_ms: int = -1
        log_start_offset: int = -1
        record_errors: tuple[ProduceResponse.RecordError, ...] = ()
        error_message: str | None = None
        current_leader: LeaderIdAndEpoch = UNKNOWN_LEADER

    @message
    class Topic:
        topic_id: TopicId = ZERO_TOPIC_ID
        name: str = ""
        partitions: tuple[ProduceResponse.Partition, ...]

    responses: tuple[Topic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


@message
class ListOffsetsRequest(Request):
    API_KEY: ClassVar[int] = 2

    @message
    class Partition:
        partition_index: int
        timestamp: int
        current_leader_epoch: int = -1

    @message
    class Topic:
        name: str
        partitions: tuple[ListOffsetsRequest.Partition, ...]

    isolation_level: int = IsolationLevel.READ_UNCOMMITTED
    topics: tuple[Topic, ...]


@message
class ListOffsetsResponse(Response):
    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE
        timestamp: int = -1
        offset: int = -1
        leader_epoch: int = -1

    @message
    class Topic:
        name: str
        partitions: tuple[ListOffsetsResponse.Partition, ...]

    topics: tuple[Topic, ...] = ()


@message
class DeleteRecordsRequest(Request):
    """`offset` -1 deletes everything up to the high watermark."""

    API_KEY: ClassVar[int] = 21

    @message
    class Partition:
        partition_index: int
        offset: int

    @message
    class Topic:
        name: str
        partitions: tuple[DeleteRecordsRequest.Partition, ...]

    topics: tuple[Topic, ...]
    timeout_ms: int = 30000


@message
class DeleteRecordsResponse(Response):
    @message
    class Partition:
        partition_index: int
        low_watermark: int = -1
        error_code: Errors = Errors.NONE

    @message
    class Topic:
        name: str
        partitions: tuple[DeleteRecordsResponse.Partition, ...]

    topics: tuple[Topic, ...] = ()
