"""Settings of a client's connections: librdkafka's keys, with the defaults of Java's clients."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from shareq.wire.client.client_security import PLAINTEXT, ClientSecurity


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketSettings:
    """One field per key of `shareq.client.config.SOCKETS`, with dots as underscores, and the security. Buffers of 0
    bytes have the system's size."""

    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1000
    socket_connection_setup_timeout_ms: int = 10_000
    socket_keepalive_enable: bool = False
    socket_nagle_disable: bool = True
    socket_receive_buffer_bytes: int = 0
    socket_send_buffer_bytes: int = 0
    metadata_cluster_check_enable: bool = True
    security: ClientSecurity = PLAINTEXT

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> Self:
        """The settings from a client's configuration; missing keys have the defaults above."""
        keys = {field.name: field.name.replace("_", ".") for field in fields(cls)}
        known = {name: conf[key] for name, key in keys.items() if key in conf}
        return cls(**known, security=ClientSecurity.of(conf))

    def prepare(self, opened: socket.socket) -> None:
        """Set the options of a socket before it is connected: the buffers limit the TCP window."""
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, self.socket_nagle_disable)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, self.socket_keepalive_enable)
        if self.socket_receive_buffer_bytes:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.socket_receive_buffer_bytes)
        if self.socket_send_buffer_bytes:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.socket_send_buffer_bytes)
