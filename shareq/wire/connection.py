"""One TCP connection to one broker: it reads request frames and writes responses in the order of the requests.

The broker has one request of a connection at a time; later ones wait, and above a limit the peer is not read from. The
broker is not asked either while the peer does not read its responses. So a connection takes bounded memory, and a slow
peer delays only itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Protocol

from shareq.model.actor import Answer, Call, ClientContext
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.base import Request, Response
from shareq.model.messages.data import ProduceRequest
from shareq.wire.address import Address
from shareq.wire.apis import API_BY_KEY
from shareq.wire.errors import MalformedFrame, RequestHeader, UnsupportedVersion
from shareq.wire.frames import FrameReader, decode_request, encode_response
from shareq.wire.request_log import ServedRequest, errors_of
from shareq.wire.served_cluster import Loop, Network

_log = logging.getLogger("shareq.server")

SIZE_PREFIX = 4

PATIENCE_MS = 24 * 3600 * 1000
"""The time-out of a request, in the cluster's time: a rebalance takes minutes, and Kafka has no limit."""

KEPT_FRAMES = 100
KEPT_BYTES = 1 << 20
"""A peer with more frames or bytes waiting than this is not read from until all of them are processed."""

UNSENT_BYTES = 1 << 20
"""The broker is not asked for a peer that leaves more than this unread."""

TURN = 32
"""How many requests of one connection are processed before those of other connections."""


