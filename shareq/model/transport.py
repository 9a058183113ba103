"""The connection of a client to a cluster: an address selects a transport, and the transport runs the client's actor.

`inproc://blue-fox` names a cluster in this process; `host:port` a broker over TCP. The blocking calls of a client
(`poll`, `commit_sync`, ...) are thin shells over these two protocols; the same shell runs on virtual, wall and scaled
time.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self

from shareq.model.errors import KafkaError, KafkaException

if TYPE_CHECKING:  # `import shareq` loads this module, and must stay light
    import random
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from shareq.model.actor import Actor, Effect
    from shareq.model.events import Event


class Connection(Protocol):
    """The connection of one client. It passes `Answer` and `Tick` to the client's actor, sends the actor's `Call`s to
    brokers and appends its events to the journal."""

    @property
    def failure(self) -> Exception | None:
        """The unhandled error of the actor that has ended the client; `run` and `wait` raise ClientFailedException."""
        ...

    def now_ms(self) -> int:
        """The transport's clock, ms since the epoch."""
        ...

    def run(self, action: Callable[[int], Iterable[Effect]]) -> None:
        """Call `action(now_ms)` with exclusive access to the actor, and perform the effects that it returns."""
        ...

    def wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        """Wait until `until()` is true (returns True) or `timeout_ms` have passed (False); None: no time-out.

        A virtual clock advances only during this call.
        """
        ...

    def close(self) -> None:
        """Close the connection; the brokers close its open share sessions. A second call has no effect."""
        ...


class Transport(Protocol):
    def connect(self, actor: Actor, client_id: str) -> Connection:
        """Run an actor on a new connection. Raises KafkaException (_TRANSPORT) if the cluster is closed."""
        ...

    def rng(self) -> random.Random:
        """A generator for the client's ids and jitter; seeded if the cluster is seeded."""
        ...


class Served(Protocol):
    """A cluster that is served over TCP, until `close()` or the end of its `with` block."""

    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...


class Serve(Protocol):
    """Serves a cluster: `host` and `ports` are those of `Cluster.serve`."""

    def __call__(self, cluster: Any, host: str, ports: int | Sequence[int] | None) -> Served: ...


_schemes: dict[str, Callable[[str, Mapping[str, Any]], Transport]] = {}
_serve: list[Serve] = []


def register_scheme(scheme: str, resolve: Callable[[str, Mapping[str, Any]], Transport]) -> None:
    """Register `resolve(address, conf)` for addresses `scheme://...` ("" for plain host:port)."""
    _schemes[scheme] = resolve


def transport_for(bootstrap_servers: str, conf: Mapping[str, Any] = MappingProxyType({})) -> Transport:
    """The transport for an address. Raises KafkaException (_TRANSPORT or _INVALID_ARG) if there is none.

    `conf`: the connection settings of the client's configuration, by key.
    """
    scheme, separator, _ = bootstrap_servers.partition("://")
    resolve = _schemes.get(scheme if separator else "")
    if resolve is None:
        known = ", ".join(f"{name}://..." if name else "host:port" for name in _schemes) or "none yet: create a Cluster"
        raise KafkaException(
            KafkaError(KafkaError._INVALID_ARG, f"bootstrap.servers={bootstrap_servers!r}: must be {known}")
        )
    return resolve(bootstrap_servers, conf)


def register_server(serve: Serve) -> None:
    """Register the function behind `Cluster.serve`: the package of clusters does not import sockets."""
    _serve[:] = [serve]


def serve(cluster: Any, host: str, ports: int | Sequence[int] | None) -> Served:
    """Serve a cluster with the registered function."""
    assert _serve, "shareq/__init__.py registers a server"
    return _serve[0](cluster, host, ports)


class Observe(Protocol):
    """Observes a group of the cluster at an address. The result has a `journal` and a `close()`."""

    def __call__(self, bootstrap_servers: str, group: str, topics: list[str] | None) -> Any: ...


_observe: list[Observe] = []


def register_observer(observe: Observe) -> None:
    """Register the function that observes clusters: the packages that show journals do not import brokers."""
    _observe[:] = [observe]


def observe(bootstrap_servers: str, group: str, topics: list[str] | None) -> Any:
    """Observe with the registered function. Raises KafkaException for an invalid address."""
    assert _observe, "shareq/__init__.py registers an observer"
    return _observe[0](bootstrap_servers, group, topics)


# ---- events of clients of this process -------------------------------------------------------------------------------

_listeners: list[Callable[[int, Event], None]] = []


def listen(listener: Callable[[int, Event], None]) -> Callable[[], None]:
    """Subscribe to the events of all clients of this process that are not connected to a cluster with a journal.

    `listener(now_ms, event)` is called in the thread of the client; it must return quickly and must not call clients.
    Returns a function that ends the subscription; its second call has no effect.
    """
    _listeners.append(listener)

    def end() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return end


def tell(now_ms: int, event: Event) -> None:
    """Pass a client's event to all listeners."""
    for listener in tuple(_listeners):
        listener(now_ms, event)
