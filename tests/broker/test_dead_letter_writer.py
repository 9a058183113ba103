"""The actor that writes dead letters, with letters that come while it waits for something else."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from shareq import Cluster, Producer
from shareq.broker.dead_letters.writer import DeadLetterWriter
from shareq.log.memory import MemoryLog
from shareq.log.records import decode
from shareq.model.actor import (
    Answer,
    Call,
    DeadLetter,
    DeadLettersEnded,
    ImageChanged,
    LogRead,
    Persist,
    ReadLog,
    SendDeadLetters,
    StopDeadLetters,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.events import DeadLettersWritten, Event
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.base import Response
from shareq.model.messages.cluster import FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.share_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from shareq.model.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from shareq.model.states import IsolationLevel

TOPIC, QUEUE, GROUP = "orders", "dlq.orders", "g"
RECORDS = 12


class Broker:
    """What the writers of several leaders share: the log of the queue, the coordinator of their transactional id, and
    the state, of which the leader with `leader_epoch` is the last reader."""

    def __init__(self) -> None:
        self._log = MemoryLog()
        self._epochs: Counter[str] = Counter()
        self.leader_epoch = 0

    @property
    def batches(self) -> list[tuple[int, list[int]]]:
        """Of each batch in the queue the epoch of its producer, and the source offsets of its records."""
        found = self._log.read(0, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED).batches
        return [
            (batch.producer_epoch, [int(dict(one.headers)["__dlq.errors.offset"] or b"") for one in decode(batch)])
            for batch in found
        ]

    @property
    def queue(self) -> list[int]:
        """Source offsets of the records in the queue, in order."""
        return [offset for _, offsets in self.batches for offset in offsets]

    def respond(self, request: Any) -> Response:
        if isinstance(request, FindCoordinatorRequest):
            (key,) = request.coordinator_keys
            found = FindCoordinatorResponse.Coordinator(key=key, node_id=3)
            return FindCoordinatorResponse(coordinators=(found,))
        if isinstance(request, InitProducerIdRequest):
            assert request.transactional_id is not None
            self._epochs[request.transactional_id] += 1
            return InitProducerIdResponse(producer_id=7, producer_epoch=self._epochs[request.transactional_id])
        if isinstance(request, ReadShareGroupStateRequest):
            (topic,) = request.topics
            (asked,) = topic.partitions
            error = Errors.FENCED_LEADER_EPOCH if asked.leader_epoch < self.leader_epoch else Errors.NONE
            part = ReadShareGroupStateResponse.Partition(partition=asked.partition, error_code=error)
            read = ReadShareGroupStateResponse.Topic(topic_id=topic.topic_id, partitions=(part,))
            return ReadShareGroupStateResponse(results=(read,))
        assert isinstance(request, ProduceRequest)
        assert request.topics[0].name == QUEUE, "a backend before Kafka 4.1 knows no ids in Produce"
        data = request.topics[0].partitions[0].records or b""
        appended = self._log.append(data, now_ms=0, leader_epoch=0)
        done = ProduceResponse.Partition(index=0, error_code=appended.error, base_offset=appended.base_offset)
        return ProduceResponse(responses=(ProduceResponse.Topic(partitions=(done,)),))


class Post:
    """The writer of one leader, and the answers to what it asks for: the records of a log, each in a batch of its
    own."""

    def __init__(self, cluster: Cluster, broker: Broker | None = None) -> None:
        self._log = cluster.log(TOPIC, 0)
        self.key = SharePartitionKey(GROUP, cluster.image.topics[TOPIC].topic_id, 0)
        self.broker = broker or Broker()
        self.leader_epoch = self.broker.leader_epoch
        self.ended: Counter[int] = Counter()
        self.written: Counter[int] = Counter()
        self.asked: list[Any] = []
        self.ends: list[DeadLettersEnded] = []
        """Those without ranges."""
        self._writer = DeadLetterWriter(Random(1), traced=True)
        self._now_ms = 0
        self._handle(ImageChanged(cluster.image))

    def _handle(self, message: Any) -> None:
        for effect in self._writer.handle(message, self._now_ms):
            if isinstance(effect, DeadLettersEnded):
                self.ended.update(offset for first, end in effect.ranges for offset in range(first, end))
                self.ends += [] if effect.ranges else [effect]
            elif isinstance(effect, DeadLettersWritten):
                self.written.update(range(effect.first, effect.end))
            elif isinstance(effect, Call | Persist | ReadLog):
                self.asked.append(effect)
            else:
                assert isinstance(effect, Event)

    def send(self, *offsets: int) -> None:
        letters = tuple(DeadLetter(offset, offset + 1, 1, rejected=True) for offset in offsets)
        self._handle(SendDeadLetters(1, self.key, TOPIC, self.leader_epoch, letters))

    def stop(self) -> None:
        self._handle(StopDeadLetters(1))

    def answer(self) -> type:
        """Answer the oldest question; returns its kind."""
        asked = self.asked.pop(0)
        if isinstance(asked, ReadLog):
            found = self._log.read(asked.offset, max_bytes=1, isolation=IsolationLevel.READ_UNCOMMITTED)
            self._handle(LogRead(asked.id, Errors.NONE, tuple(found.batches), RECORDS, 0, RECORDS))
            return ReadLog
        self._handle(Answer(asked.id, self.broker.respond(asked.request)))
        return type(asked.request)

    def time_out(self) -> Any:
        """Let the time of the oldest question pass; returns the request, which is still on its way."""
        asked = self.asked.pop(0)
        self._handle(Answer(asked.id, None, Errors.REQUEST_TIMED_OUT))
        return asked.request

    @property
    def pauses(self) -> bool:
        return self._writer.wake_at_ms is not None

    def pass_time(self) -> None:
        """Let the time pass until the writer tries again."""
        assert self._writer.wake_at_ms is not None
        self._now_ms = self._writer.wake_at_ms
        self._handle(Tick())

    def until(self, kind: type) -> None:
        """Answer questions until the oldest one is of this kind."""
        while type(self.asked[0].request if isinstance(self.asked[0], Call) else self.asked[0]) is not kind:
            self.answer()

    def finish(self) -> None:
        while self.asked or self.pauses:
            if self.asked:
                self.answer()
            else:
                self.pass_time()


@pytest.fixture(scope="module")
def cluster() -> Any:
    with Cluster(brokers=1, seed=3) as made:
        made.create_topic(TOPIC)
        made.create_topic(QUEUE, configs={"errors.deadletterqueue.group.enable": "true", "max.message.bytes": "700"})
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
    assert post.broker.queue == [2, first, first + 1, 6, 8]
    assert post.ended == post.written == Counter(post.broker.queue)


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
        assert post.broker.queue == offsets, run
        assert post.ended == post.written == Counter(offsets), run


# ---- several leaders -------------------------------------------------------------------------------------------------


def successor(cluster: Cluster, former: Post) -> Post:
    """A later leader, which has read the state: a former one may not know that."""
    former.broker.leader_epoch += 1
    return Post(cluster, former.broker)


@pytest.mark.parametrize("again", [False, True], ids=["late", "sent again"])
def test_a_round_of_a_former_leader_is_refused_after_the_first_one_of_the_next(cluster: Cluster, again: bool) -> None:
    """BEHAVIOUR.md, 2.15.10: the former leader finds that it is one, and claims no further epoch to write with."""
    former = Post(cluster)
    former.send(1, 2)
    former.until(ProduceRequest)
    late = former.time_out() if again else None
    later = successor(cluster, former)
    later.send(1, 2)
    later.finish()
    if late is not None:
        former.broker.respond(late)
    former.finish()
    assert former.broker.queue == [1, 2]
    assert later.ended == later.written == Counter([1, 2])
    assert (former.ended, former.ends) == (Counter(), [DeadLettersEnded(1, (), fenced=True)])
    later.send(3)
    later.finish()
    assert former.broker.queue == [1, 2, 3]


def test_a_former_leader_that_claims_the_last_epoch_does_not_write(cluster: Cluster) -> None:
    """The next leader goes on with the epoch that it has: the log knows only epochs that have been written."""
    former = Post(cluster)
    former.send(1, 2)
    former.until(FindCoordinatorRequest)
    later = successor(cluster, former)
    later.send(1, 2)
    later.until(ProduceRequest)
    former.finish()
    assert former.ends == [DeadLettersEnded(1, (), fenced=True)]
    later.finish()
    later.send(3)
    later.finish()
    assert former.broker.batches == [(1, [1, 2]), (1, [3])]


def test_a_fenced_writer_keeps_its_letters_until_it_is_stopped(cluster: Cluster) -> None:
    former = Post(cluster)
    former.send(1)
    later = successor(cluster, former)
    former.finish()
    former.send(2)
    assert not former.asked
    former.stop()
    assert former.ends == [DeadLettersEnded(1, (), fenced=True), DeadLettersEnded(1, (), stopped=True)]
    assert not later.broker.queue


class Fight:
    """Leaders that follow each other at random moments. Requests are lost, or arrive after their time, and former
    leaders go on slowly."""

    def __init__(self, cluster: Cluster, rng: Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self.broker = Broker()
        self.posts = [Post(cluster, self.broker)]
        self.wanted = [*range(RECORDS)]
        """What the last leader has to write: the records that the state shows as not archived."""
        self._late: list[Any] = []
        self.posts[0].send(*self.wanted)

    def run(self, leaders: int) -> None:
        while len(self.posts) < leaders or self.posts[-1].ended.total() < len(self.wanted):
            writes = not any(isinstance(asked, ReadLog) for asked in self.posts[-1].asked)
            if len(self.posts) < leaders and writes and self._rng.random() < 0.1:
                self.wanted = sorted(set(range(RECORDS)).difference(*(post.ended for post in self.posts)))
                self.posts.append(successor(self._cluster, self.posts[-1]))
                self.posts[-1].send(*self.wanted)
            elif self._late and self._rng.random() < 0.1:
                self.broker.respond(self._late.pop(self._rng.randrange(len(self._late))))
            else:
                self._go_on(self.posts[-1] if self._rng.random() < 0.9 else self._rng.choice(self.posts))

    def _go_on(self, post: Post) -> None:
        if post.asked and isinstance(post.asked[0], Call) and self._rng.random() < 0.2:
            request = post.time_out()
            self._late += [request] if self._rng.random() < 0.7 else []
        elif post.asked:
            post.answer()
        elif post.pauses:
            post.pass_time()

    def end(self) -> None:
        """All that is late arrives, and the former leaders finish."""
        for request in self._late:
            self.broker.respond(request)
        for former in self.posts[:-1]:
            former.finish()


def test_letters_of_the_last_leader_are_the_last_ones(cluster: Cluster, seed: int) -> None:
    """They are in the queue once and in order, and no letter is missing."""
    for run in range(200):
        rng = Random(f"{seed}/{run}")
        fight = Fight(cluster, rng)
        fight.run(leaders=rng.randrange(2, 5))
        if fight.wanted:
            fight.end()
        queue = fight.broker.queue
        assert set(queue) == set(range(RECORDS)), run
        assert queue[len(queue) - len(fight.wanted) :] == fight.wanted, run
