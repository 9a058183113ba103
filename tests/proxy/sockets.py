"""A broker that is a socket of the test, and what sends and receives at sockets."""

from __future__ import annotations

import socket
import struct

from shareq.model.messages.cluster import MetadataResponse
from shareq.wire.errors import RequestHeader
from shareq.wire.frames import encode_response
from tests.polling import PATIENCE_S

Pair = tuple[socket.socket, socket.socket]
"""A client's socket to the tap, and the broker's end of the connection behind it."""


class Upstream:
    """A broker that is a socket: it answers Metadata with itself, then the test reads and writes."""

    def __init__(self) -> None:
        self.door = socket.create_server(("127.0.0.1", 0))
        self.door.settimeout(PATIENCE_S)
        self.port = self.door.getsockname()[1]

    def answer_metadata(self) -> None:
        with self.accept() as opened:
            exactly(opened, struct.unpack(">i", exactly(opened, 4))[0])
            me = MetadataResponse.Broker(node_id=1, host="127.0.0.1", port=self.port)
            answer = MetadataResponse(brokers=(me,), cluster_id="c", controller_id=1)
            opened.sendall(encode_response(RequestHeader(3, 12, 0), answer))

    def accept(self) -> socket.socket:
        opened, _ = self.door.accept()
        opened.settimeout(PATIENCE_S)
        return opened


def exactly(opened: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = opened.recv(size - len(data))
        assert part, "the connection was closed"
        data += part
    return data


def ended(opened: socket.socket) -> bool:
    """True if the peer has closed the connection, orderly or not."""
    try:
        return opened.recv(1) == b""
    except ConnectionResetError:
        return True


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content
