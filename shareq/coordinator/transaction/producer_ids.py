"""Producer ids in stock: the controller hands out blocks, so that no two brokers ever use the same id.

Source: KIP-730; Kafka's RPCProducerIdManager.
"""

from __future__ import annotations

from collections.abc import Callable

from shareq.model.actor import ANY_NODE, Answer, Call
from shareq.model.messages.transactions import AllocateProducerIdsRequest, AllocateProducerIdsResponse

LOW_MARK = 100
"""With so few left the next block is asked for (Kafka: nine tenths of a block of 1000 are used)."""


class ProducerIds:
    """One broker's stock. Nothing is asked for before the first id is wanted."""

    def __init__(self, broker_id: int, next_id: Callable[[], int]) -> None:
        self._broker_id = broker_id
        self._next_id = next_id
        self._block = range(0)
        self._next_block = range(0)
        self._wanted = False
        self._call_id: int | None = None

    @property
    def at_hand(self) -> bool:
        return bool(self._block or self._next_block)

    def want(self) -> None:
        """Somebody waits for an id."""
        self._wanted = True

    def take(self) -> int | None:
        """An id that nobody had before; None where the stock is empty, which is then filled."""
        self._wanted = True
        if not self._block:
            self._block, self._next_block = self._next_block, range(0)
        if not self._block:
            return None
        taken, self._block = self._block[0], self._block[1:]
        return taken

    def refill(self) -> list[Call]:
        """Ask for a block, where one is wanted, missing and not asked for yet."""
        low = len(self._block) <= LOW_MARK and not self._next_block
        if not (self._wanted and low) or self._call_id is not None:
            return []
        self._call_id = self._next_id()
        return [Call(self._call_id, ANY_NODE, AllocateProducerIdsRequest(broker_id=self._broker_id))]

    def answered(self, answer: Answer) -> bool:
        """Whether this answer is ours. Where it brings nothing, the next one who wants an id asks again."""
        if answer.id != self._call_id:
            return False
        self._call_id = None
        self._wanted = False
        response = answer.response
        if isinstance(response, AllocateProducerIdsResponse) and not response.error_code:
            first = response.producer_id_start
            self._next_block = range(first, first + response.producer_id_len)
        return True
