"""The broker's stock of producer ids. The controller allocates them in blocks, so that they are unique in the cluster.

Source: KIP-730; Kafka's RPCProducerIdManager.
"""

from __future__ import annotations

from shareq.model.actor import ANY_NODE
from shareq.model.messages.transactions import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from shareq.model.workflow import Promise, Send, Workflow

LOW_MARK = 100
"""The next block is requested when at most this many ids are left (Kafka: at 90 % use of a block of 1000)."""


class ProducerIds:
    """The stock of one broker. No block is requested before the first id is needed."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._block = range(0)
        self._next_block = range(0)
        self._is_wanted = False
        self._is_fetching = False
        self._waiting: list[Promise[bool]] = []

    @property
    def has_ids(self) -> bool:
        return bool(self._block or self._next_block)

    @property
    def is_low(self) -> bool:
        """True if a block is needed and not requested yet."""
        low = len(self._block) <= LOW_MARK and not self._next_block
        return self._is_wanted and low and not self._is_fetching

    def take(self) -> int | None:
        """An unused id; None if the stock is empty. Either way `is_low` then decides on the next request."""
        self._is_wanted = True
        if not self._block:
            self._block, self._next_block = self._next_block, range(0)
        if not self._block:
            return None
        taken, self._block = self._block[0], self._block[1:]
        return taken

    def wait_until_available(self) -> Workflow[bool]:
        """Wait until an id is available; False if a request to the controller brought none."""
        while not self.has_ids:
            self._is_wanted = True
            promise: Promise[bool] = Promise()
            self._waiting.append(promise)
            if not (yield promise):
                return False
        return True

    def fetch(self) -> Workflow[None]:
        """Request a block. If that fails, the next request that needs an id repeats it."""
        self._is_fetching = True
        reply = yield Send(ANY_NODE, AllocateProducerIdsRequest(broker_id=self._broker_id))
        self._is_fetching = self._is_wanted = False
        response = reply.response
        if isinstance(response, AllocateProducerIdsResponse) and not response.error_code:
            first = response.producer_id_start
            self._next_block = range(first, first + response.producer_id_len)
        waiting, self._waiting = self._waiting, []
        is_available = self.has_ids
        for promise in waiting:
            promise.keep(is_available)
