"""The in-process network: a request without a response ends at its own deadline."""

from __future__ import annotations

import pytest

from shareq.broker.loop import VIRTUAL_ORIGIN_MS, VirtualLoop
from shareq.broker.network import Network
from shareq.model.actor import Answer, Call, ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse


class SilentBroker:
    """A broker that keeps requests and sends no response by itself."""

    broker_id = 0
    name = "broker-0"

    def __init__(self) -> None:
        self.received: list[int] = []

    def receive(self, exchange_id: int, request: Request, client: ClientContext) -> None:
        self.received.append(exchange_id)

    def connection_closed(self, connection_id: int) -> None: ...


class Caller:
    name = "caller"

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.answers: dict[int, tuple[int, Errors]] = {}

    def deliver(self, message: Answer) -> None:
        self.answers[message.id] = (self._loop.time_ms() - VIRTUAL_ORIGIN_MS, message.error)


@pytest.mark.parametrize("timeouts", [(300, 100, 200), (100, 200, 300), (300, 300, 100)], ids=str)
def test_each_request_times_out_at_its_own_deadline(timeouts: tuple[int, ...]) -> None:
    loop = VirtualLoop()
    network, broker, caller = Network(loop, lambda event: None), SilentBroker(), Caller(loop)
    network.join(broker)
    for call_id, timeout_ms in enumerate(timeouts):
        call = Call(call_id, 0, MetadataRequest(topics=None), timeout_ms)
        loop.enter(lambda call=call: network.call(caller, call, ClientContext()))  # type: ignore[misc]
    loop.wait(lambda: False, 1000)
    assert caller.answers == {i: (timeout_ms, Errors.REQUEST_TIMED_OUT) for i, timeout_ms in enumerate(timeouts)}


def test_a_response_after_the_deadline_is_dropped() -> None:
    loop = VirtualLoop()
    network, broker, caller = Network(loop, lambda event: None), SilentBroker(), Caller(loop)
    network.join(broker)
    loop.enter(lambda: network.call(caller, Call(7, 0, MetadataRequest(topics=None), 100), ClientContext()))
    loop.wait(lambda: False, 200)
    late = MetadataResponse(brokers=(), controller_id=0, cluster_id="c")
    loop.enter(lambda: network.answer(broker, broker.received[0], late))
    assert caller.answers == {7: (100, Errors.REQUEST_TIMED_OUT)}