class Backend(Protocol):
    """The part of a server that a connection uses."""

    loop: Loop
    network: Network
    observer: Callable[[ServedRequest], None] | None
    inbox: memoryview
    """The read buffer of all connections: it is empty again when `buffer_updated` returns."""

    passed_apis: frozenset[int]
    """The keys of APIs whose requests the cluster gets as bytes."""

    def api_versions(self, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse: ...
    def answered(self, connection: ServerConnection) -> None:
        """A response was delivered in any thread: call `resume` soon, in the server's thread."""
        ...

    def report(self, failure: BaseException) -> None:
        """Record an unhandled error; the server continues."""
        ...

    def opened(self, connection: ServerConnection) -> None: ...
    def lost(self, connection: ServerConnection) -> None: ...


class ServerConnection(asyncio.BufferedProtocol):
    """Runs in the server's thread; only `deliver` is called in any thread that runs the cluster's loop."""

    def __init__(self, backend: Backend, broker_id: int, connection_id: int, max_frame_bytes: int) -> None:
        self.broker_id = broker_id
        self.connection_id = connection_id
        self.name = ""
        self.peer = ""
        self.active_ms = backend.loop.now_ms()
        self._backend = backend
        self._frames = FrameReader(max_frame_bytes)
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
        self._unsent: list[bytes] = []
        self._peer_reads = True
        self._reading = True

    # ---- callbacks of asyncio ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=UNSENT_BYTES)
        host, port = (transport.get_extra_info("peername") or ("", 0))[:2]
        self.name = self.peer = str(Address(host, port))
        self._context = ClientContext(client_host=f"/{host}", connection_id=self.connection_id)
        self._backend.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._backend.inbox

    def buffer_updated(self, nbytes: int) -> None:
        if self._transport is None:
            return
        self.active_ms = self._backend.loop.now_ms()
        frames = self._frames.feed(self._backend.inbox[:nbytes])
        if frames or self._frames.failure is not None:
            self._kept.extend(frames)
            self._kept_bytes += sum(map(len, frames))
            self.resume()

    def pause_writing(self) -> None:
        self._peer_reads = False

    def resume_writing(self) -> None:
        self._peer_reads = True
        self.active_ms = self._backend.loop.now_ms()
        self.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        self._kept.clear()
        self._backend.lost(self)

    # ---- requests and answers ----------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Write the response that has arrived and ask the broker the next request, until none is left or one waits."""
        try:
            self._work()
        except Exception as failure:
            self._backend.report(failure)
            self.close("the server failed with an unhandled error")

    def _work(self) -> None:
        for _ in range(TURN):
            if self._answer is not None:
                self._finish(self._answer)
            if self._header is not None or not self._kept or not self._peer_reads:
                break
            self._begin(self._kept.popleft())
        else:
            asyncio.get_running_loop().call_soon(self.resume)
        self._send()
        if self._frames.failure is not None and self.idle and not self._kept:
            self.close(str(self._frames.failure))
        self._regulate()

    def _begin(self, frame: bytes) -> None:
        self._kept_bytes -= len(frame)
        self._began = perf_counter()
        try:
            header, request = decode_request(frame, self._backend.passed_apis)
        except (MalformedFrame, UnsupportedVersion) as problem:
            self.close(str(problem))
            return
        self._header, self._request, self._request_size = header, request, len(frame)
        if isinstance(request, ApiVersionsRequest):
            self._answer = Answer(0, self._backend.api_versions(request, header.api_version))
            return
        self._entering = True
        try:
            self._backend.loop.run(self._ask)
        finally:
            self._entering = False

    def _ask(self) -> None:
        header, request = self._header, self._request
        assert header is not None
        assert request is not None
        client_id = header.client_id or ""
        context = self._context
        if context.api_version != header.api_version or context.client_id != client_id:
            context = self._context = context._replace(api_version=header.api_version, client_id=client_id)
            self.name = client_id or self.peer
        self._backend.network.call(self, Call(0, self.broker_id, request, PATIENCE_MS), context)

    def deliver(self, message: Answer) -> None:
        """Take the broker's response: mostly while it is asked, in the server's thread, else later, in any thread."""
        self._answer = message
        if not self._entering:
            self.active_ms = self._backend.loop.now_ms()
            self._backend.answered(self)

    def _finish(self, answer: Answer) -> None:
        header, request, response = self._header, self._request, answer.response
        self._answer = self._header = self._request = None
        if header is None or self._transport is None:
            return
        size = 0
        if response is None:
            self.close(f"{header} has no response: {answer.error.name}")
        elif not isinstance(request, ProduceRequest) or request.acks != 0:
            size = self._write(header, response)
        elif errors := errors_of(response):
            self.close(f"a Produce with acks=0 has failed: {errors[0].name}")
        if self._backend.observer is not None:
            self._tell(self._backend.observer, header, answer, size)

    def _write(self, header: RequestHeader, response: Response) -> int:
        data = encode_response(header, response)
        self._unsent.append(data)
        return len(data) - SIZE_PREFIX

    def _tell(
        self, observer: Callable[[ServedRequest], None], header: RequestHeader, answer: Answer, size: int
    ) -> None:
        if answer.response is None:
            text = f"closed, {answer.error.name}"
        else:
            text = ", ".join(error.name for error in errors_of(answer.response)) or "ok"
        observer(
            ServedRequest(
                time_ms=self._backend.loop.now_ms(),
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
        if self._unsent and self._transport is not None:
            self._transport.write(self._unsent[0] if len(self._unsent) == 1 else b"".join(self._unsent))
        self._unsent.clear()

    def _regulate(self) -> None:
        """Stop reading from the peer above the limit of waiting requests, and resume when none waits."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._reading and (len(self._kept) > KEPT_FRAMES or self._kept_bytes > KEPT_BYTES):
            self._reading = False
            self._transport.pause_reading()
        elif not self._reading and not self._kept:
            self._reading = True
            self._transport.resume_reading()

    @property
    def idle(self) -> bool:
        """True if no request of the peer is open."""
        return self._header is None

    def close(self, why: str) -> None:
        """Send the responses that are ready, then close."""
        self._kept.clear()
        if self._transport is not None and not self._transport.is_closing():
            _log.debug("%s at broker %s: closed: %s", self.name, self.broker_id, why)
            self._send()
            self._transport.close()

    def abort(self) -> None:
        """Close now; unsent responses are lost."""
        if self._transport is not None:
            self._transport.abort()
