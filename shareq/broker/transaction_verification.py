"""Verification of transactional batches, and the markers that end transactions.

A transactional batch is appended only to a partition of the producer's transaction; in any other partition no marker
would end it. The broker sends one request per partition and transaction to the transaction coordinator, which adds the
partition for new clients and, for older ones, verifies that they have added it.
Source: KIP-890; Kafka's AddPartitionsToTxnManager and ReplicaManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shareq.broker.data_plane import DataPlane, below_min_isr
from shareq.broker.produce import JOINS_BY_WRITING, transactional_batches
from shareq.model.actor import (
    Admit,
    Answer,
    Call,
    Effect,
    ImageChanged,
    Incoming,
    MarkerAppended,
    Message,
    Respond,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.ids import TRANSACTION_STATE_TOPIC, TopicPartition
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from shareq.model.time_of_day import TimeOfDay, same_time


class VerificationMode(NamedTuple):
    """The rule of a version of Produce. `join`: producing adds the partition; otherwise `missing` is the error."""

    join: bool
    missing: Errors


_JOINING = VerificationMode(True, Errors.NONE)
_ABORTABLE = VerificationMode(False, Errors.TRANSACTION_ABORTABLE)
_STRICT = VerificationMode(False, Errors.INVALID_TXN_STATE)


def verification_mode(version: int) -> VerificationMode:
    """The mode for a version of Produce."""
    if version >= JOINS_BY_WRITING:
        return _JOINING
    return _ABORTABLE if version == JOINS_BY_WRITING - 1 else _STRICT


_UNREACHED = frozenset(
    {
        Errors.NETWORK_EXCEPTION,
        Errors.REQUEST_TIMED_OUT,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
    }
)


def produce_error(error: Errors, flow: VerificationMode) -> Errors:
    """The error of Produce for an error of the coordinator. Clients of all versions retry NOT_ENOUGH_REPLICAS."""
    if error is Errors.PRODUCER_FENCED:
        return Errors.INVALID_PRODUCER_EPOCH
    if error is Errors.TRANSACTION_ABORTABLE:
        return flow.missing
    if error in _UNREACHED or (error is Errors.CONCURRENT_TRANSACTIONS and not flow.join):
        return Errors.NOT_ENOUGH_REPLICAS
    return error


class _PendingProduce:
    """A produce request that waits for the coordinator's response, with the leader epochs of its partitions.

    `ended`: partitions that have got a marker meanwhile, which makes the response outdated for them.
    """

    __slots__ = ("ended", "epochs", "flow", "incoming", "producer_epoch", "producer_id", "retry_until_ms")

    def __init__(
        self, incoming: Incoming, producer: tuple[int, int], epochs: Mapping[TopicPartition, int], retry_until_ms: int
    ) -> None:
        self.incoming = incoming
        self.flow = verification_mode(incoming.client.api_version)
        self.producer_id, self.producer_epoch = producer
        self.epochs = epochs
        self.ended: set[TopicPartition] = set()
        self.retry_until_ms = retry_until_ms


class TransactionVerification:
    """The actor. It reads logs of this broker, and ends transactions in them, through `data`."""

    def __init__(self, data: DataPlane, time_of_day: TimeOfDay = same_time) -> None:
        self._data = data
        self._time_of_day = time_of_day
        self._asking: dict[int, _PendingProduce] = {}
        self._retrying: dict[_PendingProduce, int] = {}
        self._last_id = 0

    @property
    def wake_at_ms(self) -> int | None:
        return min(self._retrying.values(), default=None)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        if isinstance(message, Incoming):
            return self._requested(message, now_ms)
        if isinstance(message, Answer):
            return self._answered(message, now_ms)
        if isinstance(message, Tick | ImageChanged):
            due = [held for held, due_ms in self._retrying.items() if due_ms <= now_ms]
            return [effect for held in due for effect in self._ask(held)]
        return []

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _requested(self, incoming: Incoming, now_ms: int) -> list[Effect]:
        request = incoming.request
        if isinstance(request, WriteTxnMarkersRequest):
            return self._write_markers(incoming.id, request, now_ms)
        assert isinstance(request, ProduceRequest)
        producers: dict[tuple[int, int], dict[TopicPartition, int]] = {}
        for at, batch in transactional_batches(self._data, request):
            producer = batch.producer_id, batch.producer_epoch
            _, log, leader_epoch = self._data.led_log(*at)
            if log is not None and not (log.has_open_transaction(*producer) or log.is_fenced(*producer)):
                producers.setdefault(producer, {})[at] = leader_epoch
        if not producers:
            return [Admit(incoming)]
        if len(producers) > 1:  # a transaction has one producer
            requested = [at for epochs in producers.values() for at in epochs]
            return [Admit(incoming, dict.fromkeys(requested, Errors.INVALID_PRODUCER_ID_MAPPING))]
        ((producer, epochs),) = producers.items()
        patience_ms: int = self._data.image.broker_config["add.partitions.to.txn.retry.backoff.max.ms"]
        return self._ask(_PendingProduce(incoming, producer, epochs, now_ms + patience_ms))

    # ---- the coordinator's response ----------------------------------------------------------------------------------

    def _ask(self, held: _PendingProduce) -> list[Effect]:
        self._retrying.pop(held, None)
        held.ended.clear()
        request = held.incoming.request
        assert isinstance(request, ProduceRequest)
        transactional_id = request.transactional_id or ""
        coordinator = self._data.image.coordinator(TRANSACTION_STATE_TOPIC, transactional_id)
        if coordinator is None:
            return self._decide(held, dict.fromkeys(held.epochs, Errors.COORDINATOR_NOT_AVAILABLE))
        topics: dict[str, list[int]] = {}
        for topic, partition in held.epochs:
            topics.setdefault(topic, []).append(partition)
        transaction = AddPartitionsToTxnRequest.Transaction(
            transactional_id=transactional_id,
            producer_id=held.producer_id,
            producer_epoch=held.producer_epoch,
            verify_only=not held.flow.join,
            topics=tuple(AddPartitionsToTxnRequest.Topic(name=t, partitions=tuple(p)) for t, p in topics.items()),
        )
        self._last_id += 1
        self._asking[self._last_id] = held
        return [Call(self._last_id, coordinator.broker_id, AddPartitionsToTxnRequest(transactions=(transaction,)))]

    def _answered(self, answer: Answer, now_ms: int) -> list[Effect]:
        held = self._asking.pop(answer.id)
        errors = _errors(held, answer)
        if held.flow.join and Errors.CONCURRENT_TRANSACTIONS in errors.values() and now_ms < held.retry_until_ms:
            # The previous transaction is being completed: a retry by the broker is faster than one by the client.
            self._retrying[held] = now_ms + self._data.image.broker_config["add.partitions.to.txn.retry.backoff.ms"]
            return []
        return self._decide(held, errors)

    def _decide(self, held: _PendingProduce, errors: Mapping[TopicPartition, Errors]) -> list[Effect]:
        """Admit the request, with the errors of partitions that must not be written."""
        return [Admit(held.incoming, {at: self._verdict(held, at, error) for at, error in errors.items()})]

    def _verdict(self, held: _PendingProduce, at: TopicPartition, error: Errors) -> Errors:
        if error:
            return produce_error(error, held.flow)
        led, _, leader_epoch = self._data.led_log(*at)
        if led or leader_epoch != held.epochs[at]:  # another leader may have written markers meanwhile
            return led or Errors.NOT_LEADER_OR_FOLLOWER
        return Errors.INVALID_TXN_STATE if at in held.ended else Errors.NONE

    # ---- markers -----------------------------------------------------------------------------------------------------

    def _write_markers(self, request_id: int, request: WriteTxnMarkersRequest, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        results = []
        for marker in request.markers:
            topics = [
                WriteTxnMarkersResponse.Topic(
                    name=topic.name,
                    partitions=tuple(
                        WriteTxnMarkersResponse.Partition(
                            partition_index=index,
                            error_code=self._write(TopicPartition(topic.name, index), marker, now_ms, effects),
                        )
                        for index in topic.partition_indexes
                    ),
                )
                for topic in marker.topics
            ]
            results.append(WriteTxnMarkersResponse.Marker(producer_id=marker.producer_id, topics=tuple(topics)))
        effects.append(Respond(request_id, WriteTxnMarkersResponse(markers=tuple(results))))
        return effects

    def _write(
        self, at: TopicPartition, marker: WriteTxnMarkersRequest.Marker, now_ms: int, effects: list[Effect]
    ) -> Errors:
        error, log, leader_epoch = self._data.led_log(*at)
        if error or log is None:
            return error
        if below_min_isr(self._data.image.topics[at.topic].partitions[at.partition], log):
            return Errors.NOT_ENOUGH_REPLICAS
        done = log.append_control(
            committed=marker.transaction_result,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            now_ms=self._time_of_day(now_ms),
            leader_epoch=leader_epoch,
        )
        if done.error:
            return done.error
        for held in self._asking.values():
            if held.producer_id == marker.producer_id:
                held.ended.add(at)
        effects.append(MarkerAppended(at, done.base_offset, marker.producer_id, marker.transaction_result))
        return Errors.NONE


def _errors(held: _PendingProduce, answer: Answer) -> dict[TopicPartition, Errors]:
    """The error of each partition; without a response, the error of the call for all."""
    response = answer.response
    if not isinstance(response, AddPartitionsToTxnResponse):
        return dict.fromkeys(held.epochs, answer.error)
    return {
        TopicPartition(topic.name, partition.partition_index): partition.partition_error_code
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for partition in topic.results_by_partition
    }
