"""The blocking side of an Admin: its connection, and how it runs an operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from shareq.admin.broker_routing import BrokerRouting
from shareq.admin.core import AdminCore, Operation, OperationTask
from shareq.client.config import ClientConfig, merged
from shareq.client.patience import await_sign, over_tcp
from shareq.client.shell import LONGEST_S, UntilClosed, perform, timeout_ms
from shareq.signals.uninterrupted import uninterrupted
from shareq.transports import transport_for

T = TypeVar("T")


class RunsOperations(UntilClosed):
    """A client that runs one operation after the other, and waits for each."""

    _NAME = "Admin"

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        self._conf: Mapping[str, Any] = merged(conf, kwargs)
        config = ClientConfig(self._conf, (), client="admin client")
        self._address: str = config["bootstrap.servers"]
        self._logs_silence = bool(over_tcp(self._address))
        transport = transport_for(self._address, config.sockets)
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
                if self._logs_silence and not core.calls.reached:
                    self._logs_silence = False
                    self._await_sign(task, wait_ms / 1000)
                self._connection.wait(lambda: task.done, None)
            except BaseException:
                core.abandon(task)
                raise
        return task.result()

    def _await_sign(self, task: OperationTask[Any], limit_s: float) -> None:
        calls = self._core.calls
        heard, refusal = (lambda: task.done or calls.reached), (lambda: calls.refusal)
        await_sign(self._connection, heard, refusal, address=self._address, limit_s=limit_s)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        if not self._closed:
            self._closed = True
            self._connection.close()
