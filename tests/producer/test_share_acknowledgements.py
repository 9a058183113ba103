"""`send_share_acknowledgements_to_transaction`: the requests, and the effect of each response.
shareq/leader/experiments/BEHAVIOUR.md, 7.20."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from inspect import getdoc
from textwrap import dedent
from typing import Any

import pytest

from shareq import Message, Producer
from shareq.client.share_group import ShareGroupMetadata
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.ids import Place, TopicId
from shareq.model.messages.share_fetch import AcknowledgementBatch, ShareAcknowledgeRequest
from shareq.model.messages.share_transactions import TxnShareAcknowledgeRequest, TxnShareAcknowledgeResponse
from shareq.producer.transaction import ProducerTransactionState
from tests.client.fake import Fake, topic_id
from tests.producer.stage import transactional

MESSAGES = [Message("t", 0, offset) for offset in (5, 6, 8)]


class Leaders:
    """The leaders of the share-partitions; first responses have `errors`. `taken`: what the consumer has handed
    over."""

    def __init__(self, fake: Fake, *errors: Errors, whole: bool = False) -> None:
        self.errors = list(errors)
        self.whole = whole
        self.nodes: list[int] = []
        self.taken: list[Mapping[Place, Collection[int]]] = []
        self.group = ShareGroupMetadata("g", "m", 3, self.hand_over)
        fake.answers[TxnShareAcknowledgeRequest] = self.stage

    def hand_over(self, wanted: Mapping[Place, Collection[int]]) -> Mapping[Place, TopicId]:
        self.taken.append(wanted)
        return {place: topic_id(place[0]) for place in wanted}

    def stage(self, fake: Fake, node: int, request: TxnShareAcknowledgeRequest) -> Any:
        self.nodes.append(node)
        error = self.errors.pop(0) if self.errors else Errors.NONE
        if error in (Errors.NETWORK_EXCEPTION, Errors.UNSUPPORTED_VERSION):
            return error
        if self.whole and error:
            return TxnShareAcknowledgeResponse(error_code=error, error_message="why")
        result = TxnShareAcknowledgeResponse.Partition
        return TxnShareAcknowledgeResponse(
            responses=tuple(
                TxnShareAcknowledgeResponse.Topic(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        result(partition_index=part.partition_index, error_code=error) for part in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )


def send(producer: Producer, leaders: Leaders, messages: list[Any] = MESSAGES, timeout: float = 60) -> None:
    producer.send_share_acknowledgements_to_transaction(messages, leaders.group, timeout)


def test_the_request_has_runs_of_offsets_and_the_transaction_is_ended() -> None:
    fake, _, coordinator, producer = transactional()
    leaders = Leaders(fake)
    send(producer, leaders, [*MESSAGES, (Message("t", 0, 7), "reject"), (Message("t", 0, 9), 3)])
    (request,) = fake.requests(TxnShareAcknowledgeRequest)
    batches = [(5, 6, 1), (7, 7, 3), (8, 8, 1), (9, 9, 3)]
    part = ShareAcknowledgeRequest.Partition(
        partition_index=0,
        acknowledgement_batches=tuple(
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
            for first, last, kind in batches
        ),
    )
    assert request == TxnShareAcknowledgeRequest(
        transactional_id="x",
        producer_id=7,
        producer_epoch=0,
        group_id="g",
        member_id="m",
        member_epoch=3,
        topics=(ShareAcknowledgeRequest.Topic(topic_id=topic_id("t"), partitions=(part,)),),
    )
    producer.commit_transaction()
    assert (leaders.nodes, coordinator.ended) == ([1], [True])


def test_without_acknowledgements_nothing_is_sent() -> None:
    fake, _, coordinator, producer = transactional()
    send(producer, Leaders(fake), [])
    producer.commit_transaction()
    assert (fake.requests(TxnShareAcknowledgeRequest), coordinator.ended) == ([], [])


def test_each_leader_gets_its_partitions() -> None:
    fake, _, _, producer = transactional()
    fake.topics["t"] = [1, 2, 1]
    leaders = Leaders(fake)
    send(producer, leaders, [Message("t", partition, 0) for partition in range(3)])
    assert sorted(leaders.nodes) == [1, 2]
    parts = [[p.partition_index for p in r.topics[0].partitions] for r in fake.requests(TxnShareAcknowledgeRequest)]
    assert parts == [[0, 2], [1]]


_S = ProducerTransactionState


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("error", "attempts", "state"),
    [
        (Errors.CONCURRENT_TRANSACTIONS, 2, _S.IN_TRANSACTION),
        (Errors.COORDINATOR_NOT_AVAILABLE, 2, _S.IN_TRANSACTION),
        (Errors.NOT_COORDINATOR, 2, _S.IN_TRANSACTION),
        (Errors.NOT_LEADER_OR_FOLLOWER, 2, _S.IN_TRANSACTION),
        (Errors.UNKNOWN_TOPIC_OR_PARTITION, 1, _S.ABORTABLE),
        (Errors.INVALID_RECORD_STATE, 1, _S.ABORTABLE),
        (Errors.STALE_MEMBER_EPOCH, 1, _S.ABORTABLE),
        (Errors.NETWORK_EXCEPTION, 1, _S.ABORTABLE),
        (Errors.UNSUPPORTED_VERSION, 1, _S.ABORTABLE),
        (Errors.INVALID_PRODUCER_EPOCH, 1, _S.FATAL),
        (Errors.PRODUCER_FENCED, 1, _S.FATAL),
    ],
)
def test_errors(error: Errors, attempts: int, state: ProducerTransactionState, whole: bool) -> None:
    fake, _, coordinator, producer = transactional()
    leaders = Leaders(fake, error, whole=whole)
    if attempts == 2:
        send(producer, leaders)
    else:
        with pytest.raises(KafkaException) as raised:
            send(producer, leaders)
        assert (raised.value.error.code(), raised.value.error.fatal()) == (error, state is _S.FATAL)
    assert (len(leaders.nodes), producer._core.identity.state) == (attempts, state)
    if state is _S.ABORTABLE:
        with pytest.raises(KafkaException, match="abort_transaction"):
            producer.commit_transaction()
        producer.abort_transaction()
        assert coordinator.ended == [False]


def test_a_call_that_timed_out_can_be_repeated_and_takes_the_records_once() -> None:
    fake, _, _, producer = transactional()
    leaders = Leaders(fake)
    answer, fake.answers[TxnShareAcknowledgeRequest] = leaders.stage, lambda *_: None
    with pytest.raises(KafkaException) as raised:
        send(producer, leaders, timeout=1)
    assert raised.value.error == KafkaError._TIMED_OUT
    with pytest.raises(IllegalStateException, match="other acknowledgements are still in progress"):
        send(producer, leaders, MESSAGES[:1])
    sent = fake.sent[-1]
    fake.reply(sent.call_id, answer(fake, sent.node, sent.request), after_ms=2_000)
    send(producer, leaders)
    assert len(leaders.taken) == 1


def test_an_answer_after_an_abort_has_no_effect() -> None:
    fake, _, coordinator, producer = transactional()
    leaders = Leaders(fake)
    fake.answers[TxnShareAcknowledgeRequest] = lambda *_: None
    with pytest.raises(KafkaException):
        send(producer, leaders, timeout=1)
    sent = fake.sent[-1]
    producer.abort_transaction()
    producer.begin_transaction()
    fake.reply(sent.call_id, Errors.NETWORK_EXCEPTION)
    fake.answers[TxnShareAcknowledgeRequest] = leaders.stage
    send(producer, leaders)
    producer.commit_transaction()
    assert coordinator.ended == [False, True]


def test_records_of_a_topic_that_was_created_again_are_lost() -> None:
    fake, _, _, producer = transactional()
    leaders = Leaders(fake)
    fake.ids["t"] = topic_id("again")
    with pytest.raises(KafkaException, match="topic 't' was created again"):
        send(producer, leaders)
    assert leaders.nodes == []


def test_without_a_leader_the_call_waits() -> None:
    fake, _, _, producer = transactional()
    fake.topics["t"] = [-1]
    leaders = Leaders(fake)
    with pytest.raises(KafkaException, match="in progress"):
        send(producer, leaders, timeout=3)
    assert leaders.nodes == []
    fake.topics["t"] = [2]
    send(producer, leaders)
    assert leaders.nodes == [2]


def test_the_example_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    lines = (getdoc(Producer.send_share_acknowledgements_to_transaction) or "").splitlines()
    exec(dedent("\n".join(line for line in lines if not line or line.startswith("    "))), {})
    assert capsys.readouterr().out.startswith("MemoryLog([0, 2)")
