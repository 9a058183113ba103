"""A share-partition leader with the coordinators that it asks about transactions, in the shorthand of BEHAVIOUR.md."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from shareq.model.actor import Answer, Call, ImageChanged, Message, Persist
from shareq.model.errors import Errors
from shareq.model.ids import (
    GROUP_METADATA_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    SharePartitionKey,
    TopicId,
    partition_for,
)
from shareq.model.image import PartitionImage, TopicImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest
from shareq.model.messages.share_group import DescribedAssignment, ShareGroupDescribeRequest, ShareGroupDescribeResponse
from shareq.model.messages.share_state import Producer, StagedBatch, WriteShareGroupStateRequest
from shareq.model.messages.share_transactions import EndShareTransactionRequest, TxnShareAcknowledgeRequest
from shareq.model.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from tests.leader.experiments.browsing import ENABLED
from tests.leader.stage import BROKER_ID, TOPIC_ID, FakeState, SentRequest, Stage, ack_batches

P = Producer(7, 5)
INTERNAL = (GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC)
MEMBER_EPOCH = 4


class StagingState(FakeState):
    """Keeps what is staged, by producer."""

    def __init__(self) -> None:
        super().__init__()
        self.staged: dict[Producer, list[WriteShareGroupStateRequest.Partition]] = {}

    def write(self, part: WriteShareGroupStateRequest.Partition) -> None:
        if part.producer_id < 0:
            super().write(part)
        else:
            self.staged.setdefault(Producer(part.producer_id, part.producer_epoch), []).append(part)

    def end(self, producer: Producer, committed: bool) -> None:
        for part in self.staged.pop(producer, []):
            if committed:
                super().write(part)

    def staged_batches(self) -> tuple[StagedBatch, ...]:
        return tuple(
            StagedBatch(*producer, *batch)
            for producer, parts in self.staged.items()
            for part in parts
            for batch in part.state_batches
        )


class TransactionsStage(Stage):
    """`members`: those of the group, with their epochs; None: its coordinator answers with `group_error`. `joins`: the
    answers of the transaction coordinator, NONE after the last one. With `hold_calls`, requests to other brokers wait
    in `calls`."""

    def __init__(self, **more: Any) -> None:
        self.members: dict[str, int] = {"m": MEMBER_EPOCH, "n": MEMBER_EPOCH}
        self.group_error = Errors.NONE
        self.joins: deque[Errors] = deque()
        self.joined: list[AddPartitionsToTxnRequest.Transaction] = []
        self.hold_calls = False
        self.calls: list[Call] = []
        self.state_epochs = [0] * 3
        super().__init__(broker=ENABLED, **more)
        key = SharePartitionKey("g", TOPIC_ID, 0)
        self.states[key] = self.fake = StagingState()

    def set_topics(self, *topics: TopicImage) -> None:
        epochs = self.state_epochs
        internal = [
            TopicImage(
                name=name,
                topic_id=TopicId(str(number) * 22),
                partitions=tuple(
                    PartitionImage(leader=1, leader_epoch=epoch, replicas=(0, 1), isr=(0, 1)) for epoch in epochs
                ),
            )
            for number, name in enumerate(INTERNAL)
        ]
        super().set_topics(*topics, *internal)

    def move_state(self) -> None:
        """Another share coordinator has the state."""
        self.state_epochs = [epoch + 1 for epoch in self.state_epochs]
        self.set_topics(self.image.topics["t"])

    def _carry_out(self, effect: Any, inbox: deque[Message]) -> None:
        if isinstance(effect, Call) and self.hold_calls:
            self.calls.append(effect)
        elif isinstance(effect, Call):
            inbox.append(self.answer(effect))
        else:
            super()._carry_out(effect, inbox)

    def release_calls(self) -> None:
        taken, self.calls = self.calls, []
        for call in taken:
            self.deliver(self.answer(call))

    def answer(self, call: Call) -> Answer:
        response = self.response(call.request)
        return Answer(call.id, response, Errors.NONE if response else Errors.NETWORK_EXCEPTION)

    def response(self, request: Request) -> Response | None:
        if isinstance(request, ShareGroupDescribeRequest):
            member = ShareGroupDescribeResponse.Member
            members = tuple(
                member(
                    member_id=name,
                    rack_id=None,
                    member_epoch=epoch,
                    client_id="",
                    client_host="",
                    subscribed_topic_names=(),
                    assignment=DescribedAssignment(topic_partitions=()),
                )
                for name, epoch in self.members.items()
            )
            group = ShareGroupDescribeResponse.DescribedGroup(
                group_id="g", error_code=self.group_error, members=() if self.group_error else members
            )
            return ShareGroupDescribeResponse(groups=(group,))
        assert isinstance(request, AddPartitionsToTxnRequest)
        (transaction,) = request.transactions
        self.joined.append(transaction)
        error = self.joins.popleft() if self.joins else Errors.NONE
        if error is Errors.NETWORK_EXCEPTION:
            return None
        of_partition = AddPartitionsToTxnResponse.Partition(
            partition_index=transaction.topics[0].partitions[0], partition_error_code=error
        )
        topic = AddPartitionsToTxnResponse.Topic(name=SHARE_STATE_TOPIC, results_by_partition=(of_partition,))
        result = AddPartitionsToTxnResponse.Transaction(transactional_id="x", topic_results=(topic,))
        return AddPartitionsToTxnResponse(results_by_transaction=(result,))

    def persist(self, effect: Persist) -> Answer:
        answer = super().persist(effect)
        response: Any = answer.response
        if hasattr(response.results[0].partitions[0], "staged_batches"):
            part = replace(response.results[0].partitions[0], staged_batches=self.fake.staged_batches())
            topic = replace(response.results[0], partitions=(part,))
            answer = answer._replace(response=replace(response, results=(topic,)))
        return answer

    # ---- requests ----------------------------------------------------------------------------------------------------

    def stage(self, text: str, by: Producer = P, **fields: Any) -> SentRequest:
        """Stage acknowledgements of m in partition 0."""
        part = ShareAcknowledgeRequest.Partition(partition_index=0, acknowledgement_batches=ack_batches(text))
        given: dict[str, Any] = {
            "transactional_id": "x",
            "producer_id": by.id,
            "producer_epoch": by.epoch,
            "group_id": "g",
            "member_id": "m",
            "member_epoch": MEMBER_EPOCH,
            "topics": (ShareAcknowledgeRequest.Topic(topic_id=TOPIC_ID, partitions=(part,)),),
            **fields,
        }
        return self.send(TxnShareAcknowledgeRequest(**given))

    def error(self, sent: SentRequest) -> Errors:
        """The error of the request, or of its only share-partition."""
        if sent.response.error_code:
            return sent.error
        return sent.errors[0]

    def end(self, committed: bool, by: Producer = P, *, leader_epoch: int = 0, durable: bool = True) -> Errors:
        """The marker is written, and the share coordinator notifies the leader."""
        if durable:
            self.fake.end(by, committed)
        request = EndShareTransactionRequest(
            group_id="g",
            topic_id=TOPIC_ID,
            partition=0,
            leader_epoch=leader_epoch,
            producer_id=by.id,
            producer_epoch=by.epoch,
            committed=committed,
        )
        return self.send(request).error

    @property
    def state_partition(self) -> int:
        return partition_for(str(SharePartitionKey("g", TOPIC_ID, 0)), len(self.state_epochs))


__all__ = ["BROKER_ID", "MEMBER_EPOCH", "ImageChanged", "P", "TransactionsStage"]
