"""One client's connection through the proxy: two sockets, and the bytes between them. BEHAVIOUR.md, section 1.

A side is not read from while the other side's peer does not read: a connection keeps at most a write buffer in each
direction, and the one frame that is kept whole.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from shareq.proxy.addresses import Lookup, carries_addresses, rewrite
from shareq.proxy.stream import Splitter
from shareq.proxy.tls import handshake_failure
from shareq.proxy.versions import API_VERSIONS, cap, is_too_new
from shareq.wire.address import Address
from shareq.wire.errors import MalformedFrame

_log = logging.getLogger("shareq.tap")

UNSENT_BYTES = 1 << 20
MAX_WAITING = 10_000
"""The most requests of a connection whose responses are expected; a request with acks=0 has none."""

_REQUEST = struct.Struct(">hhi")
_RESPONSE = struct.Struct(">i")
_SIZE = struct.Struct(">i")


class Waiting(NamedTuple):
    """A request whose response is read or rewritten. `token`: what the reader keeps of it."""

    api_key: int
    version: int
    token: object


class Relay(Protocol):
    """What a link needs of the proxy."""

    inbox: memoryview
    """The read buffer of all connections: it is empty again when `buffer_updated` returns."""
    tls: ssl.SSLContext | None
    """For connections to brokers."""

    def upstream(self, broker_id: int) -> Address: ...
    def lookup(self, node_id: int, address: Address) -> Address | None: ...
    def reads_request(self, api_key: int, version: int) -> bool:
        """True if `request` is to be called with whole requests of this version, and `response` with the responses."""
        ...

    def reads_response(self, api_key: int, version: int) -> bool: ...
    def passes_unread(self, api_key: int, version: int) -> None:
        """A request has a version that is too new to be read or rewritten."""
        ...

    def request(self, link: Link, frame: bytes) -> object: ...
    def response(self, link: Link, waiting: Waiting, frame: bytes) -> None: ...
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
        self._link.received(self, self._link.relay.inbox[:nbytes])

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

    def write(self, parts: list[bytes]) -> None:
        if self.transport is not None and not self.transport.is_closing() and parts:
            self.transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def end(self) -> None:
        """Send no more."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write_eof()

    def close(self) -> None:
        """Close when all is sent."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class Link:
    """The two sides, and the requests that wait for responses. All methods run in the proxy's thread."""

    def __init__(self, relay: Relay, broker_id: int, number: int) -> None:
        self.relay, self.broker_id, self.number = relay, broker_id, number
        self.client, self.broker = Side(self), Side(self)
        self._waiting: dict[int, Waiting] = {}
        self._answered: Waiting | None = None
        self._requests = Splitter(_REQUEST.size, self._choose_request)
        self._responses = Splitter(_RESPONSE.size, self._choose_response)
        self._connecting: asyncio.Task[None] | None = None

    # ---- life --------------------------------------------------------------------------------------------------------

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

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def received(self, side: Side, data: memoryview) -> None:
        """Pass on what has arrived, and then read it for the journal: nothing waits for that."""
        of_client = side is self.client
        parts: list[bytes] = []
        passed: list[Callable[[], None]] = []
        try:
            for whole, piece in (self._requests if of_client else self._responses).feed(data):
                if whole:
                    frame = self._request(piece, passed) if of_client else self._response(piece, passed)
                    parts += _SIZE.pack(len(frame)), frame
                else:
                    parts.append(piece)
        except MalformedFrame as problem:
            _log.warning("broker %s, connection %s: %s", self.broker_id, self.number, problem)
            self.other(side).write(parts)
            self.close()
        else:
            self.other(side).write(parts)
        for read in passed:
            read()

    def _choose_request(self, head: bytes) -> bool:
        api_key, version, correlation_id = _REQUEST.unpack(head)
        if self.relay.reads_request(api_key, version):
            return True
        if is_too_new(api_key, version):
            self.relay.passes_unread(api_key, version)
        if (
            carries_addresses(api_key, version)
            or self.relay.reads_response(api_key, version)
            or api_key == API_VERSIONS
        ):
            self._wait(correlation_id, Waiting(api_key, version, None))
        return False

    def _request(self, frame: bytes, passed: list[Callable[[], None]]) -> bytes:
        """A request passes as it is; `passed` gets what is to be done then. Its place among the others is kept."""
        api_key, version, correlation_id = _REQUEST.unpack_from(frame)
        self._wait(correlation_id, Waiting(api_key, version, None))
        passed.append(partial(self._read_request, frame, correlation_id))
        return frame

    def _read_request(self, frame: bytes, correlation_id: int) -> None:
        token = self.relay.request(self, frame)
        if correlation_id in self._waiting:
            self._waiting[correlation_id] = self._waiting[correlation_id]._replace(token=token)

    def _wait(self, correlation_id: int, waiting: Waiting) -> None:
        self._waiting[correlation_id] = waiting
        if len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def _choose_response(self, head: bytes) -> bool:
        """Responses have the order of their requests: an older request has none."""
        (correlation_id,) = _RESPONSE.unpack(head)
        self._answered = self._waiting.get(correlation_id)
        if self._answered is None:
            return False
        for older in list(self._waiting):
            del self._waiting[older]
            if older == correlation_id:
                break
        return True

    def _response(self, frame: bytes, passed: list[Callable[[], None]]) -> bytes:
        """The response in place of this one; `passed` gets what is to be done then."""
        waiting = self._answered
        assert waiting is not None
        passed.append(partial(self.relay.response, self, waiting, frame))
        if waiting.api_key == API_VERSIONS:
            return cap(waiting.version, frame)
        lookup: Lookup = self.relay.lookup
        return rewrite(waiting.api_key, waiting.version, frame, lookup)
