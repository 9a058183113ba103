"""Joins what the proxy reads with what observers of the same groups poll, in one journal. BEHAVIOUR.md, section 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from shareq.model.events import Event, LeaderElected, RecordsHeld, RequestSent
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.base import Response
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.share_fetch import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from shareq.model.transport import Connection
from shareq.observer.core import ObserverCore
from shareq.observer.journal_writer import JournalWriter
from shareq.observer.log_writer import LogWriter
from shareq.observer.poll_result import PollResult
from shareq.observer.timed_journal import TimedJournal
from shareq.proxy.holds import GroupRules
from shareq.proxy.link import Waiting
from shareq.proxy.message_trace import MessageTrace
from shareq.proxy.messages import AcquiredResponse, decode_acquired
from shareq.proxy.produced import Produced, ends_of, produced_by
from shareq.proxy.reader import Exchange, ShareReader
from shareq.proxy.stream import SIZE
from shareq.proxy.versions import SHARE
from shareq.transports import transport_for
from shareq.wire.apis import API_BY_KEY
from shareq.wire.frames import decode_request, decode_response

_METADATA, _PRODUCE = MetadataRequest.API_KEY, ProduceRequest.API_KEY
_LIMIT = "share.delivery.count.limit"
_QUEUE = "errors.deadletterqueue.topic.name"

Later = Callable[[Callable[[int], object]], None]
"""Adds to what the proxy's thread reads, behind the messages that have passed; called with the time, ms."""


class _Asked(NamedTuple):
    """What is kept of a request until its response: what is read of it, and its event if messages are traced."""

    read: Exchange | Produced | None
    sent: RequestSent | None


class _Polls(NamedTuple):
    """Adds the results of an observer's polls to what is read, behind the messages that have passed before them."""

    later: Later
    join: Callable[[PollResult, int, int], None]
    writer: JournalWriter

    def write_poll(self, poll: PollResult, now_ms: int, begun_ms: int) -> None:
        self.later(lambda _: self.join(poll, now_ms, begun_ms))

    def write_failure(self, reason: str, now_ms: int) -> None:
        self.later(lambda _: self.writer.write_failure(reason, now_ms))


