"""A connection to the server under attack: in plaintext, or with TLS and a login."""

from __future__ import annotations

import os
import socket
import ssl

from tests.wire import raw
from tests.wire.secured import log_in

AUTHORITY = "SHAREQ_ATTACK_AUTHORITY"
"""The environment variable with the file of the authority whose certificate the server has; none: plaintext."""

WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Raw(raw.Raw):
    """A client without logic, logged in if the server wants that."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as clients of Kafka do
        if authority := os.environ.get(AUTHORITY):
            context = ssl.create_default_context(cafile=authority)
            self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
            log_in(self)
