"""Runs a client's actor over TCP: delivers responses and ticks, sends its calls."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Iterable

from shareq.client.calls import Backoff
from shareq.client.event_listeners import emit
from shareq.model.actor import ANY_NODE, Actor, Answer, Call, Effect, Message, Tick
from shareq.model.errors import ClientFailedException, Errors, KafkaError, KafkaException
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from shareq.signals.interruptible import InterruptibleCondition
from shareq.signals.uninterrupted import SLICE_S, acquire, uninterrupted
from shareq.wire.address import Address
from shareq.wire.client import io_thread
from shareq.wire.client.addresses import BrokerDirectory
from shareq.wire.client.broker_connection import BrokerConnection
from shareq.wire.client.socket_settings import SocketSettings

GOODBYE_S = 1.0
"""How long `close` waits until a socket has taken the written bytes."""

_FETCHES = (ShareFetchRequest, ShareAcknowledgeRequest, FetchRequest)
"""Requests with a connection of their own: a request that waits for records delays all later ones on its connection.
The share session belongs to that connection."""

_TICK = Tick()
_STARTED_MS = time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000


class TcpClientHost:
    """One client. Its actor and its connections are used only under `lock`, by the application or the I/O thread."""

    def __init__(
        self, actor: Actor, client_id: str, servers: tuple[Address, ...], rng: random.Random, settings: SocketSettings
    ) -> None:
        self._waiting = InterruptibleCondition()
        self.lock: threading.Condition = self._waiting
        self.client_id = client_id
        self.settings = settings
        bootstrap = tuple(rng.sample(servers, len(servers)))
        self.directory = BrokerDirectory(bootstrap, checked=settings.metadata_cluster_check_enable)
        self.backoff = Backoff(rng, settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms)
        self._actor = actor
        self._links: dict[tuple[Address, bool], BrokerConnection] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due_ms: int | None = None
        self._closed = False
        self._shut = threading.Event()
        self.failure: Exception | None = None
        self._process = os.getpid()
        self.io = io_thread.enter()

    @staticmethod
    def now_ms() -> int:
        """The clock of all clients, ms since the epoch when the process began: it never decreases, and a change of the
        system's clock does not move it."""
        return _STARTED_MS + time.monotonic_ns() // 1_000_000

    @staticmethod
    def time_of_day(time_ms: int) -> int:
        """The time of day at a time of this clock, by the system's clock as it stands now."""
        return time.time_ns() // 1_000_000 + time_ms - TcpClientHost.now_ms()

    # ---- calls of the application ------------------------------------------------------------------------------------

    def run(self, action: Callable[[int], Iterable[Effect]]) -> None:
        if uninterrupted.depth:  # the caller or another thread has entered the block already
            self._run(action)
        else:
            with uninterrupted:
                self._run(action)

    def _run(self, action: Callable[[int], Iterable[Effect]]) -> None:
        acquire(self.lock)
        try:
            self._check()
            self._carry_out(lambda: action(self.now_ms()))
            if self.failure is not None:
                self._check()
        finally:
            self.lock.release()

    def wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        if uninterrupted.depth:
            return self._wait(until, timeout_ms)
        with uninterrupted:
            return self._wait(until, timeout_ms)

    def _wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        def done_or_failed() -> bool | None:
            if until():
                return True
            self._check()
            return None

        self._check()
        return self._waiting.wait_until(done_or_failed, None if timeout_ms is None else timeout_ms / 1000)

    def _check(self) -> None:
        if self._process != os.getpid():
            text = f"client {self.client_id!r} was created before a fork: create it in the process that uses it"
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, text))
        if self.failure is not None:
            raise ClientFailedException.of(self.client_id, self.failure) from self.failure
        if self._closed:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"client {self.client_id!r} is closed"))

    # ---- the actor ---------------------------------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        """Deliver a message to the actor."""
        with self.lock:
            if not self._closed and self.failure is None:
                self._carry_out(lambda: self._actor.handle(message, self.now_ms()))

    def _carry_out(self, turn: Callable[[], Iterable[Effect]]) -> None:
        """Run one turn of the actor and its effects. An unhandled error ends this client: all waiting calls fail."""
        try:
            self._perform(turn())
        except Exception as failure:
            self.failure = failure
            self.lock.notify_all()

    def _perform(self, effects: Iterable[Effect]) -> None:
        """Send requests, set the timer, wake waiting threads. All other effects are events."""
        for effect in effects:
            if isinstance(effect, Call):
                self._send(effect)
            else:
                emit(self.now_ms(), effect)  # type: ignore[arg-type]    # a client's actor sends no other requests
        due_ms = self._actor.wake_at_ms
        if due_ms is not None and (self._due_ms is None or due_ms < self._due_ms):
            self._due_ms = due_ms
            self.io.soon(self._set_timer)
        if self._waiting.count:
            self.lock.notify_all()

    def _set_timer(self) -> None:
        """Set the timer. It stays set when the actor postpones its time, and is set again when it fires."""
        with self.lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._due_ms is not None and not self._closed:
                delay_ms = max(0, self._due_ms - self.now_ms())
                self._timer = self.io.loop.call_later(delay_ms / 1000, self._wake)

    def _wake(self) -> None:
        with self.lock:
            self._timer = None
            self._due_ms = due_ms = self._actor.wake_at_ms
            if due_ms is None:
                return
            if due_ms > self.now_ms():
                self._set_timer()
                return
            self._due_ms = None
            self.deliver(_TICK)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _send(self, call: Call) -> None:
        address = self._preferred() if call.node == ANY_NODE else self.directory.address(call.node)
        if address is None:
            reason = f"the address of broker {call.node} is unknown"
            self.io.soon(self.deliver, Answer(call.id, None, Errors.NETWORK_EXCEPTION, reason))
            return
        self._link(address, isinstance(call.request, _FETCHES)).send(call, self.now_ms())

    def _preferred(self) -> Address:
        """The preferred broker: a connected one, else one whose connection has not failed."""
        return min(self.directory.everywhere(), key=lambda address: self._link(address, False).rank)

    def _link(self, address: Address, fetches: bool) -> BrokerConnection:
        link = self._links.get((address, fetches))
        if link is None:
            link = self._links[address, fetches] = BrokerConnection(self, address)
        return link

    # ---- close -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Send the written bytes, for at most GOODBYE_S, and close the connections. Idempotent.

        A signal ends the wait early.
        """
        if self._process != os.getpid():
            return
        with uninterrupted:
            acquire(self.lock)
            try:
                if self._closed:
                    return
                self._closed = True
                if not self.io.inside:
                    self._wait_briefly(lambda: not any(link.unsent for link in self._links.values()), self.lock.wait)
            finally:
                self.lock.release()
            self.io.soon(self._close_links)
            if not self.io.inside:
                self._wait_briefly(self._shut.is_set, self._shut.wait)
            io_thread.leave(self.io)

    @staticmethod
    def _wait_briefly(until: Callable[[], bool], wait: Callable[[float], object]) -> None:
        deadline = time.monotonic() + GOODBYE_S
        while not until() and time.monotonic() < deadline and not uninterrupted.interrupted:
            wait(SLICE_S)

    def forget(self) -> None:
        """Close without a wait: the garbage collector calls this, at any point, for a client that the application has
        dropped without closing it."""
        with uninterrupted:
            if not self._closed and self._process == os.getpid():
                self.io.soon(self._close_links)
                io_thread.leave(self.io)

    def _close_links(self) -> None:
        with self.lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            for link in self._links.values():
                link.close()
            self.lock.notify_all()
        self._shut.set()
