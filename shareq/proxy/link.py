"""One client's connection through the proxy: two sockets, and the bytes between them. BEHAVIOUR.md, section 1.

A side is not read from while the other side's peer does not read: a connection keeps at most a write buffer in each
direction, and the one frame that is kept or copied.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
from dataclasses import dataclass
from typing import Protocol

from shareq.proxy.stream import SIZE, Buffer, Splitter, Way
from shareq.proxy.versions import API_VERSIONS, METADATA, READ_JOURNAL, cap, is_too_new, offer
from shareq.wire.address import Address
from shareq.wire.broker_addresses import Lookup, carries_addresses, rewrite
from shareq.wire.client.tls import handshake_failure
from shareq.wire.errors import MalformedFrame

_log = logging.getLogger("shareq.tap")

UNSENT_BYTES = 1 << 20
MAX_WAITING = 10_000
"""The most requests of a connection whose responses are expected; a request with acks=0 has none."""

_REQUEST = struct.Struct(">hhi")
_RESPONSE = struct.Struct(">i")


@dataclass(slots=True, eq=False)
class Waiting:
    """A request whose response is read or rewritten. `token`: what the reader keeps of it."""

    api_key: int
    version: int
    token: object = None


class Relay(Protocol):
    """What a link needs of the proxy."""

    inbox: memoryview
    """The read buffer of all connections: it may be used again when `buffer_updated` returns."""
    tls: ssl.SSLContext | None
    """For connections to brokers."""

    def renew_inbox(self) -> None:
        """A transport keeps a view of the read buffer, as it does of bytes that it cannot send at once."""
        ...

    def upstream(self, broker_id: int) -> Address: ...
    def lookup(self, node_id: int, address: Address) -> Address | None: ...
    def reads_request(self, api_key: int, version: int) -> bool:
        """True if `request` is to be called with whole requests of this version, and `response` with the responses."""
        ...

    def reads_response(self, api_key: int, version: int) -> bool: ...
    def passes_unread(self, api_key: int, version: int) -> None:
        """A request has a version that is too new to be read or rewritten."""
        ...

    @property
    def now_ms(self) -> int: ...
    def request(self, link: Link, waiting: Waiting, frame: bytearray, arrived_ms: int) -> None:
        """A request has passed: read it later, and keep its token in `waiting`. The frame has its size before it."""
        ...

    def response(self, waiting: Waiting, frame: bytearray, arrived_ms: int) -> None:
        """A response has passed: read it later, after its request. The frame has its size before it."""
        ...

    def read_journal(self, link: Link, frame: bytes) -> None:
        """A request of the tap's own API, in a frame without its size: `answer` of the link takes the response.
        MalformedFrame."""
        ...

    def opened(self, link: Link) -> None: ...
    def lost(self, link: Link) -> None: ...


class Side(asyncio.BufferedProtocol):
    """One socket of a link."""

    def __init__(self, link: Link) -> None:
        self.transport: asyncio.Transport | None = None
        self.ended = False
        """True if the peer sends no more."""
        self._link = link

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=UNSENT_BYTES)
        self._link.connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._link.relay.inbox

    def buffer_updated(self, nbytes: int) -> None:
        relay = self._link.relay
        self._link.received(self, relay.inbox[:nbytes])
        if self._link.other(self).unsent_bytes:
            relay.renew_inbox()

    def eof_received(self) -> bool:
        self.ended = True
        return self._link.half_closed(self)

    def pause_writing(self) -> None:
        self._link.other(self).read(reading=False)

    def resume_writing(self) -> None:
        self._link.other(self).read(reading=True)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.transport = None
        self._link.lost(self)

    def read(self, *, reading: bool) -> None:
        """Read from the peer, or do not. A side that is closing, or whose peer sends no more, is left alone."""
        if self.transport is None or self.transport.is_closing() or self.ended:
            return
        if reading:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def write(self, data: Buffer) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    @property
    def unsent_bytes(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def end(self) -> None:
        """Send no more."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write_eof()

    def close(self) -> None:
        """Close when all is sent. asyncio cannot abort a connection with TLS that was closed twice."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class Link:
    """The two sides, and the requests that wait for responses. All methods run in the proxy's thread."""

    def __init__(self, relay: Relay, broker_id: int, number: int) -> None:
        self.relay, self.broker_id, self.number = relay, broker_id, number
        self.client, self.broker = Side(self), Side(self)
        self.admitted = False
        """True if the broker has answered Metadata, which it does not before a login that it requires."""
        self._waiting: dict[int, Waiting] = {}
        self._asked = self._answered = Waiting(0, 0)
        self._requests = Splitter(_REQUEST.size, self._choose_request)
        self._responses = Splitter(_RESPONSE.size, self._choose_response)
        self._connecting: asyncio.Task[None] | None = None

    # ---- life --------------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """True until both sides are closed: a side with TLS waits for the end of its peer's."""
        connecting = self._connecting is not None and not self._connecting.done()
        return connecting or self.client.transport is not None or self.broker.transport is not None

    def other(self, side: Side) -> Side:
        return self.broker if side is self.client else self.client

    def connected(self, side: Side) -> None:
        """Connect to the broker for a new client, whose requests wait until then."""
        if side is self.client:
            side.read(reading=False)
            self.relay.opened(self)
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
            return
        self.client.read(reading=True)
        if self.client.ended:
            self.half_closed(self.client)

    async def _connect(self) -> None:
        host, port = self.relay.upstream(self.broker_id)
        try:
            await asyncio.get_running_loop().create_connection(lambda: self.broker, host, port, ssl=self.relay.tls)
        except OSError as problem:
            _log.info("broker %s at %s: %s", self.broker_id, Address(host, port), handshake_failure(problem))
            self.client.abort()
        if self.client.transport is None:
            self.broker.abort()

    def half_closed(self, side: Side) -> bool:
        """The peer of a side sends no more, and neither does the other side. True keeps the side open.

        TLS has no half-closed connections: a broker, too, closes that of a client that sends no more.
        """
        if self.other(side).ended or self.relay.tls is not None:
            self.close()
            return False
        self.other(side).end()
        return True

    def lost(self, side: Side) -> None:
        """A side is closed: the other one closes when all is sent. The first call ends the link."""
        if self._connecting is not None and not self._connecting.done() and side is self.client:
            self._connecting.cancel()
        self.other(side).close()
        self.relay.lost(self)

    def close(self) -> None:
        self.client.close()
        self.broker.close()

    def abort(self) -> None:
        self.client.abort()
        self.broker.abort()

    @property
    def unsent_bytes(self) -> int:
        """What the client has not received yet."""
        return self.client.unsent_bytes

    def answer(self, frame: bytes) -> None:
        """Send a response of the tap's own, in a frame with its size."""
        self.client.write(frame)

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def received(self, side: Side, data: memoryview) -> None:
        """Pass on what has arrived. It is read for the journal later: nothing waits for that. The journal has the time
        before it passes: on a busy machine the peer works with it before this thread continues."""
        arrived_ms = self.relay.now_ms
        try:
            if side is self.client:
                self._pass_requests(data, arrived_ms)
            else:
                self._pass_responses(data, arrived_ms)
        except MalformedFrame as problem:
            _log.warning("broker %s, connection %s: %s", self.broker_id, self.number, problem)
            self.close()

    def _pass_requests(self, data: memoryview, arrived_ms: int) -> None:
        """A request passes as it is, before anything is read of it but its size and its API. One of the tap's own API
        does not pass."""
        passed = self._requests.passes(data, READ_JOURNAL)
        if passed:
            self.broker.write(data)
        for way, piece in self._requests.feed(data):
            if way is Way.PASS:
                if not passed:
                    self.broker.write(piece)
                continue
            assert isinstance(piece, bytearray)
            if way is Way.READ:
                self.relay.request(self, self._asked, piece, arrived_ms)
            else:
                self.relay.read_journal(self, bytes(piece[SIZE.size :]))

    def _pass_responses(self, data: memoryview, arrived_ms: int) -> None:
        parts: list[Buffer] = []
        passed: list[tuple[Waiting, bytearray]] = []
        try:
            for way, piece in self._responses.feed(data):
                if way is Way.PASS:
                    parts.append(piece)
                    continue
                assert isinstance(piece, bytearray)
                passed.append((self._answered, piece))
                parts.append(self._in_place(self._answered, piece))
        finally:
            if parts:
                self.client.write(parts[0] if len(parts) == 1 else b"".join(parts))
            for waiting, frame in passed:
                self.relay.response(waiting, frame, arrived_ms)

    def _choose_request(self, head: Buffer) -> Way:
        api_key, version, correlation_id = _REQUEST.unpack(head)
        if api_key == READ_JOURNAL:
            return Way.KEEP
        read = self.relay.reads_request(api_key, version)
        if not read and is_too_new(api_key, version):
            self.relay.passes_unread(api_key, version)
        if (
            read
            or carries_addresses(api_key, version)
            or self.relay.reads_response(api_key, version)
            or api_key == API_VERSIONS
        ):
            self._asked = self._waiting[correlation_id] = Waiting(api_key, version)
            if len(self._waiting) > MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]
        return Way.READ if read else Way.PASS

    def _choose_response(self, head: Buffer) -> Way:
        """Responses have the order of their requests: an older request has none."""
        (correlation_id,) = _RESPONSE.unpack(head)
        answered = self._waiting.get(correlation_id)
        if answered is None:
            return Way.PASS
        while (older := next(iter(self._waiting))) != correlation_id:
            del self._waiting[older]
        del self._waiting[correlation_id]
        self._answered = answered
        self.admitted = self.admitted or answered.api_key == METADATA
        return Way.KEEP

    def _in_place(self, waiting: Waiting, frame: bytearray) -> Buffer:
        """The response in place of this one."""
        if waiting.api_key == API_VERSIONS:
            content = offer(waiting.version, cap(waiting.version, bytes(frame[SIZE.size :])))
            return SIZE.pack(len(content)) + content
        lookup: Lookup = self.relay.lookup
        return memoryview(rewrite(waiting.api_key, waiting.version, frame, lookup))
