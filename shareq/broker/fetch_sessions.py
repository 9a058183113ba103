"""Fetch sessions: incremental requests and responses contain only changed partitions.

A session stores its partitions with their fetch offsets, and the offsets last sent to the consumer. If the cache is
full, the response has session id 0 and the consumer sends full fetches. Source: KIP-227; Kafka's FetchSession.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from shareq.broker.data_plane import FetchedPartition
from shareq.log.results import ReadResult
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition, TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.fetch import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchRequest

SLOTS = 1000
"""The number of sessions per broker (Kafka: `max.incremental.fetch.session.cache.slots`)."""

EVICTION_MS = 120_000
"""The idle time after which a session may be evicted (Kafka: `min.incremental.fetch.session.eviction.ms`)."""

_LAST_EPOCH = (1 << 31) - 1

Wanted = dict[FetchedPartition, FetchRequest.Partition]
Reads = Mapping[FetchedPartition, ReadResult]


class FetchSession:
    """`epoch`: the epoch of the next fetch; `sent_offsets`: the high watermarks and log starts last sent to the
    consumer; `by_id`: its fetches have topic ids."""

    __slots__ = ("by_id", "epoch", "id", "sent_offsets", "used_ms", "wanted")

    def __init__(self, session_id: int, wanted: Wanted, now_ms: int, *, by_id: bool) -> None:
        self.id = session_id
        self.by_id = by_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.wanted = wanted
        self.sent_offsets: dict[FetchedPartition, tuple[int, int]] = {}
        self.used_ms = now_ms

    def update(self, wanted: Wanted, request: FetchRequest) -> None:
        self.wanted.update(wanted)
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                at = _place(topic, partition, by_id=self.by_id)
                self.wanted.pop(at, None)
                self.sent_offsets.pop(at, None)

    def sent(self, reads: Reads) -> None:
        """Store the offsets of a response: -1 for an error, so that a recovered partition counts as changed."""
        for at, read in reads.items():
            self.sent_offsets[at] = (read.high_watermark, read.log_start_offset)

    def changed(self, reads: Reads) -> Reads:
        """The partitions with records, errors or changed offsets. Those with records move to the end of the order, so
        that a limit in bytes does not starve the others."""
        sent_offsets = self.sent_offsets
        changed = {
            at: read
            for at, read in reads.items()
            if read.batches or read.error or sent_offsets.get(at) != (read.high_watermark, read.log_start_offset)
        }
        for at, read in changed.items():
            if read.batches and at in self.wanted:
                self.wanted[at] = self.wanted.pop(at)
        return changed


class FetchTurn(NamedTuple):
    """One fetch of a session. `session`: set for an incremental fetch; `opens`: the fetch opens a session; `by_id`: it
    has topic ids."""

    wanted: Wanted
    session: FetchSession | None = None
    epoch: int = FINAL_EPOCH
    opens: bool = False
    by_id: bool = True


class FetchSessions:
    """All fetch sessions of one broker."""

    def __init__(self, rng: random.Random, *, slots: int = SLOTS) -> None:
        self._rng = rng
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}  # the longest idle one first

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(
        self, request: FetchRequest, now_ms: int, image: ClusterImage, *, by_id: bool = True
    ) -> Errors | FetchTurn:
        """The partitions to read: those in the request, or those of its updated session. Or the session's error:
        INVALID_REQUEST for more partitions than can be meant. `by_id`: the request has topic ids."""
        wanted = wanted_by(request, by_id=by_id)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            opens = request.session_epoch == INITIAL_EPOCH
            return (
                FetchTurn(wanted, opens=opens, by_id=by_id)
                if image.can_be_meant(len(wanted))
                else Errors.INVALID_REQUEST
            )
        session = self._sessions.get(request.session_id)
        if session is None:
            return Errors.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return Errors.INVALID_FETCH_SESSION_EPOCH
        if session.by_id is not by_id:
            return Errors.FETCH_SESSION_TOPIC_ID_ERROR
        if wanted and not image.can_be_meant(len(session.wanted.keys() | wanted.keys())):
            return Errors.INVALID_REQUEST
        session.update(wanted, request)
        if not session.wanted:
            del self._sessions[session.id]
            return FetchTurn({}, by_id=by_id)
        session.epoch = next_epoch(session.epoch)
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        return FetchTurn(dict(session.wanted), session, session.epoch, by_id=by_id)

    def leave(self, turn: FetchTurn, reads: Reads, now_ms: int) -> tuple[Errors, int, Reads]:
        """The error, the session id and the partitions of the response."""
        session = turn.session
        if session is None:
            opened = self._open(turn, reads, now_ms) if turn.opens else NO_SESSION
            return Errors.NONE, opened, reads
        if session.epoch != turn.epoch:  # the session has got another fetch meanwhile
            return Errors.INVALID_FETCH_SESSION_EPOCH, NO_SESSION, {}
        changed = session.changed(reads)
        session.sent(changed)
        return Errors.NONE, session.id, changed

    def _open(self, turn: FetchTurn, reads: Reads, now_ms: int) -> int:
        if len(self._sessions) >= self._slots:
            idlest = next(iter(self._sessions.values()))
            if now_ms - idlest.used_ms < EVICTION_MS:
                return NO_SESSION
            del self._sessions[idlest.id]
        session_id = self._rng.randrange(1, _LAST_EPOCH)
        while session_id in self._sessions:
            session_id = self._rng.randrange(1, _LAST_EPOCH)
        session = self._sessions[session_id] = FetchSession(session_id, turn.wanted, now_ms, by_id=turn.by_id)
        session.sent(reads)
        return session_id


def wanted_by(request: FetchRequest, *, by_id: bool = True) -> Wanted:
    """The partitions in a request, in its order."""
    return {_place(topic, part.partition, by_id=by_id): part for topic in request.topics for part in topic.partitions}


def _place(topic: FetchRequest.Topic | FetchRequest.ForgottenTopic, partition: int, *, by_id: bool) -> FetchedPartition:
    return TopicIdPartition(topic.topic_id, partition) if by_id else TopicPartition(topic.topic, partition)


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`; the last one is followed by 1, because 0 opens a session."""
    return 1 if epoch == _LAST_EPOCH else epoch + 1
