"""The deadlines of the group coordinator: ends of member sessions, of rebalances and of offset retention.

A heartbeat costs one dict store, regardless of the number of members.
"""

from __future__ import annotations

import heapq
from enum import StrEnum
from typing import NamedTuple


class DeadlineKind(StrEnum):
    """The kinds of deadlines; the coordinator has one workflow for each."""

    SHARE_SESSION = "share session"
    SHARE_REVIEW = "share review"
    CLASSIC_SESSION = "classic session"
    CLASSIC_JOIN = "classic join"
    CLASSIC_SYNC = "classic sync"
    CONSUMER_SESSION = "consumer session"
    CONSUMER_REBALANCE = "consumer rebalance"
    OFFSET_EXPIRY = "offset expiry"


class DeadlineKey(NamedTuple):
    """The key of a deadline: its kind, group and member. A deadline of a whole group has no member."""

    kind: DeadlineKind
    group_id: str
    member_id: str = ""


OFFSET_EXPIRY = DeadlineKey(DeadlineKind.OFFSET_EXPIRY, "")
"""The next check of all shards for offsets whose retention has passed."""


class GroupDeadlines:
    """Deadlines by key.

    The heap holds one entry for each key. A restart with a later deadline leaves the entry in place; when the entry is
    popped too early, it is pushed again with the current deadline. Only a restart with an earlier deadline pushes a
    second entry; the first one is then ignored.
    """

    __slots__ = ("_deadlines", "_heap", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[DeadlineKey, int] = {}
        self._queued: dict[DeadlineKey, int] = {}
        self._heap: list[tuple[int, DeadlineKey]] = []

    def __contains__(self, due: DeadlineKey) -> bool:
        return due in self._deadlines

    @property
    def wake_at_ms(self) -> int | None:
        """A time not later than the first deadline, possibly earlier."""
        return self._heap[0][0] if self._heap else None

    def restart(self, due: DeadlineKey, deadline_ms: int) -> None:
        """Start the deadline, or move it."""
        self._deadlines[due] = deadline_ms
        queued = self._queued.get(due)
        if queued is None or deadline_ms < queued:
            self._push(due, deadline_ms)

    def forget(self, due: DeadlineKey) -> None:
        """Remove the deadline."""
        self._deadlines.pop(due, None)

    def is_over(self, due: DeadlineKey, now_ms: int) -> bool:
        """True if the deadline has passed; False if there is none."""
        deadline_ms = self._deadlines.get(due)
        return deadline_ms is not None and deadline_ms <= now_ms

    def take_expired(self, now_ms: int) -> list[DeadlineKey]:
        """The deadlines that have passed; each is returned once until it is restarted."""
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

    def _push(self, due: DeadlineKey, deadline_ms: int) -> None:
        self._queued[due] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, due))
