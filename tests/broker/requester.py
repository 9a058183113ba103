"""A connection with an API version of its choice, as over TCP: the broker validates its batches."""

from __future__ import annotations

from typing import Any

from shareq.broker import Cluster
from shareq.model.actor import ANY_NODE, Answer, Call, ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.base import Request


class Requester:
    """Sends the requests of a test in the given version and keeps the responses."""

    name = "requester"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.answers: dict[int, Answer] = {}
        self.connection_id = cluster.connection_id()
        self._ids = 0

    def deliver(self, message: Answer) -> None:
        self.answers[message.id] = message

    def send(self, request: Request, version: int, node: int = ANY_NODE) -> int:
        """Send without waiting; returns the id of the call."""
        self.cluster.loop.enter(lambda: self.post(request, version, node))
        return self._ids

    def post(self, request: Request, version: int, node: int = ANY_NODE) -> int:
        """Send from inside the loop, before any effect of the request runs."""
        self._ids += 1
        call = Call(self._ids, node, request)
        client = ClientContext(self.name, connection_id=self.connection_id, api_version=version)
        self.cluster._runtime.network.call(self, call, client)
        return call.id

    def answered(self, call_id: int) -> bool:
        return call_id in self.answers

    def response(self, call_id: int) -> Any:
        answer = self.answers[call_id]
        assert answer.error is Errors.NONE, answer.error.name
        return answer.response

    def ask(self, request: Request, version: int, node: int = ANY_NODE) -> Any:
        """Send, wait for the response and return it."""
        call_id = self.send(request, version, node)
        assert self.cluster.wait(lambda: self.answered(call_id), 60)
        return self.response(call_id)
