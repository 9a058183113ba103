"""The queue of what has passed the proxy and is not read yet: messages, polls of observers and lost connections.

Messages pass at once and are read here later, in one order, while no socket is ready. BEHAVIOUR.md, section 4.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

REST_MS = 50
"""The time from an addition to an empty queue to the first turn: on a busy machine, reading at once takes the processor
from the peers that work with the message. In a turn, several messages cost less than each on its own."""

LATE_MS = 200
"""The age at which an entry is read although sockets are ready."""

WAITING_BYTES = 8 << 20
"""The most that waits: beyond it, an addition reads the oldest entries first."""

ENTRY_BYTES = 500
"""What an entry takes beside its message."""

Read = Callable[[int], object]
"""`read(passed_ms)`, with the time of the entry."""


class _Entry(NamedTuple):
    passed_ms: int
    size: int
    read: Read


class Backlog:
    """Reads in the order of `add`, in the thread of the loop, whose selector is `selector`: calls `carry_out(read,
    passed_ms)`, which does not raise. `add` is on the path of messages, and does little."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        selector: selectors.BaseSelector,
        now_ms: Callable[[], int],
        carry_out: Callable[[Read, int], object],
    ) -> None:
        self._loop, self._selector, self._now_ms, self._carry_out = loop, selector, now_ms, carry_out
        self._waiting: deque[_Entry] = deque()
        self._bytes = 0
        self._scheduled = False

    def add(self, size: int, read: Read, passed_ms: int | None = None) -> None:
        """Call `read(passed_ms)` later, for a message of `size` bytes that has passed then; None: now."""
        size += ENTRY_BYTES
        self._waiting.append(_Entry(self._now_ms() if passed_ms is None else passed_ms, size, read))
        self._bytes += size
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_later(REST_MS / 1000, self._turn)
        while self._bytes > WAITING_BYTES:
            self._next()

    def drain(self) -> None:
        """Read all that waits."""
        while self._waiting:
            self._next()

    def _turn(self) -> None:
        """Read until a socket is ready; then go on after it, unless all is read."""
        while self._waiting and (
            self._waiting[0].passed_ms + LATE_MS <= self._now_ms() or not self._selector.select(0)
        ):
            self._next()
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            self._loop.call_soon(self._turn)

    def _next(self) -> None:
        passed_ms, size, read = self._waiting.popleft()
        self._bytes -= size
        self._carry_out(read, passed_ms)
