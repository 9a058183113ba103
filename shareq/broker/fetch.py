"""Fetch, for consumers that manage their own offsets.

A fetch is answered at once if `min_bytes` are available, a partition has an error, or `max_wait_ms` is 0; otherwise
when enough bytes have been appended or `max_wait_ms` has passed. A waiting fetch tracks the bytes of each partition, so
that an append costs one read of one partition. Source: Kafka's DelayedFetch, KIP-74, KIP-227.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from shareq.broker.data_plane import ISOLATION_LEVELS, DataPlane
from shareq.broker.fetch_sessions import FetchSessions, FetchTurn, Reads
from shareq.log.results import ReadResult
from shareq.model.actor import ConnectionClosed, Effect, ImageChanged, Incoming, LogGrew, Message, Respond, Tick
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition, TopicPartition
from shareq.model.messages.fetch import UNKNOWN_LEADER, FetchRequest, FetchResponse
from shareq.model.messages.share_fetch import LeaderIdAndEpoch
from shareq.model.states import IsolationLevel

MAX_BYTES = "fetch.max.bytes"


class _Fetch:
    """A fetch in progress. `sizes`: available bytes by partition; `met`: their sum; `waits_on`: the partitions whose
    appends can end the wait; `ended`: it no longer waits."""

    __slots__ = (
        "connection_id",
        "ended",
        "id",
        "isolation",
        "max_bytes",
        "met",
        "min_bytes",
        "sizes",
        "turn",
        "waits_on",
    )

    def __init__(self, incoming: Incoming, request: FetchRequest, turn: FetchTurn, max_bytes: int) -> None:
        self.id = incoming.id
        self.connection_id = incoming.client.connection_id
        self.turn = turn
        self.isolation = IsolationLevel(request.isolation_level)
        self.max_bytes = min(request.max_bytes, max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.sizes: dict[TopicIdPartition, int] = {}
        self.met = 0
        self.waits_on: list[TopicPartition] = []
        self.ended = False

    def measured(self, at: TopicIdPartition, read: ReadResult) -> None:
        """Count the available bytes of a partition, at most `partition_max_bytes`."""
        if not read.batches:  # if the records were deleted meanwhile, the read has an error
            return
        size = min(sum([len(batch.data) for batch in read.batches]), self.turn.wanted[at].partition_max_bytes)
        self.met += size - self.sizes.get(at, 0)
        self.sizes[at] = size


class FetchHandler:
    """The actor that answers Fetch on one broker. It reads the logs that the broker leads."""

    def __init__(self, data: DataPlane, rng: random.Random) -> None:
        self._data = data
        self._sessions = FetchSessions(rng)
        self._waiting: dict[TopicPartition, dict[_Fetch, None]] = defaultdict(dict)
        self._deadlines: list[tuple[int, int, _Fetch]] = []
        self._sequence = 0
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
        while self._deadlines and self._deadlines[0][2].ended:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

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
            self._respond(incoming.id, FetchResponse(error_code=Errors.UNKNOWN_SERVER_ERROR))
            return
        turn = self._sessions.enter(request, self._now_ms)
        if isinstance(turn, Errors):
            self._respond(incoming.id, FetchResponse(error_code=turn))
            return
        fetch = _Fetch(incoming, request, turn, self._data.image.broker_config[MAX_BYTES])
        reads = self._read(fetch)
        for at, read in reads.items():
            fetch.measured(at, read)
        enough = fetch.met >= fetch.min_bytes or any(read.error for read in reads.values())
        if enough or request.max_wait_ms <= 0 or not reads:
            self._answer(fetch, reads)
        else:
            self._wait(fetch, self._now_ms + request.max_wait_ms)

    def _read(self, fetch: _Fetch) -> dict[TopicIdPartition, ReadResult]:
        """Whole batches of all partitions within the limits in bytes. The first partition with records yields one batch
        of any size, so that every consumer makes progress."""
        reads = {}
        left = fetch.max_bytes
        empty_so_far = True
        for at, wanted in fetch.turn.wanted.items():
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
            self._waiting[name][fetch] = None
        self._sequence += 1
        heappush(self._deadlines, (deadline_ms, self._sequence, fetch))

    def _name(self, at: TopicIdPartition) -> TopicPartition:
        return TopicPartition(self._data.image.topics_by_id[at.topic_id].name, at.partition)

    def _stop_waiting(self, fetch: _Fetch) -> None:
        fetch.ended = True
        for name in fetch.waits_on:
            fetches = self._waiting[name]
            del fetches[fetch]
            if not fetches:
                del self._waiting[name]

    def _all_waiting(self) -> list[_Fetch]:
        return [fetch for _, _, fetch in sorted(self._deadlines) if not fetch.ended]

    def _log_grew(self, message: LogGrew) -> None:
        name = message.topic_partition
        topic = self._data.image.topics.get(name.topic)
        for fetch in list(self._waiting.get(name, ())):
            at = TopicIdPartition(topic.topic_id, name.partition) if topic else None
            if at is None or at not in fetch.turn.wanted:  # the topic was deleted, or deleted and created again
                continue
            wanted = fetch.turn.wanted[at]
            read = self._data.read(at, wanted, wanted.partition_max_bytes, fetch.isolation, min_one_batch=True)
            fetch.measured(at, read)
            if read.error or fetch.met >= fetch.min_bytes:
                self._end(fetch)

    def _end(self, fetch: _Fetch) -> None:
        self._stop_waiting(fetch)
        self._answer(fetch, self._read(fetch))

    def _image_changed(self, _: ImageChanged) -> None:
        """End waiting fetches with a partition that was deleted or has changed its leader."""
        for fetch in self._all_waiting():
            if any(read.error for read in self._read(fetch).values()):
                self._end(fetch)

    def _connection_closed(self, message: ConnectionClosed) -> None:
        for fetch in self._all_waiting():
            if fetch.connection_id == message.connection_id:
                self._stop_waiting(fetch)

    def _tick(self, _: Tick) -> None:
        while (due_ms := self.wake_at_ms) is not None and due_ms <= self._now_ms:
            self._end(self._deadlines[0][2])

    # ---- responses ---------------------------------------------------------------------------------------------------

    def _answer(self, fetch: _Fetch, reads: Reads) -> None:
        error, session_id, changed = self._sessions.leave(fetch.turn, reads, self._now_ms)
        topics: dict[TopicId, list[FetchResponse.Partition]] = {}
        hints: list[LeaderIdAndEpoch] = []
        for at, read in changed.items():
            hint = self._hint(at, read.error)
            if hint is not UNKNOWN_LEADER:
                hints.append(hint)
            topics.setdefault(at.topic_id, []).append(_partition(at.partition, read, hint, fetch.isolation))
        response = FetchResponse(
            error_code=error,
            session_id=session_id,
            responses=tuple(
                [FetchResponse.Topic(topic_id=topic, partitions=tuple(found)) for topic, found in topics.items()]
            ),
            node_endpoints=self._data.endpoints(hints) if hints else (),
        )
        self._respond(fetch.id, response)

    def _hint(self, at: TopicIdPartition, error: Errors) -> LeaderIdAndEpoch:
        if error not in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH):
            return UNKNOWN_LEADER
        return self._data.leader_hint(*self._name(at), error)

    def _respond(self, exchange_id: int, response: FetchResponse) -> None:
        self._effects.append(Respond(exchange_id, response))


def _partition(
    index: int, read: ReadResult, hint: LeaderIdAndEpoch, isolation: IsolationLevel
) -> FetchResponse.Partition:
    if read.error:
        unknown = read.error in (Errors.UNKNOWN_TOPIC_ID, Errors.UNKNOWN_TOPIC_OR_PARTITION)
        return FetchResponse.Partition(
            partition_index=index,
            error_code=read.error,
            current_leader=hint,
            aborted_transactions=() if unknown else None,
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
