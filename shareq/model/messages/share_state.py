"""The share coordinator's requests (83-87): durable share-partition state.

`StateBatch` offsets are inclusive. A start offset of -1 is unknown, a delivery complete count of -1 was not counted.
Source: KIP-932, "Share coordinator"; KIP-1226 for the delivery complete count.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response, message


class StateBatch(NamedTuple):
    """A stored run of offsets with one state and delivery count; never ACQUIRED."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class Producer(NamedTuple):
    """A producer, in the transaction of one epoch. NO_PRODUCER: none."""

    id: int
    epoch: int


NO_PRODUCER = Producer(-1, -1)


class StagedBatch(NamedTuple):
    """A run of offsets that an open transaction is going to bring to a final state (an experiment)."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.producer_epoch)


@message
class ShareStateErrors(Response):
    """The error of each share-partition."""

    @message
    class Partition:
        partition: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[ShareStateErrors.Partition, ...]

    results: tuple[ShareStateErrors.Topic, ...] = ()


@message
class InitializeShareGroupStateRequest(Request):
    API_KEY: ClassVar[int] = 83

    @message
    class Partition:
        partition: int
        state_epoch: int
        start_offset: int

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[InitializeShareGroupStateRequest.Partition, ...]

    group_id: str
    topics: tuple[Topic, ...]


@message
class InitializeShareGroupStateResponse(ShareStateErrors):
    """Whether share-partitions were initialized."""


@message
class ReadShareGroupStateRequest(Request):
    API_KEY: ClassVar[int] = 84

    @message
    class Partition:
        partition: int
        leader_epoch: int

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[ReadShareGroupStateRequest.Partition, ...]

    group_id: str
    topics: tuple[Topic, ...]


@message
class ReadShareGroupStateResponse(Response):
    @message
    class Partition:
        partition: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        state_epoch: int = 0
        start_offset: int = 0
        state_batches: tuple[StateBatch, ...] = ()
        staged_batches: tuple[StagedBatch, ...] = ()
        """Those of open transactions (an experiment), between brokers of one process: Kafka has no such field."""

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[ReadShareGroupStateResponse.Partition, ...]

    results: tuple[Topic, ...] = ()


@message
class WriteShareGroupStateRequest(Request):
    API_KEY: ClassVar[int] = 85

    @message
    class Partition:
        partition: int
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int = -1
        state_batches: tuple[StateBatch, ...] = ()
        producer_id: int = NO_PRODUCER.id
        producer_epoch: int = NO_PRODUCER.epoch
        """With a producer the batches are staged in its transaction (an experiment), between brokers of one process:
        Kafka has no such fields."""

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[WriteShareGroupStateRequest.Partition, ...]

    group_id: str
    topics: tuple[Topic, ...]


@message
class WriteShareGroupStateResponse(ShareStateErrors):
    """Whether states were written."""


@message
class DeleteShareGroupStateRequest(Request):
    API_KEY: ClassVar[int] = 86

    @message
    class Partition:
        partition: int

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[DeleteShareGroupStateRequest.Partition, ...]

    group_id: str
    topics: tuple[Topic, ...]


@message
class DeleteShareGroupStateResponse(ShareStateErrors):
    """Whether states were deleted."""


@message
class ReadShareGroupStateSummaryRequest(Request):
    API_KEY: ClassVar[int] = 87

    @message
    class Partition:
        partition: int
        leader_epoch: int = -1

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[ReadShareGroupStateSummaryRequest.Partition, ...]

    group_id: str
    topics: tuple[Topic, ...]


@message
class ReadShareGroupStateSummaryResponse(Response):
    @message
    class Partition:
        partition: int
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        state_epoch: int = 0
        leader_epoch: int = 0
        start_offset: int = 0
        delivery_complete_count: int = -1

    @message
    class Topic:
        topic_id: TopicId
        partitions: tuple[ReadShareGroupStateSummaryResponse.Partition, ...]

    results: tuple[Topic, ...] = ()
