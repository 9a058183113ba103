"""A cluster made of answers: a transport on virtual time whose brokers answer as a test prescribes.

    fake = Fake()
    fake.answers[ShareFetchRequest] = lambda fake, node, request: ShareFetchResponse()

An answer may be a response, an `Errors` (the connection broke), `Later(ms, response)`, or None: no answer, until the
test gives one with `fake.reply`.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from shareq.log.batches import parse_batch, restamp
from shareq.log.records import encode_batch
from shareq.model.actor import ANONYMOUS, Actor, Answer, Call, Effect, Tick
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.records import RecordBatch
from shareq.transports import publish

START_MS = 1_000_000


class Later(NamedTuple):
    after_ms: int
    response: Response | Errors


class Sent(NamedTuple):
    """A request that left the client; `after_ms` since the start."""

    after_ms: int
    node: int
    request: Any
    call_id: int


AnswerOf = Callable[["Fake", int, Any], Any]


def topic_id(name: str) -> TopicId:
    return TopicId(name.ljust(22, "x"))


_fakes: list[Fake] = []
"""Addresses stay valid for tests that keep the address only."""


class Fake:
    """Both sides of a connection. `topics`: name -> leader of each partition."""

    def __init__(self, **topics: list[int]) -> None:
        self.now_ms = START_MS
        self.topics = topics
        self.ids = {name: topic_id(name) for name in topics}
        self.sent: list[Sent] = []
        self.events: list[Effect] = []
        self.closed = False
        self.dead = False
        self.actor: Any = None
        self.answers: dict[type[Request], AnswerOf] = {
            MetadataRequest: Fake.metadata,
            FindCoordinatorRequest: Fake.coordinator,
        }
        self._ready: deque[Answer] = deque()
        self._later: list[tuple[int, int, Answer]] = []
        self.address = publish(self, random.Random(0))
        _fakes.append(self)

    # ---- the transport -----------------------------------------------------------------------------------------------

    def connect(self, actor: Actor, client_id: str, principal: str = ANONYMOUS) -> FakeConnection:
        self.actor = actor
        return FakeConnection(self)

    def client_rng(self) -> random.Random:
        return random.Random(7)

    def perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Call):
                self._call(effect)
            else:
                self.events.append(effect)

    def _call(self, call: Call) -> None:
        self.sent.append(Sent(self.now_ms - START_MS, call.node, call.request, call.id))
        answer = self.answers[type(call.request)](self, call.node, call.request)
        if isinstance(answer, Later):
            self.reply(call.id, answer.response, after_ms=answer.after_ms)
        elif answer is not None:
            self.reply(call.id, answer)

    def reply(self, call_id: int, answer: Response | Errors, *, after_ms: int = 0) -> None:
        message = Answer(call_id, None, answer) if isinstance(answer, Errors) else Answer(call_id, answer)
        if after_ms:
            heapq.heappush(self._later, (self.now_ms + after_ms, call_id, message))
        else:
            self._ready.append(message)

    def run(self, until: Callable[[], bool] = lambda: False, timeout_ms: float | None = 0) -> bool:
        """Let time go on; the loop that a connection's `wait` is."""
        deadline_ms = self.now_ms + (10_000_000 if timeout_ms is None else int(timeout_ms))
        for _ in range(100_000):
            while self._ready:
                if until():
                    return True
                self.perform(self.actor.handle(self._ready.popleft(), self.now_ms))
            if until():
                return True
            times = (self._next_answer_ms(), self.actor.wake_at_ms, deadline_ms + 1)
            due_ms = min(at for at in times if at is not None)
            if due_ms > deadline_ms:
                self.now_ms = deadline_ms
                assert timeout_ms is not None, "waiting for ever for what never comes"
                return False
            self.now_ms = max(self.now_ms, due_ms)
            self._step()
        raise AssertionError("the client spins")

    def _next_answer_ms(self) -> int | None:
        return self._later[0][0] if self._later else None

    def _step(self) -> None:
        if self._later and self._later[0][0] <= self.now_ms:
            self._ready.append(heapq.heappop(self._later)[2])
        else:
            self.perform(self.actor.handle(Tick(), self.now_ms))

    # ---- answers -----------------------------------------------------------------------------------------------------

    def metadata(self, node: int, request: MetadataRequest) -> MetadataResponse:
        topics = []
        for asked in request.topics or [MetadataRequest.Topic(name=name) for name in self.topics]:
            name = asked.name or next((n for n, i in self.ids.items() if i == asked.topic_id), None)
            if name in self.topics:
                topics.append(self._topic(name))
            elif asked.name is None:
                topics.append(
                    MetadataResponse.Topic(name=None, topic_id=asked.topic_id, error_code=Errors.UNKNOWN_TOPIC_ID)
                )
            else:
                error = Errors.UNKNOWN_TOPIC_OR_PARTITION
                topics.append(MetadataResponse.Topic(name=name, topic_id=asked.topic_id, error_code=error))
        return MetadataResponse(brokers=(), cluster_id="fake", controller_id=0, topics=tuple(topics))

    def _topic(self, name: str) -> MetadataResponse.Topic:
        partitions = tuple(
            MetadataResponse.Partition(partition_index=index, leader_id=leader, leader_epoch=0)
            for index, leader in enumerate(self.topics[name])
        )
        return MetadataResponse.Topic(name=name, topic_id=self.ids[name], partitions=partitions)

    def coordinator(self, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        found = (FindCoordinatorResponse.Coordinator(key=key, node_id=9) for key in request.coordinator_keys)
        return FindCoordinatorResponse(coordinators=tuple(found))

    def requests(self, kind: type[Request]) -> list[Any]:
        """What was sent of one kind, in order."""
        return [sent.request for sent in self.sent if isinstance(sent.request, kind)]

    def pending(self, kind: type[Request]) -> Sent:
        """The latest request of a kind, to be answered by hand."""
        found: Sent = next(sent for sent in reversed(self.sent) if isinstance(sent.request, kind))
        return found


class FakeConnection:
    """What a shell is given."""

    failure = None

    def __init__(self, fake: Fake) -> None:
        self._fake = fake

    def now_ms(self) -> int:
        return self._fake.now_ms

    def time_of_day(self, time_ms: int) -> int:
        return time_ms

    def run(self, action: Callable[[int], Iterable[Effect]]) -> None:
        self._check()
        self._fake.perform(action(self._fake.now_ms))
        self._fake.run()

    def wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        self._check()
        return self._fake.run(until, timeout_ms)

    def close(self) -> None:
        self._fake.closed = True

    def _check(self) -> None:
        if self._fake.dead:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "the cluster is closed"))


def batch(base_offset: int, *values: bytes | str, compression: str = "none", key: bytes | None = None) -> RecordBatch:
    """A record batch as a log holds it; timestamps count from 1000."""
    encoded = [value.encode() if isinstance(value, str) else value for value in values]
    data = encode_batch(
        ((key, value, (), 1000 + base_offset + i) for i, value in enumerate(encoded)), compression=compression
    )
    return parse_batch(restamp(data, base_offset, 3))
