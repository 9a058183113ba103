"""A relay that only passes bytes: the floor of what a process between clients and a broker adds.

    python -m tests.bench.bare_relay BOOTSTRAP

In responses, the number of the broker's port becomes that of the relay, so that clients stay. One broker; no TLS.
"""

from __future__ import annotations

import asyncio
import signal
import struct
import sys

LARGE_BYTES = 4096
"""Responses with addresses are smaller."""


class _Side(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.peer: _Side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert self.peer.transport is not None
        self.peer.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.peer.transport is not None:
            self.peer.transport.close()


class _Broker(_Side):
    """`ports`: the bytes of the broker's port and of the relay's."""

    def __init__(self, client: _Side, ports: tuple[bytes, bytes]) -> None:
        super().__init__()
        self.peer, self._ports = client, ports

    def data_received(self, data: bytes) -> None:
        super().data_received(data.replace(*self._ports) if len(data) < LARGE_BYTES else data)


class _Client(_Side):
    """Its bytes wait until the broker's side is open."""

    def __init__(self, broker_port: int, ports: tuple[bytes, bytes]) -> None:
        super().__init__()
        self.peer, self._broker_port = _Broker(self, ports), broker_port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()
        self._connecting = asyncio.get_running_loop().create_task(self._connect(self.transport))

    async def _connect(self, transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self.peer, "127.0.0.1", self._broker_port)
        transport.resume_reading()


async def relay(broker_port: int) -> None:
    """Relay until SIGTERM."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    ports: list[bytes] = [struct.pack(">i", broker_port)]
    server = await loop.create_server(lambda: _Client(broker_port, (ports[0], ports[1])), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    ports.append(struct.pack(">i", port))
    print(f"a relay at 127.0.0.1:{port}", flush=True)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(relay(int(sys.argv[1].rpartition(":")[2])))
