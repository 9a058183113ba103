"""When members have to be heard of again. A heartbeat costs one dict store, however many members there are."""

from __future__ import annotations

import heapq
from typing import NamedTuple


class MemberKey(NamedTuple):
    group_id: str
    member_id: str


class Sessions:
    """Deadlines of members.

    The heap holds one entry a member, which a heartbeat leaves where it is: when it comes up too early, it goes back
    in with the deadline of then. Only a deadline that moves forward puts in a second one, and the first is passed by.
    """

    __slots__ = ("_deadlines", "_heap", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[MemberKey, int] = {}
        self._queued: dict[MemberKey, int] = {}
        self._heap: list[tuple[int, MemberKey]] = []

    @property
    def wake_at_ms(self) -> int | None:
        """Not later than the first deadline; maybe earlier."""
        return self._heap[0][0] if self._heap else None

    def restart(self, key: MemberKey, deadline_ms: int) -> None:
        """The member was heard of."""
        self._deadlines[key] = deadline_ms
        queued = self._queued.get(key)
        if queued is None or deadline_ms < queued:
            self._push(key, deadline_ms)

    def forget(self, key: MemberKey) -> None:
        """The member is gone."""
        self._deadlines.pop(key, None)

    def is_over(self, key: MemberKey, now_ms: int) -> bool:
        """Whether the member's time is up; not so for a member that nobody watches."""
        deadline_ms = self._deadlines.get(key)
        return deadline_ms is not None and deadline_ms <= now_ms

    def take_expired(self, now_ms: int) -> list[MemberKey]:
        """Who was not heard of in time, each once until it is restarted."""
        expired = []
        while self._heap and self._heap[0][0] <= now_ms:
            queued_ms, key = heapq.heappop(self._heap)
            if self._queued.get(key) != queued_ms:
                continue
            del self._queued[key]
            deadline_ms = self._deadlines.get(key)
            if deadline_ms is None:
                continue
            if deadline_ms > now_ms:
                self._push(key, deadline_ms)
            else:
                expired.append(key)
        return expired

    def _push(self, key: MemberKey, deadline_ms: int) -> None:
        self._queued[key] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, key))
