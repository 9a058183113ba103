"""What a server needs of the cluster that it serves; `shareq.broker.Cluster` is one.

The server stands below the brokers, which start it: it knows them by these protocols only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from shareq.model.actor import Answer, Call, ClientContext
from shareq.model.events import Event
from shareq.model.image import Addresses, ClusterImage
from shareq.model.messages.api_versions import ApiVersionsResponse
from shareq.model.scram import UserChanges
from shareq.model.transport import Served


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Do not make the call; a no-op if it was made."""
        ...


class Loop(Protocol):
    """The event loop of the brokers; all may be called in any thread."""

    def time_ms(self) -> int:
        """The time of the brokers' actors."""
        ...

    def now_ms(self) -> int:
        """The time of day."""
        ...

    def run(self, call: Callable[[], object], /) -> None:
        """Run `call` with exclusive access to the brokers, then the events that it causes. For a thread that runs no
        signal handlers: not the main thread."""
        ...

    def at(self, due_ms: int, call: Callable[[], object], /) -> Timer:
        """Run `call` at `due_ms`. To be called inside `run`."""
        ...


class Caller(Protocol):
    """The sender of requests."""

    @property
    def name(self) -> str:
        """Its name in the journal."""
        ...

    def deliver(self, message: Answer, /) -> None:
        """Take the response, or the error, to a request. Called inside `Loop.run`."""
        ...


class BrokerNetwork(Protocol):
    """The way to brokers. To be called inside `Loop.run`."""

    def call(self, caller: Caller, call: Call, client: ClientContext, /) -> None:
        """Send a request to the broker `call.node`; the caller gets an `Answer`, with an error if it is not there."""
        ...

    def disconnect(self, connection_id: int, broker_id: int, /) -> None:
        """Report the end of a connection to a broker, which ends its share sessions."""
        ...


class ServedBrokers(BrokerNetwork, Protocol):
    """The brokers that get a port, and the way to them by these ids, which stay as long as the process runs."""

    @property
    def brokers(self) -> Mapping[int, bool]:
        """Id -> whether the broker is running. One that has been here stays."""
        ...

    @property
    def versions(self) -> ApiVersionsResponse | None:
        """What the backend of the cluster supports; None without a backend."""
        ...

    @property
    def knows_secured_peers(self) -> bool:
        """False if this process on a backend could not reach others whose listeners have TLS or a login."""
        ...

    def node_of(self, broker_id: int, /) -> int:
        """The id by which clients know a broker now."""
        ...

    def alter_users(self, changes: UserChanges, /) -> None:
        """Set or remove credentials in the cluster's metadata. To be called inside `Loop.run`."""
        ...


class ServedCluster(Protocol):
    """The cluster behind a server."""

    @property
    def loop(self) -> Loop:
        """The event loop of its brokers."""
        ...

    @property
    def front(self) -> ServedBrokers:
        """Its brokers as clients reach them."""
        ...

    @property
    def image(self) -> ClusterImage:
        """The newest version of its metadata."""
        ...

    @property
    def bootstrap_servers(self) -> str:
        """Its address for clients of this process, which names it in messages."""
        ...

    @property
    def record(self) -> Callable[[Event], object]:
        """Records an event in the journal. To be called inside `Loop.run`."""
        ...

    def connection_id(self) -> int:
        """A new number for a connection; share sessions belong to it."""
        ...

    def served_by(self, server: Served) -> None:
        """Register a server before it opens a port. IllegalStateException if another server is open."""
        ...

    def no_longer_served(self, server: Served) -> None:
        """Unregister a server; a no-op for another one than the registered."""
        ...

    def readdress(
        self, addresses: Addresses, watcher: Callable[[int, bool], None], listeners: Mapping[str, Addresses], /
    ) -> None:
        """Show these addresses in metadata, by the ids of `ServedBrokers.brokers`, and in `BrokerImage.listeners` those
        of each listener; call `watcher(broker_id, alive)` when a broker starts or ends."""
        ...
