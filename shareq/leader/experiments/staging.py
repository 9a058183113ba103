"""Transactional acknowledgements: a leader that stages acknowledgements in a producer's transaction, and is notified of
its end. Rules: BEHAVIOUR.md, "Transactional acknowledgements".

A request waits for the group coordinator, which knows the member's epoch, then for the transaction coordinator, which
adds the partition of the state topic to the transaction, and then for the share coordinator. Nothing is staged before
the write is sent.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from shareq.leader.experiments.errands import Ask, Errand
from shareq.leader.experiments.skipping import SkippingShareLeader
from shareq.leader.experiments.staging_requests import (
    Refusal,
    StagingResults,
    describe_request,
    error_of_addition,
    error_of_member,
    join_request,
    refusal_of,
    state_partition,
    write_error,
)
from shareq.leader.experiments.staging_share_partition import StagingSharePartition
from shareq.leader.led_partitions import client_error
from shareq.leader.share_fetch import LedPartition
from shareq.leader.share_partition import PreparedWrite
from shareq.leader.share_requests import acknowledgement_error
from shareq.leader.state_reads import read_request, state_in
from shareq.model.actor import Answer, Call, ImageChanged, Incoming, Persist, Respond
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.messages.share_state import NO_PRODUCER, Producer
from shareq.model.messages.share_transactions import (
    EndShareTransactionRequest,
    EndShareTransactionResponse,
    TxnShareAcknowledgeRequest,
    TxnShareAcknowledgeResponse,
)
from shareq.model.states import PartitionLoadState
from shareq.model.workflow import Pause

REREAD_BACKOFF_MS = 500

Step = Generator[Ask, Any, Errors]


class StagingShareLeader(SkippingShareLeader):
    """Has the interface of ShareLeader, with all experiments."""

    def _incoming(self, incoming: Incoming) -> None:
        if isinstance(incoming.request, TxnShareAcknowledgeRequest):
            self._errands.begin(self._acknowledge_in_transaction(incoming.id, incoming.request))
        elif isinstance(incoming.request, EndShareTransactionRequest):
            self._context.effects.append(Respond(incoming.id, self._end_transaction(incoming.request)))
        else:
            super()._incoming(incoming)

    # ---- acknowledgements --------------------------------------------------------------------------------------------

    def _acknowledge_in_transaction(self, request_id: int, request: TxnShareAcknowledgeRequest) -> Errand:
        error, reason = refusal_of(request, self._context.image)
        if not error:
            error, reason = yield from self._member_refusal(request)
        if error:
            refused = TxnShareAcknowledgeResponse(error_code=error, error_message=reason)
            self._context.effects.append(Respond(request_id, refused))
            return
        results = StagingResults(request)
        for key in results.wanted:
            self._errands.begin(self._stage_one(request_id, key, results))

    def _member_refusal(self, request: TxnShareAcknowledgeRequest) -> Generator[Ask, Any, Refusal]:
        """The refusal of a member that is not in the group, or not at this epoch, according to the group
        coordinator."""
        coordinator = self._context.image.coordinator(GROUP_METADATA_TOPIC, request.group_id)
        if coordinator is None:
            return Errors.COORDINATOR_NOT_AVAILABLE, "the group has no coordinator now"
        answer: Answer = yield _asking(coordinator.broker_id, describe_request(request.group_id))
        return error_of_member(answer, request.member_id, request.member_epoch)

    def _stage_one(self, request_id: int, key: SharePartitionKey, results: StagingResults) -> Errand:
        """Stage in one share-partition; the last one of a request answers it."""
        error = yield from self._stage(results.request, key, results.wanted[key])
        if results.put(key, error):
            self._context.effects.append(Respond(request_id, results.response()))

    def _stage(
        self, request: TxnShareAcknowledgeRequest, key: SharePartitionKey, batches: tuple[AcknowledgementBatch, ...]
    ) -> Step:
        """Check and stage the acknowledgements of one share-partition, all or none."""
        context = self._context
        producer = Producer(request.producer_id, request.producer_epoch)
        error = acknowledgement_error(batches, is_renew_ack=False)
        led = self._partitions.get(key)
        if error or led is None:
            return error or self._not_led(key)
        share_partition = led.share_partition
        assert isinstance(share_partition, StagingSharePartition)
        config = context.config(key.group_id)
        error = share_partition.stage_error(producer, request.member_id, batches, config, context.now_ms)
        self._partitions.watch(led)
        if not error:
            error = yield from self._write_start(led, share_partition)
        if not error:
            error = yield from self._join(request, key)
        if error or led.dropped:
            return error or Errors.NOT_LEADER_OR_FOLLOWER
        config = context.config(key.group_id)
        outcome = share_partition.stage(producer, request.member_id, batches, config, context.now_ms)
        self._partitions.watch(led)
        if isinstance(outcome, PreparedWrite):
            return (yield from self._write(led, outcome, producer))
        return outcome or Errors.NONE

    def _not_led(self, key: SharePartitionKey) -> Errors:
        image = self._context.image
        partition = image.partition(key.topic_id, key.partition)
        if key.topic_id not in image.topics_by_id:
            return Errors.UNKNOWN_TOPIC_ID
        if partition is not None and partition.leader != self._context.broker_id:
            return Errors.NOT_LEADER_OR_FOLLOWER
        return Errors.UNKNOWN_TOPIC_OR_PARTITION

    def _write_start(self, led: LedPartition, share_partition: StagingSharePartition) -> Step:
        """Make the start offset durable, which a staged write does not store."""
        write = share_partition.write_start(self._context.now_ms)
        if write is None:
            return Errors.NONE
        return (yield from self._write(led, write))

    def _write(self, led: LedPartition, write: PreparedWrite, producer: Producer = NO_PRODUCER) -> Step:
        answer: Answer = yield lambda call_id: self._partitions.persist(call_id, led, write, producer)
        return write_error(self._partitions.settle(led, write.write_id, answer))

    def _join(self, request: TxnShareAcknowledgeRequest, key: SharePartitionKey) -> Step:
        """Add the partition of the state topic that has the key to the transaction. While the producer's former
        transaction is being completed, a retry here is faster than one by the client."""
        context = self._context
        config = context.image.broker_config
        retry_until_ms = context.now_ms + config["add.partitions.to.txn.retry.backoff.max.ms"]
        while True:
            coordinator = context.image.coordinator(TRANSACTION_STATE_TOPIC, request.transactional_id)
            addition = join_request(request, key, context.image)
            if coordinator is None or addition is None:
                return Errors.COORDINATOR_NOT_AVAILABLE
            answer: Answer = yield _asking(coordinator.broker_id, addition)
            error = error_of_addition(answer)
            if error is not Errors.CONCURRENT_TRANSACTIONS or context.now_ms >= retry_until_ms:
                return error
            yield Pause(config["add.partitions.to.txn.retry.backoff.ms"])

    # ---- the end of a transaction ------------------------------------------------------------------------------------

    def _end_transaction(self, request: EndShareTransactionRequest) -> EndShareTransactionResponse:
        """End what the transaction has staged here. What is not in memory is read with the result.

        The share coordinator has to repeat a request while the state is being read, because it is not known what the
        read contains, or while a write of the transaction is under way, because it may fail.
        """
        context = self._context
        key = SharePartitionKey(request.group_id, request.topic_id, request.partition)
        partition = context.image.partition(key.topic_id, key.partition)
        leads = partition is not None and partition.leader == context.broker_id
        led = self._partitions.get(key)
        if partition is None or not leads or partition.leader_epoch < request.leader_epoch:
            reason = "this broker does not lead the partition at this epoch"
            return EndShareTransactionResponse(error_code=Errors.NOT_LEADER_OR_FOLLOWER, error_message=reason)
        if led is None:
            return EndShareTransactionResponse()
        share_partition = led.share_partition
        assert isinstance(share_partition, StagingSharePartition)
        producer = Producer(request.producer_id, request.producer_epoch)
        settled = producer not in share_partition.staged_by or producer in share_partition.settled
        if share_partition.status is PartitionLoadState.INITIALIZING or not settled:
            loading = Errors.COORDINATOR_LOAD_IN_PROGRESS
            return EndShareTransactionResponse(error_code=loading, error_message="a read or a write is under way")
        config = context.config(key.group_id)
        if share_partition.end_transaction(producer, request.committed, config, context.now_ms):
            share_partition.store_start(context.now_ms)
        self._partitions.finished(led)
        return EndShareTransactionResponse()

    # ---- another share coordinator -----------------------------------------------------------------------------------

    def _image_changed(self, message: ImageChanged) -> None:
        """A share coordinator may have ended with the knowledge that it had to notify this leader: what is staged with
        a state whose coordinator has changed is read again."""
        former = self._context.image
        super()._image_changed(message)
        for led in self._partitions.all():
            share_partition = led.share_partition
            assert isinstance(share_partition, StagingSharePartition)
            staged_by = frozenset(share_partition.staged_by)
            if staged_by and _shard_epoch(led.key, former) != _shard_epoch(led.key, message.image):
                self._errands.begin(self._read_again(led, share_partition, staged_by))

    def _read_again(
        self, led: LedPartition, share_partition: StagingSharePartition, doubtful: frozenset[Producer]
    ) -> Errand:
        """Read the state until it has shown of each of the transactions whether it has ended. A read says nothing about
        one with a write under way."""
        context = self._context
        while not led.dropped and (doubtful := doubtful & frozenset(share_partition.staged_by)):
            settled = doubtful & share_partition.settled
            if settled:
                answer: Answer = yield lambda call_id: Persist(call_id, read_request(led.key, led.leader_epoch))
                state = state_in(answer, led.key)
                if led.dropped:
                    return
                if state is not None and not state.error_code and state.state_epoch == share_partition.state_epoch:
                    config = context.config(led.key.group_id)
                    batches, staged = state.state_batches, state.staged_batches
                    if share_partition.reread(batches, staged, config, context.now_ms, settled):
                        share_partition.store_start(context.now_ms)
                    self._partitions.finished(led)
                    doubtful -= settled
                    continue
                if state is not None and not state.error_code.retriable:
                    error = client_error(state.error_code) or Errors.NOT_LEADER_OR_FOLLOWER
                    self._partitions.drop(led, error, "its state has changed")
                    return
            yield Pause(REREAD_BACKOFF_MS)


def _asking(node: int, request: Request) -> Ask:
    return lambda call_id: Call(call_id, node, request)


def _shard_epoch(key: SharePartitionKey, image: ClusterImage) -> tuple[int, int] | None:
    """The leader of the state topic's partition that has the key, and its epoch; None without the topic."""
    index = state_partition(key, image)
    if index is None:
        return None
    partition = image.topics[SHARE_STATE_TOPIC].partitions[index]
    return partition.leader, partition.leader_epoch
