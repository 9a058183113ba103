"""TxnOffsetCommit: offsets that become valid when a producer's transaction is committed.

The transaction coordinator first verifies that the transaction contains the offsets' partition; from version 5 on it
adds the partition. The verification is valid until a marker of the producer is written to the shard: offsets appended
after the marker would wait for the marker of a transaction that does not contain them. Source: KIP-98, KIP-447,
KIP-890.
"""

from __future__ import annotations

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.group import Committer
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.offsets.commit import Committing, RequestedTopics, Verdicts
from shareq.coordinator.offsets.state import Inquiry, Offsets
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from shareq.model.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from shareq.model.workflow import Pause, Reply, Send, Workflow

LOADING_VERSION = 2
"""The first version of TxnOffsetCommit whose clients survive COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""

ABORTABLE_VERSION = 4
"""The first version of TxnOffsetCommit whose clients know TRANSACTION_ABORTABLE."""

ADDING_VERSION = 5
"""The first version of TxnOffsetCommit that needs no AddOffsetsToTxn before (transaction.version 2)."""


def commit_transactional_offsets(
    context: Context, request: TxnOffsetCommitRequest, client: ClientContext
) -> Workflow[TxnOffsetCommitResponse]:
    """TxnOffsetCommit: OffsetFetch returns the former offsets until the commit marker is written."""
    commit = _TxnCommit(context, request, client.api_version)
    return commit.response((yield from commit.verdicts()))


class _TxnCommit:
    """One TxnOffsetCommit. `inquiry`: the shard at the time of the verification, and its inquiry; None if no
    verification was sent."""

    def __init__(self, context: Context, request: TxnOffsetCommitRequest, version: int) -> None:
        self.context, self.request, self.version = context, request, version
        self.topics = RequestedTopics(request.topics, context.image)
        committer = Committer(request.member_id, request.group_instance_id, request.generation_id, transactional=True)
        transaction = request.producer_id, request.producer_epoch
        self.committing = Committing(context, request.group_id, committer, self.topics.places(), transaction)
        self.inquiry: tuple[GroupShard, Inquiry] | None = None

    def verdicts(self) -> Workflow[Verdicts]:
        if not self.committing.places:
            return {}
        if not self.request.group_id:
            return self.committing.failure(Errors.INVALID_GROUP_ID)
        error = yield from self._verify()
        if error:
            return self.committing.failure(error)
        shard = yield self.context.turn(self.request.group_id, self._failure)
        error = self._transaction_ended(shard)
        return self.committing.failure(error) if error else (yield from self.committing.append(shard))

    def _verify(self) -> Workflow[Errors]:
        """NONE if the transaction is open and contains the offsets' partition.

        No request is sent if the transaction has written to this shard already, nor if this broker does not coordinate
        the group, as the commit is refused then.
        """
        context = self.context
        config = context.image.broker_config
        retry_until_ms = context.now_ms + config["add.partitions.to.txn.retry.backoff.max.ms"]
        while True:
            self.inquiry = None
            shard = context.shard_of(self.request.group_id)
            if shard is None or self._is_open(shard):
                return Errors.NONE
            self.inquiry = shard, shard.own(Offsets).inquire(self.request.producer_id)
            coordinator = context.image.coordinator(TRANSACTION_STATE_TOPIC, self.request.transactional_id)
            if coordinator is None:
                return Errors.COORDINATOR_NOT_AVAILABLE
            verdict = _verdict((yield Send(coordinator.broker_id, self._verify_request())))
            adding = self.version >= ADDING_VERSION and verdict is Errors.CONCURRENT_TRANSACTIONS
            if not adding or context.now_ms >= retry_until_ms:
                return self._client_error(verdict)
            # The producer's former transaction is being completed: a retry here is faster than one by the client.
            yield Pause(context.image.broker_config["add.partitions.to.txn.retry.backoff.ms"])

    def _verify_request(self) -> AddPartitionsToTxnRequest:
        request = self.request
        partition = self.context.partition_of(request.group_id)
        return AddPartitionsToTxnRequest.of_leader(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            GROUP_METADATA_TOPIC,
            partition,
            verify_only=self.version < ADDING_VERSION,
        )

    def _client_error(self, error: Errors) -> Errors:
        """The error of the transaction coordinator as the client's version of TxnOffsetCommit expects it."""
        if error is Errors.TRANSACTION_ABORTABLE and self.version < ABORTABLE_VERSION:
            return Errors.INVALID_TXN_STATE
        return _ERRORS_FOR_CLIENTS.get(error, error)

    def _transaction_ended(self, shard: GroupShard) -> Errors:
        """INVALID_TXN_STATE if the transaction has ended since the verification; NOT_COORDINATOR if the shard was
        loaded again since, because it may have missed the marker."""
        if self.inquiry is None:
            return Errors.NONE if self._is_open(shard) else Errors.INVALID_TXN_STATE
        inquiring_shard, inquiry = self.inquiry
        if inquiring_shard is not shard:
            return Errors.NOT_COORDINATOR
        return Errors.INVALID_TXN_STATE if inquiry.ended else Errors.NONE

    def _is_open(self, shard: GroupShard) -> bool:
        return shard.own(Offsets).transactions.get(self.request.producer_id) == self.request.producer_epoch

    def _failure(self, error: Errors) -> TxnOffsetCommitResponse:
        return self.response(self.committing.failure(error))

    def response(self, verdicts: Verdicts) -> TxnOffsetCommitResponse:
        if self.version < LOADING_VERSION:
            loading, later = Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.COORDINATOR_NOT_AVAILABLE
            verdicts = {at: later if error is loading else error for at, error in verdicts.items()}
        return TxnOffsetCommitResponse(topics=self.topics.results(verdicts))


_ERRORS_FOR_CLIENTS = {
    Errors.PRODUCER_FENCED: Errors.INVALID_PRODUCER_EPOCH,
    Errors.NETWORK_EXCEPTION: Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
}


def _verdict(reply: Reply) -> Errors:
    """The coordinator's result for the one partition."""
    if not isinstance(reply.response, AddPartitionsToTxnResponse):
        return reply.error
    return reply.response.error_of_leader
