"""The blocking side of a client: one application thread at a time; the connection has the clock, and waits."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from threading import Lock
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from shareq.client.calls import Calls
from shareq.model.actor import Effect
from shareq.model.closing import Closing
from shareq.model.errors import (
    ClientFailedException,
    ConcurrentModificationException,
    IllegalStateException,
    KafkaError,
    KafkaException,
    WakeupException,
)
from shareq.model.numbers import plain
from shareq.model.transport import Connection
from shareq.signals.uninterrupted import uninterrupted

T = TypeVar("T")

LONGEST_S = 1_000_000_000
"""About 30 years, within the range of all clocks and locks."""


def _nothing(error: BaseException) -> None:
    """The checks of a gate without a client."""


class Gate:
    """Lets one call in at a time, and signals only where the call waits: `with gate: ...`.

    While a callback of the application runs, any call is taken for one from inside it. What one step of Python does may
    take `lock` alone, after a look at `locked()`: CPython enters the block of a lock without a step between.
    """

    __slots__ = ("_client", "_on_error", "in_callback", "lock")

    def __init__(self, client: str, on_error: Callable[[BaseException], object] = _nothing) -> None:
        self._client = client
        self._on_error = on_error
        """Called with what a call raises, before the gate opens."""
        self.lock = Lock()
        self.in_callback = False

    def refusal(self) -> RuntimeError:
        """The exception for a call that finds the gate closed."""
        if self.in_callback:
            return IllegalStateException(f"{self._client} must not be called from inside its callback")
        return ConcurrentModificationException(
            f"{self._client} is not safe for multi-threaded access: another thread is inside"
        )

    def __enter__(self) -> None:
        uninterrupted.__enter__()
        if not self.lock.acquire(False):
            uninterrupted.__exit__()
            raise self.refusal()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                self._on_error(error)
        finally:
            self.lock.release()
            uninterrupted.__exit__()


class UntilClosed(Closing):
    """A client that is open until `close`, and a context manager."""

    _NAME: ClassVar[str]
    _closed = False
    _connection: Connection

    @property
    def connection(self) -> Connection:
        """The client's connection to its cluster; `Cluster.crash` ends it."""
        return self._connection

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateException(f"{self._NAME} closed")

    def __enter__(self) -> Self:
        self._check_open()
        return self


def failed_for_good(connection: Connection, error: BaseException) -> KafkaError | None:
    """The fatal error for the callbacks of a client whose core failed; None where `error` comes from elsewhere, such as
    another client that a callback has called."""
    if isinstance(error, ClientFailedException) and connection.failure is not None:
        return KafkaError(KafkaError._FATAL, str(error), fatal=True)
    return None


REFUSALS = (KafkaException, IllegalStateException, WakeupException)
"""The exceptions that a core raises on purpose. Another one is an unhandled error: the connection ends the client."""


def perform(connection: Connection, calls: Calls, call: Callable[[int], T]) -> T:
    """Run `call(now_ms)` on the actor and carry out its effects, even where it raises to the application."""
    results: list[T] = []
    failures: list[Exception] = []

    def action(now_ms: int) -> list[Effect]:
        try:
            results.append(call(now_ms))
        except REFUSALS as error:  # handed to the caller below, after its effects are on their way
            failures.append(error)
        return calls.take_effects()

    connection.run(action)
    if failures:
        raise failures[0]
    return results[0]


def timeout_ms(timeout: float) -> float | None:
    """Milliseconds of a time-out in seconds; None (for ever) for a negative one and for one beyond LONGEST_S. TypeError
    for what is no number, ValueError for NaN."""
    timeout = plain(timeout)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be a real number of seconds, not {type(timeout).__name__}")
    if isnan(timeout):
        raise ValueError(f"timeout={timeout!r}: must be a number of seconds")
    return timeout * 1000 if 0 <= timeout <= LONGEST_S else None
