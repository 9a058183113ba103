"""The core of administration without a connection."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from shareq.admin.broker_routing import BrokerRouting
from shareq.admin.core import AdminCore, Operation
from shareq.client.calls import Backoff
from shareq.client.config import ClientConfig
from shareq.model.actor import Answer, Call, Tick
from shareq.model.errors import Errors
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse

REQUEST = MetadataRequest()
RESPONSE = MetadataResponse(brokers=(), cluster_id="c", controller_id=0)


class Stage:
    """A core on a virtual clock; a script answers its requests."""

    def __init__(self) -> None:
        self.core = AdminCore(ClientConfig({"bootstrap.servers": "x"}, ()), random.Random(1))
        self.routing = BrokerRouting(Backoff(random.Random(1)))
        self.now_ms = 0
        self.asked: list[tuple[int, int, Any]] = []

    def run(self, operation: Operation[Any], answer: Callable[[int, Any], Any], timeout_ms: int = 60_000) -> Any:
        task = self.core.start(operation, timeout_ms, self.now_ms)
        effects = self.core.calls.take_effects()
        while not task.done:
            calls = [effect for effect in effects if isinstance(effect, Call)]
            self.asked += [(self.now_ms, call.node, call.request) for call in calls]
            for call in calls:
                reply = answer(call.node, call.request)
                if isinstance(reply, Errors):
                    self.core.calls.answered(Answer(call.id, None, reply), self.now_ms)
                elif reply is not None:
                    self.core.calls.answered(Answer(call.id, reply), self.now_ms)
            if not calls and not task.done:
                assert self.core.wake_at_ms is not None
                self.now_ms = self.core.wake_at_ms
            effects = self.core.handle(Tick(), self.now_ms)
        assert self.core.wake_at_ms is None
        return task.result()

    def times(self, kind: type) -> list[int]:
        return [at for at, _, request in self.asked if isinstance(request, kind)]
