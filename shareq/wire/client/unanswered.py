"""Whether a broker that ends connections without an answer will ever answer."""

from __future__ import annotations

from shareq.model.errors import Errors

GIVEN_UP_MS = 2000
"""Up to two pauses of a second can follow, of the connection and of the request: a client ends within five."""


class Unanswered:
    """What one broker leaves unanswered: it may expect TLS or a login, and end the connections of clients without."""

    def __init__(self) -> None:
        self._proven = False
        self._since_ms: int | None = None

    def end(self) -> None:
        """The broker has answered a request of the client. From now on it is only unreachable at times."""
        self._proven = True

    def error(self, failure: OSError, now_ms: int) -> Errors:
        """The error of a connection that failed: `_AUTHENTICATION`, which is final, for a broker that has never
        answered and has accepted and ended connections for a while, else NETWORK_EXCEPTION."""
        accepted = isinstance(failure, ConnectionError) and not isinstance(failure, ConnectionRefusedError)
        if self._proven or not accepted:
            return Errors.NETWORK_EXCEPTION
        if self._since_ms is None:
            self._since_ms = now_ms
        return Errors._AUTHENTICATION if now_ms - self._since_ms >= GIVEN_UP_MS else Errors.NETWORK_EXCEPTION
