"""The blocking side of an Admin: its connection, and how it runs an operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from shareq.admin.broker_routing import BrokerRouting
from shareq.admin.core import AdminCore, Operation
from shareq.client.config import ClientConfig, merged
from shareq.client.shell import LONGEST_S, UntilClosed, perform, timeout_ms
from shareq.client.uninterrupted import uninterrupted
from shareq.transports import transport_for

T = TypeVar("T")


class RunsOperations(UntilClosed):
    """A client that runs one operation after the other, and waits for each."""

    _NAME = "Admin"

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        config = ClientConfig(merged(conf, kwargs), (), client="admin client")
        transport = transport_for(config["bootstrap.servers"], config.sockets)
        self._core = AdminCore(config, transport.rng())
        self._routing = BrokerRouting(self._core.backoff)
        self._connection = transport.connect(self._core, self._core.client_id)

    def _do(self, operation: Operation[T], timeout: float) -> T:
        self._check_open()
        wait_ms = timeout_ms(timeout)
        if timeout < 0:
            raise ValueError(f"timeout={timeout!r}: must not be negative")
        if wait_ms is None:
            wait_ms = LONGEST_S * 1000
        core = self._core
        with uninterrupted:
            task = perform(self._connection, core.calls, lambda now_ms: core.start(operation, wait_ms, now_ms))
            try:
                self._connection.wait(lambda: task.done, None)
            except BaseException:
                core.abandon(task)
                raise
        return task.result()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        if not self._closed:
            self._closed = True
            self._connection.close()
