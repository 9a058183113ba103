"""What a server needs of the cluster that it serves; `shareq.broker.Cluster` is one.

The server stands below the brokers, which start it: it knows them by these protocols only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from shareq.model.actor import Answer, Call, ClientContext
from shareq.model.image import ClusterImage
from shareq.model.messages.api_versions import ApiVersionsResponse
from shareq.model.transport import Served


class Timer(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    """The event loop of the brokers; all may be called in any thread."""

    def now_ms(self) -> int: ...
    def run(self, call: Callable[[], object], /) -> None:
        """Run `call` with exclusive access to the brokers, then the events that it causes. For a thread that runs no
        signal handlers: not the main thread."""
        ...

    def at(self, due_ms: int, call: Callable[[], object], /) -> Timer:
        """Run `call` at `due_ms`. To be called inside `enter`."""
        ...


class Caller(Protocol):
    """The sender of requests."""

    @property
    def name(self) -> str: ...
    def deliver(self, message: Answer, /) -> None: ...


class Network(Protocol):
    """The way to the brokers. To be called inside `Loop.enter`."""

    def call(self, caller: Caller, call: Call, client: ClientContext, /) -> None: ...
    def disconnect(self, connection_id: int, broker_id: int, /) -> None: ...


class ServedCluster(Protocol):
    @property
    def loop(self) -> Loop: ...
    @property
    def network(self) -> Network: ...
    @property
    def image(self) -> ClusterImage: ...
    @property
    def brokers_alive(self) -> Collection[int]: ...
    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def backend_versions(self) -> ApiVersionsResponse | None:
        """What the backend of a cluster supports; None without a backend."""
        ...

    def connection_id(self) -> int: ...
    def served_by(self, server: Served) -> None:
        """Register a server before it opens a port. IllegalStateException if another server is open."""
        ...

    def no_longer_served(self, server: Served) -> None: ...
    def readdress(self, addresses: Mapping[int, tuple[str, int]], watcher: Callable[[int, bool], None]) -> None:
        """Show these addresses in metadata; call `watcher(broker_id, alive)` when a broker starts or ends."""
        ...
