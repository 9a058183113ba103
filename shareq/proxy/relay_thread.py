"""The thread of the tap: its ports, its links, and the timer of the next lock that runs out."""

from __future__ import annotations

import asyncio
import logging
import selectors
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakSet

from shareq.model.errors import IllegalStateException
from shareq.observer.timed_journal import TimedJournal
from shareq.proxy.backlog import Backlog, Read
from shareq.proxy.journal_readers import JournalReaders
from shareq.proxy.link import Link, Waiting
from shareq.proxy.ports import Ports, brokers_of
from shareq.proxy.watch import Watch
from shareq.signals.uninterrupted import SLICE_S, uninterrupted
from shareq.wire.address import Address
from shareq.wire.apis import API_BY_KEY
from shareq.wire.client.client_host import TcpClientHost
from shareq.wire.client.client_security import ClientSecurity

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
        conf: Mapping[str, Any],
        trace_messages: bool,
    ) -> None:
        self.failures: deque[BaseException] = deque(maxlen=100)
        self.renew_inbox()
        self.closed = False
        self.links: dict[int, Link] = {}
        self._all_links: WeakSet[Link] = WeakSet()
        """Those whose client is gone, too: their side of the broker may be open."""
        security = ClientSecurity.of(conf)
        self.tls = tls or security.context
        self.ports = Ports(brokers_of(bootstrap_servers, self.tls, security), host, port, self._link)
        # A context of the application is not known to observers: they are connected through the tap then.
        observed = self.ports.bootstrap_servers if tls is not None else bootstrap_servers
        self.watch = Watch(timed, observed, interval_ms, self._later, conf=conf, trace_messages=trace_messages)
        self._numbers = 0
        self._unread: set[tuple[int, int]] = set()
        self._wake_at_ms: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(selector)  # ports are watched; Windows' own loop cannot do that
        self._backlog = Backlog(self._loop, selector, TcpClientHost.now_ms, self._carry_out)
        self.readers = JournalReaders(timed.journal, self._loop, TcpClientHost.now_ms, self.watch.follow)
        self._loop.set_exception_handler(self._stray)
        self._thread = threading.Thread(target=self._loop.run_forever, name="shareq-tap", daemon=True)
        self._thread.start()
        self._soon(self.ports.open)

    @property
    def now_ms(self) -> int:
        return TcpClientHost.now_ms()

    def call(self, call: Callable[[], object]) -> None:
        """Call in the thread of the tap when all that has arrived is read, and wait. IllegalStateException if it is
        closed."""
        if self.closed:
            raise IllegalStateException("Tap closed")

        async def run() -> None:
            await asyncio.sleep(0)  # what has arrived at the sockets passes
            self._backlog.drain()
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
        for link in self._open_links():
            link.close()
        deadline = self._loop.time() + GOODBYE_S
        while self._open_links() and self._loop.time() < deadline and not uninterrupted.interrupted:
            await asyncio.sleep(0.001)
        for link in self._open_links():
            link.abort()
        while self._open_links():
            await asyncio.sleep(0)
        self._backlog.drain()

    def _open_links(self) -> list[Link]:
        return [link for link in self._all_links if link.is_open]

    # ---- for links, in the thread of the tap -------------------------------------------------------------------------

    def renew_inbox(self) -> None:
        self.inbox = memoryview(bytearray(INBOX_BYTES))

    @property
    def used(self) -> bool:
        """True if a client has ever connected; from any thread."""
        return bool(self._numbers)

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

    def request(self, link: Link, waiting: Waiting, frame: bytearray, arrived_ms: int) -> None:
        self._backlog.add(len(frame), partial(self._read_request, link, waiting, frame), arrived_ms)

    def response(self, waiting: Waiting, frame: bytearray, arrived_ms: int) -> None:
        self._backlog.add(len(frame), partial(self.watch.response, waiting, frame), arrived_ms)

    def read_journal(self, link: Link, frame: bytes) -> None:
        self.readers.ask(link, frame)

    def opened(self, link: Link) -> None:
        self.links[link.number] = link
        self._all_links.add(link)

    def lost(self, link: Link) -> None:
        self.readers.lost(link.number)
        if self.links.pop(link.number, None) is not None:
            self._backlog.add(0, partial(self.watch.disconnected, link.number))

    def _link(self, broker_id: int) -> asyncio.BaseProtocol:
        self._numbers += 1
        return Link(self, broker_id, self._numbers).client

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _read_request(self, link: Link, waiting: Waiting, frame: bytearray, passed_ms: int) -> None:
        waiting.token = self.watch.request(link.number, link.broker_id, waiting, frame, passed_ms)

    def _carry_out(self, read: Read, passed_ms: int) -> None:
        """A failure is reported; the message has passed. Then set the timer of the next lock."""
        try:
            read(passed_ms)
        except Exception as failure:
            self._report(failure)
        self.readers.grown()
        if self.watch.wake_at_ms != self._wake_at_ms:
            self._set_timer(self.watch.wake_at_ms)

    def _set_timer(self, wake_at_ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._wake_at_ms = None, wake_at_ms
        if wake_at_ms is not None and not self.closed:
            self._timer = self._loop.call_later(max(wake_at_ms - self.now_ms, 0) / 1000, self._tick)

    def _tick(self) -> None:
        """Locks run out; what has passed before is read first."""
        self._backlog.add(0, self._expire)

    def _expire(self, now_ms: int) -> None:
        self._wake_at_ms = None
        self.watch.tick(now_ms)

    def _report(self, failure: BaseException) -> None:
        self.failures.append(failure)
        _log.error("unhandled error in the tap; continuing", exc_info=failure)

    def _stray(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report an exception that was not caught in the tap's thread."""
        del loop
        self._report(context.get("exception") or RuntimeError(context["message"]))

    def _later(self, read: Read) -> None:
        """Add to what is read, behind all that has arrived at the sockets. From any thread."""
        # One turn of the loop later, because what has arrived passes in this one.
        self._soon(lambda: self._loop.call_soon(self._backlog.add, 0, read))

    def _soon(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the tap has closed meanwhile
            self._loop.call_soon_threadsafe(call)
