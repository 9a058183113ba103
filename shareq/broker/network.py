"""The in-process network: it delivers requests, responses and closed connections, in order.

`latency_ms` applies to each direction, so that requests are visible in flight on virtual time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from shareq.broker.loop import EventLoop, Timer
from shareq.broker.message_faults import CLIENT, MessageFaults
from shareq.model.actor import ANY_NODE, Answer, Call, ClientContext
from shareq.model.errors import Errors
from shareq.model.events import Event, RequestSent, ResponseSent
from shareq.model.messages.base import Request, Response
from shareq.trace.journal.message_json import message_json


class Receiver(Protocol):
    """The interface of a broker to the network."""

    @property
    def broker_id(self) -> int: ...
    @property
    def name(self) -> str: ...
    def receive(self, exchange_id: int, request: Request, client: ClientContext) -> None: ...
    def connection_closed(self, connection_id: int) -> None: ...


class Caller(Protocol):
    """The sender of requests: a host in this process, or a TCP connection."""

    @property
    def name(self) -> str: ...
    def deliver(self, message: Answer, /) -> None: ...


class _PendingRequest(NamedTuple):
    """A request without a response; its key in the table is the exchange id that the broker's actors use. `sender`: the
    broker that sent it, or CLIENT. `complete`: adds to the response what the broker's actors did not get to see."""

    caller: Caller
    call_id: int
    deadline_ms: int
    sender: int
    complete: Callable[[Any], Response] | None = None


