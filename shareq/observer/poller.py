"""What an observer and a monitor have in common: a client that polls until it is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import finalize

from shareq.client.patience import await_sign
from shareq.html import Html, Tables, html, strong
from shareq.model.closing import Closing
from shareq.model.errors import ConfigException, IllegalStateException
from shareq.model.numbers import plain
from shareq.model.transport import Connection
from shareq.observer.core import PollingCore


def checked_interval(interval_ms: object, least_ms: int) -> int:
    """The time between two polls, ms. ConfigException if it is no int, or below `least_ms`."""
    found = plain(interval_ms)
    if isinstance(found, bool) or not isinstance(found, int) or found < least_ms:
        raise ConfigException(f"interval_ms={found!r}: must be {least_ms} or more")
    return found


def state_html(*, closed: bool, trouble: str, well: str) -> Html:
    """The state of what polls, for the head of its tables: `well` without trouble."""
    return strong("closed") if closed else strong(trouble) if trouble else html(well)


def poll_once(core: PollingCore[Any], connection: Connection, timeout: float) -> bool:
    """Poll now, and wait for the end of a poll that began after this call: at most `timeout` seconds."""
    wanted = core.polls_begun + 1
    connection.run(core.poll_now)
    return connection.wait(lambda: core.polls_ended >= wanted, timeout * 1000)


class Poller(Tables, Closing):
    """Polls until `close()`, the end of a `with` block, or the end of the last reference to it.

    `end(*args)` is called then: it has no reference to the poller.
    """

    def __init__(
        self, core: PollingCore[Any], connection: Connection, end: Callable[..., object], *args: object
    ) -> None:
        self._core, self._connection = core, connection
        self._end = finalize(self, end, *args)
        connection.run(core.poll_now)

    @property
    def now_ms(self) -> int:
        """Its clock, ms since the epoch."""
        return self._connection.now_ms()

    @property
    def closed(self) -> bool:
        """True after `close()`, or when its connection has ended."""
        return not self._end.alive

    @property
    def polled(self) -> bool:
        """True if a poll has ended, with or without success."""
        return self._core.polls_ended > 0

    def wait(self, until: Callable[[], bool], timeout: float) -> bool:
        """Wait until `until()` is true, at most `timeout` seconds; it is checked after every step of a poll."""
        self._check_open()
        return self._connection.wait(until, timeout * 1000)

    def await_sign(self, heard: Callable[[], bool], address: str, limit_s: float) -> None:
        """Wait for the first sign of the cluster, and warn if there is none; `limit_s`: the time for the first poll."""
        self._check_open()
        await_sign(self._connection, heard, str, address=address, limit_s=limit_s)

    def close(self) -> None:
        """Stop polling; what was read stays. Repeatable."""
        self._end()

    def _poll(self, timeout: float) -> bool:
        self._check_open()
        return poll_once(self._core, self._connection, timeout)

    def _check_open(self) -> None:
        if self.closed:
            raise IllegalStateException(f"{type(self).__name__} closed")
