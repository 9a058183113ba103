"""What a server takes from outside before it reads a request: connections, by broker and address, and bytes.

The limits are Kafka's `max.connections`, `max.connections.per.ip` with its overrides, `max.connection.creation.rate`
and `queued.max.request.bytes`, read at each use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from shareq.model.connection_configs import CREATION_RATE, MAX_CONNECTIONS, MAX_PER_IP, PER_IP_OVERRIDES, limits_by_ip

QUEUED_MAX_BYTES = "queued.max.request.bytes"

SMALL_BYTES = 1 << 18
"""A request up to this size is never held back: it has mostly arrived when its size is known."""

LOOK_S = 0.5
SLOWEST_BYTES = 1 << 19
"""What a connection has to send in LOOK_S while the memory is full and it alone reads."""

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
    """A connection."""

    @property
    def arrived_bytes(self) -> int:
        """The bytes that have arrived of its unfinished request."""
        ...

    @property
    def idle(self) -> bool:
        """True if no earlier request of it is being answered."""
        ...

    def regulate(self) -> None:
        """Read from the peer, or not."""
        ...

    def abort(self) -> None: ...


Later = Callable[[float, Callable[[], object]], object]
"""`later(delay_s, call)` calls after a time of the wall clock, in the thread of the server."""


class RequestMemory:
    """The bytes of requests that have arrived and are not answered, of all connections; and the connections with a
    large request of which a part has arrived.

    While the bytes reach the limit, only one of these connections reads, that with the smallest request: so some
    requests are always completed. If it sends too slowly while others wait, it is closed: its request may never end.
    """

    def __init__(self, limit: Limit, later: Later) -> None:
        self._limit, self._later = limit, later
        self._unfinished: dict[Reader, int] = {}
        self._barred: dict[Reader, None] = {}
        """Those of them that do not read."""
        self._watched: tuple[Reader, int] | None = None
        self.held_bytes = 0

    def hold(self, change_bytes: int) -> None:
        """Count bytes, or release them with a negative number: connections that wait may then read."""
        self.held_bytes += change_bytes
        if change_bytes < 0:
            self._wake()

    def may_read(self, reader: Reader, unfinished_bytes: int) -> bool:
        """True if a connection may read on, with an unfinished request of this size (0: none)."""
        if unfinished_bytes <= SMALL_BYTES:
            self.forget(reader)
            return True
        self._unfinished[reader] = unfinished_bytes
        if not self._is_full or reader is self._next:
            self._barred.pop(reader, None)
            return True
        self._barred[reader] = None
        self._watch()
        return False

    def forget(self, reader: Reader) -> None:
        """The connection has no large unfinished request any more, or is lost."""
        self._barred.pop(reader, None)
        if self._unfinished.pop(reader, None) is not None:
            self._wake()

    @property
    def _next(self) -> Reader | None:
        """The connection that reads although the memory is full: rather one that waits for no earlier response."""
        return min(self._unfinished, key=lambda reader: (not reader.idle, self._unfinished[reader]), default=None)

    def _wake(self) -> None:
        """Let those read that may: none is barred unless the memory has been full."""
        if not self._barred:
            return
        if not self._is_full:
            for reader in list(self._barred):
                reader.regulate()
        elif (alone := self._next) in self._barred and alone is not None:
            alone.regulate()

    def _watch(self) -> None:
        """Look after LOOK_S at what has arrived of the request that is read."""
        reads = self._next
        if self._watched is None and reads is not None:
            self._watched = reads, reads.arrived_bytes
            self._later(LOOK_S, self._look)

    def _look(self) -> None:
        assert self._watched is not None
        (watched, before), self._watched = self._watched, None
        if not self._is_full or len(self._unfinished) < 2:
            return
        if self._next is watched and watched.idle and watched.arrived_bytes - before < SLOWEST_BYTES:
            watched.abort()
            self.forget(watched)
        self._watch()

    @property
    def _is_full(self) -> bool:
        limit: int = self._limit(QUEUED_MAX_BYTES)
        return 0 <= limit <= self.held_bytes
