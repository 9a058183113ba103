"""The connection to one broker, which is opened with the first request, and again after it has broken.

Requests are pipelined; responses keep their order. Pending requests of a broken connection fail with NETWORK_EXCEPTION;
the clients decide whether to retry. A request that times out closes the connection, as in Java's clients, because later
requests on it would not be answered, either.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import NamedTuple, Protocol

from shareq.client.calls import Backoff
from shareq.model.actor import NEWEST_VERSION, Answer, Call
from shareq.model.errors import Errors
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.base import Request, Response
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.passed import PassedRequest
from shareq.wire.address import Address
from shareq.wire.apis import API_BY_KEY
from shareq.wire.client.addresses import BrokerDirectory
from shareq.wire.client.broker_versions import BrokerVersions
from shareq.wire.client.encoding_errors import encoding_error
from shareq.wire.client.frame_socket import FrameSocket, connect
from shareq.wire.client.io_thread import IoThread
from shareq.wire.client.login import Login, LoginFailed
from shareq.wire.client.socket_settings import SocketSettings
from shareq.wire.client.tls import TlsFailure
from shareq.wire.client.unanswered import Unanswered
from shareq.wire.errors import MalformedFrame, UnsupportedVersion
from shareq.wire.frames import decode_response, encode_request, passed_response

REAUTHENTICATE_AT = 0.85
"""The part of a login's time after which a new one begins, as in Java's clients at the earliest."""

_NEWEST = API_BY_KEY[ApiVersionsRequest.API_KEY].max_version


class Owner(Protocol):
    """The part of a client that its connections use."""

    lock: threading.Condition
    io: IoThread
    client_id: str
    directory: BrokerDirectory
    backoff: Backoff
    settings: SocketSettings

    def now_ms(self) -> int: ...
    def deliver(self, message: Answer) -> None: ...


class _PendingRequest(NamedTuple):
    """A request without a response. `call_id` None: the connection's own, to set itself up."""

    call_id: int | None
    request: Request
    deadline_ms: int
    wanted: int = NEWEST_VERSION
    correlation_id: int = -1
    version: int = -1


