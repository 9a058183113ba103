"""TxnOffsetCommit: offsets that count when a producer's transaction is committed.

The transaction's own coordinator is asked first: it must know that the transaction reaches the offsets' partition.
Clients of old announce that themselves; the offsets of others are added now. What it has said holds until a marker of
the producer comes: offsets written behind that would wait for the marker of a transaction that they are not part of.
Source: KIP-98, KIP-447, KIP-890.
"""

from __future__ import annotations

from shareq.coordinator.groups.context import Context
from shareq.coordinator.groups.group import Committer
from shareq.coordinator.groups.shard import GroupShard, Inquiry
from shareq.coordinator.other.offsets.commit import Committing, Verdicts, existing
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from shareq.model.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from shareq.model.workflow import Ask, Pause, Reply, Workflow

ABORTABLE_VERSION = 4
"""Since then clients know TRANSACTION_ABORTABLE."""

ADDING_VERSION = 5
"""Since then the offsets need not be announced (transaction.version 2)."""


def commit_transactional_offsets(
    context: Context, request: TxnOffsetCommitRequest, client: ClientContext
) -> Workflow[TxnOffsetCommitResponse]:
    """TxnOffsetCommit: until the marker comes, fetching shows the old offsets."""
    commit = _TxnCommit(context, request, client.api_version)
    return _response(request, (yield from commit.verdicts()))


class _TxnCommit:
    """One request being served."""

    def __init__(self, context: Context, request: TxnOffsetCommitRequest, version: int) -> None:
        self.context, self.request, self.version = context, request, version
        topics = context.image.topics
        places = [place for topic in request.topics for place in existing(topics.get(topic.name), topic.partitions)]
        committer = Committer(request.member_id, request.group_instance_id, request.generation_id, transactional=True)
        transaction = request.producer_id, request.producer_epoch
        self.committing = Committing(context, request.group_id, committer, places, transaction)
        self.asked: tuple[GroupShard, Inquiry] | None = None

    def verdicts(self) -> Workflow[Verdicts]:
        if not self.committing.places:
            return {}
        if not self.request.group_id:
            return self.committing.failure(Errors.INVALID_GROUP_ID)
        error = yield from self._verify()
        if error:
            return self.committing.failure(error)
        shard = yield self.context.turn(self.request.group_id, self._failure)
        error = self._outdated(shard)
        return self.committing.failure(error) if error else (yield from self.committing.append(shard))

    def _verify(self) -> Workflow[Errors]:
        """NONE if the transaction is open and reaches the offsets' partition.

        No broker is asked where the transaction has written here already, nor where the commit will be refused because
        the group is kept elsewhere.
        """
        context = self.context
        config = context.image.broker_config
        retry_until_ms = context.now_ms + config["add.partitions.to.txn.retry.backoff.max.ms"]
        while True:
            self.asked = None
            shard = context.shard_of(self.request.group_id)
            if shard is None or self._is_open(shard):
                return Errors.NONE
            self.asked = shard, shard.inquire(self.request.producer_id)
            coordinator = context.image.coordinator(TRANSACTION_STATE_TOPIC, self.request.transactional_id)
            if coordinator is None:
                return Errors.COORDINATOR_NOT_AVAILABLE
            verdict = _verdict((yield Ask(coordinator.broker_id, self._question())))
            adding = self.version >= ADDING_VERSION and verdict is Errors.CONCURRENT_TRANSACTIONS
            if not adding or context.now_ms >= retry_until_ms:
                return self._worded(verdict)
            # The transaction before is being completed, which takes a moment: sooner done here than by the client.
            yield Pause(context.image.broker_config["add.partitions.to.txn.retry.backoff.ms"])

    def _question(self) -> AddPartitionsToTxnRequest:
        request = self.request
        partition = self.context.partition_of(request.group_id)
        return AddPartitionsToTxnRequest(
            transactions=(
                AddPartitionsToTxnRequest.Transaction(
                    transactional_id=request.transactional_id,
                    producer_id=request.producer_id,
                    producer_epoch=request.producer_epoch,
                    verify_only=self.version < ADDING_VERSION,
                    topics=(AddPartitionsToTxnRequest.Topic(name=GROUP_METADATA_TOPIC, partitions=(partition,)),),
                ),
            )
        )

    def _worded(self, error: Errors) -> Errors:
        """As a client that asked the group's coordinator expects it, in its version."""
        if error is Errors.TRANSACTION_ABORTABLE and self.version < ABORTABLE_VERSION:
            return Errors.INVALID_TXN_STATE
        return _WORDED.get(error, error)

    def _outdated(self, shard: GroupShard) -> Errors:
        """The error where the transaction has ended since it was known to be open. A shard that was loaded meanwhile
        cannot tell."""
        if self.asked is None:
            return Errors.NONE if self._is_open(shard) else Errors.INVALID_TXN_STATE
        asked_shard, inquiry = self.asked
        if asked_shard is not shard:
            return Errors.NOT_COORDINATOR
        return Errors.INVALID_TXN_STATE if inquiry.ended else Errors.NONE

    def _is_open(self, shard: GroupShard) -> bool:
        return shard.transactions.get(self.request.producer_id) == self.request.producer_epoch

    def _failure(self, error: Errors) -> TxnOffsetCommitResponse:
        return _response(self.request, self.committing.failure(error))


def _response(request: TxnOffsetCommitRequest, verdicts: Verdicts) -> TxnOffsetCommitResponse:
    """Results in the order of the request; what has no verdict does not exist."""
    response = TxnOffsetCommitResponse
    unknown = Errors.UNKNOWN_TOPIC_OR_PARTITION
    topics = tuple(
        response.Topic(
            name=topic.name,
            partitions=tuple(
                response.Partition(
                    partition_index=p.partition_index,
                    error_code=verdicts.get((topic.name, p.partition_index), unknown),
                )
                for p in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return response(topics=topics)


_WORDED = {
    Errors.PRODUCER_FENCED: Errors.INVALID_PRODUCER_EPOCH,
    Errors.NETWORK_EXCEPTION: Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
}


def _verdict(reply: Reply) -> Errors:
    """The coordinator's result for the one partition."""
    if not isinstance(reply.response, AddPartitionsToTxnResponse):
        return reply.error
    if reply.response.error_code:
        return reply.response.error_code
    return reply.response.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code
