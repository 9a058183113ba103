"""How long a process may lead after its group has confirmed it. BEHAVIOUR.md, section 6."""

from __future__ import annotations

import time
from collections.abc import Callable

SESSION_MS = 6_000
"""The session of a member; the least that a broker of Kafka allows by default."""

REBALANCE_MS = 30_000
"""How long the group waits for a member that sends heartbeats but does not join the next generation."""

MARGIN_MS = 500
"""A lease ends this long before the session, for a difference between the clocks and for an answer on its way."""


def real_ms() -> float:
    """A clock that also goes on while the process, or the machine, is stopped."""
    which = getattr(time, "CLOCK_BOOTTIME", None) or getattr(time, "CLOCK_MONOTONIC", None)
    return time.monotonic() * 1000 if which is None else time.clock_gettime(which) * 1000


class Lease:
    """Valid while the group cannot have removed this member. Times are those at which a request was sent, in ms."""

    def __init__(self, clock: Callable[[], float] = real_ms) -> None:
        self.clock = clock
        self._confirmed_ms = self._until_ms = -1.0

    @property
    def valid(self) -> bool:
        return self.clock() < self._until_ms

    def would_renew(self, sent_ms: float) -> bool:
        """True if the answer to a request that was sent then makes the lease valid."""
        return sent_ms + SESSION_MS - MARGIN_MS > self.clock()

    def confirm(self, sent_ms: float) -> None:
        """The group has answered that this generation is the present one."""
        self._confirmed_ms = max(self._confirmed_ms, sent_ms)
        self._until_ms = max(self._until_ms, sent_ms + SESSION_MS - MARGIN_MS)

    def extend(self, sent_ms: float) -> None:
        """The group has answered that it forms the next generation. It removes members that do not join it in time."""
        end_ms = min(sent_ms + SESSION_MS, self._confirmed_ms + REBALANCE_MS) - MARGIN_MS
        self._until_ms = max(self._until_ms, end_ms)

    def end(self) -> None:
        """The group has removed this member."""
        self._confirmed_ms = self._until_ms = -1.0
