"""A client without logic on a real socket: it sends the requests of a test and returns the responses."""

from __future__ import annotations

import random
import select
import socket
import struct
from contextlib import ExitStack, suppress
from typing import Any, Self

from shareq.broker import Cluster
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response
from shareq.wire.apis import API_BY_KEY
from shareq.wire.frames import decode_response, encode_request
from tests.polling import PATIENCE_S


class Raw:
    """One connection to one port of a server."""

    def __init__(
        self, port: int, host: str = "127.0.0.1", client_id: str | None = "raw", *, source: str | None = None
    ) -> None:
        """`source`: the address of this client."""
        own = None if source is None else (source, 0)
        self.socket = socket.create_connection((host, port), timeout=PATIENCE_S, source_address=own)
        self.client_id = client_id
        self._sent: dict[int, tuple[int, int]] = {}
        self._ids = 0

    def frame(self, request: Request, version: int | None = None) -> bytes:
        """Encode a request, by default in the newest version, and remember its correlation id for `receive`."""
        chosen = API_BY_KEY[request.API_KEY].max_version if version is None else version
        self._ids += 1
        self._sent[self._ids] = (request.API_KEY, chosen)
        return encode_request(request, chosen, self._ids, self.client_id)

    def send(self, request: Request, version: int | None = None) -> int:
        """Send a request without waiting; returns its correlation id."""
        self.socket.sendall(self.frame(request, version))
        return self._ids

    def receive(self) -> tuple[int, Any]:
        """Read the next response; returns (correlation id, response)."""
        (size,) = struct.unpack(">i", self._exactly(4))
        frame = self._exactly(size)
        (correlation_id,) = struct.unpack_from(">i", frame)
        key, version = self._sent.pop(correlation_id)
        answered, response = decode_response(key, version, frame)
        assert answered == correlation_id
        assert isinstance(response, Response)
        return correlation_id, response

    def ask(self, request: Request, version: int | None = None) -> Any:
        """Send, wait for the response and return it."""
        sent = self.send(request, version)
        correlation_id, response = self.receive()
        assert correlation_id == sent
        return response

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, f"the server closed the connection after {len(data)} of {size} bytes"
            data += more
        return data

    @property
    def silent(self) -> bool:
        """True if no bytes can be read now."""
        return not select.select([self.socket], [], [], 0)[0]

    def closed_by_server(self) -> bool:
        """Wait for the end of the connection; False if bytes arrive instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def quiet_ports(count: int) -> list[int]:
    """Free ports below the ephemeral ranges (Linux from 32768, others from 49152), so that no other program receives
    one of them before the test opens it.
    """
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = random.SystemRandom().randrange(20_000, 32_000)
            with suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
    return found


def topic_id(cluster: Cluster, topic: str) -> TopicId:
    return cluster.image.topics[topic].topic_id
