"""`host:port`: clients of brokers over TCP, of this project's server or of any other with Kafka's protocol."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from shareq.model.actor import Actor, Effect
from shareq.signals.uninterrupted import uninterrupted
from shareq.wire.client.addresses import parse_bootstrap_servers
from shareq.wire.client.client_host import TcpClientHost
from shareq.wire.client.socket_settings import SocketSettings


class TcpConnection:
    """One client's connections to whichever brokers it calls, on wall time.

    What lives on in the I/O thread does not know this object: when an application drops a client without closing it,
    its connections go with it, and brokers notice.
    """

    def __init__(self, host: TcpClientHost) -> None:
        self._host = host
        self._forgotten = weakref.finalize(self, host.forget)
        self._forgotten.atexit = False  # a process that ends takes its sockets with it

    @property
    def failure(self) -> Exception | None:
        return self._host.failure

    def now_ms(self) -> int:
        return self._host.now_ms()

    def time_of_day(self, time_ms: int) -> int:
        return self._host.time_of_day(time_ms)

    def run(self, action: Callable[[int], Iterable[Effect]]) -> None:
        self._host.run(action)

    def wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        return self._host.wait(until, timeout_ms)

    def close(self) -> None:
        """Repeatable; takes two seconds at most, however silent a broker is."""
        with uninterrupted:
            self._forgotten.detach()
            self._host.close()


class TcpTransport:
    """Clients find the cluster through any of `bootstrap_servers`: `host:port`, several with commas between them.

    `conf`: settings of the sockets, see `SocketSettings`.
    """

    def __init__(self, bootstrap_servers: str, conf: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._settings = SocketSettings.of(conf)
        self._servers = parse_bootstrap_servers(bootstrap_servers, self._settings.security.protocol)

    def connect(self, actor: Actor, client_id: str) -> TcpConnection:
        """Sockets are opened with the client's first request."""
        with uninterrupted:
            return TcpConnection(TcpClientHost(actor, client_id, self._servers, self.rng(), self._settings))

    def rng(self) -> random.Random:
        """Seeded by the system: ids must differ between processes."""
        return random.Random()
