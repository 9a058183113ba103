"""Fetch, for consumers that manage their own offsets.

A fetch is answered at once if `min_bytes` are available, a partition has an error, or `max_wait_ms` is 0; otherwise
when enough bytes have been appended or `max_wait_ms` has passed. A waiting fetch counts what has been appended since it
has read, and reads again only when that may be enough; it is forgotten when it ends. Source: Kafka's DelayedFetch,
KIP-74, KIP-227.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from shareq.broker.data_plane import ISOLATION_LEVELS, DataPlane, FetchedPartition, failed_read
from shareq.broker.fetch_sessions import FetchSessions, FetchTurn, Reads
from shareq.leader.deadlines import Deadlines
from shareq.log.memory import MemoryLog
from shareq.log.results import ReadResult
from shareq.model.acls import AclOperation, ResourceType
from shareq.model.actor import (
    ConnectionClosed,
    Effect,
    ImageChanged,
    Incoming,
    LogGrew,
    Message,
    Respond,
    Tick,
    isolated,
)
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition, TopicPartition
from shareq.model.messages.fetch import UNKNOWN_LEADER, FetchRequest, FetchResponse
from shareq.model.messages.refused_topics import refused_topics
from shareq.model.messages.share_fetch import LeaderIdAndEpoch
from shareq.model.rights import Rights
from shareq.model.states import IsolationLevel

MAX_BYTES = "fetch.max.bytes"

BY_ID = 13
"""The first version with topic ids, and whose clients expect an error of the whole request without partitions."""


class _Fetch:
    """A fetch in progress. `sizes`: available bytes by partition; `met`: their sum; `waits_on`: the partitions whose
    appends can end the wait. `unread_bytes`: appended since they were read to the partitions `grown`. `stable`: the
    last stable offsets of the last reads. `denied`: the topics that may not be read, by id or name as requested."""

    __slots__ = (
        "connection_id",
        "denied",
        "grown",
        "id",
        "isolation",
        "max_bytes",
        "met",
        "min_bytes",
        "sizes",
        "stable",
        "turn",
        "unread_bytes",
        "waits_on",
    )

    def __init__(self, incoming: Incoming, request: FetchRequest, turn: FetchTurn, max_bytes: int) -> None:
        self.id = incoming.id
        self.connection_id = incoming.client.connection_id
        self.turn = turn
        self.isolation = IsolationLevel(request.isolation_level)
        self.max_bytes = min(request.max_bytes, max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.sizes: dict[FetchedPartition, int] = {}
        self.met = 0
        self.waits_on: list[TopicPartition] = []
        self.grown: dict[FetchedPartition, None] = {}
        self.unread_bytes = 0
        self.stable: dict[FetchedPartition, int] = {}
        self.denied: frozenset[str] = frozenset()

    def measured(self, at: FetchedPartition, read: ReadResult) -> None:
        """Count the available bytes of a partition, at most `partition_max_bytes`."""
        self.stable[at] = read.last_stable_offset
        if not read.batches:  # if the records were deleted meanwhile, the read has an error
            return
        size = min(sum([len(batch.data) for batch in read.batches]), self.turn.wanted[at].partition_max_bytes)
        self.met += size - self.sizes.get(at, 0)
        self.sizes[at] = size

    def may_end(self, at: FetchedPartition, log: MemoryLog, grown_bytes: int) -> bool:
        """True if this append, with earlier ones, may meet the minimum: then the partitions that have grown are read.

        For read_committed the end of a transaction makes more visible than it appends.
        """
        if self.sizes.get(at, 0) >= self.turn.wanted[at].partition_max_bytes:
            return False
        self.grown[at] = None
        if self.isolation is IsolationLevel.READ_COMMITTED:
            return log.last_stable_offset != self.stable[at]
        self.unread_bytes += grown_bytes
        return self.met + self.unread_bytes >= self.min_bytes


class FetchHandler:
    """The actor that answers Fetch on one broker. It reads the logs that the broker leads."""

    def __init__(self, data: DataPlane, rng: random.Random) -> None:
        self._data = data
        self._sessions = FetchSessions(rng)
        self._waiting: dict[TopicPartition, dict[_Fetch, None]] = defaultdict(dict)
        self._by_connection: dict[int, dict[_Fetch, None]] = defaultdict(dict)
        self._deadlines: Deadlines[_Fetch] = Deadlines()
        self._written: dict[TopicPartition, int] = {}
        """The bytes written to the partitions that are waited for, as far as fetches have counted them."""
        self._image = data.image
        self._effects: list[Effect] = []
        self._now_ms = 0
        self._handlers: dict[type[Message], Callable[[Any], None]] = {
            Incoming: self._fetch,
            LogGrew: self._log_grew,
            ImageChanged: self._image_changed,
            ConnectionClosed: self._connection_closed,
            Tick: self._tick,
        }

    @property
    def wake_at_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def waits_for(self, at: TopicPartition) -> bool:
        """True if a fetch waits for this partition."""
        return at in self._waiting

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        self._now_ms = now_ms
        self._handlers[type(message)](message)
        effects, self._effects = self._effects, []
        return effects

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _fetch(self, incoming: Incoming) -> None:
        request = incoming.request
        assert isinstance(request, FetchRequest)
        if request.isolation_level not in ISOLATION_LEVELS:
            self._respond(incoming.id, _refused(request, incoming.client.api_version, Errors.UNKNOWN_SERVER_ERROR))
            return
        by_id = incoming.client.api_version >= BY_ID
        turn = self._sessions.enter(request, self._now_ms, self._data.image, by_id=by_id)
        if isinstance(turn, Errors):
            self._respond(incoming.id, FetchResponse(error_code=turn))
            return
        fetch = _Fetch(incoming, request, turn, self._data.image.broker_config[MAX_BYTES])
        fetch.denied = self._denied(incoming, turn)
        reads = self._read(fetch)
        for at, read in reads.items():
            fetch.measured(at, read)
        enough = fetch.met >= fetch.min_bytes or any(read.error for read in reads.values())
        if enough or request.max_wait_ms <= 0 or not reads:
            self._answer(fetch, reads)
        else:
            self._wait(fetch, self._now_ms + request.max_wait_ms)

    def _denied(self, incoming: Incoming, turn: FetchTurn) -> frozenset[str]:
        """The topics of a fetch, those of its session included, that its sender may not read. A topic id that is
        unknown names no topic."""
        image = self._data.image
        if image.authorizer is None:
            return frozenset()
        rights = Rights(image, incoming.client, FetchRequest, self._effects.append)
        keys = dict.fromkeys(at[0] for at in turn.wanted)
        names = {key: image.topics_by_id[TopicId(key)].name for key in keys if key in image.topics_by_id}
        if not turn.by_id:
            names = {key: key for key in keys}
        _, denied = rights.split(AclOperation.READ, ResourceType.TOPIC, names, lambda key: names[key])
        return frozenset(denied)

    def _read(self, fetch: _Fetch) -> dict[FetchedPartition, ReadResult]:
        """Whole batches of all partitions within the limits in bytes. The first partition with records yields one batch
        of any size, so that every consumer makes progress."""
        reads = {}
        left = fetch.max_bytes
        empty_so_far = True
        for at, wanted in fetch.turn.wanted.items():
            if at[0] in fetch.denied:
                reads[at] = failed_read(Errors.TOPIC_AUTHORIZATION_FAILED)
                continue
            max_bytes = min(left, wanted.partition_max_bytes)
            read = self._data.read(at, wanted, max_bytes, fetch.isolation, min_one_batch=empty_so_far)
            reads[at] = read
            if read.batches:
                empty_so_far = False
                left = max(0, left - sum([len(batch.data) for batch in read.batches]))
        return reads

    # ---- waiting -----------------------------------------------------------------------------------------------------

    def _wait(self, fetch: _Fetch, deadline_ms: int) -> None:
        fetch.waits_on = [self._name(at) for at in fetch.turn.wanted]
        for name in fetch.waits_on:
            if name not in self._waiting:
                _, log, _ = self._data.led_log(*name)
                self._written[name] = log.bytes_written if log else 0
            self._waiting[name][fetch] = None
        self._by_connection[fetch.connection_id][fetch] = None
        self._deadlines.set(fetch, deadline_ms)

    def _name(self, at: FetchedPartition) -> TopicPartition:
        if isinstance(at, TopicPartition):
            return at
        return TopicPartition(self._data.image.topics_by_id[at.topic_id].name, at.partition)

    def _stop_waiting(self, fetch: _Fetch) -> None:
        self._deadlines.cancel(fetch)
        for name in fetch.waits_on:
            fetches = self._waiting[name]
            del fetches[fetch]
            if not fetches:
                del self._waiting[name], self._written[name]
        fetches = self._by_connection[fetch.connection_id]
        del fetches[fetch]
        if not fetches:
            del self._by_connection[fetch.connection_id]

    def _log_grew(self, message: LogGrew) -> None:
        name = message.topic_partition
        if name not in self._waiting:
            return
        topic = self._data.image.topics.get(name.topic)
        _, log, _ = self._data.led_log(*name)
        if topic is None or log is None:  # the change of the image ends these fetches
            return
        grown_bytes = log.bytes_written - self._written[name]
        self._written[name] = log.bytes_written
        by_id = TopicIdPartition(topic.topic_id, name.partition)
        for fetch in list(self._waiting[name]):
            at: FetchedPartition = by_id if fetch.turn.by_id else name
            # A topic that was deleted and created again has another id.
            if at in fetch.turn.wanted and fetch.may_end(at, log, grown_bytes):
                isolated(self._effects, self._end_if_met, fetch)

    def _end_if_met(self, fetch: _Fetch) -> None:
        """Read the partitions that have grown, and end the fetch if that is enough."""
        failed = False
        for at in fetch.grown:
            wanted = fetch.turn.wanted[at]
            read = self._data.read(at, wanted, wanted.partition_max_bytes, fetch.isolation, min_one_batch=True)
            fetch.measured(at, read)
            failed = failed or bool(read.error)
        fetch.grown.clear()
        fetch.unread_bytes = 0
        if failed or fetch.met >= fetch.min_bytes:
            self._end(fetch)

    def _end(self, fetch: _Fetch) -> None:
        self._stop_waiting(fetch)
        self._answer(fetch, self._read(fetch))

    def _image_changed(self, message: ImageChanged) -> None:
        """End waiting fetches with a partition that was deleted or has changed its leader."""
        before, after = self._image.topics, message.image.topics
        self._image = message.image
        changed = {name.topic for name in self._waiting if before.get(name.topic) is not after.get(name.topic)}
        if not changed:
            return
        concerned = dict.fromkeys(
            fetch for name, fetches in self._waiting.items() if name.topic in changed for fetch in fetches
        )
        for fetch in concerned:
            if any(self._data.error_of(at, wanted) for at, wanted in fetch.turn.wanted.items()):
                isolated(self._effects, self._end, fetch)

    def _connection_closed(self, message: ConnectionClosed) -> None:
        """End the fetches of a connection: their responses are dropped, but the requests are over."""
        for fetch in list(self._by_connection.get(message.connection_id, ())):
            self._stop_waiting(fetch)
            self._respond(fetch.id, FetchResponse())

    def _tick(self, _: Tick) -> None:
        while (due := self._deadlines.pop_due(self._now_ms)) is not None:
            isolated(self._effects, self._end, due)

    # ---- responses ---------------------------------------------------------------------------------------------------

    def _answer(self, fetch: _Fetch, reads: Reads) -> None:
        error, session_id, changed = self._sessions.leave(fetch.turn, reads, self._now_ms)
        topics: dict[str, list[FetchResponse.Partition]] = {}
        hints: list[LeaderIdAndEpoch] = []
        for at, read in changed.items():
            hint = self._hint(at, read.error)
            if hint is not UNKNOWN_LEADER:
                hints.append(hint)
            topics.setdefault(at[0], []).append(_partition(at.partition, read, hint, fetch.isolation))
        response = FetchResponse(
            error_code=error,
            session_id=session_id,
            responses=tuple(
                [
                    FetchResponse.Topic(topic_id=TopicId(topic), partitions=tuple(found))
                    if fetch.turn.by_id
                    else FetchResponse.Topic(topic=topic, partitions=tuple(found))
                    for topic, found in topics.items()
                ]
            ),
            node_endpoints=self._data.endpoints(hints) if hints else (),
        )
        self._respond(fetch.id, response)

    def _hint(self, at: FetchedPartition, error: Errors) -> LeaderIdAndEpoch:
        if error not in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH):
            return UNKNOWN_LEADER
        return self._data.leader_hint(*self._name(at), error)

    def _respond(self, exchange_id: int, response: FetchResponse) -> None:
        self._effects.append(Respond(exchange_id, response))


def _refused(request: FetchRequest, version: int, error: Errors) -> FetchResponse:
    """The response to a request that fails as a whole. Older clients find the error at the partitions."""
    if version >= BY_ID:
        return FetchResponse(error_code=error)
    return FetchResponse(error_code=error, responses=refused_topics(FetchResponse, request.topics, error_code=error))


_UNREAD = frozenset((Errors.UNKNOWN_TOPIC_ID, Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.TOPIC_AUTHORIZATION_FAILED))
"""The errors before the log is looked for."""


def _partition(
    index: int, read: ReadResult, hint: LeaderIdAndEpoch, isolation: IsolationLevel
) -> FetchResponse.Partition:
    if read.error:
        unread = read.error in _UNREAD
        return FetchResponse.Partition(
            partition_index=index,
            error_code=read.error,
            current_leader=hint,
            aborted_transactions=() if unread else None,
        )
    aborted = None
    if isolation is IsolationLevel.READ_COMMITTED:
        aborted = tuple(
            FetchResponse.AbortedTransaction(producer_id=t.producer_id, first_offset=t.first_offset)
            for t in read.aborted
        )
    return FetchResponse.Partition(
        partition_index=index,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=aborted,
        records=read.batches,
    )
