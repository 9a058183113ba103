"""A transactional producer on a raw socket, with the requests and versions of a test."""

from __future__ import annotations

import time
from typing import Any, Self

from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetFetchRequest
from shareq.model.messages.topics import CreateTopicsRequest
from shareq.model.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from tests.polling import PATIENCE_S
from tests.wire.raw import Raw

NOT_YET = frozenset(
    {
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.NOT_COORDINATOR,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors until new topics and coordinators are available on the broker: clients retry, and so does this producer."""

AT_REST = ("Empty", "CompleteCommit", "CompleteAbort")


def _itself(response: Any) -> Any:
    """The response itself: its error code is at the top level."""
    return response


class WireTransactor:
    """Sends to the only broker, the leader and coordinator of everything. `producer_id` is the last one received."""

    def __init__(self, address: str, topic: str, transactional_id: str) -> None:
        host, port = address.split(",", maxsplit=1)[0].rsplit(":", 1)
        self.raw = Raw(int(port), host)
        self.topic = topic
        self.transactional_id = transactional_id
        self.producer_id = -1
        wanted = CreateTopicsRequest.Topic(name=topic, num_partitions=3, replication_factor=1)
        assert self.raw.ask(CreateTopicsRequest(topics=(wanted,))).topics[0].error_code is Errors.NONE
        self.topic_id = self._topic_id()
        self._find(transactional_id, CoordinatorType.TRANSACTION)

    def _topic_id(self) -> Any:
        request = MetadataRequest(topics=(MetadataRequest.Topic(name=self.topic),))
        return self._retry(request, lambda response: response.topics[0]).topic_id

    def _find(self, key: str, kind: CoordinatorType) -> None:
        self._retry(FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,)), lambda r: r.coordinators[0])

    def _retry(self, request: Request, part: Any, version: int | None = None) -> Any:
        """Repeat the request until the error is not in NOT_YET; the part of the response with the error code."""
        until = time.monotonic() + PATIENCE_S
        while (found := part(self.raw.ask(request, version))).error_code in NOT_YET:
            assert time.monotonic() < until, found
        return found

    # ---- the producer ------------------------------------------------------------------------------------------------

    def init(self, producer_id: int = -1, epoch: int = -1, *, version: int = 5) -> Errors | int:
        """The epoch, or the error."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, producer_id=producer_id, producer_epoch=epoch
        )
        got = self._retry(request, _itself, version)
        if got.error_code:
            return Errors(got.error_code)
        self.producer_id = got.producer_id
        return int(got.producer_epoch)

    def add(self, epoch: int, *partitions: int, version: int = 3) -> list[Errors]:
        """Error of each partition, in ascending order of partitions."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=(AddPartitionsToTxnRequest.Topic(name=self.topic, partitions=partitions),),
        )
        (topic,) = self.raw.ask(request, version).results_by_topic_v3_and_below
        results = sorted(topic.results_by_partition, key=lambda p: p.partition_index)
        return [p.partition_error_code for p in results]

    def produce(
        self, epoch: int, sequence: int = 0, partition: int = 0, *, version: int = 13, transactional: bool = True
    ) -> Errors:
        """Produce one batch of one record."""
        batch = encode_batch(
            [(None, b"x", (), int(time.time() * 1000))],
            producer_id=self.producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        part = ProduceRequest.Partition(index=partition, records=batch)
        topic = ProduceRequest.Topic(topic_id=self.topic_id, name=self.topic, partitions=(part,))
        request = ProduceRequest(transactional_id=self.transactional_id, topics=(topic,))
        return Errors(self._retry(request, lambda r: r.responses[0].partitions[0], version).error_code)

    def end(self, epoch: int, *, commit: bool = True, version: int = 5) -> Errors | int:
        """The error; in version 5 the next epoch if there is none."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=epoch,
            committed=commit,
        )
        got = self._retry(request, _itself, version)
        if got.error_code or version < 5:
            return Errors(got.error_code)
        assert got.producer_id == self.producer_id
        return int(got.producer_epoch)

    # ---- offsets -----------------------------------------------------------------------------------------------------

    def add_offsets(self, epoch: int, group_id: str, *, version: int = 4) -> Errors:
        self._find(group_id, CoordinatorType.GROUP)
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=epoch,
            group_id=group_id,
        )
        return Errors(self._retry(request, _itself, version).error_code)

    def commit_offset(self, epoch: int, group_id: str, offset: int, *, version: int = 5) -> Errors:
        self._find(group_id, CoordinatorType.GROUP)
        part = OffsetCommitRequest.Partition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=epoch,
            topics=(OffsetCommitRequest.Topic(name=self.topic, partitions=(part,)),),
        )
        return Errors(self._retry(request, lambda r: r.topics[0].partitions[0], version).error_code)

    def committed_offset(self, group_id: str, *, require_stable: bool = False) -> Errors | int:
        topic = OffsetFetchRequest.Topic(name=self.topic, partition_indexes=(0,))
        group = OffsetFetchRequest.Group(group_id=group_id, topics=(topic,))
        found = self.raw.ask(OffsetFetchRequest(groups=(group,), require_stable=require_stable), 9).groups[0]
        partition = found.topics[0].partitions[0]
        return Errors(partition.error_code) if partition.error_code else int(partition.committed_offset)

    # ---- describing --------------------------------------------------------------------------------------------------

    def state(self) -> DescribeTransactionsResponse.TransactionState:
        request = DescribeTransactionsRequest(transactional_ids=(self.transactional_id,))
        (state,) = self.raw.ask(request).transaction_states
        assert isinstance(state, DescribeTransactionsResponse.TransactionState)
        return state

    def settle(self) -> str:
        """State of the transaction after all markers are written."""
        until = time.monotonic() + PATIENCE_S
        while (state := self.state().transaction_state) not in AT_REST:
            assert time.monotonic() < until, state
        return state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.raw.close()
