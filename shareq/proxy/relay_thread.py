"""The thread of the tap: its ports, its links, and the timer of the next lock that runs out."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from shareq.client.uninterrupted import SLICE_S, uninterrupted
from shareq.model.errors import IllegalStateException
from shareq.observer.timed_journal import TimedJournal
from shareq.proxy.link import Link, Waiting
from shareq.proxy.ports import Ports, brokers_of
from shareq.proxy.watch import Watch
from shareq.wire.address import Address
from shareq.wire.apis import API_BY_KEY
from shareq.wire.client.client_host import TcpClientHost

_log = logging.getLogger("shareq.tap")

INBOX_BYTES = 1 << 18
"""The most that is read from a socket at once."""

GOODBYE_S = 1.0
"""How long a closing tap waits for peers to read what they were sent."""


class RelayThread:
    """Relays until `close()`. `failures`: unhandled errors so far; each was logged, and its message has passed."""

    def __init__(
        self,
        timed: TimedJournal,
        bootstrap_servers: str,
        host: str,
        port: int | None,
        *,
        interval_ms: int,
        tls: ssl.SSLContext | None,
        trace_messages: bool,
    ) -> None:
        self.failures: deque[BaseException] = deque(maxlen=100)
        self.inbox = memoryview(bytearray(INBOX_BYTES))
        self.closed = False
        self.links: dict[int, Link] = {}
        self.tls = tls
        self.ports = Ports(brokers_of(bootstrap_servers, tls), host, port, self._link)
        # Clients of shareq have no TLS: observers of such a cluster are connected through the tap, too.
        observed = bootstrap_servers if tls is None else self.ports.bootstrap_servers
        self.watch = Watch(timed, observed, interval_ms, self._soon, trace_messages=trace_messages)
        self._numbers = 0
        self._unread: set[tuple[int, int]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.SelectorEventLoop()  # ports are watched; Windows' own loop cannot do that
        self._loop.set_exception_handler(self._stray)
        self._thread = threading.Thread(target=self._loop.run_forever, name="shareq-tap", daemon=True)
        self._thread.start()
        self._soon(self.ports.open)

    @property
    def now_ms(self) -> int:
        return TcpClientHost.now_ms()

    def call(self, call: Callable[[], object]) -> None:
        """Call in the thread of the tap, and wait. IllegalStateException if it is closed."""
        if self.closed:
            raise IllegalStateException("Tap closed")

        async def run() -> None:
            call()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def close(self) -> None:
        """Close the ports and all connections. Repeatable."""
        with uninterrupted:
            if self.closed:
                return
            self.closed = True
            future = asyncio.run_coroutine_threadsafe(self._shut(), self._loop)
            while not future.done():
                with suppress(TimeoutError):
                    future.result(SLICE_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self.watch.close()

    async def _shut(self) -> None:
        self.ports.close()
        if self._timer is not None:
            self._timer.cancel()
        for link in list(self.links.values()):
            link.close()
        deadline = self._loop.time() + GOODBYE_S
        while self.links and self._loop.time() < deadline and not uninterrupted.interrupted:
            await asyncio.sleep(0.001)
        for link in list(self.links.values()):
            link.abort()
        while self.links:
            await asyncio.sleep(0)

    # ---- for links, in the thread of the tap -------------------------------------------------------------------------

    def upstream(self, broker_id: int) -> Address:
        return self.ports.brokers[broker_id]

    def lookup(self, node_id: int, address: Address) -> Address | None:
        return self.ports.lookup(node_id, address)

    def reads_request(self, api_key: int, version: int) -> bool:
        return self.watch.reads_request(api_key, version)

    def reads_response(self, api_key: int, version: int) -> bool:
        return self.watch.reads_response(api_key, version)

    def passes_unread(self, api_key: int, version: int) -> None:
        if (api_key, version) not in self._unread:
            self._unread.add((api_key, version))
            name = API_BY_KEY[api_key].name
            _log.warning(
                "%s version %s is newer than the tap knows: it passes unread, and its clients may leave the tap",
                name,
                version,
            )

    def request(self, link: Link, frame: bytes) -> object:
        try:
            return self.watch.request(link.number, link.broker_id, frame, self.now_ms)
        except Exception as failure:
            self._report(failure)
            return None

    def response(self, link: Link, waiting: Waiting, frame: bytes) -> None:
        del link
        self._read(partial(self.watch.response, waiting, frame))

    def opened(self, link: Link) -> None:
        self.links[link.number] = link

    def lost(self, link: Link) -> None:
        if self.links.pop(link.number, None) is not None:
            self._read(partial(self.watch.disconnected, link.number))

    def _link(self, broker_id: int) -> asyncio.BaseProtocol:
        self._numbers += 1
        return Link(self, broker_id, self._numbers).client

    def _read(self, call: Callable[[int], None]) -> None:
        """Call with the time. A failure is reported, and the message passes. Then set the timer of the next lock."""
        try:
            call(self.now_ms)
        except Exception as failure:
            self._report(failure)
        wake_at_ms = self.watch.wake_at_ms
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if wake_at_ms is not None and not self.closed:
            delay_s = max(wake_at_ms - self.now_ms, 0) / 1000
            self._timer = self._loop.call_later(delay_s, self._read, self.watch.tick)

    def _report(self, failure: BaseException) -> None:
        self.failures.append(failure)
        _log.error("unhandled error in the tap; continuing", exc_info=failure)

    def _stray(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report an exception that was not caught in the tap's thread."""
        del loop
        self._report(context.get("exception") or RuntimeError(context["message"]))

    def _soon(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the tap has closed meanwhile
            self._loop.call_soon_threadsafe(call)
