"""What the coordinator waits for: members that have to be heard of again, rebalances that have to end.

A heartbeat costs one dict store, however many members there are.
"""

from __future__ import annotations

import heapq
from enum import StrEnum
from typing import NamedTuple


class What(StrEnum):
    """What may be due; the coordinator has one answer to each."""

    SHARE_SESSION = "share session"
    CLASSIC_SESSION = "classic session"
    CLASSIC_JOIN = "classic join"
    CLASSIC_SYNC = "classic sync"
    CONSUMER_SESSION = "consumer session"
    CONSUMER_REBALANCE = "consumer rebalance"
    OFFSET_EXPIRY = "offset expiry"


class Due(NamedTuple):
    """The name of a deadline: whose it is. What concerns a whole group has no member."""

    what: What
    group_id: str
    member_id: str = ""


class Deadlines:
    """Deadlines by name.

    The heap holds one entry a name, which putting off leaves where it is: when it comes up too early, it goes back in
    with the deadline of then. Only a deadline that moves forward puts in a second one, and the first is passed by.
    """

    __slots__ = ("_deadlines", "_heap", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[Due, int] = {}
        self._queued: dict[Due, int] = {}
        self._heap: list[tuple[int, Due]] = []

    def __contains__(self, due: Due) -> bool:
        return due in self._deadlines

    @property
    def wake_at_ms(self) -> int | None:
        """Not later than the first deadline; maybe earlier."""
        return self._heap[0][0] if self._heap else None

    def restart(self, due: Due, deadline_ms: int) -> None:
        """Begin, or begin anew: a member was heard of."""
        self._deadlines[due] = deadline_ms
        queued = self._queued.get(due)
        if queued is None or deadline_ms < queued:
            self._push(due, deadline_ms)

    def forget(self, due: Due) -> None:
        """Nothing is waited for any more."""
        self._deadlines.pop(due, None)

    def is_over(self, due: Due, now_ms: int) -> bool:
        """Whether the time is up; not so where nothing is waited for."""
        deadline_ms = self._deadlines.get(due)
        return deadline_ms is not None and deadline_ms <= now_ms

    def take_expired(self, now_ms: int) -> list[Due]:
        """Whose time is up, each once until it is restarted."""
        expired = []
        while self._heap and self._heap[0][0] <= now_ms:
            queued_ms, due = heapq.heappop(self._heap)
            if self._queued.get(due) != queued_ms:
                continue
            del self._queued[due]
            deadline_ms = self._deadlines.get(due)
            if deadline_ms is None:
                continue
            if deadline_ms > now_ms:
                self._push(due, deadline_ms)
            else:
                expired.append(due)
        return expired

    def _push(self, due: Due, deadline_ms: int) -> None:
        self._queued[due] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, due))
