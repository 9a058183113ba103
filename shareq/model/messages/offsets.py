"""Committed offsets of groups: OffsetCommit (8), OffsetFetch (9), OffsetDelete (47).

Commit and fetch identify topics by name before version 10, by id since.
"""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.base import Request, Response, message


@message
class OffsetCommitRequest(Request):
    """An empty member id and generation -1: the committer is no member of the group.

    `retention_time_ms`: how long the offsets are kept (before version 5); -1: as the broker is configured.
    """

    API_KEY: ClassVar[int] = 8

    @message
    class Partition:
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int = -1
        committed_metadata: str | None = None

    @message
    class Topic:
        name: str = ""
        topic_id: TopicId = ZERO_TOPIC_ID
        partitions: tuple[OffsetCommitRequest.Partition, ...]

    group_id: str
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: tuple[Topic, ...]


@message
class OffsetCommitResponse(Response):
    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE

    @message
    class Topic:
        name: str = ""
        topic_id: TopicId = ZERO_TOPIC_ID
        partitions: tuple[OffsetCommitResponse.Partition, ...]

    topics: tuple[Topic, ...] = ()


@message
class OffsetFetchRequest(Request):
    """`require_stable`: an offset that an open transaction will replace is answered with an error."""

    API_KEY: ClassVar[int] = 9

    @message
    class Topic:
        name: str = ""
        topic_id: TopicId = ZERO_TOPIC_ID
        partition_indexes: tuple[int, ...]

    @message
    class Group:
        """`topics` None requests all topics of the group."""

        group_id: str
        member_id: str | None = None
        member_epoch: int = -1
        topics: tuple[OffsetFetchRequest.Topic, ...] | None = None

    groups: tuple[Group, ...]
    require_stable: bool = False


@message
class OffsetFetchResponse(Response):
    @message
    class Partition:
        """Offset -1: no offset is committed."""

        partition_index: int
        committed_offset: int = -1
        committed_leader_epoch: int = -1
        metadata: str | None = ""
        error_code: Errors = Errors.NONE

    @message
    class Topic:
        name: str = ""
        topic_id: TopicId = ZERO_TOPIC_ID
        partitions: tuple[OffsetFetchResponse.Partition, ...]

    @message
    class Group:
        group_id: str
        topics: tuple[OffsetFetchResponse.Topic, ...] = ()
        error_code: Errors = Errors.NONE

    groups: tuple[Group, ...] = ()


@message
class OffsetDeleteRequest(Request):
    API_KEY: ClassVar[int] = 47

    @message
    class Partition:
        partition_index: int

    @message
    class Topic:
        name: str
        partitions: tuple[OffsetDeleteRequest.Partition, ...]

    group_id: str
    topics: tuple[Topic, ...]


@message
class OffsetDeleteResponse(Response):
    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE

    @message
    class Topic:
        name: str
        partitions: tuple[OffsetDeleteResponse.Partition, ...]

    error_code: Errors = Errors.NONE
    topics: tuple[Topic, ...] = ()
