"""The default persister: share coordinators store the state of share-partitions in the state topic.

Each entry of a request has its own coordinator and its own retries. Entries for one broker are joined: while a request
of one kind is under way there, further entries of that kind wait; after its response one request for each group has
them all. Source: Kafka's DefaultStatePersister and PersisterStateManager.
"""

from __future__ import annotations

import random
from heapq import heappop, heappush
from typing import Any, NamedTuple

from shareq.model.actor import Answer, Call, Effect, ImageChanged, Incoming, Message, Respond, Tick, isolated
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey, TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse
from shareq.persister.combined_response import CombinedResponse, RequestEntry, entries_of

JITTER = 0.2
CALL_TIMEOUT_MS = 30000

RETRIED = frozenset(
    {
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
        Errors.NETWORK_EXCEPTION,
        Errors.REQUEST_TIMED_OUT,
    }
)
"""After these errors the coordinator is looked up again."""


class Retries(NamedTuple):
    """The number of attempts, and the pauses between them: `backoff_ms`, doubled after each failure."""

    attempts: int = 5
    backoff_ms: int = 1000
    max_backoff_ms: int = 30000

    def pause_ms(self, failures: int, rng: random.Random) -> int:
        """The pause after so many failures, a fifth more or less: by default 2, 4, 8, 16 s."""
        delay_ms = min(self.backoff_ms << failures, self.max_backoff_ms)
        return round(min(delay_ms * rng.uniform(1 - JITTER, 1 + JITTER), self.max_backoff_ms))


KAFKAS = Retries()


class BrokerChannel:
    """Requests of one kind to one broker: `open` ones are under way, `waiting` entries are sent in the next round."""

    __slots__ = ("kind", "node", "open", "waiting")

    def __init__(self, node: int, kind: type[Request]) -> None:
        self.node = node
        self.kind = kind
        self.open = 0
        self.waiting: list[RequestEntry] = []

    def next_round(self) -> list[list[RequestEntry]]:
        """The entries to send now, by group. Of two entries for one share-partition the later one waits for another
        round, so that each gets its own result: in one request Kafka's coordinator gives both that of the later one."""
        first: dict[SharePartitionKey, RequestEntry] = {}
        self.waiting = [part for part in self.waiting if first.setdefault(part.key, part) is not part]
        groups: dict[str, list[RequestEntry]] = {}
        for key, part in first.items():
            groups.setdefault(key.group_id, []).append(part)
        return list(groups.values())


class SentRequest(NamedTuple):
    """A joint request under way."""

    channel: BrokerChannel
    parts: list[RequestEntry]