class BrokerConnection:
    """A connection to one broker. `send` requires the client's lock; all else runs in the I/O thread."""

    def __init__(self, client: Owner, address: Address) -> None:
        self._client = client
        self._address = address
        self._frame_socket: FrameSocket | None = None
        self._versions: BrokerVersions | None = None
        self._login: Login | None = None
        self._ready = False
        self._unanswered = Unanswered()
        self._again: asyncio.TimerHandle | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._wanted = False
        self._waiting: deque[_PendingRequest] = deque()
        self._in_flight: deque[_PendingRequest] = deque()
        self._last_correlation_id = 0
        self._failures = 0
        self._not_before_ms = 0
        self._check_at_ms: int | None = None
        self._check: asyncio.TimerHandle | None = None

    @property
    def rank(self) -> tuple[int, int]:
        """The preference for requests that any broker can answer; the lowest is preferred."""
        if self._ready:
            return 0, len(self._in_flight)
        return (1 if self._wanted else 2) + 2 * self._failures, 0

    @property
    def unsent(self) -> bool:
        return self._frame_socket is not None and bool(self._frame_socket.unsent)

    @property
    def _name(self) -> str:
        return self._client.directory.name(self._address)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def send(self, call: Call, now_ms: int) -> None:
        """Send a request now, or as soon as the connection is open."""
        exchange = _PendingRequest(call.id, call.request, now_ms + call.timeout_ms, call.version)
        if self._ready and self._versions is not None:
            self._transmit(exchange, self._versions)
        else:
            self._waiting.append(exchange)
            if not self._wanted:
                self._wanted = True
                self._client.io.soon(self._start)
        self._watch(exchange.deadline_ms)

    def _transmit(self, exchange: _PendingRequest, versions: BrokerVersions) -> None:
        """Send a request; if it cannot be encoded, only this request fails."""
        version = -1
        try:
            version = versions.choose(exchange.request, exchange.wanted)
            self._put(exchange, version)
        except UnsupportedVersion as why:
            self._answer_soon(exchange, None, Errors.UNSUPPORTED_VERSION, f"{self._name} {why}")
            return
        except Exception as why:
            reason = encoding_error(exchange.request, version, why)
            self._answer_soon(exchange, None, Errors.INVALID_REQUEST, reason)
            return
        if isinstance(exchange.request, ProduceRequest) and exchange.request.acks == 0:
            self._in_flight.pop()  # there is no response
            self._answer_soon(exchange, ProduceResponse())

    def _put(self, exchange: _PendingRequest, version: int) -> None:
        """Write a request. Raises UnsupportedVersion if the version lacks a field, and the exceptions of encoding."""
        assert self._frame_socket is not None
        correlation_id = self._last_correlation_id = (self._last_correlation_id + 1) & 0x7FFFFFFF
        frame = encode_request(exchange.request, version, correlation_id, self._client.client_id)
        self._in_flight.append(exchange._replace(correlation_id=correlation_id, version=version))
        self._frame_socket.write(frame)

    def _answer_soon(
        self, exchange: _PendingRequest, response: Response | None, error: Errors = Errors.NONE, reason: str = ""
    ) -> None:
        """Deliver an answer later, because the client's actor is in a turn now."""
        assert exchange.call_id is not None
        self._client.io.soon(self._client.deliver, Answer(exchange.call_id, response, error, reason))

    # ---- connecting --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._client.lock:
            if self._wanted and self._connecting is None:
                self._connecting = self._client.io.start(self._connect())

    async def _connect(self) -> None:
        client = self._client
        try:
            await asyncio.sleep(max(0, self._not_before_ms - client.now_ms()) / 1000)
            login = await client.settings.security.begin_login()
            async with asyncio.timeout(client.settings.socket_connection_setup_timeout_ms / 1000):
                opened = await connect(self._address, client.settings)
        except LoginFailed as failure:
            self._not_connected(f"is not asked: {failure}", failure.error)
            return
        except TlsFailure as failure:
            self._not_connected(f"cannot be trusted: {failure}", Errors._SSL)
            return
        except (OSError, TimeoutError) as failure:
            error = self._unanswered.error(failure, client.now_ms())
            refused = isinstance(failure, ConnectionRefusedError)
            why = "connection refused" if refused else str(failure) or "no answer"
            self._not_connected(f"cannot be reached: {why}", error)
            return
        with client.lock:
            self._connecting = None
            if self._wanted:
                self._login = login
                self._frame_socket = FrameSocket(opened, client.io, client.lock, self._received, self._ended)
                self._negotiate(_NEWEST)
            else:  # closed meanwhile
                opened.close()

    def _not_connected(self, why: str, error: Errors) -> None:
        with self._client.lock:
            self._connecting = None
            self._broken(why, error, attempted=True)

    def _negotiate(self, version: int) -> None:
        """Send ApiVersions before any other request."""
        self._ask(self._client.directory.api_versions(self._address, version), version)

    def _ask(self, request: Request, version: int) -> None:
        """Send a request of the connection itself."""
        deadline_ms = self._client.now_ms() + self._client.settings.socket_connection_setup_timeout_ms
        self._put(_PendingRequest(None, request, deadline_ms), version)
        self._watch(deadline_ms)

    def _negotiated(self, answer: ApiVersionsResponse, version: int) -> None:
        """Store the versions of the broker, or retry ApiVersions in a version that it supports, 0 if it names none."""
        if answer.error_code is Errors.UNSUPPORTED_VERSION and version > 0:
            known = (api.max_version for api in answer.api_keys if api.api_key == ApiVersionsRequest.API_KEY)
            self._negotiate(min(next(known, 0), version - 1))
            return
        if answer.error_code is Errors.REBOOTSTRAP_REQUIRED:
            name = self._name
            self._client.directory.forget()  # first: the client repeats what fails at once
            self._drop(f"is no longer {name}, or of another cluster", Errors.NETWORK_EXCEPTION)
            return
        if answer.error_code:
            raise MalformedFrame(f"ApiVersions was answered with {answer.error_code.name}")
        self._versions = BrokerVersions(answer)
        if self._login is None:
            self._begin(self._versions)
        else:
            self._log_in(self._versions, self._login.first())

    def _begin(self, versions: BrokerVersions) -> None:
        """Send what has waited for the connection."""
        self._ready = True
        self._failures = 0
        waiting, self._waiting = self._waiting, deque()
        for exchange in waiting:
            self._transmit(exchange, versions)

    # ---- login -------------------------------------------------------------------------------------------------------

    def _log_in(self, versions: BrokerVersions, request: Request) -> None:
        try:
            self._ask(request, versions.choose(request))
        except UnsupportedVersion as why:
            raise LoginFailed(Errors.UNSUPPORTED_VERSION, str(why)) from None

    def _logged_in(self, response: Response) -> None:
        """A response of the login: send its next request, or at its end those of the client."""
        login, versions = self._login, self._versions
        assert login is not None
        assert versions is not None
        request = login.next(response)
        if request is not None:
            self._log_in(versions, request)
            return
        if login.lifetime_ms > 0:
            delay_s = login.lifetime_ms * REAUTHENTICATE_AT / 1000
            self._again = self._client.io.loop.call_later(delay_s, self._log_in_again)
        self._begin(versions)

    def _log_in_again(self) -> None:
        with self._client.lock:
            if self._ready:
                self._connecting = self._client.io.start(self._reauthenticate())

    async def _reauthenticate(self) -> None:
        """Log in again before the login ends: requests wait, those under way are answered first."""
        try:
            login = await self._client.settings.security.begin_login()
        except LoginFailed as failure:
            with self._client.lock:
                self._connecting = None
                self._drop(f"is not asked: {failure}", failure.error)
            return
        with self._client.lock:
            self._connecting = None
            if self._ready and self._versions is not None and login is not None:
                self._ready = False
                self._login = login
                self._log_in(self._versions, login.first())

    # ---- responses ---------------------------------------------------------------------------------------------------

    def _received(self, frames: list[bytes]) -> None:
        try:
            for frame in frames:
                self._take(frame)
        except MalformedFrame as why:
            self._drop(f"violates the Kafka protocol: {why}", Errors.NETWORK_EXCEPTION)
        except LoginFailed as why:
            self._drop(str(why), why.error)

    def _drop(self, why: str, error: Errors) -> None:
        if self._frame_socket is not None:
            self._frame_socket.close()
            self._broken(why, error)

    def _take(self, frame: bytes) -> None:
        if not self._in_flight:
            raise MalformedFrame("a response without a request")
        call_id, request, _, _, expected, version = self._in_flight[0]
        correlation_id, response = (
            passed_response(frame)
            if isinstance(request, PassedRequest)
            else decode_response(request.API_KEY, version, frame)
        )
        if correlation_id != expected:
            raise MalformedFrame(f"correlation id {correlation_id}, expected {expected}")
        self._in_flight.popleft()
        if call_id is None:
            if isinstance(response, ApiVersionsResponse):
                self._negotiated(response, version)
            else:
                self._logged_in(response)
        else:
            self._unanswered.end()
            self._client.directory.learn(response)
            self._client.deliver(Answer(call_id, response))

    # ---- the end of a connection -------------------------------------------------------------------------------------

    def _broken(self, why: str, error: Errors = Errors.NETWORK_EXCEPTION, *, attempted: bool = False) -> None:
        """Fail all pending requests; those past their deadline with `error`, and all with one that is final.
        `attempted`: connecting has failed."""
        now_ms = self._client.now_ms()
        left = [*self._in_flight, *self._waiting]
        if left or attempted:  # otherwise the broker has closed an idle connection
            self._failures += 1
            self._not_before_ms = now_ms + self._client.backoff.delay_ms(self._failures)
        self._forget()
        for exchange in left:
            late = exchange.deadline_ms <= now_ms or not error.retriable
            self._fail(exchange, error if late else Errors.NETWORK_EXCEPTION, why)

    def _ended(self, why: str, error: Errors) -> None:
        """The broker, or the system, has ended the connection. Before ApiVersions was answered on plaintext, that may
        be a proxy whose broker is not up yet; a port with TLS sends an alert."""
        secured = self._client.settings.security.context is not None
        if error is Errors.NETWORK_EXCEPTION and (secured or self._versions is not None):
            error = self._unanswered.error(ConnectionResetError(), self._client.now_ms())
        if error is Errors._AUTHENTICATION:
            why += " before it has answered: it may expect TLS, a certificate or a login (security.protocol)"
        self._broken(why, error)

    def _fail(self, exchange: _PendingRequest, error: Errors, why: str) -> None:
        if exchange.call_id is not None:
            self._client.deliver(Answer(exchange.call_id, None, error, f"{self._name} {why}"))

    def _forget(self) -> None:
        self._frame_socket = self._versions = self._login = None
        self._wanted = self._ready = False
        if self._again is not None:
            self._again.cancel()
        self._waiting.clear()
        self._in_flight.clear()

    def close(self) -> None:
        """Close the socket and cancel the timers."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._check is not None:
            self._check.cancel()
        if self._frame_socket is not None:
            self._frame_socket.close()
        self._forget()

    # ---- time-outs ---------------------------------------------------------------------------------------------------

    def _watch(self, deadline_ms: int) -> None:
        """Set the timer for a deadline. It stays set when the response arrives, so that an answered request costs no
        timer."""
        if self._check_at_ms is None or deadline_ms < self._check_at_ms:
            self._check_at_ms = deadline_ms
            self._client.io.soon(self._set_timer)

    def _set_timer(self) -> None:
        if self._check is not None:
            self._check.cancel()
        if self._check_at_ms is not None:
            delay_ms = max(1, self._check_at_ms - self._client.now_ms())
            self._check = self._client.io.loop.call_later(delay_ms / 1000, self._time_is_up)

    def _time_is_up(self) -> None:
        with self._client.lock:
            self._check = self._check_at_ms = None
            now_ms = self._client.now_ms()
            self._drop_overdue(now_ms)
            deadlines = [exchange.deadline_ms for exchange in (*self._in_flight, *self._waiting)]
            if not deadlines:
                return
            if min(deadlines) > now_ms:
                self._watch(min(deadlines))
                return
            if self._frame_socket is not None:
                self._frame_socket.close()
            if self._connecting is not None:
                self._connecting.cancel()
                self._connecting = None
            self._broken("does not answer in time", Errors.REQUEST_TIMED_OUT)

    def _drop_overdue(self, now_ms: int) -> None:
        """During the back-off, fail the requests that cannot wait for its end. They are no failures to connect, which
        would prolong the back-off again and again: the next attempt is made in any case."""
        if self._connecting is not None and now_ms < self._not_before_ms:
            overdue = [exchange for exchange in self._waiting if exchange.deadline_ms <= now_ms]
            self._waiting = deque(exchange for exchange in self._waiting if exchange.deadline_ms > now_ms)
            for exchange in overdue:
                self._fail(exchange, Errors.REQUEST_TIMED_OUT, "does not answer in time")
