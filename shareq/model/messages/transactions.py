"""Transactions: InitProducerId (22), AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26), TxnOffsetCommit (28),
DescribeTransactions (65), ListTransactions (66); between brokers WriteTxnMarkers (27) and AllocateProducerIds (67).
"""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetCommitResponse


@message
class InitProducerIdRequest(Request):
    """Producer id and epoch are set by a producer that continues after an error."""

    API_KEY: ClassVar[int] = 22

    transactional_id: str | None = None
    transaction_timeout_ms: int = 60000
    producer_id: int = -1
    producer_epoch: int = -1


@message
class InitProducerIdResponse(Response):
    error_code: Errors = Errors.NONE
    producer_id: int = -1
    producer_epoch: int = -1


@message
class AddPartitionsToTxnRequest(Request):
    """Clients send one transaction (versions 0-3), partition leaders send many (`transactions`, version 4 and
    later)."""

    API_KEY: ClassVar[int] = 24

    @message
    class Topic:
        name: str
        partitions: tuple[int, ...]

    @message
    class Transaction:
        """`verify_only`: check that the partitions belong to the transaction, and add none."""

        transactional_id: str
        producer_id: int
        producer_epoch: int
        verify_only: bool = False
        topics: tuple[AddPartitionsToTxnRequest.Topic, ...]

    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = -1
    v3_and_below_producer_epoch: int = -1
    v3_and_below_topics: tuple[Topic, ...] = ()
    transactions: tuple[Transaction, ...] = ()

    @classmethod
    def of_leader(
        cls,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        *,
        verify_only: bool = False,
    ) -> AddPartitionsToTxnRequest:
        """The request of a leader for one partition."""
        transaction = cls.Transaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=verify_only,
            topics=(cls.Topic(name=topic, partitions=(partition,)),),
        )
        return cls(transactions=(transaction,))


@message
class AddPartitionsToTxnResponse(Response):
    """`error_code` exists since version 4; a response to a client has an error for each partition."""

    @message
    class Partition:
        partition_index: int
        partition_error_code: Errors = Errors.NONE

    @message
    class Topic:
        name: str
        results_by_partition: tuple[AddPartitionsToTxnResponse.Partition, ...]

    @message
    class Transaction:
        transactional_id: str
        topic_results: tuple[AddPartitionsToTxnResponse.Topic, ...]

    error_code: Errors = Errors.NONE
    results_by_topic_v3_and_below: tuple[Topic, ...] = ()
    results_by_transaction: tuple[Transaction, ...] = ()

    @property
    def error_of_leader(self) -> Errors:
        """The result of a request of `AddPartitionsToTxnRequest.of_leader`."""
        if self.error_code:
            return self.error_code
        return self.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code


@message
class AddOffsetsToTxnRequest(Request):
    API_KEY: ClassVar[int] = 25

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


@message
class AddOffsetsToTxnResponse(Response):
    error_code: Errors = Errors.NONE


@message
class EndTxnRequest(Request):
    API_KEY: ClassVar[int] = 26

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


@message
class EndTxnResponse(Response):
    """Version 5 adds the producer id and epoch of the next transaction."""

    error_code: Errors = Errors.NONE
    producer_id: int = -1
    producer_epoch: int = -1


@message
class WriteTxnMarkersRequest(Request):
    """From the transaction coordinator to partition leaders. `transaction_result`: True commits, False aborts."""

    API_KEY: ClassVar[int] = 27

    @message
    class Topic:
        name: str
        partition_indexes: tuple[int, ...]

    @message
    class Marker:
        producer_id: int
        producer_epoch: int
        transaction_result: bool
        topics: tuple[WriteTxnMarkersRequest.Topic, ...]
        coordinator_epoch: int

    markers: tuple[Marker, ...]


@message
class WriteTxnMarkersResponse(Response):
    @message
    class Partition:
        partition_index: int
        error_code: Errors = Errors.NONE

    @message
    class Topic:
        name: str
        partitions: tuple[WriteTxnMarkersResponse.Partition, ...]

    @message
    class Marker:
        producer_id: int
        topics: tuple[WriteTxnMarkersResponse.Topic, ...]

    markers: tuple[Marker, ...] = ()


@message
class TxnOffsetCommitRequest(Request):
    """Generation -1 and no member: the member is not checked. Topics have names before version 6, ids since."""

    API_KEY: ClassVar[int] = 28

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: tuple[OffsetCommitRequest.Topic, ...]


@message
class TxnOffsetCommitResponse(Response):
    topics: tuple[OffsetCommitResponse.Topic, ...] = ()


@message
class DescribeTransactionsRequest(Request):
    API_KEY: ClassVar[int] = 65

    transactional_ids: tuple[str, ...]


@message
class DescribeTransactionsResponse(Response):
    @message
    class Topic:
        topic: str
        partitions: tuple[int, ...]

    @message
    class TransactionState:
        """`transaction_start_time_ms` -1: no transaction is open."""

        error_code: Errors = Errors.NONE
        transactional_id: str
        transaction_state: str = ""
        transaction_timeout_ms: int = 0
        transaction_start_time_ms: int = 0
        producer_id: int = 0
        producer_epoch: int = 0
        topics: tuple[DescribeTransactionsResponse.Topic, ...] = ()

    transaction_states: tuple[TransactionState, ...] = ()


@message
class ListTransactionsRequest(Request):
    """An empty filter matches everything; `duration_filter` in ms, -1 for none; `transactional_id_pattern` is a regular
    expression that must match the whole id."""

    API_KEY: ClassVar[int] = 66

    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


@message
class ListTransactionsResponse(Response):
    @message
    class TransactionState:
        transactional_id: str
        producer_id: int
        transaction_state: str

    error_code: Errors = Errors.NONE
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[TransactionState, ...] = ()


@message
class AllocateProducerIdsRequest(Request):
    """From a broker to the controller: request a block of producer ids for this broker alone."""

    API_KEY: ClassVar[int] = 67

    broker_id: int
    broker_epoch: int = -1


@message
class AllocateProducerIdsResponse(Response):
    error_code: Errors = Errors.NONE
    producer_id_start: int = -1
    producer_id_len: int = 0
