"""A journal that several writers share; its times never decrease."""

from __future__ import annotations

from threading import RLock

from shareq.model.events import Event
from shareq.trace import Journal


class TimedJournal:
    """Writers hold `lock` from `advance_to` until their last event of that time."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.lock = RLock()
        self._now_ms = 0

    def advance_to(self, now_ms: int) -> None:
        """Set the time of the next events. It never decreases, in whatever order threads have read the clock."""
        self._now_ms = max(self._now_ms, now_ms)

    def write(self, event: Event) -> None:
        self.journal.record(self._now_ms, -1, event)
