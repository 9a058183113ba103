"""The port of one broker: open while the broker is alive, closed while it is not, always with the same number."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import IPv6Address, ip_address

from shareq.model.errors import ConfigException
from shareq.model.numbers import plain, plain_each
from shareq.wire.admission import Admission
from shareq.wire.security.arrival import arrive, why

_log = logging.getLogger("shareq.server")

MAX_PORT = 65535
REOPEN_AFTER_S = 1
_BACKLOG = 128
_WILDCARD = "host={host!r}: clients connect to this name, so it must not be a wildcard address"


class Acceptor:
    """A port that follows its broker. `make(address)` creates the protocol object of a new connection from an address.
    `admission`: the limits of connections; the owner counts the end of each connection there. `context`: that of TLS.
    `failed(address, reason)` is called for a peer that does not get through the handshake. `refusal_ms(address)`: the
    time after which a new connection from there is closed without having been read, 0 if it may come.

    A closing `asyncio.Server` drops connections that it has accepted but not passed on: their sockets stay open, and
    the peers wait for ever. Here every accepted connection gets its protocol.
    """

    def __init__(
        self,
        host: str,
        port: int,
        make: Callable[[str], asyncio.BaseProtocol],
        admission: Admission | None = None,
        *,
        context: ssl.SSLContext | None = None,
        failed: Callable[[str, str], None] | None = None,
        refusal_ms: Callable[[str], int] | None = None,
    ) -> None:
        self._make = make
        self._context = context
        self._failed = failed
        self._refusal_ms = refusal_ms
        self._refused: dict[socket.socket, asyncio.TimerHandle] = {}
        self._admission = admission
        self._turn = asyncio.Lock()
        self._arriving: set[asyncio.Task[None]] = set()
        self.wanted = True
        """True if the port is to be open."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: socket.socket | None = bind(host, port)
        self.host = host
        self.address: str
        self.port: int
        self.address, self.port = self._socket.getsockname()[:2]

    async def follow(self, alive: bool) -> None:
        """Open the port, or close it. Of concurrent calls the last one wins."""
        self.wanted = alive
        async with self._turn:
            if self.wanted:
                await self._open()
            else:
                self.close()
                for arriving in self._arriving if self._context is not None else ():
                    # A peer may be silent. A task that is cancelled before it has begun would not close its socket.
                    asyncio.get_running_loop().call_soon(arriving.cancel)
                if self._arriving:
                    await asyncio.wait(self._arriving)

    async def _open(self) -> None:
        """Open the port again. Another program may have bound it while the broker was down: retry until it is free."""
        while self._socket is None and self.wanted:
            try:
                self._socket = bind(self.host, self.port)
            except ConfigException as problem:
                _log.warning("%s; trying again", problem)
                await asyncio.sleep(REOPEN_AFTER_S)
        self._watch(asyncio.get_running_loop())

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._socket is not None:
            self._loop = loop
            loop.add_reader(self._socket, self._accept, self._socket, loop)

    def _watch_again(self) -> None:
        if self._loop is not None:
            self._watch(self._loop)

    def _pause(self, listening: socket.socket, loop: asyncio.AbstractEventLoop, pause_s: float) -> None:
        loop.remove_reader(listening)
        loop.call_later(min(pause_s, REOPEN_AFTER_S), self._watch, loop)  # a limit may be raised meanwhile

    def _accept(self, listening: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        """Accept a connection. Without a free file descriptor, or above a limit, it waits in the backlog."""
        admission = self._admission
        if admission is not None and admission.is_full:
            admission.when_free(self._watch_again)
            self._pause(listening, loop, REOPEN_AFTER_S)
            return
        pause_s = 0.0 if admission is None else admission.pause_s(loop.time())
        if pause_s:
            self._pause(listening, loop, pause_s)
            return
        try:
            opened, (address, *_) = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as problem:
            _log.warning("port %s cannot accept connections: %s; trying again", self.port, problem)
            self._pause(listening, loop, REOPEN_AFTER_S)
            return
        if self._refusal_ms is not None and (refusal_ms := self._refusal_ms(address)):
            # Closed at once, it would be there again at once.
            self._refused[opened] = loop.call_later(refusal_ms / 1000, self._end, opened)
            return
        if admission is not None and not admission.enter(address):
            _log.debug("port %s: %s has too many connections", self.port, address)
            opened.close()
            return
        arriving = loop.create_task(self._arrive(opened, address))
        self._arriving.add(arriving)
        arriving.add_done_callback(self._arriving.discard)

    def _end(self, refused: socket.socket) -> None:
        self._refused.pop(refused).cancel()
        refused.close()

    async def _arrive(self, opened: socket.socket, address: str) -> None:
        try:
            await arrive(partial(self._make, address), opened, self._context)
        except BaseException as problem:
            if self._admission is not None:
                self._admission.leave(address)
            if not isinstance(problem, OSError):
                raise
            if self._failed is not None:
                self._failed(address, why(problem))

    def close(self) -> None:
        """Close the port; open connections stay."""
        for refused in list(self._refused):
            self._end(refused)
        if self._socket is None:
            return
        if self._loop is not None:
            self._loop.remove_reader(self._socket)
        self._socket.close()
        self._socket = None


def bind(host: str, port: int) -> socket.socket:
    """A listening, non-blocking socket. ConfigException names the problem of the host or the port, and a remedy."""
    if not isinstance(host, str):
        raise ConfigException(f"host={host!r}: must be a host name or an address of this machine, as text")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as problem:
        raise ConfigException(f"host={host!r}: cannot be resolved ({problem.strerror})") from problem
    _refuse_wildcard(host, str(address[0]))
    listening: socket.socket | None = None
    try:
        listening = socket.socket(family, kind, protocol)  # fails where this machine has no addresses of the family
        if os.name == "posix":  # reuse a port that was closed a moment ago; on Windows the option would steal the port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
        return listening
    except BaseException as problem:  # an interrupt, too, leaves no open socket
        if listening is not None:
            listening.close()
        if isinstance(problem, OSError):
            raise ConfigException(_why(host, port, problem)) from problem
        raise


def _refuse_wildcard(host: str, address: str) -> None:
    """`0`, `0x0`, `00.0` and `::0` are other spellings of all interfaces."""
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    if (mapped or found).is_unspecified:
        raise ConfigException(_WILDCARD.format(host=host))


def _why(host: str, port: int, problem: OSError) -> str:
    if problem.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use by another program: stop that program, or choose other ports"
    if problem.errno == errno.EACCES:
        return f"port {port} on {host}: permission denied, choose ports from 1024 on"
    if problem.errno == errno.EADDRNOTAVAIL:
        return f"host={host!r}: not an address of this machine"
    return f"port {port} on {host} cannot be opened: {problem.strerror}"


def ports_of(host: str, ports: int | Sequence[int] | None, brokers: int) -> list[int]:
    """A port per broker, 0 for a free one. ConfigException names an invalid host or port."""
    if host in ("", "*"):
        raise ConfigException(_WILDCARD.format(host=host))
    if ports is None:
        return [0] * brokers
    ports = plain(ports)
    if isinstance(ports, int):
        if isinstance(ports, bool) or not 1 <= ports <= MAX_PORT + 1 - brokers:
            first = "the port" if brokers == 1 else f"the first of {brokers} ports"
            raise ConfigException(f"ports={ports!r}: {first} must be 1..{MAX_PORT + 1 - brokers}")
        return list(range(ports, ports + brokers))
    chosen = plain_each(ports)
    if len(chosen) != brokers:
        raise ConfigException(f"ports={ports!r}: must be {brokers}, one for each broker")
    for port in chosen:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= MAX_PORT:
            raise ConfigException(f"ports={ports!r}: {port!r} must be 0..{MAX_PORT}, 0 for a free one")
    if len(set(chosen) - {0}) != len([port for port in chosen if port]):
        raise ConfigException(f"ports={ports!r}: must differ, one for each broker")
    return chosen
