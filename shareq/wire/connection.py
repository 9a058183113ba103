"""One TCP connection to one broker: it reads request frames and writes responses in the order of the requests.

The broker has one request of a connection at a time; later ones wait, and above a limit the peer is not read from. The
broker gets no request either while the peer does not read its responses. So a connection takes bounded memory, and a
slow peer delays only itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Protocol

from shareq.model.actor import ANONYMOUS, Answer, Call, ClientContext
from shareq.model.events import AuthenticationFailed
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.base import Request, Response
from shareq.model.messages.data import ProduceRequest
from shareq.wire.address import Address
from shareq.wire.admission import RequestMemory
from shareq.wire.apis import API_BY_KEY
from shareq.wire.broker_addresses import Lookup, rewrite
from shareq.wire.codec.limits import MOST_BYTES_WITHOUT_RECORDS
from shareq.wire.errors import MalformedFrame, RequestHeader, TlsInstead, UnsupportedVersion
from shareq.wire.frames import FrameReader, decode_request, response_pieces
from shareq.wire.outbox import SENT_TOGETHER_BYTES, Outbox
from shareq.wire.quotas import ClientQuotas
from shareq.wire.request_log import ServedRequest, errors_of
from shareq.wire.served_cluster import BrokerNetwork, Loop
from shareq.wire.throttle import Throttle
from shareq.wire.turns import Turns

_log = logging.getLogger("shareq.server")

SIZE_PREFIX = 4

PATIENCE_MS = 24 * 3600 * 1000
"""The time-out of a request, in the cluster's time: a rebalance takes minutes, and Kafka has no limit."""

KEPT_FRAMES = 100
KEPT_BYTES = 1 << 20
"""A peer with more frames or bytes waiting than this is not read from until all of them are processed."""

UNSENT_BYTES = 1 << 20
"""The broker gets no request of a peer that leaves more than this unread."""


class Service(Protocol):
    """The part of a server that a connection uses."""

    loop: Loop
    network: BrokerNetwork
    observer: Callable[[ServedRequest], None] | None
    inbox: memoryview
    """The read buffer of all connections: it is empty again when `buffer_updated` returns."""

    passed_apis: frozenset[int]
    """The keys of APIs whose requests the cluster gets as bytes."""

    hidden_apis: frozenset[int]
    """The keys of APIs that this server does not offer."""

    turns: Turns
    memory: RequestMemory

    def api_versions(self, request: ApiVersionsRequest, version: int, broker_id: int) -> ApiVersionsResponse: ...
    def quotas(self, broker_id: int) -> ClientQuotas: ...
    def answered(self, connection: ServerConnection) -> None:
        """A response was delivered in any thread: call `resume` soon, in the server's thread."""
        ...

    def report(self, failure: BaseException) -> None:
        """Record an unhandled error; the server continues."""
        ...

    def refused(self, event: AuthenticationFailed) -> None:
        """Log a client that has not authenticated, and record it in the journal."""
        ...

    def opened(self, connection: ServerConnection) -> None: ...
    def lost(self, connection: ServerConnection) -> None: ...


class ClientListener(Protocol):
    """The listener by which a client has come."""

    lookup: Lookup | None
    """The addresses of brokers in responses to its clients; None: those of the responses."""

    def principal(self, transport: asyncio.Transport) -> str | None:
        """Whose connection it is by its certificate; None if no rule makes a principal of it."""
        ...


