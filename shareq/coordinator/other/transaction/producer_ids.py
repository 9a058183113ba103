"""Producer ids in stock: the controller hands out blocks, so that no two brokers ever use the same id.

Source: KIP-730; Kafka's RPCProducerIdManager.
"""

from __future__ import annotations

from shareq.model.actor import ANY_NODE
from shareq.model.messages.transactions import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from shareq.model.workflow import Ask, Promise, Workflow

LOW_MARK = 100
"""With so few left the next block is asked for (Kafka: nine tenths of a block of 1000 are used)."""


class ProducerIds:
    """One broker's stock. No block is requested before the first id is wanted."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._block = range(0)
        self._next_block = range(0)
        self._wanted = False
        self._under_way = False
        self._waiting: list[Promise[bool]] = []

    @property
    def at_hand(self) -> bool:
        return bool(self._block or self._next_block)

    @property
    def is_low(self) -> bool:
        """True if a block is wanted, missing and not requested yet."""
        low = len(self._block) <= LOW_MARK and not self._next_block
        return self._wanted and low and not self._under_way

    def take(self) -> int | None:
        """An id that was never used; None where the stock is empty, which is then filled."""
        self._wanted = True
        if not self._block:
            self._block, self._next_block = self._next_block, range(0)
        if not self._block:
            return None
        taken, self._block = self._block[0], self._block[1:]
        return taken

    def stocked(self) -> Workflow[bool]:
        """Wait for an id; False where the controller has given none."""
        while not self.at_hand:
            self._wanted = True
            promise: Promise[bool] = Promise()
            self._waiting.append(promise)
            if not (yield promise):
                return False
        return True

    def fetch(self) -> Workflow[None]:
        """Ask for a block. Where the answer brings none, the next request that wants an id asks again."""
        self._under_way = True
        reply = yield Ask(ANY_NODE, AllocateProducerIdsRequest(broker_id=self._broker_id))
        self._under_way = self._wanted = False
        response = reply.response
        if isinstance(response, AllocateProducerIdsResponse) and not response.error_code:
            first = response.producer_id_start
            self._next_block = range(first, first + response.producer_id_len)
        waiting, self._waiting = self._waiting, []
        has_come = self.at_hand
        for promise in waiting:
            promise.keep(has_come)
