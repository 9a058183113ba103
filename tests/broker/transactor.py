"""A transactional producer built from single requests, with the request versions of a given client."""

from __future__ import annotations

from typing import Any, NamedTuple

from shareq.broker import Cluster
from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.offsets import OffsetCommitRequest
from shareq.model.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from tests.broker.requester import Requester


class ClientFlow(NamedTuple):
    """Request versions of a client. `announces`: the client adds partitions before it writes to them."""

    init: int
    add: int
    add_offsets: int
    produce: int
    commit_offsets: int
    end: int
    announces: bool = True


NEW = ClientFlow(init=5, add=3, add_offsets=4, produce=13, commit_offsets=5, end=5, announces=False)
"""Java producer of Kafka 4.3 at transaction.version 2."""
JAVA_OLD = ClientFlow(init=5, add=3, add_offsets=4, produce=11, commit_offsets=4, end=4)
"""Java producer of Kafka 4.3 below transaction.version 2."""
LIBRDKAFKA = ClientFlow(init=4, add=0, add_offsets=0, produce=10, commit_offsets=3, end=1)

FLOWS = {"new": NEW, "Java, old": JAVA_OLD, "librdkafka": LIBRDKAFKA}

COORDINATOR_MOVES = (
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
    Errors.CONCURRENT_TRANSACTIONS,
)


def offsets_error(response: TxnOffsetCommitResponse) -> Errors:
    """Error of the only partition in the response."""
    error = response.topics[0].partitions[0].error_code
    assert isinstance(error, Errors)
    return error


class Transactor(Requester):
    """Counts sequences by partition, as producers do. Errors of the cluster are returned, not raised."""

    def __init__(
        self, cluster: Cluster, transactional_id: str = "t", flow: ClientFlow = NEW, timeout_ms: int = 60_000
    ) -> None:
        super().__init__(cluster)
        self.transactional_id = transactional_id
        self.flow = flow
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1
        self.sequences: dict[TopicPartition, int] = {}
        self.announced: set[TopicPartition] = set()

    def find(self, key: str, kind: CoordinatorType) -> int:
        """Node of the coordinator; the first FindCoordinator request creates its topic."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
        while True:
            found = self.ask(request, 6).coordinators[0]
            if not found.error_code:
                assert isinstance(found.node_id, int)
                return found.node_id
            self.cluster.advance(10)

    def coordinate(self, request: Request, version: int) -> Any:
        """Send the request to the transaction coordinator and return the response."""
        return self.ask(request, version, self.find(self.transactional_id, CoordinatorType.TRANSACTION))

    def begin(self, producer_id: int = -1, producer_epoch: int = -1) -> Errors:
        """InitProducerId, repeated while the error is one of COORDINATOR_MOVES."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        got = self.coordinate(request, self.flow.init)
        while got.error_code in COORDINATOR_MOVES:
            self.cluster.advance(20)
            got = self.coordinate(request, self.flow.init)
        assert isinstance(got, InitProducerIdResponse)
        if not got.error_code:
            self._now(got.producer_id, got.producer_epoch)
        return got.error_code

    def _now(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    def add(self, *partitions: TopicPartition) -> Errors:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=tuple(AddPartitionsToTxnRequest.Topic(name=t, partitions=(p,)) for t, p in partitions),
        )
        response = self.coordinate(request, self.flow.add)
        errors = {
            p.partition_error_code for t in response.results_by_topic_v3_and_below for p in t.results_by_partition
        }
        (error,) = errors
        assert isinstance(error, Errors)
        return error

    def write(self, *values: str, partition: int = 0, sequence: int | None = None) -> Errors:
        """Write a batch as clients do: those with `announces` add the partition first."""
        at = TopicPartition("orders", partition)
        if self.flow.announces and at not in self.announced:
            error = self.add(at)
            if error:
                return error
            self.announced.add(at)
        return self.produce(*values, partition=partition, sequence=sequence).error_code

    def produce(
        self, *values: str, partition: int = 0, sequence: int | None = None, transactional: bool = True
    ) -> ProduceResponse.Partition:
        """Produce one batch without adding the partition; `sequence` None continues the partition's sequence."""
        at = TopicPartition("orders", partition)
        batch = self.batch(
            *values, sequence=self.sequences.get(at, 0) if sequence is None else sequence, transactional=transactional
        )
        result = self.answer_to(self.produce_later(batch, partition))
        if not result.error_code and sequence is None:
            self.sequences[at] = self.sequences.get(at, 0) + len(values)
        return result

    def batch(self, *values: str, sequence: int, transactional: bool = True) -> bytes:
        return encode_batch(
            [(None, value.encode(), (), self.cluster.now_ms) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=transactional,
        )

    def produce_later(self, batch: bytes, partition: int = 0) -> int:
        """Send a batch to the partition's leader; returns the id of the call."""
        image = self.cluster.image.topics["orders"]
        part = ProduceRequest.Partition(index=partition, records=batch)
        topic = ProduceRequest.Topic(topic_id=image.topic_id, name="orders", partitions=(part,))
        request = ProduceRequest(transactional_id=self.transactional_id, topics=(topic,))
        return self.send(request, self.flow.produce, image.partitions[partition].leader)

    def answer_to(self, call_id: int) -> ProduceResponse.Partition:
        assert self.cluster.wait(lambda: self.answered(call_id), 60)
        result = self.response(call_id).responses[0].partitions[0]
        assert isinstance(result, ProduceResponse.Partition)
        return result

    def commit_offset(self, offset: int, group_id: str = "g", *, announce: bool = True) -> Errors:
        """Commit an offset of orders-0 in the transaction, as clients do."""
        node = self.find(group_id, CoordinatorType.GROUP)
        if self.flow.announces and announce:
            offsets = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group_id,
            )
            error = self.coordinate(offsets, self.flow.add_offsets).error_code
            assert isinstance(error, Errors)
            if error:
                return error
        return offsets_error(self.ask(self.offsets(offset, group_id), self.flow.commit_offsets, node))

    def offsets(self, offset: int, group_id: str = "g") -> TxnOffsetCommitRequest:
        """TxnOffsetCommit of an offset of orders-0."""
        part = OffsetCommitRequest.Partition(partition_index=0, committed_offset=offset)
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(OffsetCommitRequest.Topic(name="orders", partitions=(part,)),),
        )

    def end(self, *, commit: bool = True) -> Errors:
        """EndTxn, repeated while the error is one of COORDINATOR_MOVES."""
        got = self.end_once(commit=commit)
        while got.error_code in COORDINATOR_MOVES:
            self.cluster.advance(20)
            got = self.end_once(commit=commit)
        if not got.error_code:
            self.announced.clear()
            if got.producer_id >= 0:
                self._now(got.producer_id, got.producer_epoch)
        return got.error_code

    def end_once(self, *, commit: bool = True, producer_epoch: int | None = None) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if producer_epoch is None else producer_epoch,
            committed=commit,
        )
        response = self.coordinate(request, self.flow.end)
        assert isinstance(response, EndTxnResponse)
        return response
