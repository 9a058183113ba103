"""From an accepted socket to a connection, through a TLS handshake where the port has TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from contextlib import suppress

from shareq.wire.readiness import until_ready

HANDSHAKE_S = 10.0
GOODBYE_S = 1.0
"""How long a closing connection waits for the peer's end of TLS."""

TLS_RECORD = 0x16
"""The first byte of a TLS client. No request begins with it: its size would be above 350 MB."""

_ALERT = bytes((0x15, 3, 3, 0, 2, 2, 10))
"""TLS: a fatal alert, an unexpected message. Kafka sends it, too: a client of plaintext finds out why it is closed."""

_DRAINED_BYTES = 1 << 16

# What asyncio reads of TLS at a time: each connection has such a buffer from its first byte on, and one of OpenSSL's of
# 4/3 of it. With asyncio's 256 KiB a peer without a login could take more than a mebibyte, with the frame that it may
# send. There is no setting for one connection.
SSLProtocol.max_size = 1 << 16


class NotTls(OSError):
    """The peer does not speak TLS."""


async def arrive(
    make: Callable[[], asyncio.BaseProtocol], opened: socket.socket, context: ssl.SSLContext | None
) -> None:
    """Connect the socket to a new protocol object. OSError and TimeoutError for a peer that does not get through; the
    socket is closed then."""
    loop = asyncio.get_running_loop()
    try:
        if context is None:
            await loop.connect_accepted_socket(make, opened)
            return
        await _await_client(opened)
        await loop.connect_accepted_socket(
            make, opened, ssl=context, ssl_handshake_timeout=HANDSHAKE_S, ssl_shutdown_timeout=GOODBYE_S
        )
    except BaseException:
        opened.close()
        raise


async def _await_client(opened: socket.socket) -> None:
    """Wait for the first byte. A peer that speaks plaintext would otherwise get no answer that it understands."""
    opened.setblocking(False)
    async with asyncio.timeout(HANDSHAKE_S):
        await until_ready(opened)
    first = opened.recv(1, socket.MSG_PEEK)
    if not first:
        raise ConnectionAbortedError
    if first[0] != TLS_RECORD:
        with suppress(OSError):
            opened.recv(_DRAINED_BYTES)  # closing a socket with unread bytes would reset the connection
            opened.send(_ALERT)
        raise NotTls("it does not speak TLS")


def why(problem: BaseException) -> str:
    """The reason in words."""
    if isinstance(problem, ConnectionError):
        return "it has ended the connection during the TLS handshake"
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({problem.verify_message})"
    if isinstance(problem, ssl.SSLError):
        return f"TLS handshake failed ({(problem.reason or str(problem)).replace('_', ' ').lower()})"
    return "no TLS handshake in time" if isinstance(problem, TimeoutError) else str(problem)
