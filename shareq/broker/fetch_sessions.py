"""Fetch sessions: incremental requests and responses have changed partitions only.

A session keeps its partitions with their fetch offsets, and the offsets last sent to the consumer. Where the cache is
full the response has session id 0, and the consumer sends full fetches. Source: KIP-227; Kafka's FetchSession.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from shareq.log.results import ReadResult
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.fetch import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchRequest

SLOTS = 1000
"""How many sessions a broker keeps (Kafka: max.incremental.fetch.session.cache.slots)."""

EVICTION_MS = 120_000
"""How long a session must be idle before another may have its place (min.incremental.fetch.session.eviction.ms)."""

_LAST_EPOCH = (1 << 31) - 1

Wanted = dict[TopicIdPartition, FetchRequest.Partition]
Reads = Mapping[TopicIdPartition, ReadResult]


class FetchSession:
    """`epoch`: that of its next fetch; `told`: the high watermark and log start last sent to the consumer."""

    __slots__ = ("epoch", "id", "told", "used_ms", "wanted")

    def __init__(self, session_id: int, wanted: Wanted, now_ms: int) -> None:
        self.id = session_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.wanted = wanted
        self.told: dict[TopicIdPartition, tuple[int, int]] = {}
        self.used_ms = now_ms

    def update(self, request: FetchRequest) -> None:
        self.wanted.update(wanted_by(request))
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                at = TopicIdPartition(topic.topic_id, partition)
                self.wanted.pop(at, None)
                self.told.pop(at, None)

    def tell(self, reads: Reads) -> None:
        """Remember the offsets that are sent; those of an error are -1, so that recovery is sent."""
        for at, read in reads.items():
            self.told[at] = (read.high_watermark, read.log_start_offset)

    def news(self, reads: Reads) -> Reads:
        """Partitions with records, errors or moved offsets. Those with records go to the end of the queue, so that a
        limit in bytes does not starve the others."""
        told = self.told
        news = {
            at: read
            for at, read in reads.items()
            if read.batches or read.error or told.get(at) != (read.high_watermark, read.log_start_offset)
        }
        for at, read in news.items():
            if read.batches and at in self.wanted:
                self.wanted[at] = self.wanted.pop(at)
        return news


class Turn(NamedTuple):
    """One fetch in its session. `session` is set for an incremental fetch; `opens`: the fetch opens a session."""

    wanted: Wanted
    session: FetchSession | None = None
    epoch: int = FINAL_EPOCH
    opens: bool = False


class FetchSessions:
    """All sessions of one broker."""

    def __init__(self, rng: random.Random, *, slots: int = SLOTS) -> None:
        self._rng = rng
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}  # the one that was idle longest first

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(self, request: FetchRequest, now_ms: int) -> Errors | Turn:
        """The partitions to read: those that the request names, or those of its updated session."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            return Turn(wanted_by(request), opens=request.session_epoch == INITIAL_EPOCH)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Errors.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return Errors.INVALID_FETCH_SESSION_EPOCH
        session.update(request)
        if not session.wanted:
            del self._sessions[session.id]
            return Turn({})
        session.epoch = next_epoch(session.epoch)
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        return Turn(dict(session.wanted), session, session.epoch)

    def leave(self, turn: Turn, reads: Reads, now_ms: int) -> tuple[Errors, int, Reads]:
        """The error, the session id and the partitions to answer with."""
        session = turn.session
        if session is None:
            opened = self._open(turn, reads, now_ms) if turn.opens else NO_SESSION
            return Errors.NONE, opened, reads
        if session.epoch != turn.epoch:  # another fetch of the session has come meanwhile
            return Errors.INVALID_FETCH_SESSION_EPOCH, NO_SESSION, {}
        news = session.news(reads)
        session.tell(news)
        return Errors.NONE, session.id, news

    def _open(self, turn: Turn, reads: Reads, now_ms: int) -> int:
        if len(self._sessions) >= self._slots:
            idlest = next(iter(self._sessions.values()))
            if now_ms - idlest.used_ms < EVICTION_MS:
                return NO_SESSION
            del self._sessions[idlest.id]
        session_id = self._rng.randrange(1, _LAST_EPOCH)
        while session_id in self._sessions:
            session_id = self._rng.randrange(1, _LAST_EPOCH)
        session = self._sessions[session_id] = FetchSession(session_id, turn.wanted, now_ms)
        session.tell(reads)
        return session_id


def wanted_by(request: FetchRequest) -> Wanted:
    """The partitions that a request names, in its order."""
    return {
        TopicIdPartition(topic.topic_id, part.partition): part for topic in request.topics for part in topic.partitions
    }


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`; 1 follows the last one, because 0 opens a session."""
    return 1 if epoch == _LAST_EPOCH else epoch + 1
