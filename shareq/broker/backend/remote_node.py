"""A node of another process on the same backend: requests to it travel over TCP. BEHAVIOUR.md, section 6."""

from __future__ import annotations

from functools import partial

from shareq.broker.backend.client import BackendClient
from shareq.broker.network import Network
from shareq.model.actor import Answer, ClientContext
from shareq.model.messages.base import Request

REQUEST_TIMEOUT_MS = 600_000
"""The time-out of a client's request: a rebalance takes minutes. It ends early when the process is no longer one of
those on the backend."""


class RemoteNode:
    """A receiver of requests, which it passes on; each connection of a client has one of its own to the other process.

    `address` is where the node is; a node with another address is another object.
    """

    def __init__(self, broker_id: int, address: tuple[str, int], client: BackendClient, network: Network) -> None:
        self.broker_id = broker_id
        self.name = f"broker-{broker_id}"
        self.address = address
        self._client = client
        self._network = network
        self._lanes: set[str] = set()

    def receive(self, exchange_id: int, request: Request, client: ClientContext) -> None:
        """Send a request to the other process."""
        lane = self._lane(client.connection_id)
        self._lanes.add(lane)
        self._client.call(
            self.broker_id,
            request,
            partial(self._answered, exchange_id),
            lane=lane,
            client_id=client.client_id,
            timeout_ms=REQUEST_TIMEOUT_MS,
            version=client.api_version,
        )

    def _lane(self, connection_id: int) -> str:
        return f"{self.broker_id}-{connection_id}"

    def _answered(self, exchange_id: int, answer: Answer) -> None:
        if answer.response is None:
            self._network.fail(self, exchange_id, answer.error)
        else:
            self._network.answer(self, exchange_id, answer.response)

    def connection_closed(self, connection_id: int) -> None:
        lane = self._lane(connection_id)
        if lane in self._lanes:
            self._lanes.discard(lane)
            self._client.close_lane(lane)

    def die(self) -> None:
        """Close all connections to the other process, which may hang."""
        for lane in self._lanes:
            self._client.close_lane(lane, at_once=True)
