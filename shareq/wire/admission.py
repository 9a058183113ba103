"""What a server takes from outside before it reads a request: connections, by broker and address, and bytes.

The limits are Kafka's `max.connections`, `max.connections.per.ip` with its overrides, `max.connection.creation.rate`
and `queued.max.request.bytes`, read at each use.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Protocol

from shareq.model.connection_configs import CREATION_RATE, MAX_CONNECTIONS, MAX_PER_IP, PER_IP_OVERRIDES, limits_by_ip

QUEUED_MAX_BYTES = "queued.max.request.bytes"

SMALL_BYTES = 1 << 18
"""A request up to this size is never held back: it has mostly arrived when its size is known."""

Limit = Callable[[str], Any]
"""The value of a configuration."""


class Admission:
    """The connections of one broker, by all of its listeners."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._by_address: Counter[str] = Counter()
        self._waiting: dict[Callable[[], object], None] = {}
        self._credit = 0.0
        """How many connections may come at once: it grows with time, to what may come in a second."""
        self._counted_s: float | None = None

    @property
    def is_full(self) -> bool:
        """True if no further connection is accepted: it waits until another one is closed, as in Kafka."""
        limit: int = self._limit(MAX_CONNECTIONS)
        return self._by_address.total() >= limit

    def when_free(self, call: Callable[[], object]) -> None:
        """Call once when a connection has ended, however often this is asked for."""
        self._waiting[call] = None

    def pause_s(self, now_s: float) -> float:
        """How long the next connection has to wait, so that no more come than the rate allows. 0: it may come now, and
        is counted."""
        rate = self._limit(CREATION_RATE)
        passed_s = 1.0 if self._counted_s is None else now_s - self._counted_s
        self._credit, self._counted_s = min(self._credit + passed_s * rate, rate), now_s
        if self._credit < 1:
            return (1 - self._credit) / rate if rate else float("inf")
        self._credit -= 1
        return 0.0

    def enter(self, address: str) -> bool:
        """Count an accepted connection. False if its address has too many, and it is to be closed."""
        limit = limits_by_ip(self._limit(PER_IP_OVERRIDES)).get(address, self._limit(MAX_PER_IP))
        if self._by_address[address] >= limit:
            return False
        self._by_address[address] += 1
        return True

    def leave(self, address: str) -> None:
        """A connection has ended: those that wait for a place may come."""
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        waiting, self._waiting = self._waiting, {}
        for call in waiting:
            call()


class Reader(Protocol):
    def regulate(self) -> None:
        """Read from the peer, or not."""
        ...


class RequestMemory:
    """The bytes of requests that have been received, or have begun, and are not answered: of all connections.

    Above the limit no further large request begins; one that has begun arrives in full, so that some are always
    completed. As in Kafka the last one may exceed the limit.
    """

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._waiting: deque[Reader] = deque()
        self.held_bytes = 0

    def hold(self, change_bytes: int) -> None:
        """Count bytes, or release them with a negative number: connections that wait may then begin."""
        self.held_bytes += change_bytes
        while change_bytes < 0 and self._waiting and not self._is_full:
            self._waiting.popleft().regulate()

    def begins(self, reader: Reader, size: int) -> bool:
        """Count a request that begins to arrive. False if the connection has to wait for `regulate`."""
        if size > SMALL_BYTES and self._is_full:
            if reader not in self._waiting:
                self._waiting.append(reader)
            return False
        self.held_bytes += size
        return True

    def forget(self, reader: Reader) -> None:
        """The connection is lost."""
        if reader in self._waiting:
            self._waiting.remove(reader)

    @property
    def _is_full(self) -> bool:
        limit: int = self._limit(QUEUED_MAX_BYTES)
        return 0 <= limit <= self.held_bytes
