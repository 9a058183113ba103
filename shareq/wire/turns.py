"""Turns of connections that have requests waiting, by time.

A connection whose requests arrive faster than they are answered waits in a queue. In each round of the server's loop
the queue gets `ROUND_S`, the rest goes to what arrives meanwhile: a client with one request at a time is served between
two rounds, however many others send without end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Protocol

TURN_S = 0.001
"""How long a connection may go on with its requests, one by one, while others wait."""

ROUND_S = 0.002
"""How long all waiting connections together may, before new requests are read. A large request takes a round for each
of its reads: with TLS nine for half a mebibyte."""


class Waiting(Protocol):
    def resume(self) -> None:
        """Process requests until `Turns.over`; call `Turns.wait` again if some are left."""
        ...


class Turns:
    """`soon(call)` calls in the next round of the server's loop, in its thread; so are all methods."""

    def __init__(self, soon: Callable[[Callable[[], None]], object], clock: Callable[[], float] = perf_counter) -> None:
        self._soon = soon
        self._clock = clock
        self._queue: deque[Waiting] = deque()
        self._queued: set[Waiting] = set()
        self._until = 0.0
        self._in_round = False

    def begin(self) -> None:
        """A connection begins to process its requests. Outside of a round it gets one if others wait."""
        now = self._clock()
        self._until = now + TURN_S if self._in_round or not self._queue else now

    @property
    def over(self) -> bool:
        """True if the connection has used its turn: after each request."""
        return self._clock() >= self._until

    def wait(self, connection: Waiting) -> None:
        """Queue a connection for another turn, once."""
        if connection in self._queued:
            return
        self._queued.add(connection)
        self._queue.append(connection)
        if len(self._queue) == 1 and not self._in_round:
            self._soon(self._round)

    def waits(self, connection: Waiting) -> bool:
        """True if the connection is queued: its turn comes."""
        return connection in self._queued

    def _round(self) -> None:
        end = self._clock() + ROUND_S
        self._in_round = True
        try:
            while self._queue:
                connection = self._queue.popleft()
                self._queued.discard(connection)
                connection.resume()
                if self._clock() >= end:
                    break
        finally:
            self._in_round = False
            if self._queue:
                self._soon(self._round)
