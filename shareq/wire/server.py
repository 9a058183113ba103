"""A TCP server for the brokers of a cluster, each on a port of its own for each listener.

One daemon thread with an asyncio loop reads and writes sockets. A request that its broker answers at once is answered
in the call that read it, without a thread switch; later responses, from any thread that runs the cluster's loop, are
handed over together.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import wait
from functools import partial
from time import perf_counter
from typing import Any

from shareq.html import html, strong, table
from shareq.model.closing import Closing
from shareq.model.errors import ConfigException
from shareq.model.events import AuthenticationFailed
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.printable import printable
from shareq.signals.uninterrupted import SLICE_S, uninterrupted
from shareq.wire.acceptor import Acceptor
from shareq.wire.address import Address
from shareq.wire.admission import Admission, RequestMemory
from shareq.wire.api_versions import api_versions, hidden_apis, passed_apis
from shareq.wire.client import io_thread
from shareq.wire.client.io_thread import IoThread
from shareq.wire.client_examples import client_examples_html
from shareq.wire.connection import ServerConnection
from shareq.wire.listener import Listener, server_listeners
from shareq.wire.quotas import ClientQuotas
from shareq.wire.request_log import ServedRequest
from shareq.wire.sasl_connection import SaslConnection
from shareq.wire.security.listener_address import ListenerAddress
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.security.refusals import Refusals
from shareq.wire.served_cluster import BrokerNetwork, ServedCluster, Timer
from shareq.wire.turns import ROUND_S, Turns

_log = logging.getLogger("shareq.server")

LOOPBACK = "127.0.0.1"

GOODBYE_S = 1.0
"""How long a closing server waits for peers to read their responses."""

INBOX_BYTES = 1 << 18
"""The most that is read from a socket at once."""

MAX_REQUEST = "socket.request.max.bytes"
MAX_IDLE = "connections.max.idle.ms"


class Server(Closing):
    """Serves `cluster` until `close()` or the end of a `with` block; `Cluster.serve` makes it.

    `observer` is called with each request that was answered, in the server's thread. `failures`: the unhandled errors
    so far; each was logged and closed the connection that it was raised for. `listeners`: instead of `host` and
    `ports`, texts as for `Cluster.serve`.
    """

    def __init__(
        self,
        cluster: ServedCluster,
        host: str = LOOPBACK,
        ports: int | Sequence[int] | None = None,
        *,
        listeners: Sequence[str] | None = None,
        observer: Callable[[ServedRequest], None] | None = None,
        security: ListenerSecurity | None = None,
    ) -> None:
        self.cluster = cluster
        self.loop = cluster.loop
        self.network: BrokerNetwork = cluster.front
        self.observer = observer
        self.closed = True
        self.failures: deque[BaseException] = deque(maxlen=100)
        self.connections: set[ServerConnection] = set()
        self.inbox = memoryview(bytearray(INBOX_BYTES))
        self.memory = RequestMemory(self._limit, self._later)
        security = security or ListenerSecurity()
        self._credentials = security.credentials()
        self._listeners = server_listeners(cluster, _wanted(host, ports, listeners), security)
        self._main = self._listeners[0]
        self._admissions: dict[int, Admission] = {}
        self._quotas: dict[int, ClientQuotas] = {}
        self._refusals = Refusals()
        self.passed_apis = passed_apis(cluster.front.versions)
        self.hidden_apis = hidden_apis(cluster.image)
        self._hurried = False
        self._answered: deque[ServerConnection] = deque()
        self._handing_over = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle_timer: Timer | None = None
        try:
            with uninterrupted:  # a signal that was held back raises at the end of the block
                self._start()
        except BaseException:
            with uninterrupted:
                self.close()
                self.cluster.no_longer_served(self)
                for acceptor in self._all_ports():
                    acceptor.close()
            raise

    def _start(self) -> None:
        """Open the ports, start the thread. If this raises, the caller closes what was opened."""
        self.cluster.served_by(self)
        for listener in self._listeners:
            for broker_id, port in listener.first_ports(self.cluster.front.brokers):
                self._listen(listener, broker_id, port)
            listener.security.warn(next(iter(listener.ports.values())).address)
        # A backend's answers are read in the thread of this process's clients: one that also writes them to the peers
        # wakes no other.
        self._own_io = IoThread("shareq-server") if self.cluster.front.versions is None else None
        self._io = self._own_io or io_thread.enter()
        self._asyncio = self._io.loop
        self._asyncio.set_exception_handler(self._stray)
        self.turns = Turns(self._asyncio.call_soon)
        self.closed = False
        self._readdress()
        self._run(self._open())

    def _listen(self, listener: Listener, broker_id: int, port: int) -> None:
        if broker_id not in self._admissions:
            self._admissions[broker_id] = Admission(self._limit)
        listener.ports[broker_id] = Acceptor(
            listener.host,
            port,
            partial(self._connection, listener, broker_id),
            self._admissions[broker_id],
            context=listener.security.context,
            failed=partial(self._not_through, broker_id),
            refusal_ms=lambda address: self.quotas(broker_id).refusal_ms(address, self.loop.time_ms()),
        )

    def _all_ports(self) -> Iterator[Acceptor]:
        for listener in self._listeners:
            yield from listener.ports.values()

    def _readdress(self) -> None:
        """Show the addresses of all listeners in the cluster's metadata."""
        listeners = {one.name: one.addresses for one in self._listeners} if len(self._listeners) > 1 else {}
        self.cluster.readdress(self._main.addresses, self._broker_changed, listeners)

    def _connection(self, listener: Listener, broker_id: int, address: str) -> ServerConnection:
        login = listener.security.login
        make = partial(SaslConnection, login=login) if login else ServerConnection
        return make(self, listener, broker_id, self.cluster.connection_id(), self._limit(MAX_REQUEST), address=address)

    def _not_through(self, broker_id: int, address: str, reason: str) -> None:
        self.refused(AuthenticationFailed(broker_id, address, "", "", reason))

    def _limit(self, key: str) -> int:
        limit: int = self.cluster.image.broker_config[key]
        return limit

    async def _open(self) -> None:
        if self._credentials:
            self.loop.run(lambda: self.cluster.front.alter_users(self._credentials))
        alive = self.cluster.front.brokers
        for listener in self._listeners:
            for broker_id, acceptor in listener.ports.items():
                await acceptor.follow(alive[broker_id])
        self._watch_idle()

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def ports(self) -> tuple[int, ...]:
        """The port of each broker, open or not; with several listeners, those of the first one."""
        return tuple(acceptor.port for acceptor in self._main.ports.values())

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the cluster; with several listeners, by the first one."""
        return self._main.bootstrap_servers

    @property
    def listeners(self) -> dict[str, str]:
        """Where clients find the cluster, by the name of the listener."""
        return {listener.name: listener.bootstrap_servers for listener in self._listeners}

    @property
    def client_settings(self) -> str:
        """The security that clients have to set, in words; empty for none. With several listeners, that of the first
        one."""
        return self._main.security.client_settings

    @property
    def more_listeners(self) -> list[str]:
        """The listeners but the first, and the security that their clients have to set, in words."""
        texts = []
        for listener in self._listeners[1:]:
            settings = listener.security.client_settings
            texts.append(f"{listener.bootstrap_servers}{f': clients set {settings}' if settings else ''}")
        return texts

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self.connections)} connections"
        return f"Server({self.bootstrap_servers}, {self.cluster.bootstrap_servers}, {state})"

    def _repr_html_(self) -> str:
        alive, connections = self.cluster.front.brokers, list(self.connections)
        rows = [
            (
                broker_id,
                listener.name,
                str(Address(one.host, one.port)),
                "open" if alive[broker_id] and not self.closed else strong("closed"),
                sum(c.broker_id == broker_id and c.listener is listener for c in connections),
            )
            for listener in self._listeners
            for broker_id, one in listener.ports.items()
        ]
        heads = ("broker", "listener", "address", "port", "connections")
        brokers = table(heads, rows, caption=self.bootstrap_servers)
        if self.client_settings:
            return brokers + html(f"Clients set {self.client_settings}")
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
            if self._own_io is None:
                io_thread.leave(self._io)
            else:
                self._own_io.stop()
                self._own_io.join()
            self.cluster.no_longer_served(self)

    async def _shut(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listener in self._all_ports():
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
        if broker_id not in self._main.ports:
            for listener in self._listeners:
                self._listen(listener, broker_id, 0)
            self._readdress()
        for listener in self._listeners:
            listener.ports[broker_id].wanted = alive  # connections accepted from here on are aborted
        if not alive:
            for connection in [c for c in self.connections if c.broker_id == broker_id]:
                connection.close("the broker has ended")
        for listener in self._listeners:
            task = self._asyncio.create_task(listener.ports[broker_id].follow(alive))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    # ---- for connections ---------------------------------------------------------------------------------------------

    def opened(self, connection: ServerConnection) -> None:
        """Register a connection; abort one that was accepted while its broker ended."""
        self.connections.add(connection)
        if not self._main.ports[connection.broker_id].wanted:
            connection.abort()

    def lost(self, connection: ServerConnection) -> None:
        """Inform the broker of a lost connection: it closes the share sessions and releases their locks."""
        self.connections.discard(connection)
        self._admissions[connection.broker_id].leave(connection.address)
        self.loop.run(lambda: self.network.disconnect(connection.connection_id, connection.broker_id))

    def refused(self, event: AuthenticationFailed) -> None:
        """Log and journal a client that did not get in."""
        if not self._refusals.is_news(event, self.loop.time_ms()):
            return
        _log.warning("%s at broker %s was refused: %s", event.peer, event.broker_id, printable(event.reason))
        self.loop.run(lambda: self.cluster.record(event))

    def api_versions(self, request: ApiVersionsRequest, version: int, broker_id: int) -> ApiVersionsResponse:
        """The APIs of a broker, before a backend those that both support."""
        front = self.cluster.front
        return api_versions(request, version, self.cluster.image, front.node_of(broker_id), front.versions)

    def quotas(self, broker_id: int) -> ClientQuotas:
        """What the clients of a broker have used."""
        if broker_id not in self._quotas:
            self._quotas[broker_id] = ClientQuotas(lambda: self.cluster.image.client_quotas, self._limit)
        return self._quotas[broker_id]

    def answered(self, connection: ServerConnection) -> None:
        self._answered.append(connection)
        if not self._handing_over:
            self._handing_over = True
            self._io.afterwards(self._hand_over)

    def _later(self, delay_s: float, call: Callable[[], object]) -> None:
        self._asyncio.call_later(delay_s, call)

    def _soon(self, call: Callable[..., object], *args: object) -> None:
        """Call in the server's thread. A no-op once it has ended."""
        self._io.soon(call, *args)

    def _hand_over(self) -> None:
        """Resume the connections with new responses. The flag is reset first, so that later responses call again; many
        responses are written in several rounds."""
        self._handing_over = False
        answered = self._answered
        end = perf_counter() + ROUND_S
        while answered:
            answered.popleft().resume()
            if answered and perf_counter() > end:
                self._handing_over = True
                self._soon(self._hand_over)
                return

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
        now_ms = self.loop.time_ms()
        limit_ms = self._limit(MAX_IDLE)
        quiet = [c for c in self.connections if c.idle]
        for connection in quiet:
            if connection.active_ms + limit_ms <= now_ms:
                connection.abort()
        due_ms = min((c.active_ms for c in quiet if c.active_ms + limit_ms > now_ms), default=now_ms) + limit_ms
        self.loop.run(partial(self._watch_again, due_ms))

    def _watch_again(self, due_ms: int) -> None:
        self._idle_timer = self.loop.at(due_ms, lambda: self._soon(self._watch_idle))


def _wanted(
    host: str, ports: int | Sequence[int] | None, listeners: Sequence[str] | None
) -> Sequence[str] | ListenerAddress:
    """The listeners that are asked for. ConfigException if a host or ports are given beside them."""
    if listeners is None:
        return ListenerAddress("", "", host, ports)
    if host != LOOPBACK or ports is not None:
        raise ConfigException(f"listeners={list(listeners)}: they name the hosts and ports")
    return listeners
