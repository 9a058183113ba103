"""A TCP server for the brokers of a cluster, each on its own port.

One daemon thread with an asyncio loop reads and writes sockets. A request that its broker answers at once is answered
in the call that read it, without a thread switch; later responses, from any thread that runs the cluster's loop, are
handed over together.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from typing import Any, Self

from shareq.client.uninterrupted import SLICE_S, uninterrupted
from shareq.model.html import strong, table
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.wire.address import Address
from shareq.wire.api_versions import api_versions, passed_apis
from shareq.wire.client_examples import client_examples_html
from shareq.wire.connection import ServerConnection
from shareq.wire.listener import Listener, ports_of
from shareq.wire.request_log import ServedRequest
from shareq.wire.served_cluster import ServedCluster, Timer

_log = logging.getLogger("shareq.server")

GOODBYE_S = 1.0
"""How long a closing server waits for peers to read their responses."""

INBOX_BYTES = 1 << 18
"""The most that is read from a socket at once."""

MAX_REQUEST = "socket.request.max.bytes"
MAX_IDLE = "connections.max.idle.ms"


class Server:
    """Serves `cluster` until `close()` or the end of a `with` block; `Cluster.serve` makes it.

    `observer` is called with each request that was answered, in the server's thread. `failures`: the unhandled errors
    so far; each was logged and closed the connection that it was raised for.
    """

    def __init__(
        self,
        cluster: ServedCluster,
        host: str = "127.0.0.1",
        ports: int | Sequence[int] | None = None,
        *,
        observer: Callable[[ServedRequest], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.loop = cluster.loop
        self.network = cluster.network
        self.observer = observer
        self.closed = True
        self.failures: deque[BaseException] = deque(maxlen=100)
        self.connections: set[ServerConnection] = set()
        self.inbox = memoryview(bytearray(INBOX_BYTES))
        self._host = host
        self.passed_apis = passed_apis(cluster.backend_versions)
        self._listeners: dict[int, Listener] = {}
        self._hurried = False
        self._answered: deque[ServerConnection] = deque()
        self._handing_over = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle_timer: Timer | None = None
        try:
            with uninterrupted:  # a signal that was held back raises at the end of the block
                self._start(host, ports)
        except BaseException:
            with uninterrupted:
                self.close()
                self.cluster.no_longer_served(self)
                for listener in self._listeners.values():
                    listener.close()
            raise

    def _start(self, host: str, ports: int | Sequence[int] | None) -> None:
        """Open the ports, start the thread. If this raises, the caller closes what was opened."""
        self.cluster.served_by(self)
        brokers = sorted(self.cluster.image.brokers)
        for broker_id, port in zip(brokers, ports_of(host, ports, len(brokers)), strict=True):
            self._listen(broker_id, port)
        self._asyncio = asyncio.SelectorEventLoop()  # ports are watched; Windows' own loop cannot do that
        self._asyncio.set_exception_handler(self._stray)
        self._thread = threading.Thread(target=self._asyncio.run_forever, name="shareq-server", daemon=True)
        self._thread.start()
        self.closed = False
        self._readdress()
        self._run(self._open())

    def _listen(self, broker_id: int, port: int) -> None:
        self._listeners[broker_id] = Listener(self._host, port, partial(self._connection, broker_id))

    def _readdress(self) -> None:
        """Show the addresses of all listeners in the cluster's metadata."""
        addresses = {b: (one.host, one.port) for b, one in self._listeners.items()}
        self.cluster.readdress(addresses, self._broker_changed)

    def _connection(self, broker_id: int) -> ServerConnection:
        config = self.cluster.image.broker_config
        return ServerConnection(self, broker_id, self.cluster.connection_id(), config[MAX_REQUEST])

    async def _open(self) -> None:
        alive = self.cluster.brokers_alive
        for broker_id, listener in self._listeners.items():
            await listener.follow(broker_id in alive)
        self._watch_idle()

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def ports(self) -> tuple[int, ...]:
        """The port of each broker, open or not."""
        return tuple(listener.port for listener in self._listeners.values())

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the cluster."""
        return ",".join(str(Address(one.host, one.port)) for one in self._listeners.values())

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self.connections)} connections"
        return f"Server({self.bootstrap_servers}, {self.cluster.bootstrap_servers}, {state})"

    def _repr_html_(self) -> str:
        alive, connections = self.cluster.brokers_alive, list(self.connections)
        rows = [
            (
                broker_id,
                str(Address(one.host, one.port)),
                "open" if broker_id in alive and not self.closed else strong("closed"),
                sum(c.broker_id == broker_id for c in connections),
            )
            for broker_id, one in self._listeners.items()
        ]
        brokers = table(("broker", "address", "port", "connections"), rows, caption=self.bootstrap_servers)
        return brokers + client_examples_html(self.bootstrap_servers)

    # ---- closing -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the ports and all connections, end the thread; the cluster runs on. Repeatable.

        A signal ends the wait for peers early, and raises when all is closed.
        """
        with uninterrupted:
            if self.closed:
                return
            self.closed = True
            self._run(self._shut())
            self._asyncio.call_soon_threadsafe(self._asyncio.stop)
            self._thread.join()
            self._asyncio.close()
            self.cluster.no_longer_served(self)

    async def _shut(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listener in self._listeners.values():
            await listener.follow(False)
        for connection in list(self.connections):
            connection.close("the server closes")
        deadline = self._asyncio.time() + GOODBYE_S
        while self.connections and self._asyncio.time() < deadline and not self._hurried:
            await asyncio.sleep(0.001)
        for connection in list(self.connections):
            connection.abort()
        while self.connections:
            await asyncio.sleep(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _run(self, doing: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the server's thread, inside of `uninterrupted`."""
        future = asyncio.run_coroutine_threadsafe(doing, self._asyncio)
        while not wait((future,), SLICE_S).done:
            self._hurried = self._hurried or uninterrupted.interrupted
        future.result()

    # ---- brokers come and go -----------------------------------------------------------------------------------------

    def _broker_changed(self, broker_id: int, alive: bool) -> None:
        self._soon(self._follow, broker_id, alive)

    def _follow(self, broker_id: int, alive: bool) -> None:
        """Send the responses of a broker that ended, then close its connections; or open the port of a started one."""
        self._hand_over()
        if broker_id not in self._listeners:
            self._listen(broker_id, 0)
            self._readdress()
        self._listeners[broker_id].wanted = alive  # connections accepted from here on are aborted
        if not alive:
            for connection in [c for c in self.connections if c.broker_id == broker_id]:
                connection.close("the broker has ended")
        task = self._asyncio.create_task(self._listeners[broker_id].follow(alive))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- for connections ---------------------------------------------------------------------------------------------

    def opened(self, connection: ServerConnection) -> None:
        """Register a connection; abort one that was accepted while its broker ended."""
        self.connections.add(connection)
        if not self._listeners[connection.broker_id].wanted:
            connection.abort()

    def lost(self, connection: ServerConnection) -> None:
        """Inform the broker of a lost connection: it closes the share sessions and releases their locks."""
        self.connections.discard(connection)
        self.loop.run(lambda: self.network.disconnect(connection.connection_id, connection.broker_id))

    def api_versions(self, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        """The APIs of the cluster, before a backend those that both support."""
        return api_versions(request, version, self.cluster.backend_versions)

    def answered(self, connection: ServerConnection) -> None:
        self._answered.append(connection)
        if not self._handing_over:
            self._handing_over = True
            self._soon(self._hand_over)

    def _soon(self, call: Callable[..., object], *args: object) -> None:
        """Call in the server's thread; from that thread itself without waking it."""
        if threading.get_ident() == self._thread.ident:
            self._asyncio.call_soon(call, *args)
        else:
            with suppress(RuntimeError):  # the server has closed meanwhile
                self._asyncio.call_soon_threadsafe(call, *args)

    def _hand_over(self) -> None:
        """Resume the connections with new responses. The flag is reset first, so that later responses call again."""
        self._handing_over = False
        answered = self._answered
        while answered:
            answered.popleft().resume()

    def report(self, failure: BaseException) -> None:
        self.failures.append(failure)
        _log.error("unhandled error in the server; continuing", exc_info=failure)

    def _stray(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report an exception that was not caught in the server's thread."""
        del loop
        self.report(context.get("exception") or RuntimeError(context["message"]))

    # ---- idle connections --------------------------------------------------------------------------------------------

    def _watch_idle(self) -> None:
        """Close idle connections, and set the timer for the next one that may become idle, on the cluster's clock."""
        if self.closed:
            return
        now_ms = self.loop.now_ms()
        limit_ms = self.cluster.image.broker_config[MAX_IDLE]
        quiet = [c for c in self.connections if c.idle]
        for connection in quiet:
            if connection.active_ms + limit_ms <= now_ms:
                connection.abort()
        due_ms = min((c.active_ms for c in quiet if c.active_ms + limit_ms > now_ms), default=now_ms) + limit_ms
        self.loop.run(partial(self._watch_again, due_ms))

    def _watch_again(self, due_ms: int) -> None:
        self._idle_timer = self.loop.at(due_ms, lambda: self._soon(self._watch_idle))
