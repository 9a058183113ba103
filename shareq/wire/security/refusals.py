"""The clients of a server that have not got in, as far as they are news."""

from __future__ import annotations

from shareq.model.events import AuthenticationFailed

REPEATED_MS = 1000
MOST_KNOWN = 1000


class Refusals:
    """A client may try again without end: each failure is news once in a second."""

    def __init__(self) -> None:
        self._known_ms: dict[AuthenticationFailed, int] = {}

    def is_news(self, event: AuthenticationFailed, now_ms: int) -> bool:
        """False for a failure that was news less than a second ago."""
        known_ms = self._known_ms.get(event)
        if known_ms is not None and known_ms <= now_ms < known_ms + REPEATED_MS:
            return False
        if len(self._known_ms) >= MOST_KNOWN:
            self._known_ms.clear()
        self._known_ms[event] = now_ms
        return True
