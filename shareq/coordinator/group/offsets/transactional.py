"""TxnOffsetCommit: offsets that count when a producer's transaction is committed.

The transaction's own coordinator is asked first: it must know that the transaction reaches the offsets' partition.
Clients of old announce that themselves; the offsets of others are added now. Source: KIP-98, KIP-447, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.group import Committer
from shareq.coordinator.group.offsets.commit import Committing, Verdicts, existing
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

    def begin(self, now_ms: int) -> Iterable[Effect]:
        if not self.committing.places:
            return self._answer({}, now_ms)
        if not self.request.group_id:
            return self._fail(Errors.INVALID_GROUP_ID, now_ms)
        if not self.context.keeps(self.request.group_id):
            return self._commit(now_ms)  # which is refused
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
        error = self._worded(_verdict(answer))
        return self._fail(error, now_ms) if error else self._commit(now_ms)

    def _worded(self, error: Errors) -> Errors:
        """As a client that asked the group's coordinator expects it, in its version."""
        if error is Errors.TRANSACTION_ABORTABLE and self.version < ABORTABLE_VERSION:
            return Errors.INVALID_TXN_STATE
        return _WORDED.get(error, error)

    def _commit(self, now_ms: int) -> Iterable[Effect]:
        committing = self.committing
        return self.context.schedule(
            self.request.group_id, committing.compute, committing.failure, self._answer, now_ms
        )

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
