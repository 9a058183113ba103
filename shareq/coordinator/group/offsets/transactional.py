"""TxnOffsetCommit: offsets that count when a producer's transaction is committed.

The transaction's own coordinator is asked first: it must know that the transaction reaches the offsets' partition.
Clients of old announce that themselves; the offsets of others are added now. What it has said holds until a marker of
the producer comes: offsets written behind that would wait for the marker of a transaction that they are not part of.
Source: KIP-98, KIP-447, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.group import Committer
from shareq.coordinator.group.offsets.commit import Committing, Verdicts, existing
from shareq.coordinator.group.shard import GroupShard, Inquiry
from shareq.coordinator.shard import Outcome
from shareq.model.actor import Answer, ClientContext, Effect
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from shareq.model.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

ABORTABLE_VERSION = 4
"""Since then clients know TRANSACTION_ABORTABLE."""

ADDING_VERSION = 5
"""Since then the offsets need not be announced (transaction.version 2)."""


def commit_transactional_offsets(
    context: Context,
    request: TxnOffsetCommitRequest,
    client: ClientContext,
    then: Then[TxnOffsetCommitResponse],
    now_ms: int,
) -> list[Effect]:
    """TxnOffsetCommit: until the marker comes, fetching shows the old offsets."""
    commit = _TxnCommit(context, request, client.api_version, then)
    return list(commit.begin(now_ms))


class _TxnCommit:
    """One request on its way."""

    def __init__(
        self, context: Context, request: TxnOffsetCommitRequest, version: int, then: Then[TxnOffsetCommitResponse]
    ) -> None:
        self.context, self.request, self.version, self.then = context, request, version, then
        topics = context.image.topics
        places = [place for topic in request.topics for place in existing(topics.get(topic.name), topic.partitions)]
        committer = Committer(request.member_id, request.group_instance_id, request.generation_id, transactional=True)
        transaction = request.producer_id, request.producer_epoch
        self.committing = Committing(context, request.group_id, committer, places, transaction)
        self.asked: tuple[GroupShard, Inquiry] | None = None
        self.retry_until_ms = 0

    def begin(self, now_ms: int) -> Iterable[Effect]:
        if not self.committing.places:
            return self._answer({}, now_ms)
        if not self.request.group_id:
            return self._fail(Errors.INVALID_GROUP_ID, now_ms)
        patience_ms: int = self.context.image.broker_config["add.partitions.to.txn.retry.backoff.max.ms"]
        self.retry_until_ms = now_ms + patience_ms
        return self._ask(now_ms)

    def _ask(self, now_ms: int) -> Iterable[Effect]:
        """Nobody is asked where the transaction has written here already, nor where the commit will be refused because
        the group is kept elsewhere."""
        self.asked = None
        shard = self.context.shard_of(self.request.group_id)
        if shard is None or self._is_open(shard):
            return self._commit(now_ms)
        self.asked = shard, shard.inquire(self.request.producer_id)
        coordinator = self.context.image.coordinator(TRANSACTION_STATE_TOPIC, self.request.transactional_id)
        if coordinator is None:
            return self._fail(Errors.COORDINATOR_NOT_AVAILABLE, now_ms)
        return (self.context.call(coordinator.broker_id, self._question(), self._verified),)

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

    def _verified(self, answer: Answer, now_ms: int) -> Iterable[Effect]:
        verdict = _verdict(answer)
        adding = self.version >= ADDING_VERSION
        if adding and verdict is Errors.CONCURRENT_TRANSACTIONS and now_ms < self.retry_until_ms:
            # The transaction before is being completed, which takes a moment: sooner done here than by the client.
            backoff_ms: int = self.context.image.broker_config["add.partitions.to.txn.retry.backoff.ms"]
            self.context.retry(self._ask, now_ms + backoff_ms)
            return ()
        error = self._worded(verdict)
        return self._fail(error, now_ms) if error else self._commit(now_ms)

    def _worded(self, error: Errors) -> Errors:
        """As a client that asked the group's coordinator expects it, in its version."""
        if error is Errors.TRANSACTION_ABORTABLE and self.version < ABORTABLE_VERSION:
            return Errors.INVALID_TXN_STATE
        return _WORDED.get(error, error)

    def _commit(self, now_ms: int) -> Iterable[Effect]:
        return self.context.schedule(
            self.request.group_id, self._compute, self.committing.failure, self._answer, now_ms
        )

    def _compute(self, shard: GroupShard, now_ms: int) -> Outcome[Verdicts]:
        error = self._outdated(shard)
        if error:
            return Outcome(self.committing.failure(error))
        outcome = self.committing.compute(shard, now_ms)
        if not outcome.records:
            return outcome

        def after(now_ms: int) -> Iterable[Effect]:
            shard.transactions[self.request.producer_id] = self.request.producer_epoch
            return outcome.after(now_ms)

        return outcome._replace(after=after)

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

    def _fail(self, error: Errors, now_ms: int) -> Iterable[Effect]:
        return self._answer(self.committing.failure(error), now_ms)

    def _answer(self, verdicts: Verdicts, now_ms: int) -> Iterable[Effect]:
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
            for topic in self.request.topics
        )
        return self.then(response(topics=topics), now_ms)


_WORDED = {
    Errors.PRODUCER_FENCED: Errors.INVALID_PRODUCER_EPOCH,
    Errors.NETWORK_EXCEPTION: Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
}


def _verdict(answer: Answer) -> Errors:
    """What the coordinator said of the one partition."""
    if not isinstance(answer.response, AddPartitionsToTxnResponse):
        return answer.error
    if answer.response.error_code:
        return answer.response.error_code
    return answer.response.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code