class ServerConnection(asyncio.BufferedProtocol):
    """Runs in the server's thread; only `deliver` is called in any thread that runs the cluster's loop."""

    def __init__(
        self,
        service: Service,
        listener: ClientListener,
        broker_id: int,
        connection_id: int,
        max_frame_bytes: int,
        *,
        address: str = "",
    ) -> None:
        self.listener = listener
        self.broker_id = broker_id
        self.connection_id = connection_id
        self.address = address
        self.name = ""
        self.peer = ""
        self.active_ms = service.loop.time_ms()
        self._service = service
        self._frames = FrameReader(max_frame_bytes, MOST_BYTES_WITHOUT_RECORDS)
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._header: RequestHeader | None = None
        self._request: Request | None = None
        self._request_size = 0
        self._began = 0.0
        self._context = ClientContext()
        self._answer: Answer | None = None
        self._entering = False
        self._transport: asyncio.Transport | None = None
        self._outbox = Outbox()
        self._ending = False
        self._held_bytes = 0
        self._peer_reads = True
        self._reading = True
        self._throttle = Throttle(service.quotas(broker_id), service.loop, lambda: service.answered(self))

    # ---- callbacks of asyncio ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=UNSENT_BYTES)
        host, port = (transport.get_extra_info("peername") or ("", 0))[:2]
        self.name = self.peer = str(Address(host, port))
        self._service.opened(self)
        principal = self.listener.principal(transport)
        self._context = ClientContext(
            client_host=f"/{host}", connection_id=self.connection_id, principal=principal or ANONYMOUS
        )
        if principal is None:
            self.refused("", "", "no rule of ssl.principal.mapping.rules matches its certificate")
            self.abort()

    def refused(self, mechanism: str, user: str, reason: str) -> None:
        """The client has not authenticated."""
        self._service.refused(AuthenticationFailed(self.broker_id, self.address, mechanism, user, reason))

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._service.inbox

    def buffer_updated(self, nbytes: int) -> None:
        if self._transport is None:
            return
        self.active_ms = self._service.loop.time_ms()
        if self._split(self._service.inbox[:nbytes]) or self._frames.failure is not None:
            if self._service.turns.waits(self):
                self.regulate()
            else:
                self.resume()
        elif self._frames.begun_bytes:
            self.regulate()

    def _split(self, data: bytes | memoryview) -> bool:
        """Keep the next requests, at most KEPT_FRAMES of those that have arrived. False if there is none."""
        if frames := self._frames.feed(data, KEPT_FRAMES):
            self._kept.extend(frames)
            self._kept_bytes += sum(map(len, frames))
        return bool(frames)

    def pause_writing(self) -> None:
        self._peer_reads = False

    def resume_writing(self) -> None:
        self._peer_reads = True
        self.active_ms = self._service.loop.time_ms()
        self.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        self._throttle.cancel()
        self._kept.clear()
        self._frames.end()
        self._outbox.clear()
        self._service.memory.forget(self)
        self._service.memory.hold(-self._held_bytes)
        self._held_bytes = 0
        self._service.lost(self)

    # ---- requests and answers ----------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Write the response that has arrived and pass on the next request, until none is left or one waits."""
        try:
            self._work()
        except Exception as failure:
            self._service.report(failure)
            self.close("the server failed with an unhandled error")

    def _work(self) -> None:
        turns = self._service.turns
        turns.begin()
        self._send()
        first = True
        while True:
            if self._answer is not None:
                self._finish(self._answer)
            if self._header is not None or self._is_behind or self._throttle.waits:
                break
            if not self._kept and not (self._frames.unsplit_bytes and self._split(b"")):
                break
            if not first and turns.over:
                turns.wait(self)
                break
            first = False
            self._begin(self._kept.popleft())
        self._send()
        if self._frames.failure is not None and self.idle and not self._kept and not self._ending:
            if isinstance(self._frames.failure, TlsInstead):
                self.refused("", "", "it speaks TLS, and this port does not")
            self.close(str(self._frames.failure))
        self.regulate()

    def _begin(self, frame: bytes) -> None:
        self._kept_bytes -= len(frame)
        self._began = perf_counter()
        self._throttle.spent_s = 0.0
        try:
            header, request = decode_request(frame, self._service.passed_apis, self._service.hidden_apis)
        except (MalformedFrame, UnsupportedVersion) as problem:
            self.close(str(problem))
            return
        self._header, self._request, self._request_size = header, request, len(frame)
        if isinstance(request, ApiVersionsRequest):
            self._answer = Answer(0, self._service.api_versions(request, header.api_version, self.broker_id))
            return
        self._entering = True
        try:
            self._service.loop.run(self._pass_to_broker)
        finally:
            self._entering = False
            self._throttle.spent_s = perf_counter() - self._began

    def _pass_to_broker(self) -> None:
        header, request = self._header, self._request
        assert header is not None
        assert request is not None
        client_id = header.client_id or ""
        context = self._context
        if context.api_version != header.api_version or context.client_id != client_id:
            context = self._context = context._replace(api_version=header.api_version, client_id=client_id)
            self.name = client_id or self.peer
        request = self._throttle.limited(request, context)
        self._service.network.call(self, Call(0, self.broker_id, request, PATIENCE_MS), context)

    def deliver(self, message: Answer) -> None:
        """Take the broker's response: mostly during the call, in the server's thread, else later, in any thread."""
        self._answer = message
        if not self._entering:
            self.active_ms = self._service.loop.time_ms()
            self._service.answered(self)

    def _finish(self, answer: Answer) -> None:
        header, request, response = self._header, self._request, answer.response
        self._answer = self._header = self._request = None
        if header is None or self._transport is None:
            return
        size = 0
        if response is None:
            self.close(f"{header} has no response: {answer.error.name}")
        elif not isinstance(request, ProduceRequest) or request.acks != 0:
            size = self._write(header, request, response)
        else:
            self._throttle.count(request, response, self._context, self._request_size, 0)
            if errors := errors_of(response):
                self.close(f"a Produce with acks=0 has failed: {errors[0].name}")
        if self._service.observer is not None:
            self._report(self._service.observer, header, answer, size)

    def _write(self, header: RequestHeader, request: Request | None, response: Response) -> int:
        began = perf_counter()
        pieces: list[bytes] = response_pieces(header, response)
        self._throttle.spent_s += perf_counter() - began
        size = sum(map(len, pieces))
        if throttle_ms := self._throttle.count(request, response, self._context, self._request_size, size):
            pieces = response_pieces(header, response, throttle_ms)
        lookup = self.listener.lookup
        if lookup is not None and getattr(response, "node_endpoints", True):  # most responses with records have none
            pieces = [bytes(rewrite(header.api_key, header.api_version, b"".join(pieces), lookup))]
        size = sum(map(len, pieces))
        self._outbox.add(pieces, size)
        if self._outbox.size > SENT_TOGETHER_BYTES:
            self._send()  # the transport then says whether the peer reads
        return size - SIZE_PREFIX

    def _report(
        self, observer: Callable[[ServedRequest], None], header: RequestHeader, answer: Answer, size: int
    ) -> None:
        if answer.response is None:
            text = f"closed, {answer.error.name}"
        else:
            text = ", ".join(error.name for error in errors_of(answer.response)) or "ok"
        observer(
            ServedRequest(
                time_ms=self._service.loop.now_ms(),
                peer=self.peer,
                broker_id=self.broker_id,
                client_id=header.client_id or "",
                api=API_BY_KEY[header.api_key].name if header.api_key in API_BY_KEY else f"API {header.api_key}",
                version=header.api_version,
                request_size=self._request_size,
                response_size=size,
                answer=text,
                duration_ms=(perf_counter() - self._began) * 1000,
            )
        )

    def _send(self) -> None:
        """Send what the peer reads, up to a limit: then others have their turns."""
        if self._transport is None:
            return
        left = UNSENT_BYTES
        while self._outbox.size and self._peer_reads:
            if left <= 0:
                self._service.turns.wait(self)
                return
            data = self._outbox.take()
            left -= len(data)
            self._transport.write(data)
        if self._ending and not self._outbox.size:
            self._transport.close()

    def regulate(self) -> None:
        """Stop reading from the peer above the limit of waiting requests, and resume when none waits; nor while its
        next request waits for the memory of all requests."""
        if self._transport is None or self._ending or self._transport.is_closing():
            return
        self._count_memory()
        barred = not self._service.memory.may_read(self, self._frames.begun_bytes)
        unsplit = self._frames.unsplit_bytes > 0
        if self._reading and (barred or unsplit or len(self._kept) > KEPT_FRAMES or self._kept_bytes > KEPT_BYTES):
            self._reading = False
            self._transport.pause_reading()
        elif not (self._reading or self._kept or barred or unsplit):
            self._reading = True
            self._transport.resume_reading()

    def _count_memory(self) -> None:
        """Count what has arrived and is not answered in the memory of all requests."""
        held = self._kept_bytes + self._frames.held_bytes + (self._request_size if self._header is not None else 0)
        change, self._held_bytes = held - self._held_bytes, held
        if change:
            self._service.memory.hold(change)

    @property
    def arrived_bytes(self) -> int:
        """What has arrived of the next requests, the first of which is not complete, or not looked at yet."""
        return self._frames.held_bytes

    @property
    def _is_behind(self) -> bool:
        """True if responses wait for the peer, or for a turn."""
        return not self._peer_reads or self._outbox.size > SENT_TOGETHER_BYTES

    @property
    def idle(self) -> bool:
        """True if no request of the peer is open."""
        return self._header is None

    def close(self, why: str) -> None:
        """Send the responses that are ready, as the peer reads them, then close."""
        self._kept.clear()
        self._kept_bytes = 0
        if self._transport is not None and not self._ending and not self._transport.is_closing():
            _log.debug("%s at broker %s: closed: %s", self.name, self.broker_id, why)
            self._frames.end()
            if not self._reading:  # asyncio does not close a connection with TLS whose peer has ended it meanwhile
                self._reading = True
                self._transport.resume_reading()
            self._ending = True
            self._send()

    def abort(self) -> None:
        """Close now; unsent responses are lost."""
        if self._transport is not None:
            self._transport.abort()