class Network:
    """Connects hosts and brokers. `trace_messages`: every request and response is recorded as an event."""

    def __init__(
        self,
        loop: EventLoop,
        record: Callable[[Event], None],
        faults: MessageFaults | None = None,
        *,
        latency_ms: int = 0,
        trace_messages: bool = False,
    ) -> None:
        self._faults = faults or MessageFaults(random.Random(0), record)
        self._loop = loop
        self._record = record
        self.latency_ms = latency_ms
        self._trace = trace_messages
        self._brokers: dict[int, Receiver] = {}
        self._far: set[int] = set()
        self._open: dict[int, dict[int, _PendingRequest]] = {}
        self._ids = 0
        self._sweeper: Timer | None = None

    def join(self, broker: Receiver, *, far: bool = False) -> None:
        """Add a broker. `far`: in another process; requests to any broker do not go there."""
        self._brokers[broker.broker_id] = broker
        if far:
            self._far.add(broker.broker_id)
        self._open[broker.broker_id] = {}

    def leave(self, broker_id: int) -> None:
        """Remove a broker: its pending requests fail with NETWORK_EXCEPTION."""
        del self._brokers[broker_id]
        self._far.discard(broker_id)
        for exchange in self._open.pop(broker_id).values():
            self._post(exchange.caller.deliver, Answer(exchange.call_id, None, Errors.NETWORK_EXCEPTION))

    def call(self, caller: Caller, call: Call, client: ClientContext, sender: int = CLIENT) -> None:
        """Send a request; the caller gets the response or the error as an `Answer`."""
        node = min(self._brokers.keys() - self._far, default=ANY_NODE) if call.node == ANY_NODE else call.node
        broker = self._brokers.get(node)
        if broker is None:
            self._post(caller.deliver, Answer(call.id, None, Errors.NETWORK_EXCEPTION))
            return
        self._ids += 1
        deadline_ms = self._loop.time_ms() + call.timeout_ms
        self._open[node][self._ids] = _PendingRequest(caller, call.id, deadline_ms, sender)
        if self._sweeper is None or deadline_ms < self._sweeper.due_ms:
            self._sweep_at(deadline_ms)
        if self._trace:
            self._record(_request_sent(caller, broker, self._ids, call.request, client))
        if self._faults.active:
            self._post_at_risk(sender, node, self._hand_over, broker, self._ids, call.request, client)
        else:
            self._post(self._hand_over, broker, self._ids, call.request, client)

    def _hand_over(self, broker: Receiver, exchange_id: int, request: Request, client: ClientContext) -> None:
        """Deliver a request to the broker. If that raises, the caller gets an error at once instead of a time-out."""
        try:
            broker.receive(exchange_id, request, client)
        except Exception:
            exchange = self._open.get(broker.broker_id, {}).pop(exchange_id, None)
            if exchange is not None:
                self._post(exchange.caller.deliver, Answer(exchange.call_id, None, Errors.UNKNOWN_SERVER_ERROR))
            raise

    def answer(self, broker: Receiver, exchange_id: int, response: Response) -> None:
        """Deliver a broker's response to the caller; a response after the deadline is dropped."""
        exchange = self._open.get(broker.broker_id, {}).get(exchange_id)
        if exchange is None:
            return
        if exchange.complete is not None:
            response = exchange.complete(response)
        if self._trace:
            self._record(_response_sent(broker, exchange.caller, exchange_id, response))
        if self._faults.active:
            self._post_at_risk(exchange.sender, broker.broker_id, self._deliver, broker, exchange_id, response)
            return
        del self._open[broker.broker_id][exchange_id]
        self._post(exchange.caller.deliver, Answer(exchange.call_id, response))

    def complete(self, broker: Receiver, exchange_id: int, complete: Callable[[Any], Response]) -> None:
        """Let `complete(response)` finish the response to a pending request, of which the broker answers a part."""
        exchanges = self._open.get(broker.broker_id, {})
        if exchange_id in exchanges:
            exchanges[exchange_id] = exchanges[exchange_id]._replace(complete=complete)

    def _deliver(self, broker: Receiver, exchange_id: int, response: Response) -> None:
        """A response arrives late: its request may have timed out, or the broker left, meanwhile."""
        exchange = self._open.get(broker.broker_id, {}).pop(exchange_id, None)
        if exchange is not None:
            exchange.caller.deliver(Answer(exchange.call_id, response))

    def fail(self, broker: Receiver, exchange_id: int, error: Errors) -> None:
        """Deliver an error in place of a response, as if the connection had broken."""
        exchange = self._open.get(broker.broker_id, {}).pop(exchange_id, None)
        if exchange is not None:
            self._post(exchange.caller.deliver, Answer(exchange.call_id, None, error))

    def awaits(self, caller: Caller, broker_id: int) -> bool:
        """True if the broker has a pending request of this caller."""
        return any(exchange.caller is caller for exchange in self._open.get(broker_id, {}).values())

    def disconnect(self, connection_id: int, broker_id: int | None = None) -> None:
        """Close a client's connections to one broker or all brokers, and deliver the closing to them."""
        for broker in self._brokers.values():
            if broker_id is None or broker_id == broker.broker_id:
                self._post(broker.connection_closed, connection_id)

    def _post(self, call: Callable[..., object], *args: object) -> None:
        if self.latency_ms:
            self._loop.at(self._loop.time_ms() + self.latency_ms, lambda: call(*args))
        else:
            self._loop.post(call, *args)

    def _post_at_risk(self, sender: int, broker_id: int, call: Callable[..., object], *args: object) -> None:
        """Post a message that may be lost or late. The request of a lost one stays open until its time is up."""
        late_ms = self._faults.fate(sender, broker_id)
        if late_ms:
            self._loop.at(self._loop.time_ms() + late_ms, lambda: self._post(call, *args))
        elif late_ms == 0:
            self._post(call, *args)

    def _sweep_at(self, due_ms: int) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._sweeper = self._loop.at(due_ms, self._sweep)

    def _sweep(self) -> None:
        """Fail the requests whose deadline has passed."""
        now_ms = self._loop.time_ms()
        self._sweeper = None
        for exchanges in self._open.values():
            for exchange_id in [i for i, e in exchanges.items() if e.deadline_ms <= now_ms]:
                exchange = exchanges.pop(exchange_id)
                self._post(exchange.caller.deliver, Answer(exchange.call_id, None, Errors.REQUEST_TIMED_OUT))
        earliest = min((e.deadline_ms for x in self._open.values() for e in x.values()), default=None)
        if earliest is not None:
            self._sweep_at(earliest)


def _request_sent(
    caller: Caller, broker: Receiver, exchange_id: int, request: Request, client: ClientContext
) -> RequestSent:
    api, version = type(request).__name__, client.api_version
    return RequestSent(caller.name, broker.name, api, exchange_id, client.client_id, version, message_json(request))


def _response_sent(broker: Receiver, caller: Caller, exchange_id: int, response: Response) -> ResponseSent:
    api, error = type(response).__name__, int(getattr(response, "error_code", 0))
    return ResponseSent(broker.name, caller.name, api, error, exchange_id, message_json(response))
