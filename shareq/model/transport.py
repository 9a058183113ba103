"""The connection of a client to a cluster: a transport runs the client's actor.

The blocking calls of a client (`poll`, `commit_sync`, ...) are thin shells over these protocols; the same shell runs on
virtual, wall and scaled time. `shareq.transports` selects the transport for an address.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Protocol, Self

from shareq.model.actor import Actor, Effect


class Connection(Protocol):
    """The connection of one client. It passes `Answer` and `Tick` to the client's actor, sends the actor's `Call`s to
    brokers and appends its events to the journal."""

    @property
    def failure(self) -> Exception | None:
        """The unhandled error of the actor that has ended the client; `run` and `wait` raise ClientFailedException."""
        ...

    def now_ms(self) -> int:
        """The transport's clock, ms since the epoch when it began: for durations."""
        ...

    def time_of_day(self, time_ms: int) -> int:
        """The time of day at a time of the transport's clock: for timestamps."""
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
    def report(self, failure: Exception) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