class Watch:
    """Reads the messages of share groups on their way, in the proxy's thread.

    Each group gets an observer when its first member is seen, or by `follow`.
    """

    def __init__(
        self,
        timed: TimedJournal,
        bootstrap_servers: str,
        interval_ms: int,
        later: Later,
        *,
        conf: Mapping[str, Any] = MappingProxyType({}),
        trace_messages: bool = False,
    ) -> None:
        self._trace = MessageTrace(timed) if trace_messages else None
        self._timed, self._logs = timed, LogWriter(timed)
        self._bootstrap_servers, self._interval_ms, self._later = bootstrap_servers, interval_ms, later
        self._conf = conf
        self._reader = ShareReader()
        self._metadata: dict[str, MetadataResponse.Topic] = {}
        self._groups: dict[str, tuple[JournalWriter, ObserverCore, Connection]] = {}

    @property
    def groups(self) -> list[str]:
        return sorted(self._groups)

    @property
    def wake_at_ms(self) -> int | None:
        return self._reader.wake_at_ms

    def observers(self) -> list[tuple[ObserverCore, Connection]]:
        return [(core, connection) for _, core, connection in self._groups.values()]

    def trouble(self) -> str:
        """The reason why a last poll was incomplete; empty if all were complete."""
        return next((writer.trouble for writer, _, _ in self._groups.values() if writer.trouble), "")

    # ---- messages ----------------------------------------------------------------------------------------------------

    def reads_request(self, api_key: int, version: int) -> bool:
        """True for share groups, for producers once a group is observed, and for all if messages are traced."""
        wanted = self._trace is not None or api_key in SHARE or (api_key == _PRODUCE and bool(self._groups))
        return wanted and _known(api_key, version)

    @staticmethod
    def reads_response(api_key: int, version: int) -> bool:
        return api_key == _METADATA and _known(api_key, version)

    def request(self, connection: int, broker_id: int, waiting: Waiting, frame: bytearray, now_ms: int) -> _Asked:
        """A request has passed, in a frame with its size; the result is the token of its response."""
        read: Exchange | Produced | None = None
        if waiting.api_key == _PRODUCE:
            read = produced_by(waiting.version, frame)
            if self._trace is None:
                return _Asked(read, None)
        header, request = decode_request(_content(frame))
        if isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest | ShareGroupHeartbeatRequest):
            read = self._reader.request(connection, broker_id, header.client_id or "", request)
        sent = self._trace.request(connection, broker_id, header, request, now_ms) if self._trace else None
        return _Asked(read, sent)

    def response(self, waiting: Waiting, frame: bytearray, now_ms: int) -> None:
        """A response has passed, in a frame with its size. Its event follows those that it causes, as at brokers of
        shareq."""
        api_key, version = waiting.api_key, waiting.version
        if not _known(api_key, version):
            return
        asked = waiting.token if isinstance(waiting.token, _Asked) else _Asked(None, None)
        if api_key == ShareFetchRequest.API_KEY and asked.sent is None:
            response: Response = decode_acquired(version, frame)
        elif api_key == _METADATA or asked != (None, None):
            response = decode_response(api_key, version, _content(frame))[1]
        else:
            return
        self._take(asked.read, response, now_ms)
        if self._trace is not None and asked.sent is not None:
            self._trace.response(asked.sent, response, now_ms)

    def _take(self, read: Exchange | Produced | None, response: Response, now_ms: int) -> None:
        if isinstance(response, MetadataResponse):
            self._learn(response, now_ms)
        elif isinstance(read, Produced):
            assert isinstance(response, ProduceResponse)
            self._grow(read, response, now_ms)
        elif isinstance(read, Exchange):
            assert isinstance(
                response, AcquiredResponse | ShareFetchResponse | ShareAcknowledgeResponse | ShareGroupHeartbeatResponse
            )
            self._write(self._reader.response(read, response, now_ms), now_ms)

    def disconnected(self, connection: int, now_ms: int) -> None:
        self._write(self._reader.disconnected(connection), now_ms)

    def tick(self, now_ms: int) -> None:
        self._write(self._reader.tick(now_ms), now_ms)

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def _learn(self, response: MetadataResponse, now_ms: int) -> None:
        """Topics and leaders by the metadata that a client gets."""
        with self._timed.lock:
            self._timed.advance_to(now_ms)
            for topic in response.topics:
                if topic.error_code or topic.name is None:
                    continue
                self._metadata[topic.name] = topic
                self._reader.topics[topic.topic_id] = topic.name
                if self._logs.topic_id(topic.name) == topic.topic_id:
                    for partition in topic.partitions:
                        self._lead(topic.name, partition.partition_index, partition.leader_id, partition.leader_epoch)

    def _lead(self, name: str, partition: int, leader: int, leader_epoch: int) -> None:
        if self._logs.write_leader((name, partition), leader, leader_epoch) and name in self._metadata:
            self._reader.led_by(self._metadata[name].topic_id, partition, leader)

    def _grow(self, produced: Produced, response: ProduceResponse, now_ms: int) -> None:
        """Logs of observed topics grow at once; the observers' polls are later."""
        with self._timed.lock:
            self._timed.advance_to(now_ms)
            for topic, partition, end in ends_of(produced, response):
                name = self._reader.topics.get(TopicId(topic), topic)
                if self._logs.topic_id(name) is not None:
                    self._logs.write_known_end((name, partition), end, now_ms)

    # ---- events ------------------------------------------------------------------------------------------------------

    def _write(self, events: list[Event], now_ms: int) -> None:
        writers = {group: self.follow(group) for group in dict.fromkeys(map(_group_of, events)) if group}
        with self._timed.lock:
            self._timed.advance_to(now_ms)
            for event in events:
                topic = getattr(event, "topic", None)
                if topic in self._metadata and self._logs.topic_id(topic) is None:
                    self._logs.write_topic(topic, self._metadata[topic])
                if isinstance(event, LeaderElected):
                    self._lead(*event)
                    continue
                if isinstance(event, RecordsHeld):
                    self._logs.write_known_end((event.topic, event.partition), event.end, now_ms)
                writers[_group_of(event)].write_seen(event, now_ms)

    # ---- observers ---------------------------------------------------------------------------------------------------

    def follow(self, group: str) -> JournalWriter:
        """Observe a group, if it is not observed yet; return its writer."""
        found = self._groups.get(group)
        if found is not None:
            return found[0]
        transport = transport_for(self._bootstrap_servers, self._conf)
        writer = JournalWriter(self._timed, self._logs, group)
        core = ObserverCore(
            self._bootstrap_servers,
            group,
            None,
            writer=_Polls(self._later, partial(self._join, group), writer),
            rng=transport.rng(),
            interval_ms=self._interval_ms,
        )
        connection = transport.connect(core, "tap")
        self._groups[group] = (writer, core, connection)
        connection.run(core.poll_now)
        return writer

    def _join(self, group: str, poll: PollResult, now_ms: int, begun_ms: int) -> None:
        """Write a poll's result. What it shows of messages whose responses are under way comes before it."""
        writer = self._groups[group][0]
        with self._timed.lock:
            limit, queue = poll.configs.get(_LIMIT, ""), poll.configs.get(_QUEUE, "")
            if limit.isdigit():
                self._reader.rules[group] = GroupRules(int(limit), dead_letter_queue=bool(queue))
            self._write(self._shown(group, poll, now_ms), now_ms)
            writer.note_beating(self._reader.beating(group), now_ms)
            writer.write_poll(poll, now_ms, begun_ms)
            if poll.group_described:
                writer.write_bypassing()
            self._follow_topics(poll)

    def _shown(self, group: str, poll: PollResult, now_ms: int) -> list[Event]:
        """What durable states show of acknowledgements under way."""
        found: list[Event] = []
        for at, state in poll.states.items():
            topic = poll.topics.get(at[0])
            if state is not None and topic is not None:
                key = SharePartitionKey(group, topic.topic_id, at[1])
                found += self._reader.read(key, state, poll.log_starts.get(at, -1), now_ms)
        return found

    def _follow_topics(self, poll: PollResult) -> None:
        """The reader uses the leaders that the poll has found, and forgets deleted topics."""
        for name, found in poll.topics.items():
            self._discard(name, None if found is None else found.topic_id)
            if found is not None:
                for index in range(len(found.partitions)):
                    leader = self._logs.leader((name, index))
                    if leader is not None:
                        self._reader.led_by(found.topic_id, index, leader)

    def _discard(self, name: str, topic_id: TopicId | None) -> None:
        """Discard what is kept of a topic that was deleted; `topic_id`: that of its successor."""
        known = self._metadata.get(name)
        if known is not None and known.topic_id != topic_id:
            del self._metadata[name]
            self._reader.deleted(known.topic_id)

    def close(self) -> None:
        for _, _, connection in self._groups.values():
            connection.close()


def _group_of(event: Event) -> str:
    """The group of an event; empty for one of a log."""
    return getattr(event, "group_id", "")


def _content(frame: bytearray) -> bytes:
    return bytes(memoryview(frame)[SIZE.size :])


def _known(api_key: int, version: int) -> bool:
    api = API_BY_KEY[api_key]
    return api.min_version <= version <= api.max_version
