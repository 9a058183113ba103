"""A connected socket: any thread writes to it directly, the I/O thread reads from it and sends the remaining bytes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from shareq.model.errors import Errors
from shareq.wire.address import Address
from shareq.wire.client.io_thread import IoThread
from shareq.wire.client.socket_settings import SocketSettings
from shareq.wire.client.tls import TlsFailure, TlsSocket, begin_tls
from shareq.wire.errors import TlsInstead
from shareq.wire.frames import FrameReader

READ_BYTES = 1 << 18

_Found = Sequence[tuple[int, int, int, str, tuple[object, ...]]]


async def connect(address: Address, settings: SocketSettings) -> socket.socket | TlsSocket:
    """A connected, non-blocking socket to the first of the host's addresses that accepts, with TLS if the settings have
    it. Raises OSError; TlsFailure."""
    opened = await _connect(address, settings)
    context = settings.security.context
    return opened if context is None else await begin_tls(opened, address.host, context)


async def _connect(address: Address, settings: SocketSettings) -> socket.socket:
    loop = asyncio.get_running_loop()
    try:  # a numeric address needs no resolver thread; as bytes, it does not load the codec of international names
        numeric = address.host.encode(errors="surrogateescape")
        found: _Found = socket.getaddrinfo(numeric, address.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM)
    failures = []
    for family, kind, protocol, _, where in found:
        opened = socket.socket(family, kind, protocol)
        try:
            settings.prepare(opened)
            await loop.sock_connect(opened, where)
        except OSError as failure:
            opened.close()
            failures.append(failure)
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    raise failures[0]


class FrameSocket:
    """Frames in both directions. The constructor and `close` run in the I/O thread, all other methods in any thread
    that holds `lock`.

    `on_frames(frames)` and `on_broken(why, error)` are called in the I/O thread with the lock held; `on_broken` once,
    unless `close` was called before.
    """

    def __init__(
        self,
        opened: socket.socket | TlsSocket,
        io: IoThread,
        lock: threading.Condition,
        on_frames: Callable[[list[bytes]], None],
        on_broken: Callable[[str, Errors], None],
    ) -> None:
        self.unsent = bytearray()
        self._socket = opened
        self._io = io
        self._lock = lock
        self._on_frames = on_frames
        self._on_broken = on_broken
        self._frames = FrameReader()
        self._open = True
        io.open.add(self)
        io.loop.add_reader(opened, io.read, self._readable)

    def write(self, data: bytes) -> None:
        """Send as many bytes as the socket takes, the rest when it has room."""
        if self.unsent:
            self.unsent += data
            return
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as failure:
            self._io.soon(self._broken, str(failure), _error(failure))
            return
        if sent < len(data):
            self.unsent += data[sent:]
            self._io.soon(self._watch_for_room)

    def _watch_for_room(self) -> None:
        with self._lock:
            if self._open:
                self._io.loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        with self._lock:
            try:
                del self.unsent[: self._socket.send(self.unsent)]
            except BlockingIOError:
                return
            except OSError as failure:
                self._broken(str(failure), _error(failure))
                return
            if not self.unsent:
                self._io.loop.remove_writer(self._socket)
                self._lock.notify_all()  # `close` of the client waits for this

    def _readable(self) -> None:
        with self._lock:
            try:
                data = self._socket.recv(READ_BYTES)
                frames = self._frames.feed(data)
            except BlockingIOError:
                return
            except OSError as failure:
                self._broken(str(failure), _error(failure))
                return
            if frames:
                self._on_frames(frames)
            if isinstance(self._frames.failure, TlsInstead):
                self._broken("speaks TLS: set security.protocol to ssl or sasl_ssl", Errors._SSL)
            elif self._frames.failure is not None:
                self._broken(f"violates the Kafka protocol: {self._frames.failure}")
            elif not data:
                self._broken("has closed the connection")

    def _broken(self, why: str, error: Errors = Errors.NETWORK_EXCEPTION) -> None:
        with self._lock:
            if self._open:
                self.close()
                self._on_broken(why, error)

    def close(self) -> None:
        """Idempotent."""
        if not self._open:
            return
        self._open = False
        self._io.open.discard(self)
        self.unsent.clear()
        self._io.loop.remove_reader(self._socket)
        self._io.loop.remove_writer(self._socket)
        with suppress(OSError):  # a forked child may hold the socket open: shutdown informs the peer
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _error(failure: OSError) -> Errors:
    return Errors._SSL if isinstance(failure, TlsFailure) else Errors.NETWORK_EXCEPTION