class StateTopicPersister:
    """The actor. `rng` spreads retries in time and lookups over brokers."""

    def __init__(self, broker_id: int, rng: random.Random, retries: Retries = KAFKAS) -> None:
        self.broker_id = broker_id
        self._patience = retries
        self._rng = rng
        self._image = ClusterImage()
        self._nodes: dict[SharePartitionKey, int] = {}
        self._channels: dict[tuple[int, type[Request]], BrokerChannel] = {}
        self._sent: dict[int, SentRequest] = {}
        self._lookups: dict[int, RequestEntry] = {}
        self._retries: list[tuple[int, int, RequestEntry]] = []
        self._last_id = 0
        self._now_ms = 0

    @property
    def wake_at_ms(self) -> int | None:
        """The time of the next retry."""
        return self._retries[0][0] if self._retries else None

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        self._now_ms = now_ms
        if isinstance(message, Incoming):
            self._route(entries_of(CombinedResponse(message)), effects)
        elif isinstance(message, Answer):
            self._answered(message, now_ms, effects)
        elif isinstance(message, ImageChanged):
            self._image = message.image
            self._nodes.clear()
        elif isinstance(message, Tick):
            due: list[RequestEntry] = []
            while self._retries and self._retries[0][0] <= now_ms:
                due.append(heappop(self._retries)[2])
            self._route(due, effects)
        return effects

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _route(self, parts: list[RequestEntry], effects: list[Effect]) -> None:
        """Send the entries whose coordinator is in the metadata, and look up that of the others."""
        channels = {}
        for part in parts:
            node = self._node(part.key)
            if node is None:
                self._look_up(part, effects)
            else:
                channel = self._enqueue(part, node)
                channels[channel.node, channel.kind] = channel
        for channel in channels.values():
            self._send(channel, effects)

    def _node(self, key: SharePartitionKey) -> int | None:
        """The key's coordinator by the metadata, computed once for each image."""
        node = self._nodes.get(key)
        if node is None:
            broker = self._image.coordinator(SHARE_STATE_TOPIC, str(key))
            if broker:
                node = self._nodes[key] = broker.broker_id
        return node

    def _look_up(self, part: RequestEntry, effects: list[Effect]) -> None:
        """Send FindCoordinator to any live broker, which creates the state topic if it is missing."""
        alive = [broker.broker_id for broker in self._image.brokers.values() if broker.alive]
        if not alive:
            extend(effects, part.fail(Errors.COORDINATOR_NOT_AVAILABLE))
            return
        request = FindCoordinatorRequest(key_type=CoordinatorType.SHARE, coordinator_keys=(str(part.key),))
        call_id = self._next_id()
        self._lookups[call_id] = part
        effects.append(Call(call_id, self._rng.choice(alive), request, CALL_TIMEOUT_MS))

    def _enqueue(self, part: RequestEntry, node: int) -> BrokerChannel:
        kind = type(part.joint.request)
        channel = self._channels.get((node, kind))
        if channel is None:
            channel = self._channels[node, kind] = BrokerChannel(node, kind)
        channel.waiting.append(part)
        return channel

    def _send(self, channel: BrokerChannel, effects: list[Effect]) -> None:
        """Send the waiting entries, unless a request is under way."""
        if channel.open or not channel.waiting:
            return
        for parts in channel.next_round():
            isolated(effects, self._send_joined, channel, parts, effects)

    def _send_joined(self, channel: BrokerChannel, parts: list[RequestEntry], effects: list[Effect]) -> None:
        try:
            request = _joined(parts)
        except Exception:
            for part in parts:
                extend(effects, part.fail(Errors.UNKNOWN_SERVER_ERROR))
            raise
        call_id = self._next_id()
        self._sent[call_id] = SentRequest(channel, parts)
        channel.open += 1
        effects.append(Call(call_id, channel.node, request, CALL_TIMEOUT_MS))

    # ---- responses ---------------------------------------------------------------------------------------------------

    def _answered(self, answer: Answer, now_ms: int, effects: list[Effect]) -> None:
        """Process an answer to a request of this actor. Duplicate and late ones are ignored."""
        if part := self._lookups.pop(answer.id, None):
            error, node = _coordinator(answer)
            if error:
                part.failed_lookups += 1
                extend(effects, self._failed(part, error, part.failed_lookups, now_ms))
            else:
                part.failed_lookups = 0
                self._send(self._enqueue(part, node), effects)
        elif sent := self._sent.pop(answer.id, None):
            results = _results(answer)
            for part in sent.parts:
                result = results.get((part.key.topic_id, part.key.partition))
                isolated(effects, self._settle, part, result, answer.error, now_ms, effects)
            sent.channel.open -= 1
            self._send(sent.channel, effects)

    def _settle(self, part: RequestEntry, result: Any, error: Errors, now_ms: int, effects: list[Effect]) -> None:
        """Store the result of an entry, or retry it. None: the response has no result for it."""
        error = result.error_code if result else error or Errors.UNKNOWN_SERVER_ERROR
        if error in RETRIED:
            part.failed_calls += 1
            extend(effects, self._failed(part, error, part.failed_calls, now_ms))
        else:
            extend(effects, part.put(result) if result else part.fail(error))

    def _failed(self, part: RequestEntry, error: Errors, failures: int, now_ms: int) -> Respond | None:
        """Schedule a retry with a new lookup, or store the error."""
        if error not in RETRIED or failures >= self._patience.attempts:
            return part.fail(error)
        heappush(self._retries, (now_ms + self._patience.pause_ms(failures, self._rng), self._next_id(), part))
        return None


def extend(effects: list[Effect], answer: Respond | None) -> None:
    """Add an answer, if there is one."""
    if answer is not None:
        effects.append(answer)


def _coordinator(answer: Answer) -> tuple[Errors, int]:
    """The result of a lookup: an error, or a node."""
    if not isinstance(answer.response, FindCoordinatorResponse):
        return answer.error or Errors.UNKNOWN_SERVER_ERROR, -1
    found = answer.response.coordinators
    return (found[0].error_code, found[0].node_id) if len(found) == 1 else (Errors.UNKNOWN_SERVER_ERROR, -1)


def _joined(parts: list[RequestEntry]) -> Request:
    """One request for entries of one kind and group. A request all of whose entries are here is sent unchanged."""
    joint = parts[0].joint
    if len(parts) == joint.count and all(part.joint is joint for part in parts):
        return joint.request
    topics: dict[TopicId, list[Any]] = {}
    for part in parts:
        topics.setdefault(part.key.topic_id, []).append(part.entry)
    kind: Any = type(joint.request)
    request: Request = kind(
        group_id=parts[0].key.group_id,
        topics=tuple(kind.Topic(topic_id=t, partitions=tuple(entries)) for t, entries in topics.items()),
    )
    return request


def _results(answer: Answer) -> dict[tuple[TopicId, int], Any]:
    """The results of a joint request by topic id and partition; none without a response."""
    response: Any = answer.response
    return {(t.topic_id, p.partition): p for t in response.results for p in t.partitions} if response else {}
