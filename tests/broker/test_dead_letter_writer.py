"""The actor that writes dead letters, with letters that come while it waits for something else."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from shareq import Cluster, Producer
from shareq.broker.dead_letters.writer import DeadLetterWriter
from shareq.log.records import decode
from shareq.model.actor import (
    Answer,
    Call,
    DeadLetter,
    DeadLettersEnded,
    ImageChanged,
    LogRead,
    ReadLog,
    SendDeadLetters,
)
from shareq.model.errors import Errors
from shareq.model.events import DeadLettersSent, DeadLettersWritten
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from shareq.model.states import IsolationLevel

TOPIC, QUEUE, GROUP = "orders", "dlq.orders", "g"
RECORDS = 12


class Post:
    """A writer, and the answers to what it asks for: the records of a log, each in a batch of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._log = cluster.log(TOPIC, 0)
        self.key = SharePartitionKey(GROUP, cluster.image.topics[TOPIC].topic_id, 0)
        self.queue: list[int] = []
        """Source offsets of the records in the queue, in order."""
        self.ended: Counter[int] = Counter()
        self.written: Counter[int] = Counter()
        self.asked: list[Any] = []
        self._writer = DeadLetterWriter(Random(1), traced=True)
        self._handle(ImageChanged(cluster.image))

    def _handle(self, message: Any) -> None:
        for effect in self._writer.handle(message, 0):
            if isinstance(effect, DeadLettersEnded):
                self.ended.update(offset for first, end in effect.ranges for offset in range(first, end))
            elif isinstance(effect, DeadLettersWritten):
                self.written.update(range(effect.first, effect.end))
            elif not isinstance(effect, DeadLettersSent):
                self.asked.append(effect)

    def send(self, *offsets: int) -> None:
        letters = tuple(DeadLetter(offset, offset + 1, 1, rejected=True) for offset in offsets)
        self._handle(SendDeadLetters(1, self.key, TOPIC, letters))

    def answer(self) -> type:
        """Answer the oldest question; returns its kind."""
        asked = self.asked.pop(0)
        if isinstance(asked, ReadLog):
            found = self._log.read(asked.offset, max_bytes=1, isolation=IsolationLevel.READ_UNCOMMITTED)
            self._handle(LogRead(asked.id, Errors.NONE, tuple(found.batches), RECORDS, 0, RECORDS))
            return ReadLog
        assert isinstance(asked, Call)
        if isinstance(asked.request, InitProducerIdRequest):
            self._handle(Answer(asked.id, InitProducerIdResponse(producer_id=7, producer_epoch=0)))
        else:
            assert isinstance(asked.request, ProduceRequest)
            self._handle(Answer(asked.id, self._append(asked.request)))
        return type(asked.request)

    def finish(self) -> None:
        while self.asked:
            self.answer()

    def _append(self, request: ProduceRequest) -> ProduceResponse:
        assert request.topics[0].name == QUEUE, "a backend before Kafka 4.1 knows no ids in Produce"
        base_offset = len(self.queue)
        for record in decode(request.topics[0].partitions[0].records or b""):
            self.queue.append(int(dict(record.headers)["__dlq.errors.offset"] or b""))
        done = ProduceResponse.Partition(index=0, base_offset=base_offset)
        return ProduceResponse(responses=(ProduceResponse.Topic(partitions=(done,)),))


@pytest.fixture(scope="module")
def cluster() -> Any:
    with Cluster(brokers=1, seed=3) as made:
        made.create_topic(TOPIC)
        made.create_topic(QUEUE, configs={"errors.deadletterqueue.group.enable": "true"})
        made.configure_group(GROUP, {"errors.deadletterqueue.topic.name": QUEUE})
        with Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
            for number in range(RECORDS):
                producer.produce(TOPIC, f"order {number}")
                producer.flush()
        yield made


@pytest.mark.parametrize("first", [4, 10], ids=["above the letters before", "below them"])
@pytest.mark.parametrize("answers", range(3), ids=["in a read", "in another", "in a round"])
def test_letters_that_come_during_a_step_are_read_and_written(cluster: Cluster, answers: int, first: int) -> None:
    """BEHAVIOUR.md, 2.15.8 and 9: a letter without its record would be archived without a copy."""
    post = Post(cluster)
    post.send(2)
    post.finish()
    post.send(first, first + 1)
    for _ in range(answers):
        assert post.answer() is ReadLog
    post.send(6, 8)
    post.finish()
    assert post.queue == [2, first, first + 1, 6, 8]
    assert post.ended == post.written == Counter(post.queue)


def test_letters_that_come_at_random_moments_are_written_once_and_in_order(cluster: Cluster, seed: int) -> None:
    for run in range(200):
        rng, post = Random(f"{seed}/{run}"), Post(cluster)
        offsets = rng.sample(range(RECORDS), rng.randrange(1, RECORDS))
        left = [*offsets]
        while left or post.asked:
            if left and (not post.asked or rng.random() < 0.4):
                count = rng.randrange(1, len(left) + 1)
                post.send(*left[:count])
                del left[:count]
            else:
                post.answer()
        assert post.queue == offsets, run
        assert post.ended == post.written == Counter(offsets), run
