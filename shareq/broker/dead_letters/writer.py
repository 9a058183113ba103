"""The actor that writes dead letters: for each share-partition a lane, whose letters are written in order.

A lane reads what its letters refer to, finds the queue of the group, and writes round after round. If that fails, the
lane waits, and tries again later or when the metadata changes; no letter passes another one. A group may choose that
letters are given up instead, after the retries of Kafka (`errors.deadletterqueue.unavailable`).

Source: KIP-1191; Kafka 4.4's ShareGroupDLQManager for requests and errors. Rules: `shareq/broker/BEHAVIOUR.md`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from shareq.broker.dead_letters.claim import claim
from shareq.broker.dead_letters.lane import Failure, Lane, SentRound
from shareq.broker.dead_letters.queue_topic import (
    Missing,
    Queue,
    Unusable,
    creation,
    described_configs,
    description,
    find_queue,
)
from shareq.broker.dead_letters.rounds import QueueLimits, Round, RoundMaker
from shareq.broker.dead_letters.source_reader import read_source
from shareq.model.actor import (
    ANY_NODE,
    Answer,
    Call,
    DeadLettersEnded,
    Effect,
    Failed,
    ImageChanged,
    LogRead,
    Message,
    Persist,
    ReadLog,
    SendDeadLetters,
    StopDeadLetters,
    Tick,
)
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.events import (
    DeadLettersGivenUp,
    DeadLettersRefused,
    DeadLettersSent,
    DeadLettersWaiting,
    DeadLettersWritten,
    Event,
)
from shareq.model.image import NO_LEADER, ClusterImage
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.topics import CreateTopicsResponse, DescribeConfigsResponse
from shareq.model.time_of_day import TimeOfDay, same_time
from shareq.model.workflow import (
    LATER,
    Pause,
    Pauses,
    Promise,
    Reply,
    Send,
    SendToPersister,
    Waiter,
    Workflow,
    Workflows,
)
from shareq.persister.state_topic import KAFKAS

ALL_REPLICAS = -1
PRODUCE_TIMEOUT_MS = 30_000
CREATED_MS = 2_000
"""How long a new topic may take to appear in the metadata."""

NO_QUEUE = "the group has no dead-letter queue"

_RETRIED = frozenset({Errors.NOT_LEADER_OR_FOLLOWER, Errors.NETWORK_EXCEPTION, Errors.REQUEST_TIMED_OUT})
_CREATION_RETRIED = _RETRIED | {Errors.TOPIC_ALREADY_EXISTS, Errors.THROTTLING_QUOTA_EXCEEDED}
_OTHER_PRODUCER = frozenset(
    {Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, Errors.UNKNOWN_PRODUCER_ID, Errors.INVALID_PRODUCER_EPOCH}
)
"""The log does not know the producer any more, or knows a later epoch: the lane claims the next epoch, unless there is
a later leader."""


class DeadLetterWriter(Workflows):
    """The actor. `rng` spreads retries in time. `describes`: the image has no configurations of topics, so that the
    actor asks for those of a queue."""

    def __init__(
        self, rng: random.Random, *, traced: bool, describes: bool = False, time_of_day: TimeOfDay = same_time
    ) -> None:
        super().__init__(
            {
                Send: self._begin_send,
                SendToPersister: self._begin_persist,
                ReadLog: self._begin_read,
                Pause: self._begin_pause,
            }
        )
        self._rng = rng
        self._traced = traced
        self._describes = describes
        self._time_of_day = time_of_day
        self._image = ClusterImage()
        self._now_ms = 0
        self._effects: list[Effect] = []
        self._lanes: dict[int, Lane] = {}
        self._waiters: dict[int, Waiter] = {}
        self._creating: dict[str, list[Promise[Failure | None]]] = {}
        self._pauses = Pauses()
        self._last_id = 0
        self._handlers: dict[type, Callable[[Any], None]] = {
            SendDeadLetters: self._send,
            StopDeadLetters: self._stop,
            Answer: lambda answer: self._resume(answer.id, Reply(answer.response, answer.error, answer.reason)),
            LogRead: lambda read: self._resume(read.id, read),
            ImageChanged: self._image_changed,
            Tick: lambda _: self._pauses.end_due(self._now_ms),
        }

    @property
    def wake_at_ms(self) -> int | None:
        """When the next lane tries again."""
        return self._pauses.wake_at_ms

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        """Handle one message. KeyError for a message of another actor."""
        self._now_ms = now_ms
        self._handlers[type(message)](message)
        effects, self._effects = self._effects, []
        return effects

    # ---- messages ----------------------------------------------------------------------------------------------------

    def _send(self, sent: SendDeadLetters) -> None:
        lane = self._lanes.get(sent.id)
        if lane is None:
            lane = self._lanes[sent.id] = Lane(sent)
        lane.letters += sent.letters
        if lane.waits_for:
            self._record(DeadLettersWaiting(*lane.place, sent.letters[0].first, lane.waits_for))
        if not (lane.running or lane.fenced):
            lane.running = True
            self.start(self._run(lane))

    def _stop(self, message: StopDeadLetters) -> None:
        """End a lane; if it is at work, after the request that is under way."""
        lane = self._lanes[message.id]
        lane.stopping = True
        if lane.running:
            self._pauses.end_all()
        else:
            self._end(lane)

    def _end(self, lane: Lane) -> None:
        del self._lanes[lane.id]
        self._effects.append(DeadLettersEnded(lane.id, (), stopped=True))

    def _image_changed(self, message: ImageChanged) -> None:
        """What lanes wait for may be there now: they try at once."""
        self._image = message.image
        self._pauses.end_all()

    def _resume(self, step_id: int, result: Any) -> None:
        self._waiters.pop(step_id).resume(result)

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _next_id(self, waiter: Waiter) -> int:
        self._last_id += 1
        self._waiters[self._last_id] = waiter
        return self._last_id

    def _begin_send(self, step: Send, waiter: Waiter) -> Any:
        self._effects.append(Call(self._next_id(waiter), step.node, step.request))
        return LATER

    def _begin_persist(self, step: SendToPersister, waiter: Waiter) -> Any:
        self._effects.append(Persist(self._next_id(waiter), step.request))
        return LATER

    def _begin_read(self, step: ReadLog, waiter: Waiter) -> Any:
        self._effects.append(step._replace(id=self._next_id(waiter)))
        return LATER

    def _begin_pause(self, step: Pause, waiter: Waiter) -> Any:
        return self._pauses.begin(self._now_ms + step.ms, waiter)

    # ---- a lane ------------------------------------------------------------------------------------------------------

    def _run(self, lane: Lane) -> Workflow[None]:
        while lane.letters and not (lane.stopping or lane.fenced):
            try:
                failure = yield from self._attempt(lane)
            except Exception as defect:  # the lane's own: it waits as for any failure, and the other lanes go on
                self._effects.append(Failed(defect))
                failure = Failure(f"a defect of shareq: {type(defect).__name__}", retried=True, of="defect")
            if failure is not None and not lane.stopping:
                yield from self._wait(lane, failure)
        lane.running = False
        if lane.stopping:
            self._end(lane)
        elif lane.fenced:
            self._effects.append(DeadLettersEnded(lane.id, (), fenced=True))

    def _config(self, lane: Lane) -> GroupConfig:
        return self._image.group_config(lane.key.group_id)

    def _attempt(self, lane: Lane) -> Workflow[Failure | None]:
        """Write one round of letters, or create the queue."""
        name = self._config(lane).dead_letter_topic_name
        if not name:
            self._give_up(lane, lane.letters, NO_QUEUE)
            return None
        error = yield from read_source(lane)
        if lane.stopping:
            return None
        if error:
            return Failure(f"the records cannot be read: {error.name}", retried=True, of="read")
        topic = self._image.topics.get(name)
        if topic is not None and self._describes:
            reply = yield Send(ANY_NODE, description(name))
            if not isinstance(reply.response, DescribeConfigsResponse) or reply.response.results[0].error_code:
                return Failure(f"topic {name} cannot be described: {reply.error.name}", retried=True, of="create")
            topic = replace(topic, configs=described_configs(reply.response))
        queue = find_queue(name, lane.topic, self._image, topic)
        if isinstance(queue, Unusable):
            return Failure(queue.reason)
        if isinstance(queue, Missing):
            return (yield from self._create(queue.name))
        lane.failures.pop("create", None)
        if lane.producer is None:
            return (yield from claim(lane))
        return (yield from self._write(lane, queue))

    def _wait(self, lane: Lane, failure: Failure) -> Workflow[None]:
        """Wait before the next attempt, or give the letters up."""
        failures = lane.failures[failure.of] = lane.failures.get(failure.of, 0) + 1
        if failure.error and lane.letters:
            final = not failure.retried or failures == KAFKAS.attempts
            self._record(DeadLettersRefused(*lane.place, lane.letters[0].first, failure.error, final))
        gives_up = self._config(lane).dead_letter_unavailable == "archive"
        if gives_up and (not failure.retried or failures >= KAFKAS.attempts):
            lane.failures.clear()
            self._give_up(lane, lane.letters[:1] if failure.only_first else lane.letters, failure.reason)
            return
        if lane.waits_for != failure.reason:
            lane.waits_for = failure.reason
            self._record(DeadLettersWaiting(*lane.place, lane.letters[0].first, failure.reason))
        pause_ms = KAFKAS.pause_ms(min(failures, KAFKAS.attempts), self._rng)
        due_ms = self._now_ms + pause_ms
        yield Pause(pause_ms, failure.reason)
        if self._now_ms < due_ms and failures < KAFKAS.attempts:
            # The metadata has changed: this attempt comes before its time, and does not count.
            lane.failures[failure.of] -= 1

    # ---- the queue ---------------------------------------------------------------------------------------------------

    def _create(self, name: str) -> Workflow[Failure | None]:
        """Create a queue: one request, for which all lanes wait."""
        if name in self._creating:
            promise: Promise[Failure | None] = Promise()
            self._creating[name].append(promise)
            failure: Failure | None = yield promise
            return failure
        self._creating[name] = []
        try:
            failure = yield from self._request_creation(name)
        except Exception:
            self._created(name, Failure(f"topic {name} cannot be created", retried=True, of="create"))
            raise
        self._created(name, failure)
        return failure

    def _request_creation(self, name: str) -> Workflow[Failure | None]:
        reply = yield Send(ANY_NODE, creation(name))
        if self._describes and _creation_error(reply) is Errors.INVALID_CONFIG:
            reply = yield Send(ANY_NODE, creation(name, enabled=False))
        failure = _creation_failure(name, reply)
        if failure is None and name not in self._image.topics:
            yield Pause(CREATED_MS, f"topic {name} is new")
        return failure

    def _created(self, name: str, failure: Failure | None) -> None:
        for promise in self._creating.pop(name):
            promise.keep(failure)

    # ---- rounds ------------------------------------------------------------------------------------------------------

    def _write(self, lane: Lane, queue: Queue) -> Workflow[Failure | None]:
        """Write the next round. One whose result is unknown is sent again as it is."""
        topic = queue.topic
        index = lane.key.partition % len(topic.partitions)
        leader = topic.partitions[index].leader
        if leader == NO_LEADER:
            return Failure(f"partition {index} of {topic.name} has no leader", retried=True, of="create")
        sent = lane.sent_round
        if sent is not None and (sent.topic_id, sent.partition) != (topic.topic_id, index):
            lane.forget_round()
            return None
        if sent is None:
            limits = QueueLimits(queue.max_bytes, queue.needs_keys, self._config(lane).dead_letter_copy_record_enable)
            producer = lane.producer_state(topic.topic_id, index)
            made = RoundMaker(limits, producer, self._time_of_day(self._now_ms)).make(
                lane.sent, lane.readable(), lane.source
            )
            sent = SentRound(topic.topic_id, index, made)
        base_offset = -1
        if sent.round.batch is not None:
            lane.sent_round = sent
            self._record(DeadLettersSent(*lane.place, sent.first, topic.name, sent.partition, sent.round.record_count))
            reply = yield Send(leader, _produce(sent, topic.name))
            failure, base_offset = self._judge(lane, sent, topic.name, reply)
            if failure is not None:
                return failure
        self._done(lane, sent, topic.name, base_offset)
        refused = sent.round.refused
        return None if refused is None else self._refuse(lane, refused.offset, refused.reason)

    def _judge(self, lane: Lane, sent: SentRound, name: str, reply: Reply) -> tuple[Failure | None, int]:
        """The failure of a produce request, or its base offset. If the outcome is known, the round is not kept."""
        response = reply.response
        if not isinstance(response, ProduceResponse):
            why = f"{name}-{sent.partition} does not answer: {reply.error.name}"
            return Failure(why, retried=True, of="produce", error=reply.error), -1
        result = response.responses[0].partitions[0]
        error = result.error_code
        if not error:
            lane.sent_round = None
            return None, result.base_offset
        if error not in _RETRIED:
            lane.sent_round = None
        if error in _OTHER_PRODUCER:
            lane.producer = None
        why = f"{name}-{sent.partition} refuses them: {error.name}"
        if result.error_message:
            why += f", {result.error_message}"
        return Failure(why, retried=error in _RETRIED | _OTHER_PRODUCER, of="produce", error=error), -1

    def _done(self, lane: Lane, sent: SentRound, name: str, base_offset: int) -> None:
        """A round is in the queue."""
        made: Round = sent.round
        lane.written(sent)
        offset = base_offset
        for first, end, count in made.covered:
            if count:
                self._record(DeadLettersWritten(*lane.place, first, end, name, sent.partition, offset, count))
                offset += count
        if made.covered:
            self._effects.append(DeadLettersEnded(lane.id, made.ranges))

    def _refuse(self, lane: Lane, offset: int, reason: str) -> Failure:
        """The queue can never take the record at `offset` of the first letter: cut the letter behind it."""
        lane.cut_first(offset + 1)
        return Failure(reason, only_first=True)

    def _give_up(self, lane: Lane, letters: Sequence[Any], reason: str) -> None:
        """Archive letters without a copy in the queue."""
        ranges = tuple((letter.first, letter.end) for letter in letters)
        for first, end in ranges:
            self._record(DeadLettersGivenUp(*lane.place, first, end, reason))
        lane.drop(len(ranges))
        self._effects.append(DeadLettersEnded(lane.id, ranges))

    def _record(self, event: Event) -> None:
        if self._traced:
            self._effects.append(event)


def _creation_error(reply: Reply) -> Errors:
    response = reply.response
    return response.topics[0].error_code if isinstance(response, CreateTopicsResponse) else reply.error


def _creation_failure(name: str, reply: Reply) -> Failure | None:
    response = reply.response
    if not isinstance(response, CreateTopicsResponse):
        return Failure(f"topic {name} cannot be created: {reply.error.name}", retried=True, of="create")
    result = response.topics[0]
    error = result.error_code
    if not error or error is Errors.TOPIC_ALREADY_EXISTS:
        return None
    why = f"topic {name} cannot be created: {error.name}"
    if result.error_message:
        why += f", {result.error_message}"
    return Failure(why, retried=error in _CREATION_RETRIED, of="create")


def _produce(sent: SentRound, name: str) -> ProduceRequest:
    """The request of a round. It has the topic's name, too: versions that another process sends on may have no ids."""
    assert sent.round.batch is not None
    part = ProduceRequest.Partition(index=sent.partition, records=sent.round.batch)
    topic = ProduceRequest.Topic(topic_id=sent.topic_id, name=name, partitions=(part,))
    return ProduceRequest(acks=ALL_REPLICAS, timeout_ms=PRODUCE_TIMEOUT_MS, topics=(topic,))
