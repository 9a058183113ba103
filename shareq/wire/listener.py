"""The port of one broker: open while the broker is alive, closed while it is not, always with the same number."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Sequence

from shareq.model.errors import ConfigException

_log = logging.getLogger("shareq.server")

MAX_PORT = 65535
REOPEN_AFTER_S = 1
_BACKLOG = 128
_WILDCARDS = ("", "*", "0.0.0.0", "::")


class Listener:
    """A port that follows its broker. `make` creates the protocol object of a new connection.

    A closing `asyncio.Server` drops connections that it has accepted but not passed on: their sockets stay open, and
    the peers wait for ever. Here every accepted connection gets its protocol.
    """

    def __init__(self, host: str, port: int, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._make = make
        self._turn = asyncio.Lock()
        self._arriving: set[asyncio.Task[object]] = set()
        self.wanted = True
        """True if the port is to be open."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._door: socket.socket | None = bind(host, port)
        self.host = host
        self.port: int = self._door.getsockname()[1]

    async def follow(self, alive: bool) -> None:
        """Open the port, or close it. Of concurrent calls the last one wins."""
        self.wanted = alive
        async with self._turn:
            if self.wanted:
                await self._open()
            else:
                self.close()
                if self._arriving:
                    await asyncio.wait(self._arriving)

    async def _open(self) -> None:
        """Open the port again. Another program may have bound it while the broker was down: retry until it is free."""
        while self._door is None and self.wanted:
            try:
                self._door = bind(self.host, self.port)
            except ConfigException as problem:
                _log.warning("%s; trying again", problem)
                await asyncio.sleep(REOPEN_AFTER_S)
        self._watch(asyncio.get_running_loop())

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._door is not None:
            self._loop = loop
            loop.add_reader(self._door, self._let_in, self._door, loop)

    def _let_in(self, door: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        """Accept a connection. Without a free file descriptor it waits in the backlog."""
        try:
            opened, _ = door.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as problem:
            _log.warning("port %s cannot accept connections: %s; trying again", self.port, problem)
            loop.remove_reader(door)
            loop.call_later(REOPEN_AFTER_S, self._watch, loop)
            return
        arriving = loop.create_task(loop.connect_accepted_socket(self._make, opened))
        self._arriving.add(arriving)
        arriving.add_done_callback(self._arriving.discard)

    def close(self) -> None:
        """Close the port; open connections stay."""
        if self._door is None:
            return
        if self._loop is not None:
            self._loop.remove_reader(self._door)
        self._door.close()
        self._door = None


def bind(host: str, port: int) -> socket.socket:
    """A listening, non-blocking socket. ConfigException names the problem of the host or the port, and a remedy."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as problem:
        raise ConfigException(f"host={host!r}: cannot be resolved ({problem.strerror})") from problem
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
    if host in _WILDCARDS:
        raise ConfigException(f"host={host!r}: clients connect to this name, so it must not be a wildcard address")
    if ports is None:
        return [0] * brokers
    if isinstance(ports, int):
        if isinstance(ports, bool) or not 1 <= ports <= MAX_PORT + 1 - brokers:
            raise ConfigException(f"ports={ports!r}: the first of {brokers} must be 1..{MAX_PORT + 1 - brokers}")
        return list(range(ports, ports + brokers))
    chosen = list(ports)
    if len(chosen) != brokers:
        raise ConfigException(f"ports={ports!r}: must be {brokers}, one for each broker")
    for port in chosen:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= MAX_PORT:
            raise ConfigException(f"ports={ports!r}: {port!r} must be 0..{MAX_PORT}, 0 for a free one")
    if len(set(chosen) - {0}) != len([port for port in chosen if port]):
        raise ConfigException(f"ports={ports!r}: must differ, one for each broker")
    return chosen
