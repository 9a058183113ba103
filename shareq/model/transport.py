"""Where a client meets a cluster: an address names a transport, a transport carries the client's actor.

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
    """One client's life on a transport. Its actor is handed `Answer` and `Tick`; its `Call`s go to brokers, its events
    to the journal."""

    @property
    def failure(self) -> Exception | None:
        """The unhandled error of the actor that has ended the client; `run` and `wait` raise ClientFailedException."""
        ...

    def now_ms(self) -> int:
        """The transport's clock, ms since the epoch."""
        ...

    def run(self, action: Callable[[int], Iterable[Effect]]) -> None:
        """Call `action(now_ms)` while nothing else touches the actor, and carry out the effects that it returns."""
        ...

    def wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        """Let time go on until `until()` holds (True) or `timeout_ms` have passed (False); None waits for ever.

        On a virtual clock this is what makes time pass.
        """
        ...

    def close(self) -> None:
        """Say goodbye to the brokers: open share sessions of this connection are closed there. Repeatable."""
        ...


class Transport(Protocol):
    def connect(self, actor: Actor, client_id: str) -> Connection:
        """Give an actor a place to run. Raises KafkaException (_TRANSPORT) where the cluster is gone."""
        ...

    def rng(self) -> random.Random:
        """A generator for the client's ids and jitter; seeded where the cluster is."""
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
    """What serves a cluster: `host` and `ports` are those of `Cluster.serve`."""

    def __call__(self, cluster: Any, host: str, ports: int | Sequence[int] | None) -> Served: ...


_schemes: dict[str, Callable[[str, Mapping[str, Any]], Transport]] = {}
_serve: list[Serve] = []


def register_scheme(scheme: str, resolve: Callable[[str, Mapping[str, Any]], Transport]) -> None:
    """Let `resolve(address, conf)` answer for addresses `scheme://...` ("" for plain host:port)."""
    _schemes[scheme] = resolve


def transport_for(bootstrap_servers: str, conf: Mapping[str, Any] = MappingProxyType({})) -> Transport:
    """The transport that an address names; KafkaException (_TRANSPORT or _INVALID_ARG) where there is none.

    `conf`: what a client's configuration says about its connections, by key.
    """
    scheme, separator, _ = bootstrap_servers.partition("://")
    resolve = _schemes.get(scheme if separator else "")
    if resolve is None:
        known = ", ".join(f"{name}://..." if name else "host:port" for name in _schemes) or "none yet: create a Cluster"
        raise KafkaException(
            KafkaError(KafkaError._INVALID_ARG, f"bootstrap.servers={bootstrap_servers!r}: known are {known}")
        )
    return resolve(bootstrap_servers, conf)


def register_server(serve: Serve) -> None:
    """Let `serve` be what a cluster is served by: rooms that know clusters know no sockets."""
    _serve[:] = [serve]


def serve(cluster: Any, host: str, ports: int | Sequence[int] | None) -> Served:
    """Serve a cluster with what has been registered."""
    assert _serve, "shareq/__init__.py registers a server"
    return _serve[0](cluster, host, ports)


class Observe(Protocol):
    """What watches a group of the cluster at an address; what it answers has a `journal` and can `close()`."""

    def __call__(self, bootstrap_servers: str, group: str, topics: list[str] | None) -> Any: ...


_observe: list[Observe] = []


def register_observer(observe: Observe) -> None:
    """Let `observe` be what watches clusters from outside: rooms that show journals know no brokers."""
    _observe[:] = [observe]


def observe(bootstrap_servers: str, group: str, topics: list[str] | None) -> Any:
    """Watch with what has been registered; KafkaException for an address that is none."""
    assert _observe, "shareq/__init__.py registers an observer"
    return _observe[0](bootstrap_servers, group, topics)


# ---- what clients of this process tell -------------------------------------------------------------------------------

_listeners: list[Callable[[int, Event], None]] = []


def listen(listener: Callable[[int, Event], None]) -> Callable[[], None]:
    """Hear the events of all clients of this process that have no cluster's journal to tell them to.

    `listener(now_ms, event)` is called in whichever thread the client runs, must be quick and must not call clients.
    What is answered ends it; repeatable.
    """
    _listeners.append(listener)

    def end() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return end


def tell(now_ms: int, event: Event) -> None:
    """A client's event, for whoever listens."""
    for listener in tuple(_listeners):
        listener(now_ms, event)
