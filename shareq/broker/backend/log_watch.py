"""The watch of a broker's logs for records that arrive. BEHAVIOUR.md, 2.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.fetches import fetch_request, fetched_partitions
from shareq.broker.loop import EventLoop
from shareq.model.actor import Answer
from shareq.model.ids import TopicIdPartition, TopicPartition
from shareq.model.messages.fetch import FetchResponse
from shareq.model.states import IsolationLevel

WATCH_WAIT_MS = 200
"""Fetches of the watch end at the multiples of this time, so that those that wait in vain end together."""

SHORT_WAIT_MS = 25
"""The same while few lanes are free: a partition without a lane gets one at the next of these times."""

LEAST_WAIT_MS = 5
"""A fetch does not end sooner than this: it waits for the time after."""

JOIN_MS = 3
"""How long the partitions of a fetch that has waited in vain wait for those of others that end at the same time."""

WATCH_LANES = 16
"""The most fetches of the watch that wait at one broker."""

FREE_LANES = 8
"""While fewer lanes are free, fetches wait for a short time."""

AHEAD_BYTES, ALL_AHEAD_BYTES = 64 << 10, 1 << 20
"""The bytes of new records that a fetch of the watch returns for a partition, and for all: the read that follows needs
no request of its own."""

RETRY_MS = 100


class Watched(NamedTuple):
    """The end of the log that a read has reached, and the call for records beyond it, or for another read."""

    at: TopicIdPartition
    topic_partition: TopicPartition
    offset: int
    grew: Callable[[], object]


class LogWatch:
    """Watches the partitions that `add` names, each until its log has grown, or until no fetch `waits` for it.

    `grown(partition, fetched)` gets the new records before the partition's own call; `stale()` is called when the
    backend does not know a partition or does not answer.
    """

    def __init__(
        self,
        node: int,
        client: BackendClient,
        loop: EventLoop,
        *,
        stale: Callable[[], object],
        grown: Callable[[TopicIdPartition, FetchResponse.Partition], object],
        waits: Callable[[TopicPartition], bool],
    ) -> None:
        self._closed = False
        self._node = node
        self._client = client
        self._loop = loop
        self._stale = stale
        self._grown = grown
        self._waits = waits
        self._watched: dict[TopicIdPartition, Watched] = {}
        """Those that no fetch has."""
        self._idle_lanes = [f"watch-{number}" for number in range(WATCH_LANES)]
        self._posted = False

    def close(self) -> None:
        """Watch nothing more; results under way are dropped."""
        self._closed = True
        self._watched.clear()

    def add(self, watched: Watched) -> None:
        """Watch a partition. Those that are added in one turn of the loop are in one fetch, which is sent behind the
        responses with what has been read: the clients wait for these."""
        if self._closed:
            return
        self._keep(watched)
        if not self._posted:
            self._posted = True
            self._loop.post(self._client.soon, self._send_new)

    def _keep(self, watched: Watched) -> None:
        """Of two entries for a partition the one with the lower offset stays: it may be that of another group, which
        has not read the records between them. The call of one entry wakes all groups."""
        other = self._watched.get(watched.at)
        if other is None or watched.offset < other.offset:
            self._watched[watched.at] = watched

    def _send_new(self) -> None:
        self._posted = False
        if not self._closed:
            self._send()

    def _send(self) -> None:
        """Wait for records of all partitions that no fetch has. Without a free lane, the next fetch that ends takes
        them."""
        if self._watched and self._idle_lanes:
            lane, waiting = self._idle_lanes.pop(), self._watched
            self._watched = {}
            partitions = [(one.at, one.offset, AHEAD_BYTES) for one in waiting.values()]
            level = IsolationLevel.READ_UNCOMMITTED
            request = fetch_request(partitions, ALL_AHEAD_BYTES, level, max_wait_ms=self._wait_ms())
            self._client.call(self._node, request, lambda answer: self._ended(lane, waiting, answer), lane=lane)

    def _wait_ms(self) -> int:
        """The time to the next common end of fetches."""
        period = WATCH_WAIT_MS if len(self._idle_lanes) >= FREE_LANES else SHORT_WAIT_MS
        wait_ms = period - self._loop.time_ms() % period
        return wait_ms if wait_ms >= LEAST_WAIT_MS else wait_ms + period

    def _ended(self, lane: str, waiting: dict[TopicIdPartition, Watched], answer: Answer) -> None:
        """Report the partitions that have grown; the others are watched on."""
        self._idle_lanes.append(lane)
        if self._closed:
            return
        found = fetched_partitions(answer)
        failed, grown = [], False
        for at, watched in waiting.items():
            partition = found.get(at)
            if partition is None or partition.error_code:
                failed.append(watched)
            elif partition.records or partition.high_watermark > watched.offset:
                self._grown(at, partition)
                watched.grew()
                grown = True
            elif self._waits(watched.topic_partition):
                self._keep(watched)
            else:
                watched.grew()  # the next fetch reads, and is watched for
        if failed:
            self._stale()
            self._loop.at(self._loop.time_ms() + RETRY_MS, lambda: [watched.grew() for watched in failed])
        if grown:
            self._send()
        elif self._watched:
            self._loop.at(self._loop.time_ms() + JOIN_MS, self._send)
